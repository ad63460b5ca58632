//===- Generators.cpp: counter generators as XLA numbers their words -------===//
// Takes:    states that are data.
// Gives:    integer arithmetic on u32 and u64.
#include "astra/Compose/Generators.h"
#include "astra/IR/Index.h"
#include "astra/Numerics/GraphValue.h"
#include "astra/Numerics/Threefry.h"
#include "llvm/ADT/STLExtras.h"
#include <array>

namespace astra::compose {

namespace {

constexpr int64_t most = int64_t(1) << 40;

UOpRef word(Composer &b, uint32_t v) { return b.b.bits(DType::U32, v); }
UOpRef low(Composer &b, UOpRef x) { return b.cast(x, DType::U32); }
UOpRef high(Composer &b, UOpRef x) { return low(b, b.bin(Op::Shr, x, b.b.bits(DType::U64, 32))); }
UOpRef joined(Composer &b, UOpRef l, UOpRef h) {
  return b.bin(Op::Or, b.cast(l, DType::U64), b.bin(Op::Shl, b.cast(h, DType::U64), b.b.bits(DType::U64, 32)));
}

bool check(Composer &b, UOpRef state, DType t, int64_t longest) {
  if (!state) return false;
  bool fits = state->dtype == DType::U64 && state->rank() == 1 && state->shape[0]->constIndex();
  int64_t length = fits ? *state->shape[0]->constIndex() : 0;
  if (length < 2 || length > longest)
    b.fail("the state is of " + dimsText(state->shape) + " elements, expected 2" + (longest > 2 ? " or 3" : "") +
           " of type u64");
  if (!isInt(t)) b.unsupported(llvm::Twine("bits of type ") + info(t).text + " are not supported: integers are");
  return !b.failed();
}

int64_t elementsOf(Composer &b, llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d && n > most / d) {
      b.unsupported("more than 2^40 random numbers");
      return 1;
    }
    n *= d;
  }
  return n;
}

/// Where a shape is cut into halves: its first even axis, else its first longest one.
int64_t splitAxis(llvm::ArrayRef<int64_t> shape) {
  int64_t longest = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] % 2 == 0) return i;
    if (shape[i] > shape[longest]) longest = i;
  }
  return longest;
}

Dims indices(Composer &b, llvm::ArrayRef<int64_t> shape) {
  Dims dims;
  for (int64_t d : shape) dims.push_back(b.idx(d));
  return dims;
}

/// Both words that the generator gives for a key and counters of 64 bits.
std::pair<UOpRef, UOpRef> threefry(Composer &b, UOpRef key, UOpRef counter) {
  UOpRef words[] = {low(b, key), high(b, key), low(b, counter), high(b, counter)};
  if (b.failed() || llvm::is_contained(words, nullptr)) return {};
  auto word = [&](unsigned i) { return numerics::Graph<uint32_t>(b.b, words[i]); };
  numerics::Threefry<numerics::Graph> drawn(word(0), word(1), word(2), word(3));
  return {drawn.x0.node(b.b), drawn.x1.node(b.b)};
}

/// start + 0, 1 ... n - 1.
UOpRef counters(Composer &b, UOpRef start, int64_t n) {
  return b.bin(Op::Add, b.iota(DType::U64, {b.idx(n)}, 0), start);
}

} // namespace

