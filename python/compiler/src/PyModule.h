//===- PyModule.h: a module as Python sees it --------------------------------===//
#pragma once
#include "astra/Distribute/Distribute.h"
#include <memory>
#include <mutex>

namespace astra::python {

struct PyModule {
  Module m;
  std::shared_ptr<std::mutex> busy = std::make_shared<std::mutex>(); // a context belongs to one thread at a time
  uint64_t bucket = usualBucket;                                     // how shards exchange, as PipelineOptions has it
  bool overlap = true;
};

} // namespace astra::python
