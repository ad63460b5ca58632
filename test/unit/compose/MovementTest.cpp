//===- MovementTest.cpp: padding, blocks, arithmetic, determinants, boxes ---===//
// Keeps:    expected numbers were worked out by hand.
#include "astra/Compose/Movement.h"
#include "Compose.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Creation.h"
#include "astra/Compose/Detection.h"
#include "astra/Compose/Matrix.h"
#include "astra/Compose/Order.h"
#include "astra/IR/Index.h"

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
  UOpRef column = tensor(b, {2, 1}, {1, 2});
  expectValues(b, broadcastAlong(b, column, {2, 1}, {b.idx(2), b.idx(2), b.idx(2)}), {2, 2, 2},
               {1, 2, 1, 2, 1, 2, 1, 2});
  expectRefusal(b, broadcastAlong(b, column, {1, 1}, {b.idx(2), b.idx(2)}),
                "the places of axes must be axes of the result, each once: axis 0 is to be 1");
  std::vector<UOpRef> pieces = splitEvenly(b, tensor(b, {5}, {1, 2, 3, 4, 5}), 0, 2);
  ASSERT_EQ(pieces.size(), 2u);
  expectValues(b, pieces[0], {3}, {1, 2, 3});
  expectValues(b, pieces[1], {2}, {4, 5});
  UOpRef row = tensor(b, {2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  pieces = compose::pieces(b, row, 1, {b.idx(1), b.idx(4)});
  ASSERT_EQ(pieces.size(), 2u);
  expectValues(b, pieces[0], {2, 1}, {1, 6});
  EXPECT_TRUE(compose::pieces(b, row, 1, {b.idx(1), b.idx(3)}).empty());
  expectRefusal(b, nullptr, "extents 4 and 5 of all pieces and of what is split are not equal");
  UOpRef n = b.b.dim("n", 1, 8), m = b.b.dim("m", 1, 8);
  EXPECT_EQ(exactQuotient(b, {n, b.idx(6), m}, {m, b.idx(2)}), idxMul(c, n, b.idx(3)));
  EXPECT_EQ(exactQuotient(b, {n, b.idx(6)}, {b.idx(4)}), nullptr);
  EXPECT_EQ(exactQuotient(b, {b.idx(6)}, {n}), nullptr);
  UOpRef none = b.b.litInt(DType::I64, 0);
  expectValues(b, triangle(b, x, none, true), {2, 2}, {1, 2, 0, 4});
  expectValues(b, triangle(b, x, none, false), {2, 2}, {1, 0, 3, 4});
  UOpRef deep = tensor(b, {1, 4, 1, 1}, {1, 2, 3, 4}), flat = tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(b, depthToSpace(b, deep, 2, BlockOrder::DepthColumnRow), {1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(b, spaceToDepth(b, flat, 2, BlockOrder::ColumnRowDepth), {1, 4, 1, 1}, {1, 2, 3, 4});
  expectRefusal(b, depthToSpace(b, flat, 2, BlockOrder::DepthColumnRow), "blocksize 2 does not divide 1 channels");
}

TEST_F(Movement, Creation) {
  EXPECT_EQ(rangeLength(b, b.idx(2), b.idx(9), 3), b.idx(3));
  EXPECT_EQ(rangeLength(b, b.idx(2), b.idx(9), -3), b.idx(0));
  EXPECT_EQ(rangeLength(0, 1, 0.3), 4);
  EXPECT_EQ(rangeLength(1, 0, 0.3), 0);
  EXPECT_FALSE(rangeLength(0, 1, 0));
  EXPECT_FALSE(rangeLength(-1e300, 0, -1e-300));
  expectValues(b, range(b, DType::I32, b.idx(3), nullptr, nullptr), {3}, {0, 1, 2});
  UOpRef start = b.b.lit(DType::F32, 1), step = b.b.lit(DType::F32, -0.5);
  expectValues(b, range(b, DType::F32, b.idx(3), start, step), {3}, {1, 0.5, 0});
  expectValues(b, eye(b, {b.idx(2), b.idx(3)}, 1, DType::F32), {2, 3}, {0, 1, 0, 0, 0, 1});
  expectRefusal(b, eye(b, {b.idx(2)}, 0, DType::F32), "a diagonal of 1 axes, expected 2");
  const uint8_t twice[] = {1, 2, 1, 2}, other[] = {1, 2, 2, 1};
  UOpRef same = repeatedNumber(b, DType::U16, twice, {b.idx(2)});
  expectValues(b, same, {2}, {513, 513});
  EXPECT_TRUE(b.params.empty()) << "no data are kept";
  EXPECT_EQ(repeatedNumber(b, DType::U16, other, {b.idx(2)}), nullptr);
  EXPECT_EQ(repeatedNumber(b, DType::U16, {}, {b.idx(0)}), nullptr);
  EXPECT_EQ(repeatedNumber(b, DType::I4, twice, {b.idx(8)}), nullptr);
  expectValues(b, indexVector(b, {b.idx(4), b.idx(7)}), {2}, {4, 7});
  EXPECT_EQ(dimsText(indexVector(b, {})->shape), "[0]");
}

TEST_F(Movement, Arithmetic) {
  UOpRef x = tensor(b, {4}, {7, -7, 7, 5.5}), y = tensor(b, {4}, {3, 3, -3, 2});
  expectValues(b, remainder(b, x, y, true), {4}, {1, -1, 1, 1.5});
  expectValues(b, remainder(b, x, y, false), {4}, {1, 2, -2, 1.5});
  expectValues(b, power(b, tensor(b, {3}, {2, 3, 9}), tensor(b, {3}, {3, -1, 0.5})), {3}, {8, 1 / 3.0, 3});
  expectValues(b, power(b, tensor(b, {3}, {2, 3, -1}, DType::I32), tensor(b, {3}, {10, -1, 3}, DType::I32)), {3},
               {1024, 0, -1});
  UOpRef narrow = tensor(b, {1}, {65504}, DType::F16);
  expectValues(b, meanOfAll(b, {narrow, narrow, narrow}), {1}, {65504}); // the sum is none of f16
  expectValues(b, reciprocal(b, tensor(b, {2}, {4, -0.5})), {2}, {0.25, -2});
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

TEST_F(Movement, KeysAndMerges) {
  UOpRef x = tensor(b, {4}, {NAN, -0.0, 0.0, -1}), keys = sortKey(b, x);
  EXPECT_EQ(valuesOf(b, keys), (std::vector<double>{0x7fc00000, -1, 0, -1.0 - 0x3f800000}));
  EXPECT_EQ(valuesOf(b, sortKey(b, b.cast(tensor(b, {2}, {0, 5}, DType::I64), DType::U64))),
            (std::vector<double>{-0x1p63, -0x1p63}) // 5 is lost in an f64
  );
  // Keys [[3, 1], [2, 1]] with places [[0, 1], [2, 3]]: 2 is less than 3; of equal keys the first place stays.
  UOpRef pairs = tensor(b, {2, 1, 2, 2}, {3, 1, 2, 1, 0, 1, 2, 3}, DType::I64);
  expectValues(b, merged(b, pairs), {2, 1, 2, 2}, {2, 1, 3, 1, 2, 1, 0, 3});
  expectRefusal(b, sortKey(b, tensor(b, {1}, {1}, DType::C64)),
                "the operand is of type complex64, expected a float type");
}

} // namespace
} // namespace astra::compose
