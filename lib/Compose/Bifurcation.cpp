//===- Bifurcation.cpp: what a guess of tokens and a source share -----------===//
// Takes:    operands that may be wrong in every way.
// Gives:    what Bifurcation.h says.
#include "astra/Compose/Bifurcation.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Order.h"

namespace astra::compose {

namespace {

constexpr int64_t mostGrams = 64;

bool requireTokens(Composer &b, UOpRef x, const char *what) {
  if (!x) return false;
  if (x->dtype == DType::I64 && x->rank() == 1) return b.requireLeast(x->shape[0], 1, what, "0");
  b.fail(llvm::Twine(what) + " is not i64 of rank 1");
  return false;
}

UOpRef number(Composer &b, int64_t value) { return b.b.litInt(DType::I64, value); }
UOpRef within(Composer &b, UOpRef x, UOpRef last) { return b.bin(Op::Max, b.bin(Op::Min, x, last), number(b, 0)); }
/// The least of the places where a condition holds, else `none`; a scalar.
UOpRef firstWhere(Composer &b, UOpRef condition, UOpRef places, UOpRef none) {
  return b.reshape(b.reduce(ReduceKind::Min, b.select(condition, places, none), {0}), {});
}

/// Where an n-gram that ends before `count` of the tokens stands in the source: the first and the second place,
/// `length` where there is none.
std::pair<UOpRef, UOpRef> places(Composer &b, UOpRef source, UOpRef tokens, UOpRef count, int64_t size) {
  UOpRef length = b.scalar(source->shape[0], DType::I64), last = b.bin(Op::Sub, length, 1.0),
         at = b.iota(DType::I64, {source->shape[0]}, 0);
  UOpRef end = b.scalar(tokens->shape[0], DType::I64);
  UOpRef found = b.bin(Op::Le, b.bin(Op::Add, at, double(size)), length);
  for (int64_t t = 0; t < size; ++t) {
    UOpRef own = gather(b, tokens, within(b, b.bin(Op::Add, count, double(t - size)), b.bin(Op::Sub, end, 1.0)), 0);
    UOpRef its = gather(b, source, within(b, b.bin(Op::Add, at, double(t)), last), 0);
    found = b.bin(Op::And, found, b.bin(Op::Eq, its, own));
  }
  UOpRef first = firstWhere(b, found, at, length);
  return {first, firstWhere(b, b.bin(Op::And, found, b.bin(Op::Lt, first, at)), at, length)};
}

} // namespace

Bifurcation bifurcation(Composer &b, UOpRef source, UOpRef current, UOpRef previous, UOpRef predicted, int64_t least,
                        int64_t most) {
  if (least < 1 || most < least)
    b.fail("n-grams of " + llvm::Twine(least) + " to " + llvm::Twine(most) + " tokens: expected 1 or more, ascending");
  else if (most > mostGrams)
    b.unsupported("n-grams of more than " + llvm::Twine(mostGrams) + " tokens are not supported");
  if (b.failed() || !requireTokens(b, source, "the source") || !requireTokens(b, current, "the current tokens") ||
      !requireTokens(b, previous, "the previous place"))
    return {};
  UOpRef tokens = current, count = b.scalar(current->shape[0], DType::I64),
         length = b.scalar(source->shape[0], DType::I64);
  Bifurcation r;
  if (predicted) {
    if (!requireTokens(b, predicted, "the predicted tokens")) return {};
    UOpRef start = b.reshape(b.part(previous, 0, 0, 1), {}), at = b.iota(DType::I64, {predicted->shape[0]}, 0);
    UOpRef place = b.bin(Op::Add, at, start);
    UOpRef its = gather(b, source, within(b, place, b.bin(Op::Sub, length, 1.0)), 0);
    UOpRef other = b.bin(Op::Or, b.bin(Op::Le, length, place), b.bin(Op::Ne, its, predicted));
    UOpRef last = b.bin(Op::Sub, b.scalar(predicted->shape[0], DType::I64), 1.0);
    count = b.bin(Op::Add, b.bin(Op::Add, count, firstWhere(b, other, at, last)), 1.0);
    tokens = b.concat({current, predicted}, 0);
    if (b.failed()) return {};
    r.tokens = compress(b, tokens, b.bin(Op::Lt, b.iota(DType::I64, {tokens->shape[0]}, 0), count), 0);
  } else {
    r.tokens = current;
  }
  // Each length is looked for while those before were found, and not at the source's end.
  UOpRef suffix = number(b, -1), going = b.b.lit(DType::Bool, 1), none = number(b, -1);
  for (int64_t size = least; size <= most && !b.failed(); ++size) {
    auto [first, second] = places(b, source, tokens, count, size);
    UOpRef behind = b.bin(Op::Add, first, double(size));
    UOpRef fits = b.bin(Op::Le, number(b, size), count), found = b.bin(Op::Lt, first, length);
    going = b.bin(Op::And, going, b.bin(Op::And, fits, found));
    UOpRef atEnd = b.bin(Op::Le, length, behind), several = b.bin(Op::Lt, second, length);
    UOpRef now = b.select(b.bin(Op::And, several, b.un(Op::Not, atEnd)), none, behind);
    suffix = b.select(going, now, suffix);
    going = b.bin(Op::And, going, b.un(Op::Not, atEnd));
  }
  r.suffix = b.reshape(suffix, {b.idx(1)});
  return b.failed() ? Bifurcation() : r;
}

} // namespace astra::compose
