//===- Layers.h: layers of networks as text -------------------------------------===//
#pragma once
#include <cstdint>
#include <string>

namespace astra::test {

/// A convolution, channels last: the output has `size` by `size` points; `added`: with a residual.
struct Layer {
  int64_t size, stride, in, out, kernel;
  bool added;
};

/// Those of ResNet-50, each once.
constexpr Layer resnet50[] = {{112, 2, 3, 64, 7, false},    {56, 1, 64, 64, 1, false},   {56, 1, 64, 64, 3, false},
                              {56, 1, 64, 256, 1, true},    {56, 1, 256, 64, 1, false},  {56, 1, 256, 128, 1, false},
                              {28, 2, 128, 128, 3, false},  {28, 1, 128, 512, 1, true},  {28, 2, 256, 512, 1, false},
                              {28, 1, 512, 128, 1, false},  {28, 1, 128, 128, 3, false}, {28, 1, 512, 256, 1, false},
                              {14, 2, 256, 256, 3, false},  {14, 1, 256, 1024, 1, true}, {14, 2, 512, 1024, 1, false},
                              {14, 1, 1024, 256, 1, false}, {14, 1, 256, 256, 3, false}, {14, 1, 1024, 512, 1, false},
                              {7, 2, 512, 512, 3, false},   {7, 1, 512, 2048, 1, true},  {7, 2, 1024, 2048, 1, false},
                              {7, 1, 2048, 512, 1, false},  {7, 1, 512, 512, 3, false}};

/// Dims and entry of a layer for any batch up to 8, its batch norm as scale and shift, what is added to it, relu.
std::string convolution(const Layer &l);

/// An entry of one op, whose result is %y.
std::string one(const std::string &inputs, const std::string &output, const std::string &op);
/// Of rows of n elements; a dim's name or a number.
std::string softmax(int64_t rows, const std::string &n);
inline std::string softmax(int64_t rows, int64_t n) { return softmax(rows, std::to_string(n)); }
/// Of rows: a layer norm's mean and variance, and scale and shift; without `mean` an RMS norm's.
std::string norm(int64_t rows, int64_t n, bool mean);

inline std::string n(int64_t v) { return std::to_string(v); }

} // namespace astra::test
