//===- GuardTest.cpp: plans that a search tries, between guard pages --------===//
// Takes:    kernels of every kind, with bounds of their dims beside the sizes of tiles; plans that a walk from
//           neighbour to neighbour meets, on each CPU level that this machine runs. Nightly more bounds and longer
//           walks.
// Gives:    at each value of the dims about tile edges: no plan reads or writes outside of its buffers, whether they
//           end at a guard page or begin at one, and all plans give the same bytes, up to the payloads of NaNs.
// Does not: run what a search would not try.
#include "../HostLevel.h"
#include "../KernelCache.h"
#include "Bench.h"
#include "Scheduled.h"
#include "astra/Codegen/Candidates.h"
#include "astra/Codegen/Compile.h"
#include "astra/Codegen/Lower.h"
#include "guard/Regions.h"
#include "llvm/ADT/StringSet.h"
#include <random>

using namespace astra;
using namespace astra::test;

namespace {

/// n is at most `most`.
std::string kernels(int64_t most) {
  return "module @m {\n  dim n in 1.." + std::to_string(most) + R"(
  param @w : f32[515, 37] = splat 0.5
  param @t : f32[17, 6, 3, 3] = splat 0.25
  entry @products(%x : f32[n, 515], %y : f32[3, n, 21], %z : f32[3, 21, n], %i : f32[n, 6, 7, 9], %u : u8[n, 70],
                  %v : i8[70, 19], %h : f16[n, 33], %g : f16[33, 10])
      -> (%p : f32[n, 37], %q : f32[3, n, n], %s : f32[n, 17, 5, 7], %r : i32[n, 19], %o : f16[n, 10]) {
    %p = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %q = contract %y[b, i, k], %z[b, k, j] -> [b, i, j] sum [k]
    %s = contract @t[o, c, r, s], %i[b, c, h + r, w + s] -> [b, o, h: 5, w: 7] sum [c, r, s]
    %a = cast %u : i32[n, 70]
    %b = cast %v : i32[70, 19]
    %r = contract %a[i, k], %b[k, j] -> [i, j] sum [k]
    %o = contract %h[i, k], %g[k, j] -> [i, j] sum [k]
  }
  entry @sums(%x : f32[n, 300], %y : f32[70, n], %z : f32[n, 9, n], %u : u8[n, 37])
      -> (%a : f32[n], %b : f32[n], %c : f32[n, 300], %d : f32[n, 70], %e : f32[70, n], %f : f32[9], %g : u8[37, n]) {
    %a = reduce %x kind=sum order=lane64 axes=[1]
    %b = reduce %y kind=max order=exact axes=[0]
    %m = reduce %x kind=max order=exact axes=[1]
    %1 = reshape %m [n, 1]
    %2 = expand %1 [n, 300]
    %3 = sub %x, %2
    %4 = exp %3
    %5 = reduce %4 kind=sum order=lane64 axes=[1]
    %6 = reshape %5 [n, 1]
    %7 = expand %6 [n, 300]
    %c = div %4, %7
    %d = permute %y perm=[1, 0]
    %e = cumulate %y kind=sum axis=1
    %f = reduce %z kind=sum order=lane64 axes=[0, 2]
    %g = permute %u perm=[1, 0]
  }
  entry @places(%x : f32[n, 65], %at : i64[30], %to : i64[30, 65]) -> (%a : f32[30, 65], %b : f32[n, 65]) {
    %a = gather %x, %at axis=0
    %b = scatter %x, %to, %a axis=0 kind=add
  }
})";
}

std::vector<Plan> walk(Context &c, const KernelSpec &spec, const Target &target, unsigned steps, unsigned seed) {
  std::mt19937 random(seed);
  Plan first = choosePlan(c, spec, target);
  std::vector<Plan> met{first};
  llvm::StringSet<> texts;
  texts.insert(text(first));
  for (unsigned i = 0; i < steps; ++i) {
    std::vector<Plan> beside = candidates(spec, met[random() % met.size()], target, CandidatesFor::Measuring);
    if (beside.empty()) break;
    Plan p = beside[random() % beside.size()];
    if (texts.insert(text(p)).second) met.push_back(p);
  }
  return met;
}

struct Call {
  KernelFunction function;
  std::vector<void *> buffers;
  std::vector<int64_t> dims;
  uint8_t *scratch;
  int64_t items;
  static void run(void *arg) {
    auto &c = *static_cast<Call *>(arg);
    int64_t middle = c.items / 2;
    if (middle) c.function(c.buffers.data(), c.dims.data(), c.scratch, 0, middle);
    if (middle < c.items) c.function(c.buffers.data(), c.dims.data(), c.scratch, middle, c.items);
  }
};

/// Small numbers; indices inside and outside.
std::vector<uint8_t> numbers(DType t, int64_t elements, unsigned seed) {
  std::mt19937 random(seed);
  unsigned size = std::max(1u, byteSize(t));
  std::vector<uint8_t> bytes(elements * size);
  for (int64_t i = 0; i < elements; ++i) {
    float f = float(int(random() % 33) - 16) / 4;
    int64_t w = int64_t(random() % 20) - 2;
    uint16_t half = uint16_t(0x3000 + random() % 0x1400);
    const void *from = t == DType::F32   ? static_cast<const void *>(&f)
                       : t == DType::F16 ? &half
                                         : static_cast<void *>(&w);
    memcpy(&bytes[i * size], from, size);
  }
  return bytes;
}

