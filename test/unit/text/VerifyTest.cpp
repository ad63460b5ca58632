//===- VerifyTest.cpp: rules for kernels and for modules made by hand ------===//
#include "astra/IR/Verify.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include <gtest/gtest.h>

using namespace astra;

static std::string kernelError(llvm::StringRef text, Stage stage = Stage::Kernel) {
  Context c;
  auto nodes = parseListing(c, text, "k.uop");
  if (!nodes) return llvm::toString(nodes.takeError());
  return llvm::toString(verifyKernel(nodes->back(), stage));
}

TEST(Verify, Kernels) {
  std::string good = R"(dim n in 0..64
%0 = buffer [n*4] slot=0 : f32
%1 = buffer [n*64] slot=1 : f32
%2 = range [n] axis=0 kind=parallel
%3 = range [64] axis=1 kind=fold
%4 = const -0.0 : f32
%5 = load %1 [%2*64 + %3] : f32
%6 = fold %4, %5 [%3] combine=add nvalues=1
%7 = range [4] axis=2 kind=vector
%8 = store %0, %6 [%2*4 + %7]
%9 = sink %8
)";
  EXPECT_EQ(kernelError(good), "");
  EXPECT_EQ(kernelError(good, Stage::Expanded),
            "kernel, at r2: expanded: a vector or unroll range is left after expansion");
  std::string open = good;
  open.replace(open.find("%0, %6"), 6, "%0, %5");
  EXPECT_EQ(kernelError(open), "kernel, at store: depends on the fold range of axis 1, which nothing closes");
  std::string twice = good;
  twice.replace(twice.find("axis=2 kind=vector"), 18, "axis=0 kind=vector");
  EXPECT_EQ(kernelError(twice), "kernel, at r0: two ranges have the axis number 0");
  std::string two = good;
  two.replace(two.find("kind=vector"), 11, "kind=parallel");
  EXPECT_EQ(kernelError(two), "kernel, at store: depends on 2 parallel ranges, at most one is allowed");
  std::string graph = good;
  graph.replace(graph.find("%6 = fold %4, %5 [%3] combine=add nvalues=1"), 43, "%6 = exp %5");
  EXPECT_EQ(kernelError(graph), "kernel, at exp: decomposed: a function or random op is left after the numerics stage");
}

TEST(Verify, ModulesMadeByHand) {
  Module m;
  Builder b(m.ctx());
  UOpRef n = b.dim("n", 0, 4), x = b.arg(0, DType::F32, {n}), w = b.param("w", DType::F32, {b.idx(2)});
  m.entries.push_back({"main", {{"x", x}}, {{"y", b.un(Op::Neg, x)}}, {}});
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "entry @main: dim n is not declared");
  m.dims.push_back(n);
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "");
  m.entries[0].outputs.push_back({"z", b.un(Op::Exp, w)});
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "entry @main: @w is not declared");
  m.params.push_back({w, std::make_shared<const std::vector<uint8_t>>(7), "", ""});
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "@w has 7 bytes of data, expected 8");
  m.params[0].data = nullptr;
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "");
  EXPECT_EQ(llvm::toString(verify(m, Stage::Numbers)),
            "entry @main: at exp: decomposed: a function or random op is left after the numerics stage");
}

TEST(Verify, FactsAreTheModulesEquations) {
  Module m;
  Builder b(m.ctx());
  UOpRef n = b.dim("n", 0, 8), h = b.dim("h", 0, 4), x = b.arg(0, DType::F32, {n});
  Equation halves{n, idxMul(b.c, h, b.idx(2))};
  m.ctx().equations = {halves};
  UOpRef y = b.reshape(x, {h, b.idx(2)});
  m.dims = {n, h};
  m.entries.push_back({"main", {{"x", x}}, {{"y", y}}, {}});
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)),
            "entry @main: at reshape: reshape: from f32[n] to f32[h, 2]: that the numbers of elements are equal does "
            "not follow from the module's equations");
  m.equations = {halves};
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "");
}

TEST(Verify, LoopsCarryDimsOfTheirOwn) {
  Module m = llvm::cantFail(parse(R"(module @m {
  func @go[len in 0..8](%x : f32[len], %i : i64) {
    %more = lt %i, 3
    return %more
  }
  func @step[len in 0..8](%x : f32[len], %i : i64) {
    %j = add %i, 1
    return %x, %j
  }
  entry @main(%x : f32[3], %i : i64) -> (%y : i64) {
    %0 = while(@go, @step) %x, %i [3] names=len
    %y = proj %0 index=1
  }
}
)",
                                  "loop.uop"));
  EXPECT_EQ(llvm::toString(verify(m, Stage::Graph)), "");
  m.dims.push_back(Builder(m.ctx()).dim("len", 0, 8));
  std::string found = llvm::toString(verify(m, Stage::Graph));
  EXPECT_NE(found.find("dim len is the module's: a while has dims of its own"), found.npos) << found;
}
