//===- MovementTest.cpp: padding, blocks, arithmetic, determinants, boxes ---===//
// Keeps:    expected numbers were worked out by hand.
#include "astra/Compose/Movement.h"
#include "Compose.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Detection.h"
#include "astra/Compose/Matrix.h"

namespace astra::compose {
namespace {

class Movement : public testing::Test {
protected:
  Context c;
  Composer b{c};
};

TEST_F(Movement, Padding) {
  UOpRef x = tensor(b, {3}, {1, 2, 3}), two = b.idx(2), one = b.idx(1);
  auto padded = [&](PadMode mode) { return padAround(b, x, {two}, {one}, mode); };
  expectValues(b, padded(PadMode::Constant), {6}, {0, 0, 1, 2, 3, 0});
  expectValues(b, padded(PadMode::Edge), {6}, {1, 1, 1, 2, 3, 3});
  expectValues(b, padded(PadMode::Reflect), {6}, {3, 2, 1, 2, 3, 2});
  expectValues(b, padded(PadMode::Wrap), {6}, {2, 3, 1, 2, 3, 1});
  expectValues(b, padAround(b, x, {b.idx(-1)}, {one}, PadMode::Constant, 0, b.b.lit(DType::F32, 9)), {3}, {2, 3, 9});
  expectValues(b, centreCropOrPad(b, x, {0}, {b.idx(6)}), {6}, {0, 1, 2, 3, 0, 0});
  expectValues(b, centreCropOrPad(b, x, {0}, {one}), {1}, {2});
  expectRefusal(b, padAround(b, x, {b.idx(3)}, {one}, PadMode::Reflect),
                "the extent 3 is no larger than its pads, as mode 'reflect' needs it");
  expectRefusal(b, padAround(b, x, {}, {one}, PadMode::Edge), "found 1 amounts, expected two for each of 1 axes");
}

TEST_F(Movement, TilesAndBlocks) {
  UOpRef x = tensor(b, {2, 2}, {1, 2, 3, 4});
  expectValues(b, tile(b, x, {b.idx(1), b.idx(2)}), {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4});
  std::vector<UOpRef> pieces = splitEvenly(b, tensor(b, {5}, {1, 2, 3, 4, 5}), 0, 2);
  ASSERT_EQ(pieces.size(), 2u);
  expectValues(b, pieces[0], {3}, {1, 2, 3});
  expectValues(b, pieces[1], {2}, {4, 5});
  UOpRef none = b.b.litInt(DType::I64, 0);
  expectValues(b, triangle(b, x, none, true), {2, 2}, {1, 2, 0, 4});
  expectValues(b, triangle(b, x, none, false), {2, 2}, {1, 0, 3, 4});
  UOpRef deep = tensor(b, {1, 4, 1, 1}, {1, 2, 3, 4}), flat = tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(b, depthToSpace(b, deep, 2, BlockOrder::DepthColumnRow), {1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(b, spaceToDepth(b, flat, 2, BlockOrder::ColumnRowDepth), {1, 4, 1, 1}, {1, 2, 3, 4});
  expectRefusal(b, depthToSpace(b, flat, 2, BlockOrder::DepthColumnRow), "blocksize 2 does not divide 1 channels");
}

TEST_F(Movement, Arithmetic) {
  UOpRef x = tensor(b, {4}, {7, -7, 7, 5.5}), y = tensor(b, {4}, {3, 3, -3, 2});
  expectValues(b, remainder(b, x, y, true), {4}, {1, -1, 1, 1.5});
  expectValues(b, remainder(b, x, y, false), {4}, {1, 2, -2, 1.5});
  expectValues(b, power(b, tensor(b, {3}, {2, 3, 9}), tensor(b, {3}, {3, -1, 0.5})), {3}, {8, 1 / 3.0, 3});
  expectValues(b, power(b, tensor(b, {3}, {2, 3, -1}, DType::I32), tensor(b, {3}, {10, -1, 3}, DType::I32)), {3},
               {1024, 0, -1});
  expectRefusal(b, remainder(b, x, b.cast(y, DType::F64), true), "operands of types f32 and f64");
}

TEST_F(Movement, Determinant) {
  expectValues(b, determinant(b, tensor(b, {2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})), {2}, {-2, -1});
  expectValues(b, determinant(b, tensor(b, {3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 1})), {}, {0});
  expectRefusal(b, determinant(b, tensor(b, {1, 2}, {1, 2})), "the matrices [1, 2] are not square");
}

TEST_F(Movement, NonMaxSuppression) {
  BoxOperands operands;
  operands.boxes = tensor(b, {1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 0, 2, 1, 3}); // the second lies in the first
  operands.scores = tensor(b, {1, 1, 3}, {0.9, 0.8, 0.7});
  operands.limit = b.b.litInt(DType::I64, 5);
  operands.overlap = b.b.lit(DType::F32, 0.5);
  EXPECT_EQ(valuesOf(b, nonMaxSuppression(b, operands)), (std::vector<double>{0, 0, 0, 0, 0, 2}));
  operands.scoreThreshold = b.b.lit(DType::F32, 0.75);
  EXPECT_EQ(valuesOf(b, nonMaxSuppression(b, operands)), (std::vector<double>{0, 0, 0}));
  operands.scores = tensor(b, {1, 1, 2}, {1, 2});
  expectRefusal(b, nonMaxSuppression(b, operands),
                "the boxes are [1, 3, 4], the scores [1, 1, 2]: expected [batch, n, 4] and [batch, class, n]");
}

} // namespace
} // namespace astra::compose
