//===- WrapperTest.cpp: views through tensor.hpp --------------------------===//
// Takes:    the standard bundle.
// Gives:    each method of the C++ wrapper once, and what it throws.
// Keeps:    C++20, for std::span; that the header is C++17 is a test of test/abi.
// Does not: repeat what ViewTest.cpp says of the functions behind it.
#include "TestBundle.h"
#include "astra/tensor.hpp"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace {

template <typename Fn> astra_status thrown(Fn fn) {
  try {
    fn();
  } catch (const astra::Error &error) {
    return error.status();
  }
  return ASTRA_OK;
}

astra::Tensor<float> ramp(std::vector<int64_t> shape) {
  astra::Tensor<float> t(std::move(shape));
  for (size_t i = 0; i < t.values.size(); i++) t.values[i] = float(i);
  return t;
}

TEST(CxxViews, AreValues) {
  astra::Tensor<float> t = ramp({3, 4});
  astra::View all(t), turned = all.permute({1, 0}), column = all.index(1, 2), back = column.slice(0, 2, 3, -1);
  EXPECT_EQ(turned.rank(), 2);
  EXPECT_EQ(turned.extent(0), 4);
  EXPECT_EQ(turned.stride(0), 1);
  EXPECT_EQ((astra::Access<float, 2>(turned)(3, 1)), 7);
  EXPECT_EQ((astra::Access<const float, 1>(back)(0)), 10);
  astra::Access<float, 2> a(all);
  a(1, 2) = -5;
  EXPECT_EQ((astra::Access<float, 1>(column).at(1)), -5);
  EXPECT_THROW(a.at(3, 0), std::out_of_range);
  EXPECT_THROW(a.at(0, -1), std::out_of_range);
  EXPECT_EQ(a.extent(1), 4);
  EXPECT_EQ(a.stride(0), 4);
  EXPECT_EQ(a.rank(), 2u);
  EXPECT_EQ(a.data_handle(), t.values.data());
  EXPECT_EQ(all.address({2, 1}), &t.values[9]);
  EXPECT_EQ(all.span<float>().size(), 12u);
  EXPECT_EQ(all.index(0, 1).span<const float>()[3], 7);
  EXPECT_EQ(thrown([&] { column.span<float>(); }), ASTRA_WRONG_STRIDES);
  EXPECT_EQ(thrown([&] { all.span<double>(); }), ASTRA_WRONG_DTYPE);
  EXPECT_EQ(thrown([&] { astra::Access<float, 3>{all}; }), ASTRA_WRONG_RANK);
  EXPECT_EQ(thrown([&] { astra::Access<int32_t, 2>{all}; }), ASTRA_WRONG_DTYPE);
  EXPECT_EQ(thrown([&] { all.permute({0}); }), ASTRA_WRONG_RANK);
  EXPECT_EQ(thrown([&] { all.permute({0, 0}); }), ASTRA_INVALID_ARGUMENT);
  EXPECT_EQ((astra::Access<float, 1>(all.diagonal(0, 1, 1))(2)), 11);
  EXPECT_EQ((astra::Access<float, 3>(all.reshape({3, 2, 2}))(2, 1, 0)), 10);
  EXPECT_EQ(thrown([&] { turned.reshape({12}); }), ASTRA_WRONG_STRIDES);
  astra::View wide = column.expand({5, 3});
  EXPECT_EQ(wide.stride(0), 0);
  EXPECT_EQ(wide.size(), 15);
  astra::Tensor<float> copy({5, 3});
  astra::View(copy).copyFrom(wide);
  EXPECT_EQ(copy.values[13], -5);
  EXPECT_EQ(thrown([&] { wide.copyFrom(astra::View(copy)); }), ASTRA_OVERLAP);
}

TEST(CxxViews, ConjugatesAreLazy) {
  astra::Tensor<std::complex<double>> t({2}, {{1, 2}, {3, -4}}), copy({2});
  astra::View lazy = astra::View(t).conjugate();
  EXPECT_TRUE(lazy.isConjugated());
  EXPECT_FALSE(lazy.isRowMajor());
  astra::View(copy).copyFrom(lazy);
  EXPECT_EQ(copy.values[1], std::complex<double>(3, 4));
  lazy.copyFrom(astra::View(copy));
  EXPECT_EQ(t.values[0], std::complex<double>(1, 2));
  EXPECT_EQ(thrown([&] { astra::Access<std::complex<double>, 1>{lazy}; }), ASTRA_WRONG_DTYPE);
  EXPECT_FALSE(lazy.conjugate().isConjugated());
}

TEST(CxxViews, PartsOfAPool) {
  astra::Runtime runtime;
  astra::Device device(runtime, "cpu");
  astra::Pool pool(device);
  astra::OwnedView array(pool, ASTRA_F32, {6, 9});
  EXPECT_EQ(array.buffer().bytes(), 216u);
  EXPECT_EQ(array.dtype(), ASTRA_F32);
  std::vector<astra::View> parts;
  for (int64_t i = 0; i < 4; i++) parts.push_back(array.part(1, i, 4));
  astra::checkParts(parts);
  EXPECT_TRUE(parts[0].isDisjoint(parts[3]));
  parts.push_back(array.tile({2, 3}, {2, 2}));
  EXPECT_EQ(thrown([&] { astra::checkParts(parts); }), ASTRA_OVERLAP);
  EXPECT_FALSE(parts[4].isDisjoint(parts[3]));
  EXPECT_EQ(array.interleaved(1, 2, 4).extent(1), 2);

  astra::test::ManifestMaker maker = astra::test::standardManifest();
  astra::test::Bytes bytes = assemble(maker);
  void *memory = aligned_alloc(64, (bytes.size() + 63) / 64 * 64);
  memcpy(memory, bytes.data(), bytes.size());
  {
    astra::Bundle bundle(runtime, memory, bytes.size());
    astra::Loaded loaded(bundle, device);
    astra::Session session(loaded, {{"cap", 8}});
    astra::Stream stream(device);
    astra::Tensor<float> x = ramp({6});
    astra::View target = array.index(1, 4);
    astra::Call(session, "add").input(x).input(x).output(target.describe()).allowCopy().run(stream);
    EXPECT_EQ((astra::Access<float, 2>(array)(5, 4)), 10);
  }
  free(memory);
}

} // namespace
