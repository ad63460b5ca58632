//===- OpCases.h: every elementwise op on every type, with edge values -----===//
// Gives:    a kernel for each op of the op table that is elementwise and no function, on each dtype that its type rule
//           takes: edge values of all operands against each other, then random bits; what Eval gives for them.
#pragma once
#include "Run.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

namespace astra::test {

/// Bit patterns at the edges of a type.
inline std::vector<uint64_t> edges(DType t, unsigned arity) {
  unsigned w = bitWidth(t);
  uint64_t mask = w == 64 ? ~0ull : (1ull << w) - 1, sign = 1ull << (w - 1);
  std::vector<uint64_t> v;
  if (t == DType::Bool) return {0, 1};
  if (info(t).cls == DTypeClass::Storage) { // all of them
    for (uint64_t i = 0; i < 256; ++i) v.push_back(i);
    return v;
  }
  if (!isFloat(t)) {
    v = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, sign - 1, sign, sign + 1, mask, mask - 1, mask - 6};
    if (w >= 32) v.insert(v.end(), {0x12345678, 0xfffffful, 0x1000001, 0x7fffff80, 65519, 65520, 65536});
    if (w == 64)
      v.insert(v.end(), {1ull << 32, (1ull << 53) + 1, (1ull << 24) + 1, 0x8000000000000401, 0x7ffffffffffffe00,
                         0x00ff800000000001, 0x0101010101010101, 0x00ff800000000000, 0xffffff0000000001});
  } else {
    unsigned m = info(t).mantissaBits, e = info(t).exponentBits;
    uint64_t one = ((1ull << (e - 1)) - 1) << m, inf = ((1ull << e) - 1) << m, ulp = 1;
    uint64_t half = one - (1ull << m), two = one + (1ull << m);
    v = {0,
         1,
         2,
         (1ull << m) - 1,
         1ull << m,
         one - ulp,
         one,
         one + ulp,
         half,
         half + 1,
         two,
         two + (1ull << (m - 1)),
         inf - 1,
         inf,
         inf | 1ull << (m - 1),
         inf | 1};
    // 2^7, 2^8, 2^15 ... 2^64: the limits of the integer types, and one ulp below
    for (unsigned p : {7u, 8u, 15u, 16u, 31u, 32u, 63u, 64u})
      if (p < (1u << (e - 1))) v.push_back(one + (uint64_t(p) << m)), v.push_back(one + (uint64_t(p) << m) - 1);
    if (t == DType::F64) { // halfway and next to halfway in f32, f16, bf16
      for (double d :
           {1.0 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-52, 1.0 + 0x1p-11, 1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-8,
            1.0 + 0x1p-8 - 0x1p-50, 65519.999, 65520.0, 0x1p-25, 0x1p-25 + 0x1p-60, 0x1.ffp127, 0x1.ffp127 - 0x1p80,
            0x1p-134, 0x1.000001p-134, 3.4028235677973366e38, 0x1p-150, 0x1.0000001p-150}) {
        uint64_t b;
        memcpy(&b, &d, 8);
        v.push_back(b);
      }
    }
    if (t == DType::F32)
      v.insert(v.end(),
               {0x477fefff, 0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x387fffff, 0x3f801000, 0x3f801001,
                0x3f808000, 0x3f808001, 0x3f818000, 0x7f7f7fff, 0x7f7f8000, 0x4b000000, 0x4b000001, 0x4affffff});
    size_t n = v.size();
    for (size_t i = 0; i < n; ++i) v.push_back(v[i] | sign);
  }
  std::vector<uint64_t> out;
  for (uint64_t x : v) out.push_back(x & mask);
  if (arity == 3) { // fewer for three operands
    std::vector<uint64_t> some;
    for (size_t i = 0; i < out.size(); i += (out.size() + 14) / 15) some.push_back(out[i]);
    return some;
  }
  return out;
}

/// Operands: every combination of edges, then random bits, as many as fill whole vectors of 64.
inline std::vector<std::vector<uint8_t>> operands(llvm::ArrayRef<DType> types) {
  std::vector<std::vector<uint64_t>> e;
  size_t total = 1;
  for (DType t : types) e.push_back(edges(t, types.size())), total *= e.back().size();
  size_t count = (total + 200 + 63) / 64 * 64;
  std::vector<std::vector<uint8_t>> out;
  uint64_t seed = 12345;
  for (size_t o = 0; o < types.size(); ++o) {
    unsigned bytes = bitWidth(types[o]) / 8;
    std::vector<uint8_t> buffer(count * bytes);
    for (size_t i = 0; i < count; ++i) {
      size_t k = i;
      for (size_t q = 0; q < o; ++q) k /= e[q].size();
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      uint64_t bits = i < total ? e[o][k % e[o].size()] : types[o] == DType::Bool ? seed >> 40 & 1 : seed ^ seed >> 29;
      memcpy(&buffer[i * bytes], &bits, bytes);
    }
    out.push_back(std::move(buffer));
  }
  return out;
}

