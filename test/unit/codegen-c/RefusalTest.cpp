//===- RefusalTest.cpp: what has no C form is refused with a sentence ------===//
// And what is given is a function of the input: the same text and bytes again, for any number of jobs.
#include "Run.h"
#include "llvm/Object/ELFObjectFile.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Refusal : testing::Test {
  Context c;
  Builder b{c};
  UOpRef n = b.dim("n", 0, 100);

  UOpRef range(int64_t axis, RangeKind kind, UOpRef extent = nullptr) {
    return c.make(Op::Range, {extent ? extent : b.idx(4)}, {axis, int64_t(kind)});
  }
  UOpRef buffer(int64_t slot, DType t) { return c.make(Op::Buffer, {b.idx(64)}, {slot}, {}, t); }
  UOpRef load(DType t, UOpRef at) { return c.make(Op::Load, {buffer(0, t), at}, {1}); }
  Kernel kernel(UOpRef value, UOpRef at, DType from) {
    Kernel k;
    k.name = "test";
    k.sink = c.make(Op::Sink, {c.make(Op::Store, {buffer(1, value->dtype), value, at}, {1})});
    k.buffers = {{from, true, false, b.idx(64)}, {value->dtype, false, true, b.idx(64)}};
    return k;
  }
  std::string linearized(const Kernel &k) {
    auto l = linearize(c, k);
    return l ? "" : llvm::toString(l.takeError());
  }
  std::string emitted(const Kernel &k, const std::string &name = "test") {
    auto l = linearize(c, k);
    if (!l) return llvm::toString(l.takeError());
    auto s = emitC(c, LinearKernel{name, &k, std::move(*l)}, allTargets()[0], {});
    return s ? "" : llvm::toString(s.takeError());
  }
};

TEST_F(Refusal, Ranges) {
  UOpRef p = range(0, RangeKind::Parallel), q = range(1, RangeKind::Parallel), v = range(2, RangeKind::Vector),
         f = range(3, RangeKind::Fold), twice = range(0, RangeKind::Loop);
  EXPECT_EQ(linearized(kernel(load(DType::F32, v), p, DType::F32)), "kernel 'test': range 2 is not expanded");
  EXPECT_EQ(linearized(kernel(load(DType::F32, q), p, DType::F32)),
            "kernel 'test': a store depends on two parallel ranges");
  EXPECT_EQ(linearized(kernel(load(DType::F32, f), p, DType::F32)), "kernel 'test': range 3 is not closed by a fold");
  EXPECT_EQ(linearized(kernel(load(DType::F32, twice), p, DType::F32)),
            "kernel 'test': two ranges with axis number 0 and different parts");
  Kernel k = kernel(load(DType::F32, p), p, DType::F32);
  k.buffers.pop_back();
  EXPECT_EQ(linearized(k), "kernel 'test': a store to buffer 1 of 1");
}

TEST_F(Refusal, Values) {
  UOpRef p = range(0, RangeKind::Parallel), x = load(DType::F32, p);
  EXPECT_EQ(emitted(kernel(c.make(Op::Exp, {x}), p, DType::F32)),
            "kernel 'test': exp is a function: the numerics stage replaces it by a program");
  EXPECT_EQ(emitted(kernel(load(DType::F32, idxAdd(c, p, n)), p, DType::F32)),
            "kernel 'test': dim 'n' is not one of the module");
  EXPECT_EQ(emitted(kernel(x, p, DType::F32), "a-b"), "kernel name 'a-b' is not an identifier of C");
  EXPECT_EQ(emitted(kernel(b.un(Op::Sqrt, x), p, DType::F32), "sqrt_f32"),
            "kernel name 'sqrt_f32' is one of the C helpers'");
}

TEST_F(Refusal, ImportsAndData) {
  const Target &t = allTargets()[0];
  auto error = [&](const char *text) {
    auto image = buildImage(std::string("\n/* ---- a kernel ---- */\n") + text, {"k"}, t, 1);
    return image ? "" : llvm::toString(image.takeError());
  };
  EXPECT_EQ(error("void k(float *p) { *p = 1; }"), "");
  EXPECT_NE(error("float sinf(float); void k(float *p) { *p = sinf(*p); }").find("undefined symbol: sinf"),
            std::string::npos);
  EXPECT_NE(error("static int n; int k(void) { return ++n; }").find("a kernel has writable data"), std::string::npos);
  EXPECT_NE(error("static int n = 7; int k(void) { return ++n; }").find("a kernel has writable data"),
            std::string::npos);
  EXPECT_NE(error("int a; static int *const p[] = {&a}; int *k(int i) { return p[i]; }").find("writable data"),
            std::string::npos);
  EXPECT_NE(error("void other(float *p) { *p = 1; }").find("no function 'k'"), std::string::npos);
  EXPECT_NE(error("void k(float *p) { *p = 1 }").find("expected ';'"), std::string::npos);
}

// The compiler turns such loops into calls; the image has what they call.
TEST_F(Refusal, CallsOfTheCompilerStayInside) {
  for (const Target &t : allTargets()) {
    auto image = buildImage("\n/* ---- a kernel ---- */\n"
                            "struct s { char c[5000]; };\n"
                            "void k(struct s *p, struct s *q, long n) { *p = *q; __builtin_memset(q, 1, n);\n"
                            "  __builtin_memmove(p, q, n); }",
                            {"k"}, t, 1);
    EXPECT_TRUE(bool(image)) << llvm::toString(image.takeError());
  }
}

TEST_F(Refusal, OutputIsAFunctionOfInput) {
  auto build = [](unsigned jobs, const Target &t, int64_t junk) {
    Context c;
    Builder b(c);
    for (int64_t i = 0; i < junk; ++i) b.lit(DType::F64, double(i)); // other node ids
    std::vector<Kernel> kernels;
    std::vector<LinearKernel> linear;
    std::vector<std::string> names;
    kernels.reserve(13);
    for (int64_t i = 0; i < 13; ++i) {
      UOpRef p = c.make(Op::Range, {b.idx(4)}, {0, int64_t(RangeKind::Parallel)}),
             r = c.make(Op::Range, {b.idx(16)}, {1, int64_t(RangeKind::Fold)});
      UOpRef x = c.make(Op::Load, {c.make(Op::Buffer, {b.idx(64)}, {0}, {}, DType::F32), idxAdd(c, p, r)}, {1});
      UOpRef f = c.make(Op::Fold, {b.lit(DType::F32, -0.0), b.mul(x, b.lit(DType::F32, double(i))), r},
                        {int64_t(Combine::Add), 1});
      Kernel k;
      k.name = "k" + std::to_string(i);
      k.sink = c.make(Op::Sink, {c.make(Op::Store, {c.make(Op::Buffer, {b.idx(4)}, {1}, {}, DType::F32), f, p}, {1})});
      k.buffers = {{DType::F32, true, false, b.idx(64)}, {DType::F32, false, true, b.idx(4)}};
      kernels.push_back(k);
      names.push_back(k.name);
      linear.push_back({k.name, &kernels.back(), llvm::cantFail(linearize(c, k))});
    }
    std::string text = llvm::cantFail(emitC(c, linear, t, {}));
    Image image = llvm::cantFail(buildImage(text, names, t, jobs));
    return std::pair(text, std::pair(image.bytes, image.offsets));
  };
  for (const Target &t : allTargets()) {
    auto one = build(1, t, 0);
    EXPECT_TRUE(one == build(4, t, 1000));
    EXPECT_EQ(one.second.second.size(), 13u);
  }
}

} // namespace