Drawn threefryBits(Composer &b, UOpRef state, llvm::ArrayRef<int64_t> shape, DType t) {
  if (!check(b, state, t, 2)) return {};
  int64_t n = elementsOf(b, shape);
  if (b.failed()) return {};
  UOpRef key = b.element(state, 0, 0), start = b.element(state, 0, 1);
  bool wide = bitWidth(t) == 64;
  int64_t axis = shape.empty() ? 0 : splitAxis(shape);
  Ints half(shape.begin(), shape.end());
  if (half.empty()) half = {1};
  if (!wide && !shape.empty()) half[axis] = (half[axis] + 1) / 2;
  int64_t used = wide ? n : elementsOf(b, half);
  UOpRef at = counters(b, start, used);
  auto [x, y] = threefry(b, key, at);
  UOpRef bits;
  if (wide) {
    bits = b.reshape(joined(b, x, y), indices(b, shape));
  } else if (shape.empty()) {
    bits = b.reshape(x, {});
  } else { // the second words of an axis stand between the first ones
    Dims open = indices(b, half), whole = open, wanted = indices(b, shape);
    open.insert(open.begin() + axis + 1, b.idx(1));
    whole[axis] = b.idx(2 * half[axis]);
    bits = b.reshape(b.concat({b.reshape(x, open), b.reshape(y, open)}, axis + 1), whole);
    bits = b.shrink(bits, Dims(wanted.size(), b.idx(0)), wanted);
  }
  UOpRef next = b.bin(Op::Add, start, b.b.bits(DType::U64, uint64_t(used)));
  next = b.concat({b.reshape(key, {b.idx(1)}), b.reshape(next, {b.idx(1)})}, 0);
  return {next, b.cast(bits, t)};
}

Drawn philoxBits(Composer &b, UOpRef state, llvm::ArrayRef<int64_t> shape, DType t) {
  if (!check(b, state, t, 3)) return {};
  int64_t n = elementsOf(b, shape), length = *state->shape[0]->constIndex();
  if (b.failed()) return {};
  UOpRef one = b.idx(1), key = b.element(state, 0, 0), l = b.element(state, 0, 1);
  UOpRef h = length == 3 ? b.element(state, 0, 2) : key; // of two words the key is the high half too
  bool wide = bitWidth(t) == 64;
  int64_t perBlock = wide ? 2 : 4, blocks = (n + perBlock - 1) / perBlock;
  UOpRef lows = counters(b, l, blocks);
  UOpRef carried = b.cast(b.bin(Op::Lt, lows, l), DType::U64), highs = b.bin(Op::Add, carried, h);
  std::array<UOpRef, 4> x = {low(b, lows), high(b, lows), low(b, highs), high(b, highs)};
  UOpRef k0 = low(b, key), k1 = high(b, key);
  auto times = [&](UOpRef v, uint32_t m) { return b.bin(Op::Mul, b.cast(v, DType::U64), b.b.bits(DType::U64, m)); };
  for (unsigned round = 0; round < 10; ++round) {
    UOpRef p = times(x[0], 0xD2511F53), q = times(x[2], 0xCD9E8D57);
    x = {b.bin(Op::Xor, b.bin(Op::Xor, high(b, q), x[1]), k0), low(b, q),
         b.bin(Op::Xor, b.bin(Op::Xor, high(b, p), x[3]), k1), low(b, p)};
    k0 = b.bin(Op::Add, k0, word(b, 0x9E3779B9));
    k1 = b.bin(Op::Add, k1, word(b, 0xBB67AE85));
  }
  llvm::SmallVector<UOpRef, 4> columns;
  for (int64_t i = 0; i < perBlock; ++i)
    columns.push_back(b.unsqueeze(wide ? joined(b, x[2 * i], x[2 * i + 1]) : x[i], {1}));
  UOpRef bits = b.reshape(b.concat(columns, 1), {b.idx(blocks * perBlock)});
  bits = b.reshape(b.part(bits, 0, 0, n), indices(b, shape));
  UOpRef nextLow = b.bin(Op::Add, l, b.b.bits(DType::U64, uint64_t(blocks)));
  UOpRef nextHigh = b.bin(Op::Add, h, b.cast(b.bin(Op::Lt, nextLow, l), DType::U64));
  llvm::SmallVector<UOpRef, 3> parts = {b.reshape(key, {one}), b.reshape(nextLow, {one})};
  if (length == 3) parts.push_back(b.reshape(nextHigh, {one}));
  return {b.concat(parts, 0), b.cast(bits, t)};
}

} // namespace astra::compose
