//===- EinsumTest.cpp: Einstein sums, the order of contraction -------------===//
#include "astra/Compose/Einsum.h"
#include "Compose.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace astra;
using namespace astra::compose;

namespace {

struct Einsum : testing::Test {
  Context c;
  Composer b{c};

  Dims dims(llvm::ArrayRef<int64_t> extents) {
    Dims d;
    for (int64_t n : extents) d.push_back(b.idx(n));
    return d;
  }
  std::string planOf(llvm::StringRef text, llvm::ArrayRef<Dims> shapes) {
    std::optional<EinsumPlan> plan = einsumPlan(b, text, shapes);
    return plan ? plan->text : b.takeFailure().error.value_or("");
  }
};

/// The fewest products of all trees, one pair after another.
Cost fewest(const Contraction &c, std::vector<PathStep> steps, size_t left) {
  if (left == 1) return costOf(c, {steps, {}}).flops;
  Cost best = mostCost;
  for (unsigned i = 0; i < left; ++i)
    for (unsigned k = i + 1; k < left; ++k) {
      steps.push_back({i, k});
      best = std::min(best, fewest(c, steps, left - 1));
      steps.pop_back();
    }
  return best;
}

Contraction randomContraction(std::mt19937 &random, unsigned operands, unsigned labels) {
  Contraction c;
  for (unsigned l = 0; l < labels; ++l) c.extents.push_back(1 + int64_t(random() % 7));
  std::vector<unsigned> holders(labels);
  for (unsigned i = 0; i < operands; ++i) {
    c.operands.emplace_back();
    for (unsigned l = 0; l < labels; ++l)
      if (random() % 3 == 0) c.operands.back().push_back(l), ++holders[l];
  }
  for (unsigned l = 0; l < labels; ++l)
    if (holders[l] && random() % 4 == 0) c.result.push_back(l);
  for (auto &o : c.operands) // a label of one operand alone is summed ahead
    llvm::erase_if(o, [&](unsigned l) { return holders[l] == 1 && !llvm::is_contained(c.result, l); });
  return c;
}

TEST_F(Einsum, Values) {
  UOpRef x = tensor(b, {2, 3}, {1, 2, 3, 4, 5, 6}), y = tensor(b, {3, 2}, {1, 2, 3, 4, 5, 6});
  expectValues(b, einsum(b, "ij,jk->ik", {x, y}), {2, 2}, {22, 28, 49, 64});
  expectValues(b, einsum(b, "ij,jk", {x, y}), {2, 2}, {22, 28, 49, 64});
  expectValues(b, einsum(b, "ij->ji", {x}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expectValues(b, einsum(b, "ij->", {x}), {}, {21});
  expectValues(b, einsum(b, "...j,...j->...", {x, x}), {2}, {14, 77});
  expectValues(b, einsum(b, "ii->i", {tensor(b, {2, 2}, {1, 2, 3, 4})}), {2}, {1, 4});
  expectValues(b, einsum(b, "ii", {tensor(b, {2, 2}, {1, 2, 3, 4})}), {}, {5});
  expectValues(b, einsum(b, "ij,jk,kl->li path=[(1, 2), (0, 1)]", {x, y, x}), {3, 2}, {134, 305, 184, 418, 234, 531});
  expectValues(b, einsum(b, "ij,jk,kl->li path=[(0, 1), (0, 1)] slices=jl", {x, y, x}), {3, 2},
               {134, 305, 184, 418, 234, 531});
  expectValues(b, einsum(b, "äö,öü->äü", {x, y}), {2, 2}, {22, 28, 49, 64});
  expectValues(b, einsum(b, "ij,kl->", {x, y}), {}, {441});
}

TEST_F(Einsum, RefusesWithASentence) {
  UOpRef x = tensor(b, {2, 3}, {1, 2, 3, 4, 5, 6}), y = tensor(b, {3, 2}, {1, 2, 3, 4, 5, 6});
  struct {
    const char *text, *sentence;
  } wrong[] = {
      {"ij->ik", "the equation has 1 operands, and 2 are given"},
      {"ij,jk->iz", "axis 'z' of the result is in no operand"},
      {"i1,jk->i", "the part 'i1' of the equation is not letters with one ellipsis at most"},
      {"ij,jk\xff->i", "the part 'jk\xff' of the equation is not letters with one ellipsis at most"},
      {"ij,jkl->i", "operand 1 has 2 axes, the part 'jkl' of the equation names 3"},
      {"ij,ik->i", "extents 2 and 3 of axis 'i' are not equal"},
      {"ij,jj->i", "extents 3 and 2 of axis 'j' are not equal"},
      {"ij,jk->ii", "the result of the equation names an axis twice"},
      {"i...,jk->i", "the operands of the equation have an ellipsis, its result has none"},
      {"ij,jk path=[(0 1)]", "the path '[(0 1)]' is not written as [(0, 1), (0, 2)]"},
      {"ij,jk path=[(0, 1)", "the path '[(0, 1)' is not written as [(0, 1), (0, 2)]"},
      {"ij,jk path=[(0, 2)]", "step 0 of the path names operand 2, and 2 are left"},
      {"ij,jk path=[(1, 1)]", "step 0 of the path names operand 1 twice"},
      {"ij,jk path=[()]", "step 0 of the path names no operand"},
      {"ij,jk path=[]", "the path leaves 2 operands, and one is the result"},
      {"ij,jk slices=j", "slices of an einsum need the path that they are for"},
      {"ij,jk path=[(0, 1)] slices=jj",
       "the slices 'jj' are not labels of the equation, each once and of a known extent"},
      {"ij,kl-> path=[(0, 1)] slices=j", "axis 'j' is sliced, and only one operand has it, which is summed ahead"},
      {"ij,jk memory=many", "the bound on memory 'many' is not a number of elements"},
      {"ij,jk path=[(0, 1)] memory=4",
       "an einsum takes a path and slices, or a bound on memory for which they are chosen"},
  };
  for (auto [text, sentence] : wrong) expectRefusal(b, einsum(b, text, {x, y}), sentence);
  EXPECT_EQ(planOf("ab,cd,ef,gh->abcdefgh", std::vector<Dims>(4, dims({1 << 20, 1 << 20}))).substr(0, 29),
            "ab,cd,ef,gh->abcdefgh path=[(");
}

TEST_F(Einsum, ThePathIsText) {
  std::vector<Dims> chain{dims({10, 20}), dims({20, 30}), dims({30, 5}), dims({5, 40})};
  EXPECT_EQ(planOf("ij, jk, kl, lm", chain), "ij,jk,kl,lm->im path=[(1, 2), (0, 2), (0, 1)]");
  EXPECT_EQ(planOf("ij,jk,kl,lm->im path=[(1, 2), (0, 2), (0, 1)]", chain),
            "ij,jk,kl,lm->im path=[(1, 2), (0, 2), (0, 1)]");
  std::vector<Dims> ring(3, dims({16, 16, 16}));
  EXPECT_EQ(planOf("abc,cde,efa->bdf memory=4000", ring), "abc,cde,efa->bdf path=[(1, 2), (0, 1)] slices=ac");
  std::optional<EinsumPlan> plan = einsumPlan(b, "ij,jk,kl,lm->im", chain);
  ASSERT_TRUE(plan);
  EXPECT_EQ(costText(plan->cost.flops), "6000");
  EXPECT_EQ(costText(plan->cost.largest), "400");
  EXPECT_EQ(plan->steps, (std::vector<std::string>{"jk,kl->jl", "ij,jl->il", "lm,il->im"}));
}

TEST_F(Einsum, ExactPathsAreTheBest) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 300; ++round) {
    Contraction c = randomContraction(random, 2 + round % 4, 3 + round % 5);
    std::optional<ContractionPath> path = choosePath(c);
    ASSERT_TRUE(path);
    EXPECT_EQ(checkPath(path->steps, c.operands.size()), "");
    EXPECT_EQ(costText(costOf(c, *path).flops), costText(fewest(c, {}, c.operands.size()))) << round;
  }
}

TEST_F(Einsum, GreedyPathsKeepWithinABound) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 8; ++round) {
    Contraction c = randomContraction(random, 17 + round, 12);
    ContractionPath path = *choosePath(c);
    EXPECT_EQ(checkPath(path.steps, c.operands.size()), "");
    EXPECT_TRUE(llvm::equal(path.steps, choosePath(c)->steps)) << "the same every time";
    Cost bound = std::max<Cost>(costOf(c, path).largest / 8, 1);
    std::optional<ContractionPath> bounded = choosePath(c, bound);
    ASSERT_TRUE(bounded);
    ContractionCost cost = costOf(c, *bounded);
    for (const StepCost &step : llvm::drop_end(cost.steps)) EXPECT_LE(step.elements, bound);
  }
}

