//===- ops.cpp: what a call of libastra_ops takes beyond its kernel ---------===//
// Takes:    the path of libastra_ops.astra, or nothing: beside the library. Build it with
//           c++ -std=c++17 -O2 -Iinclude bench/ops.cpp -Lbuild/lib -lastra_ops -lastra_rt -Wl,-rpath,$PWD/build/lib
// Gives:    nanoseconds of one call on one element, the least of many rounds: into a result that is there, and into
//           memory of the pool. A kernel on one element takes some ten of them, so nearly all is the call. Then larger
//           sizes.
// Does not: compare with other libraries.
#include "astra/ops.hpp"
#include <chrono>
#include <cstdio>
#include <functional>

using namespace astra;

static double nanoseconds(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  double least = 1e18;
  for (int round = 0; round < 10; round++) {
    auto begin = Clock::now();
    double took = 0;
    int count = 0;
    while (took < 2e6) {
      int some = count ? 16 : 1; // a long call is measured alone
      for (int i = 0; i < some; i++) call();
      count += some, took = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    }
    if (took / count < least) least = took / count;
  }
  return least;
}

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Runtime runtime;
  Device device(runtime, "cpu");
  Stream stream(device);
  Pool pool(device);
  auto begin = std::chrono::steady_clock::now();
  ops::Library ops(runtime, device, stream, argc > 1 ? argv[1] : nullptr, &pool);
  std::printf("open %.2f ms\n",
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  auto c = [&](astra_status status) {
    if (status) throw Error(status);
  };
  for (int64_t n : {1, 1000, 1000000}) {
    OwnedView a(pool, ASTRA_F32, {n}), b(pool, ASTRA_F32, {n}), y(pool, ASTRA_F32, {n}), one(pool, ASTRA_F32, {1}),
        m(pool, ASTRA_F32, {n, 1}), s(pool, ASTRA_F32, {});
    astra_view out = y.raw(), sum = s.raw();
    std::printf("n = %ld\n", long(n));
    std::printf("  add into a result   %9.0f ns\n",
                nanoseconds([&] { c(astra_op_add(ops.get(), stream.get(), &a.raw(), &b.raw(), &out, nullptr)); }));
    std::printf("  add into new memory %9.0f ns\n", nanoseconds([&] { ops.add(a, b); }));
    std::printf("  add of a scalar     %9.0f ns\n",
                nanoseconds([&] { c(astra_op_add(ops.get(), stream.get(), &a.raw(), &one.raw(), &out, nullptr)); }));
    std::printf("  exp                 %9.0f ns\n",
                nanoseconds([&] { c(astra_op_exp(ops.get(), stream.get(), &a.raw(), &out, nullptr)); }));
    std::printf("  sum                 %9.0f ns\n",
                nanoseconds([&] { c(astra_op_sum(ops.get(), stream.get(), &a.raw(), nullptr, 0, 0, &sum, nullptr)); }));
    std::printf("  take                %9.0f ns\n", nanoseconds([&] {
                  static const int64_t place = 0;
                  astra_view at = ASTRA_INIT(astra_view), first = one.raw();
                  at.data = const_cast<int64_t *>(&place), at.data_bytes = 8, at.dtype = ASTRA_I64, at.ndim = 1;
                  at.shape[0] = at.strides[0] = 1;
                  c(astra_op_take(ops.get(), stream.get(), &a.raw(), &at, 0, &first, nullptr));
                }));
  }
  OwnedView wide(pool, ASTRA_F32, {1000, 1000}), y(pool, ASTRA_F32, {1000, 1000}), vector(pool, ASTRA_F32, {100000});
  View turned = wide.permute({1, 0});
  astra_view out = y.raw();
  std::printf(
      "1000 x 1000: transposed copy %.0f ns, matmul %.0f ns; argsort of 100000 %.0f ns\n",
      nanoseconds([&] { c(astra_op_copy(ops.get(), stream.get(), &turned.raw(), &out, nullptr)); }),
      nanoseconds([&] { c(astra_op_matmul(ops.get(), stream.get(), &wide.raw(), &wide.raw(), &out, nullptr)); }),
      nanoseconds([&] { ops.argsort(vector, 0); }));
}
