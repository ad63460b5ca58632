//===- Runs.h: a module, run in every form ----------------------------------===//
// Takes:    the text of a module with a mesh, whole tensors.
// Gives:    what an entry gives of whole tensors, of all shards in one process, and of any number of ranks.
// Keeps:    the last two have equal bytes, or the test fails.
#pragma once
#include "Engine.h"
#include "astra/Autograd/Autograd.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

namespace astra::test {
inline Tensor numbers(std::vector<int64_t> shape, uint32_t seed, DType t = DType::F32, int64_t below = 0) {
  Tensor out{t, shape, std::vector<uint8_t>(tensorBytes(t, shape))};
  std::mt19937 draw(seed);
  for (int64_t i = 0; i < out.count(); ++i) {
    float f = std::ldexp(float(int32_t(draw())), int(draw() % 6) - 33); // of mixed magnitudes: order shows in the bits
    int64_t k = below ? int64_t(draw() % below) : 0;
    t == DType::F32 ? memcpy(&out.bytes[4 * i], &f, 4) : memcpy(&out.bytes[8 * i], &k, 8);
  }
  return out;
}
inline std::string listing(const Tensor &t) {
  std::string out;
  for (int64_t i = 0; i < t.count(); ++i) {
    float f;
    int64_t k;
    memcpy(&f, &t.bytes[4 * i], 4);
    if (t.dtype == DType::I64) memcpy(&k, &t.bytes[8 * i], 8);
    out += (i ? " " : "") + (t.dtype == DType::I64 ? std::to_string(k) : std::to_string(f));
  }
  return out;
}

inline std::string listing(const EvalResult &r) {
  std::string out;
  for (const Tensor &t : r.outputs) out += listing(t) + "\n";
  for (const auto &[name, t] : r.states) out += name + ": " + listing(t) + "\n";
  return out;
}

inline EvalOptions options() {
  EvalOptions o;
  o.function = evalFunction;
  return o;
}
inline Module parsed(llvm::StringRef text) {
  auto m = parse(text, "test.uop");
  if (!m) {
    ADD_FAILURE() << llvm::toString(m.takeError());
    return {};
  }
  if (auto e = runDirectives(*m)) ADD_FAILURE() << llvm::toString(std::move(e));
  if (auto e = verify(*m, Stage::Graph)) ADD_FAILURE() << llvm::toString(std::move(e));
  return std::move(*m);
}
inline void stageHolds(const Module &m) {
  if (auto e = verify(m, Stage::Graph)) ADD_FAILURE() << llvm::toString(std::move(e)) << print(m);
  std::string text = print(m);
  auto again = parse(text, "again");
  if (!again) FAIL() << llvm::toString(again.takeError()) << text;
  EXPECT_EQ(print(*again), text);
}

struct Outcome {
  EvalResult whole, shards;
  std::string perShard; // text
  bool equal() const { return whole.outputs == shards.outputs && whole.states == shards.states; }
};
/// One entry, of whole tensors, of shards and of ranks.
inline Outcome run(llvm::StringRef text, const EvalInputs &in, llvm::StringRef entry = "main") {
  SCOPED_TRACE(text.str());
  Outcome out;
  Module m = parsed(text);
  if (!m.entry(entry)) return out;
  if (m.mesh.form == MeshForm::Whole) {
    auto whole = evalEntry(m, *m.entry(entry), in, options());
    if (!whole) return ADD_FAILURE() << llvm::toString(whole.takeError()), out;
    out.whole = std::move(*whole);
    if (auto e = partition(m)) return ADD_FAILURE() << llvm::toString(std::move(e)), out;
  }
  stageHolds(m);
  out.perShard = print(m);
  auto shards = evalEntry(m, *m.entry(entry), in, options());
  if (!shards) return ADD_FAILURE() << llvm::toString(shards.takeError()) << out.perShard, out;
  out.shards = std::move(*shards);
  if (auto e = stackShards(m)) return ADD_FAILURE() << llvm::toString(std::move(e)), out;
  stageHolds(m);
  for (bool numerics : {false, true}) {
    if (numerics) {
      joinCollectives(m, 64);
      stageHolds(m);
    }
    if (numerics)
      if (auto e = runNumerics(m)) return ADD_FAILURE() << llvm::toString(std::move(e)), out;
    for (int64_t ranks = 1; ranks <= m.mesh.shards(); ++ranks) {
      if (m.mesh.shards() % ranks || (numerics && ranks != 2)) continue;
      auto r = runRanks(m, *m.entry(entry), in, ranks);
      if (!r) return ADD_FAILURE() << llvm::toString(r.takeError()) << print(m), out;
      EXPECT_EQ(listing(*r), listing(out.shards)) << ranks << " ranks" << print(m);
      EXPECT_TRUE(r->outputs == out.shards.outputs && r->states == out.shards.states) << ranks << " ranks";
    }
  }
  return out;
}
inline size_t count(llvm::StringRef text, llvm::StringRef word) { return text.count(" = " + word.str() + " "); }

inline std::string refusal(llvm::StringRef text) {
  auto m = parse(text, "test.uop");
  if (!m) return llvm::toString(m.takeError());
  if (auto e = verify(*m, Stage::Graph)) return llvm::toString(std::move(e));
  if (auto e = runDirectives(*m)) return llvm::toString(std::move(e));
  if (auto e = partition(*m)) return llvm::toString(std::move(e));
  if (auto e = stackShards(*m)) return llvm::toString(std::move(e));
  return "";
}
} // namespace astra::test
