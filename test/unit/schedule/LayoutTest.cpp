//===- LayoutTest.cpp: tensors arranged as their layouts say ---------------===//
// Takes:    layouts with blocks of any axis, divided twice, permuted; extents that are no multiples of blocks; a
//           scalar.
// Gives:    each element at its `address`, zeros elsewhere.
#include "astra/Schedule/Layout.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;

namespace {

void check(const Layout &l, std::vector<int64_t> shape, unsigned bytes) {
  Context c;
  std::vector<UOpRef> extents;
  int64_t elements = 1;
  for (int64_t e : shape) extents.push_back(c.index(e)), elements *= e;
  std::mt19937 gen(7);
  std::vector<uint8_t> from(elements * bytes), expected(*elementCount(c, l, extents)->constIndex() * bytes);
  for (uint8_t &b : from) b = uint8_t(1 + gen() % 255);
  for (int64_t i = 0; i < elements; ++i) {
    std::vector<UOpRef> index(shape.size());
    int64_t rest = i;
    for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) index[a] = c.index(rest % shape[a]);
    int64_t at = *address(c, l, extents, index)->constIndex();
    std::copy_n(from.begin() + i * bytes, bytes, expected.begin() + at * bytes);
  }
  EXPECT_EQ(arrange(l, shape, bytes, from), expected) << text(l) << ", " << bytes << " bytes";
}

TEST(Layouts, PutEachElementAtItsAddress) {
  for (unsigned bytes : {1u, 2u, 4u, 8u, 16u}) {
    check(Layout::rowMajor(0), {}, bytes);
    check(Layout::rowMajor(3), {3, 1, 5}, bytes);
    check(Layout::permuted({0, 2, 3, 1}), {2, 3, 4, 5}, bytes);
    check({{{1, 16}, {0}, {1, 1, 16}}}, {5, 40}, bytes);                     // panels of a matrix
    check({{{0, 16}, {1}, {0, 1, 16}}}, {40, 5}, bytes);                     // of a transposed one
    check({{{1, 16}, {0, 4}, {1, 1, 16}, {0, 1, 4}}}, {7, 33}, bytes);       // words of four rows
    check({{{0, 8}, {1, 4}, {2}, {1, 1, 4}, {0, 1, 8}}}, {17, 6, 3}, bytes); // of a convolution's weights
    check({{{0}, {1, 1, 4}, {1, 4}}}, {3, 10}, bytes);                       // the innermost one takes every fourth
    check({{{0, 8}, {0, 2, 4}, {1}, {0, 1, 2}}}, {11, 3}, bytes);            // an axis in three
    check({{{1}, {0}}}, {0, 4}, bytes);
  }
}

} // namespace
