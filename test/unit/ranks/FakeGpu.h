//===- FakeGpu.h: a GPU's memory and queue for tests of collectives --------===//
// Takes:    the calls of astra_gpu_call.
// Gives:    what they say, done as late as can be: when transfers come to the front of the queue, or at the end.
// Keeps:    addresses are none of the host: who reads or writes one crashes. Kernels get vectors that begin at
//           multiples of 16 bytes and do not overlap; what folds is what the host folds by.
#pragma once
#include "Ranks.h"
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

class FakeGpu : public astra_gpu_call {
public:
  /// Of a rank, whose engine it gives transfers of GPUs' memory.
  explicit FakeGpu(astra_ranks *ranks)
      : astra_gpu_call{sizeof(astra_gpu_call),
                       "cuda",
                       0,
                       nullptr,
                       doCopy,
                       doZero,
                       doWrite,
                       doRoom,
                       doRun,
                       nullptr,
                       nullptr,
                       nullptr},
        ranks(ranks) {
    ranks->engine.exchange_gpu = exchange, ranks->engine.settle_gpu = settle;
  }
  static void *there(const void *host) { return const_cast<char *>(static_cast<const char *>(host)) + kOffset; }
  static char *here(const void *gpu) { return const_cast<char *>(static_cast<const char *>(gpu)) - kOffset; }
  int64_t kernels = 0, bytesMoved = 0;

private:
  static constexpr intptr_t kOffset = intptr_t(0x2000) << 48;
  static FakeGpu &of(const astra_gpu_call *gpu) { return *const_cast<FakeGpu *>(static_cast<const FakeGpu *>(gpu)); }
  void drain() {
    for (auto &work : queue) work();
    queue.clear();
  }

  static astra_status doCopy(const astra_gpu_call *gpu, void *to, const void *from, uint64_t n, astra_diag *) {
    of(gpu).queue.push_back([=] { memcpy(here(to), here(from), n); });
    return ASTRA_OK;
  }
  static astra_status doZero(const astra_gpu_call *gpu, void *to, uint64_t n, astra_diag *) {
    of(gpu).queue.push_back([=] { memset(here(to), 0, n); });
    return ASTRA_OK;
  }
  static astra_status doWrite(const astra_gpu_call *gpu, void *to, const void *host, uint64_t n, astra_diag *) {
    of(gpu).queue.push_back([=] { memcpy(here(to), host, n); });
    return ASTRA_OK;
  }
  static astra_status doRoom(const astra_gpu_call *gpu, uint64_t bytes, void **out, astra_diag *) {
    FakeGpu &g = of(gpu);
    if (g.memory.size() < bytes + 256) {
      g.drain();
      g.memory.assign(bytes + 256, 0x5a);
    }
    uintptr_t at = (reinterpret_cast<uintptr_t>(g.memory.data()) + 255) / 256 * 256;
    *out = there(reinterpret_cast<void *>(at));
    return ASTRA_OK;
  }
  static astra_status doRun(const astra_gpu_call *gpu, const char *entry, void *const *vectors, uint32_t count,
                            int64_t length, astra_diag *) {
    constexpr const char *kinds[] = {"sum", "prod", "max", "min"};
    std::string name = entry, kind = name.substr(5, name.find('_', 5) - 5), type = name.substr(name.rfind('_') + 1);
    int k = 0, dtype = ASTRA_BOOL;
    while (k < 4 && kind != kinds[k]) ++k;
    while (type != astra_dtype_name(dtype)) ++dtype;
    auto combine = astra::ranks::combineOf(astra::ranks::Kind(k), dtype);
    uint64_t bytes = uint64_t(length) * (astra_dtype_bits(dtype) / 8);
    EXPECT_TRUE(name.starts_with("mesh_") && k < 4 && combine && count == 3 && length > 0 && length <= 1 << 24) << name;
    char *at[] = {here(vectors[0]), here(vectors[1]), here(vectors[2])};
    for (int i = 0; i < 3; i++) EXPECT_EQ(reinterpret_cast<uintptr_t>(at[i]) % 16, 0u);
    for (int i = 0; i < 2; i++) EXPECT_TRUE(at[i] + bytes <= at[2] || at[2] + bytes <= at[i]);
    of(gpu).kernels++;
    of(gpu).queue.push_back([=] { combine(at[2], at[0], at[1], uint64_t(length)); });
    return ASTRA_OK;
  }
  static astra_status exchange(void *self, const astra_gpu_call *gpu, const astra_transfer *sends, uint32_t numSends,
                               const astra_transfer *receives, uint32_t numReceives, int32_t timeout, int32_t *peer,
                               astra_diag *diag) {
    FakeGpu &g = of(gpu);
    g.drain();
    std::vector<astra_transfer> out(sends, sends + numSends), in(receives, receives + numReceives);
    for (auto *list : {&out, &in})
      for (astra_transfer &t : *list) t.data = here(t.data), g.bytesMoved += int64_t(t.bytes);
    if (out.empty() && in.empty()) return ASTRA_OK;
    return g.ranks->engine.exchange(self, out.data(), numSends, in.data(), numReceives, timeout, peer, diag);
  }
  static astra_status settle(void *, const astra_gpu_call *gpu, int32_t, int32_t *, astra_diag *) {
    of(gpu).drain();
    return ASTRA_OK;
  }

  astra_ranks *ranks;
  std::vector<std::function<void()>> queue;
  std::vector<char> memory;
};