/// Permutations and merged labels change no bit: einsum beside the plain contract over all labels.
TEST_F(Einsum, HasTheBitsOfThePlainContract) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (unsigned round = 0; round < 60; ++round) {
    const int64_t extent = round % 3 ? 2 : 3;
    const unsigned labels = round % 3 ? 14 : 9;
    // Of each label: in both and summed, in both and kept, in one.
    std::string x, y, kept, summed;
    for (unsigned l = 0; l < labels; ++l) {
      unsigned kind = l < 8 && round % 2 ? 0 : random() % 4;
      char letter = char('a' + l);
      if (kind != 3) x += letter;
      if (kind != 2) y += letter;
      (kind == 0 ? summed : kept) += letter;
    }
    if (summed.empty()) continue;
    llvm::shuffle(y.begin(), y.end(), random);
    llvm::shuffle(x.begin(), x.end(), random);
    llvm::shuffle(kept.begin(), kept.end(), random);
    auto operand = [&](llvm::StringRef term) {
      std::vector<int64_t> extents(term.size(), extent);
      int64_t n = 1;
      for (int64_t e : extents) n *= e;
      std::vector<double> numbers(n);
      for (double &v : numbers) v = normal(random);
      return tensor(b, extents, numbers);
    };
    UOpRef ox = operand(x), oy = operand(y);
    // The reduced labels in the order of the first operand, then of the second.
    std::string firsts;
    for (char l : x)
      if (llvm::StringRef(summed).contains(l)) firsts += l;
    std::string all = kept + firsts;
    ContractSpec spec;
    spec.kept = kept.size();
    spec.reduced = firsts.size();
    for (char l : x) spec.a.push_back(label(all.find(l)));
    for (char l : y) spec.b.push_back(label(all.find(l)));
    UOpRef plain = b.contract(spec, ox, oy, dims(std::vector<int64_t>(all.size(), extent)));
    UOpRef ours = einsum(b, x + "," + y + "->" + kept, {ox, oy});
    std::vector<double> expected = valuesOf(b, plain), found = valuesOf(b, ours);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * 8), 0) << x << "," << y << "->" << kept;
  }
}

} // namespace