struct Counts {
  unsigned plans = 0, launches = 0;
};

/// One plan at one vector of dims, on both sides; what it gives in the result's buffer.
std::string check(const CompiledKernel &k, KernelFunction function, llvm::ArrayRef<UOpRef> dims,
                  llvm::ArrayRef<int64_t> values, size_t result, std::vector<uint8_t> &gives) {
  auto at = [&](UOpRef x) {
    return idxEvaluate(x, [&](UOpRef d) -> std::optional<int64_t> {
      auto it = llvm::find(dims, d);
      return it == dims.end() ? std::nullopt : std::optional<int64_t>(values[it - dims.begin()]);
    });
  };
  for (guard::Side side : {guard::Side::Begin, guard::Side::End}) {
    guard::Regions regions;
    auto items = at(k.items);
    if (!items) return "its items are not known";
    Call call{function, {}, {values.begin(), values.end()}, nullptr, *items};
    for (auto [i, b] : llvm::enumerate(k.kernel.buffers)) {
      auto elements = at(b.elements);
      if (!elements) return "a size is not known";
      std::vector<uint8_t> bytes = numbers(b.dtype, *elements, unsigned(i + 1));
      guard::Region &region = regions.take(bytes.size());
      call.buffers.push_back(region.place(bytes.size(), side, 1));
      llvm::copy(bytes, region.at);
    }
    call.scratch = regions.take(k.scratch).place(k.scratch, side, 64);
    guard::Fault fault;
    bool fine = guard::survives(Call::run, &call, fault);
    for (auto [i, region] : llvm::enumerate(regions.used())) {
      int64_t before = 0, behind = 0;
      if (fine ? region->untouched(before, behind) : region != regions.around(fault.address)) continue;
      return "leaves " + (i < call.buffers.size() ? "buffer " + std::to_string(i) : std::string("its scratch memory")) +
             " of " + std::to_string(region->bytes) + " bytes: " +
             (fine ? "stores " + std::to_string(before ? -before : int64_t(region->bytes) + behind - 1)
                   : (fault.stores ? "stores " : "touches ") + std::to_string(fault.address - region->at)) +
             " bytes from the beginning";
    }
    if (!fine) return "faults at an address that is near no buffer";
    const guard::Region &to = *regions.used()[result];
    std::vector<uint8_t> bytes(to.at, to.at + to.bytes);
    if (gives.empty())
      gives = std::move(bytes);
    else if (gives != bytes)
      return "gives other bytes than the first plan";
  }
  return "";
}

TEST(Search, PlansStayInTheirBuffers) {
  const char *bound = std::getenv("ASTRA_GUARD_BOUND"); // that one alone
  bool nightly = bound || std::getenv("ASTRA_NIGHTLY");
  Counts counts;
  std::vector<int64_t> bounds = nightly ? std::vector<int64_t>{3, 4, 6, 14, 16, 33} : std::vector<int64_t>{4};
  if (bound) bounds = {std::atoll(bound)};
  for (int64_t most : bounds)
    for (const Target &target : allTargets()) {
      if (!hostRuns(target) || (!nightly && llvm::StringRef(target.name).ends_with("vnni"))) continue;
      Scheduled m(kernels(most));
      Context &c = *m.module.context;
      for (auto [number, spec] : llvm::enumerate(m.schedule.kernels)) {
        std::vector<Plan> plans = walk(c, spec, target, nightly ? 40 : 4, unsigned(number));
        Schedule part;
        part.dims = m.schedule.dims, part.moduleDims = m.schedule.moduleDims;
        CompileOptions o;
        o.jobs = 2;
        o.cache = kernelCache();
        for (auto [j, p] : llvm::enumerate(plans)) {
          part.kernels.push_back(spec);
          part.kernels.back().name = "plan" + std::to_string(j);
          o.plans[part.kernels.back().name] = p;
        }
        auto code = compileKernels(c, part, target, o);
        ASSERT_TRUE(bool(code)) << spec.name << ": " << llvm::toString(code.takeError());
        auto loaded = LoadedCode::load(code->image);
        ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
        counts.plans += plans.size();
        for (int64_t n = 1; n <= most; ++n) {
          std::vector<int64_t> values;
          for (UOpRef d : part.dims) values.push_back(d->str == "n" ? n : d->lo);
          std::vector<uint8_t> gives;
          for (auto [j, k] : llvm::enumerate(code->kernels)) {
            size_t result = spec.inPlace ? 0 : k.kernel.buffers.size() - 1;
            std::string what = check(k, loaded->at(k.offset), part.dims, values, result, gives);
            counts.launches += 2;
            EXPECT_EQ(what, "") << spec.name << " of " << target.name << " with n=" << n << " of 1.." << most
                                << " under " << text(plans[j]);
          }
        }
      }
    }
  std::printf("%u plans of kernels between guard pages, %u launches\n", counts.plans, counts.launches);
}

} // namespace