inline void canonicalize(std::vector<uint8_t> &bytes, DType t) {
  if (!isFloat(t)) return;
  Tensor x{t, {int64_t(bytes.size() / byteSize(t))}, std::move(bytes)};
  canonicalizeNaN(x);
  bytes = std::move(x.bytes);
}

struct Case {
  std::string name;
  DType result;
  Job job;
  std::vector<uint8_t> expected;
};

class Cases {
public:
  Context c;
  Builder b{c};
  std::vector<Case> cases;

  /// One kernel: loads, the op, a store, `lanes` elements an item.
  void add(Op op, llvm::ArrayRef<DType> types, DType to, std::vector<int64_t> ints, int64_t lanes) {
    auto buffers = operands(types);
    int64_t count = buffers[0].size() / byteSize(types[0]);
    UOpRef n = b.idx(count), item = c.make(Op::Range, {b.idx(count / lanes)}, {0, int64_t(RangeKind::Parallel)});
    UOpRef at = idxMul(c, item, b.idx(lanes));
    std::vector<UOpRef> src;
    Kernel k;
    for (size_t i = 0; i < types.size(); ++i) {
      src.push_back(c.make(Op::Load, {c.make(Op::Buffer, {n}, {int64_t(i)}, {}, types[i]), at}, {lanes}));
      k.buffers.push_back({types[i], true, false, n});
    }
    auto x = c.tryMake(op, src, ints, {}, to);
    if (!x) return llvm::consumeError(x.takeError());
    DType result = (*x)->dtype;
    UOpRef out = c.make(Op::Buffer, {n}, {int64_t(types.size())}, {}, result);
    k.buffers.push_back({result, false, true, n});
    k.sink = c.make(Op::Sink, {c.make(Op::Store, {out, *x, at}, {lanes})});
    buffers.emplace_back(count * byteSize(result));
    Case test{std::string(info(op).mnemonic) + " " + info(types[0]).text + " -> " + info(result).text + " x" +
                  std::to_string(lanes),
              result,
              {k, buffers, {}, 3},
              {}};
    cases.push_back(std::move(test));
  }

  void addAll(int64_t lanes) {
    for (unsigned i = 0; i < numOps; ++i) {
      Op op = Op(i);
      if (!has(op, Elementwise) || has(op, Function)) continue;
      for (unsigned ti = 0; ti < numDTypes; ++ti) {
        DType t = DType(ti);
        bool small = info(t).cls == DTypeClass::Storage && bitWidth(t) == 8; // cast alone
        if (!isArithmetic(t) && !(small && op == Op::Cast)) continue;
        if (op == Op::Cast || op == Op::Bitcast || op == Op::Lookup16) {
          std::vector<int64_t> ints;
          if (op == Op::Cast) ints = {0};
          for (unsigned to = 0; to < numDTypes; ++to) {
            bool toSmall = info(DType(to)).cls == DTypeClass::Storage && bitWidth(DType(to)) == 8;
            if (!isArithmetic(DType(to)) && !(toSmall && op == Op::Cast)) continue;
            if (toSmall) add(op, {t}, DType(to), {1}, lanes);
            if (op == Op::Lookup16) {
              ints.clear();
              for (uint64_t e = 0; e < 16; ++e) // not NaNs, whose payload a table keeps
                ints.push_back(int64_t((isFloat(DType(to)) ? e * 0x0101010101010101ull : ~e * 0x123456789ull) &
                                       (~0ull >> (64 - bitWidth(DType(to))))));
            }
            add(op, {t}, DType(to), ints, lanes);
          }
        } else if (op == Op::Scale2) {
          add(op, {t, DType::I32}, DType::Void, {}, lanes);
        } else if (op == Op::Select) {
          add(op, {DType::Bool, t, t}, DType::Void, {}, lanes);
        } else {
          add(op, std::vector<DType>(info(op).sources, t), DType::Void, {}, lanes);
        }
      }
    }
  }
};

/// Where results differ from Eval's, a failure with the operands.
inline void compare(const Cases &all, std::vector<Job> &jobs, const std::string &where) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Case &k = all.cases[i];
    std::vector<uint8_t> &result = jobs[i].buffers.back();
    canonicalize(result, k.result);
    if (result == k.expected) continue;
    unsigned bytes = byteSize(k.result);
    size_t at = 0;
    while (!memcmp(&result[at], &k.expected[at], bytes)) at += bytes;
    std::string values;
    for (size_t o = 0; o < jobs[i].buffers.size(); ++o) {
      unsigned width = byteSize(k.job.kernel.buffers[o].dtype);
      uint64_t got = 0;
      memcpy(&got, &jobs[i].buffers[o][at / bytes * width], width);
      values += " 0x" + llvm::utohexstr(got);
    }
    uint64_t want = 0;
    memcpy(&want, &k.expected[at], bytes);
    ADD_FAILURE() << where << ": " << k.name << ": operands and result" << values << ", expected 0x"
                  << llvm::utohexstr(want);
  }
}

} // namespace astra::test
