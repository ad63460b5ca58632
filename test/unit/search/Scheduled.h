//===- Scheduled.h: a module's text, scheduled ------------------------------===//
#pragma once
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Schedule/Program.h"
#include <gtest/gtest.h>

namespace astra::test {

struct Scheduled {
  Module module;
  Schedule schedule;
  explicit Scheduled(const std::string &text) {
    auto parsed = parse(text, "m.uop");
    if (!parsed) {
      ADD_FAILURE() << llvm::toString(parsed.takeError());
      return;
    }
    module = std::move(*parsed);
    llvm::cantFail(runNumerics(module));
    auto made = astra::schedule(module);
    if (made)
      schedule = std::move(*made);
    else
      ADD_FAILURE() << llvm::toString(made.takeError());
  }
};

} // namespace astra::test
