//===- NetworkTest.cpp: layers of real networks, emulated, against Eval --------===//
// Every layer of ResNet-50 at reduced sizes (a quarter of the channels, a seventh of the points), and a layer of BERT's
// encoder, on both flavours. Whole networks: test/models/run.py.
#include "Layers.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

class GpuNetworks : public testing::TestWithParam<const GpuTarget *> {};
INSTANTIATE_TEST_SUITE_P(Flavours, GpuNetworks, testing::ValuesIn(flavours()), [](const auto &i) {
  return std::string(i.param->flavour == GpuFlavour::CUDA ? "cuda" : "hip");
});

TEST_P(GpuNetworks, LayersOfResNet50KeepTheirBits) {
  unsigned sharing = 0, layers = 0;
  for (Layer l : resnet50) {
    l.size = std::max<int64_t>(l.size / 7, 3), l.in = std::max<int64_t>(l.in / 4, 3), l.out /= 4;
    GraphOnGpu g(convolution(l), *GetParam());
    ASSERT_EQ(g.wrong, "");
    for (const GpuLaunch &k : g.module->kernels) sharing += k.shared > 0;
    ++layers;
    EXPECT_EQ(g.difference({2}, layers), "") << layers << "\n" << g.plans();
  }
  EXPECT_EQ(sharing, layers) << "each by tiles that threads share";
}

TEST_P(GpuNetworks, BertsEncoderKeepsItsBits) {
  std::string shape = "[n, 24, 64]", text = R"(dim n in 1..3
    entry @main(%x : f32[n, 24, 64], %wq : f32[64, 4, 16], %wk : f32[64, 4, 16], %wv : f32[64, 4, 16], %wo : f32[4, 16, 64], %wi : f32[64, 256], %wf : f32[256, 64], %p : f32[64], %r : f32[64]) -> (%y : f32[n, 24, 64]) {
      %q = contract %x[b, t, c], %wq[c, h, d] -> [b, h, t, d] sum [c]
      %k = contract %x[b, t, c], %wk[c, h, d] -> [b, h, t, d] sum [c]
      %v = contract %x[b, t, c], %wv[c, h, d] -> [b, h, t, d] sum [c]
      %s = contract %q[b, h, i, d], %k[b, h, j, d] -> [b, h, i, j] sum [d]
      %m = reduce %s kind=max order=exact axes=[3]
      %m1 = reshape %m [n, 4, 24, 1]
      %m2 = expand %m1 [n, 4, 24, 24]
      %s1 = sub %s, %m2
      %e = exp %s1
      %t = reduce %e kind=sum order=lane64 axes=[3]
      %t1 = reshape %t [n, 4, 24, 1]
      %t2 = expand %t1 [n, 4, 24, 24]
      %a = div %e, %t2
      %o = contract %a[b, h, i, j], %v[b, h, j, d] -> [b, i, h, d] sum [j]
      %o1 = contract %o[b, i, h, d], %wo[h, d, c] -> [b, i, c] sum [h, d]
      %x1 = add %o1, %x
)";
  // %to: %from with its mean taken off and divided by its deviation, scaled and shifted
  auto norm = [&](const std::string &to, const std::string &from) {
    auto row = [&](const std::string &name, const std::string &of) {
      text += "%" + name + "1 = reshape %" + of + " [n, 24, 1]\n%" + name + " = expand %" + name + "1 " + shape + "\n";
    };
    auto channel = [&](const std::string &name, const std::string &of) {
      text += "%" + name + "1 = reshape %" + of + " [1, 1, 64]\n%" + name + " = expand %" + name + "1 " + shape + "\n";
    };
    auto number = [&](const std::string &name, const std::string &value) {
      text += "%" + name + "1 = const " + value + " : f32\n%" + name + "2 = reshape %" + name + "1 [1, 1]\n%" + name +
              " = expand %" + name + "2 [n, 24]\n";
    };
    number(to + "n", "64.0"), number(to + "z", "1e-5");
    text += "%" + to + "a = reduce %" + from + " kind=sum order=lane64 axes=[2]\n%" + to + "b = div %" + to + "a, %" +
            to + "n\n";
    row(to + "c", to + "b");
    text += "%" + to + "d = sub %" + from + ", %" + to + "c\n%" + to + "e = mul %" + to + "d, %" + to + "d\n%" + to +
            "f = reduce %" + to + "e kind=sum order=lane64 axes=[2]\n%" + to + "g = div %" + to + "f, %" + to + "n\n%" +
            to + "h = add %" + to + "g, %" + to + "z\n%" + to + "i = sqrt %" + to + "h\n";
    row(to + "j", to + "i");
    text += "%" + to + "k = div %" + to + "d, %" + to + "j\n";
    channel(to + "l", "p"), channel(to + "m", "r");
    text += "%" + to + "o = mul %" + to + "k, %" + to + "l\n%" + to + " = add %" + to + "o, %" + to + "m\n";
  };
  norm("u", "x1");
  text += R"(%f = contract %u[b, t, c], %wi[c, i] -> [b, t, i] sum [c]
      %c1 = const 0.70710678 : f32
      %c2 = reshape %c1 [1, 1, 1]
      %c3 = expand %c2 [n, 24, 256]
      %f1 = mul %f, %c3
      %f2 = erf %f1
      %f3 = mul %f, %f2
      %f4 = add %f, %f3
      %g = contract %f4[b, t, i], %wf[i, c] -> [b, t, c] sum [i]
      %g1 = add %g, %u
)";
  norm("y", "g1");
  GraphOnGpu g(text + "}", *GetParam());
  ASSERT_EQ(g.wrong, "");
  EXPECT_GT(g.kernels.size(), 8u);
  for (int64_t b : {1, 3}) EXPECT_EQ(g.difference({b}, 11), "") << g.plans();
}

} // namespace
