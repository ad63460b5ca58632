//===- PyModule.h: a module as Python sees it --------------------------------===//
#pragma once
#include "astra/IR/Module.h"
#include <memory>
#include <mutex>

namespace astra::python {

struct PyModule {
  Module m;
  std::shared_ptr<std::mutex> busy = std::make_shared<std::mutex>(); // a context belongs to one thread at a time
};

} // namespace astra::python
