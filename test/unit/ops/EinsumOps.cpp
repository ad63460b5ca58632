//===- EinsumOps.cpp: Einstein sums beside those of a graph -----------------===//
#include "Ops.h"
#include "astra/Compose/Einsum.h"

using namespace astra;
using namespace astra::test;

namespace {

class EinsumOps : public test::Ops {
protected:
  Tensor einsum(const std::string &text, const std::vector<Strided> &xs) {
    std::vector<const astra_view *> views;
    for (const Strided &x : xs) views.push_back(&x.view);
    astra_view out = ASTRA_INIT(astra_view);
    EXPECT_EQ(astra_ops_einsum(library, stream, text.c_str(), views.data(), uint32_t(views.size()), &out, &diag),
              ASTRA_OK)
        << diag.text << ": " << text;
    Tensor t = denseOf(out);
    astra_buffer_free(&out.buffer);
    return t;
  }
  Tensor inAGraph(const std::string &text, const std::vector<Strided> &xs) {
    std::vector<Tensor> inputs;
    for (const Strided &x : xs) inputs.push_back(denseOf(x.view));
    return expected(inputs,
                    [&](compose::Composer &b, llvm::ArrayRef<UOpRef> x) { return compose::einsum(b, text, x); });
  }
  void same(const std::string &text, const std::vector<Strided> &xs) {
    Tensor got = einsum(text, xs), want = inAGraph(text, xs);
    EXPECT_EQ(got.shape, want.shape) << text;
    EXPECT_TRUE(got.bytes == want.bytes) << text;
  }
};

TEST_F(EinsumOps, GivesTheBitsOfAGraph) {
  struct {
    const char *text;
    std::vector<Extents> shapes;
  } cases[] = {
      {"ij,jk->ik", {{3, 700}, {700, 4}}},
      {"ij,jk", {{3, 5}, {5, 4}}},
      {"ij,kj->ki", {{3, 5}, {4, 5}}},
      {"bij,bjk->bik", {{2, 3, 5}, {2, 5, 4}}},
      {"bij,jk->ikb", {{2, 3, 5}, {5, 4}}},
      {"...ij,...jk->...ik", {{2, 1, 3, 5}, {4, 5, 2}}},
      {"...,...", {{3, 1}, {4}}},
      {"ii->i", {{4, 4}}},
      {"ii", {{4, 4}}},
      {"iji->j", {{3, 5, 3}}},
      {"ijk->ki", {{3, 5, 4}}},
      {"abcd->dbca", {{2, 3, 4, 5}}},
      {"i,j->ij", {{3}, {4}}},
      {"i,i->", {{900}, {900}}},
      {"ij,ij->ij", {{3, 4}, {3, 4}}},
      {"ij,kl->", {{3, 4}, {5, 6}}},
      {"abcd,cdef->abef", {{2, 3, 8, 9}, {8, 9, 3, 2}}},
      {"abc,cba->", {{4, 5, 6}, {6, 5, 4}}},
      {"ij,jk->ik", {{3, 1}, {5, 4}}},
      {"ij,j->i", {{3, 0}, {0}}},
      {",ij->ji", {{}, {2, 3}}},
      {"ij,jk,kl->il path=[(1, 2), (0, 1)]", {{3, 9}, {9, 4}, {4, 5}}},
      {"ij,jk,kl->il path=[(0, 1), (0, 1),]", {{3, 9}, {9, 4}, {4, 5}}},
      {"ij,jk,kl path=[(0,1,2)]", {{3, 9}, {9, 4}, {4, 5}}},
      {"ab,bc,cd,da-> path=[(0, 2), (0, 1), (1, 0)]", {{3, 4}, {4, 5}, {5, 2}, {2, 3}}},
      {"i j , j k -> i k path=[(0, 1)]", {{3, 5}, {5, 4}}},
      {"Ab,bC,b->CA path=[(1, 2), (1, 0)]", {{3, 4}, {4, 5}, {4}}},
  };
  Random random(11);
  for (int32_t dtype : {ASTRA_F32, ASTRA_F64, ASTRA_F16, ASTRA_BF16, ASTRA_I32, ASTRA_U8, ASTRA_C64, ASTRA_C128})
    for (auto &[text, shapes] : cases)
      for (bool strided : {false, true}) {
        std::vector<Strided> xs;
        for (const Extents &shape : shapes) xs.push_back(tensorOf(random, dtype, shape, strided));
        same(text, xs);
        if (HasFailure()) FAIL() << info(typeOf(dtype)).text << (strided ? " strided" : "");
      }
}

TEST_F(EinsumOps, SeveralLabelsOfALongSumAreOneAxis) {
  Random random(12);
  std::vector<Strided> xs;
  xs.push_back(tensorOf(random, ASTRA_F32, {3, 40, 50}, false));
  xs.push_back(tensorOf(random, ASTRA_F32, {40, 50, 4}, false));
  std::vector<Tensor> inputs = {denseOf(xs[0].view), denseOf(xs[1].view)};
  inputs[0].shape = {3, 2000}, inputs[1].shape = {2000, 4};
  Tensor want = expected(
      inputs, [&](compose::Composer &b, llvm::ArrayRef<UOpRef> x) { return compose::einsum(b, "ij,jk->ik", x); });
  EXPECT_TRUE(einsum("iab,abk->ik", xs).bytes == want.bytes);
}

TEST_F(EinsumOps, IntoAStridedResult) {
  Random random(13);
  std::vector<Strided> xs;
  xs.push_back(tensorOf(random, ASTRA_F32, {3, 5}, true));
  xs.push_back(tensorOf(random, ASTRA_F32, {5, 4}, true));
  Strided out = tensorOf(random, ASTRA_F32, {4, 3}, true);
  const astra_view *views[] = {&xs[0].view, &xs[1].view};
  ASSERT_EQ(astra_ops_einsum(library, stream, "ij,jk->ki", views, 2, &out.view, &diag), ASTRA_OK) << diag.text;
  EXPECT_TRUE(denseOf(out.view).bytes == inAGraph("ij,jk->ki", xs).bytes);
}

TEST_F(EinsumOps, TheResultIsNoOperand) {
  Random random(15);
  Strided a = tensorOf(random, ASTRA_F32, {4, 4}, false), b = tensorOf(random, ASTRA_F32, {4, 4}, false);
  const astra_view *operands[] = {&a.view, &b.view};
  for (const char *text : {"ij,ij->ij", "ij,jk->ik", "ij,ji->ij"}) {
    astra_view out = b.view;
    EXPECT_EQ(astra_ops_einsum(library, stream, text, operands, 2, &out, &diag), ASTRA_OVERLAP) << text;
    EXPECT_STREQ(diag.text, "einsum: the result overlaps operand 1; give it memory of its own");
  }
}

TEST_F(EinsumOps, RefusesWithASentence) {
  Random random(14);
  Strided a = tensorOf(random, ASTRA_F32, {3, 5}, false), b = tensorOf(random, ASTRA_F32, {5, 4}, false),
          i = tensorOf(random, ASTRA_I32, {5, 4}, false), t = tensorOf(random, ASTRA_BOOL, {3, 5}, false);
  struct {
    const char *text;
    std::vector<const astra_view *> operands;
    const char *sentence;
  } wrong[] = {
      {"ij->ik", {&a.view, &b.view}, "the equation has 1 operands, and 2 are given"},
      {"ij,jk,kl", {&a.view, &b.view}, "the equation has more than the 2 operands that are given"},
      {"ij,jk->iz", {&a.view, &b.view}, "axis 'z' of the result is in no operand"},
      {"i1,jk->i", {&a.view, &b.view}, "'1,jk->i' in the equation is no letter, and no ellipsis that is the only one"},
      {"......,jk", {&a.view, &b.view}, "'...,jk' in the equation is no letter, and no ellipsis that is the only one"},
      {"ij,jkl->i", {&a.view, &b.view}, "operand 1 has 2 axes, its part of the equation names 3"},
      {"ij,ik->i", {&a.view, &b.view}, "axis 0 of operand 1 has 5 elements; it must have 3"},
      {"ii", {&a.view}, "axis 1 of operand 0 has 5 elements; it must have 3"},
      {"ij,jk->ii", {&a.view, &b.view}, "the result names an axis twice"},
      {"ij,jk->i,k", {&a.view, &b.view}, "an equation has one result"},
      {"ij,jk-ik", {&a.view, &b.view}, "'-ik' in the equation is no arrow"},
      {"i...,jk->i", {&a.view, &b.view}, "the operands of the equation have an ellipsis, its result has none"},
      {"ij,jk path=[(0 1)]", {&a.view, &b.view}, "the path '[(0 1)]' is not written as [(0, 1), (0, 2)]"},
      {"ij,jk path=[(0, 1)] x", {&a.view, &b.view}, "the path '[(0, 1)] x' is not written as [(0, 1), (0, 2)]"},
      {"ij,jk path=[(0, 99999999999)]", {&a.view, &b.view}, "a step of the path names operand 9999, and 2 are left"},
      {"ij,jk path=[(1, 1)]", {&a.view, &b.view}, "a step of the path names operand 1 twice"},
      {"ij,jk path=[()]", {&a.view, &b.view}, "a step of the path names no operand"},
      {"ij,jk path=[]", {&a.view, &b.view}, "the path leaves 2 operands, and one is the result"},
      {"ij,jk memory=9", {&a.view, &b.view}, "'memory=9' behind the equation; libastra_ops takes a path alone"},
      {"ij,jk,lj", {&a.view, &b.view, &a.view}, "3 operands need an order"},
      {"ij,jk", {&a.view, &i.view}, "operand 1 is i32 and operand 0 f32; cast one"},
      {"ij", {&t.view}, "it takes no bool; cast the operands to i32"},
      {"ij", {}, "0 operands; 1 to 32 are allowed"},
  };
  for (auto &[text, operands, sentence] : wrong) {
    astra_view out = ASTRA_INIT(astra_view);
    const astra_view *none = nullptr;
    EXPECT_NE(astra_ops_einsum(library, stream, text, operands.empty() ? &none : operands.data(),
                               uint32_t(operands.size()), &out, &diag),
              ASTRA_OK)
        << text;
    EXPECT_NE(std::string(diag.text).find(sentence), std::string::npos) << text << ": " << diag.text;
    EXPECT_EQ(out.buffer, nullptr);
  }
}

} // namespace
