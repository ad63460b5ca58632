//===- Slices.cpp: slices and pads along a cut axis --------------------------===//
// Takes:    a shrink, a pad, a pad of a shrink, windows that do not overlap, along an axis that is cut; a shard's part.
// Gives:    the part of the result, cut by the same shards: what a shard lacks comes from others by a `shift`.
// Keeps:    bits: elements move. Where parts of the result are as long as those of the source, what moves is what lies
//           beyond an end of a part (a halo), and extents may be dims.
// Does not: slice where parts are of two lengths that are not known, reverse, or take a result that shards do not
//           divide: those are refused.
#include "Partition.h"
#include "astra/IR/Text.h"
#include <map>

using namespace astra;
using namespace astra::distribute;

static int64_t floorOf(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// The value of the shard `by` places behind; zeros where there is none.
UOpRef Partition::from(int64_t by, UOpRef x, MeshAxes axes) {
  return by ? c.make(Op::Shift, {x}, {-by, 0}, groupText(mesh, axes)) : x;
}

/// Elements [begin, begin + count) along an axis.
static UOpRef piece(Builder &b, UOpRef x, unsigned axis, UOpRef begin, UOpRef count) {
  List from(x->rank(), b.c.index(0)), size(x->shape.begin(), x->shape.end());
  from[axis] = begin, size[axis] = count;
  return b.shrink(x, from, size);
}

/// Parts of one length: element r is element r + first, of this shard or of one beside it.
UOpRef Partition::slidAlike(UOpRef x, unsigned axis, int64_t first, MeshAxes by) {
  UOpRef part = x->shape[axis];
  int64_t whole = 0; // parts that all elements move
  UOpRef rest = c.index(first);
  if (auto n = part->constIndex())
    whole = floorOf(first, *n), rest = c.index(first - whole * *n);
  else if (first < 0)
    whole = -1, rest = idxAdd(c, part, rest);
  if (rest->constIndex() == 0) return from(whole, x, by);
  UOpRef near = piece(b, x, axis, rest, idxSub(c, part, rest)), far = piece(b, x, axis, c.index(0), rest);
  return b.concat({from(whole, near, by), from(whole + 1, far, by)}, axis);
}

/// Parts of two lengths, of which each shard lacks something else: it is sent a piece of each part that it needs, as
/// long as the longest that any shard needs at this distance, and takes its elements from there.
UOpRef Partition::slidApart(UOpRef x, unsigned axis, int64_t first, int64_t part, MeshAxes by) {
  int64_t own = *x->shape[axis]->constIndex(), shards = mesh.count(by);
  std::map<int64_t, int64_t> longest; // by distance
  for (int64_t i = 0; i < shards; ++i)
    for (int64_t at = std::max<int64_t>(0, i * part + first); at < std::min(own * shards, (i + 1) * part + first);) {
      int64_t j = at / own, end = std::min((j + 1) * own, (i + 1) * part + first);
      longest[j - i] = std::max(longest[j - i], end - at);
      at = end;
    }
  auto number = [&](int64_t v) { return b.litInt(DType::I64, v); };
  auto least = [&](UOpRef v, UOpRef w) { return b.bin(Op::Min, v, w); };
  auto most = [&](UOpRef v, UOpRef w) { return b.bin(Op::Max, v, w); };
  UOpRef mine = rankIndex(by);
  /// Where the piece begins in the part of shard i + distance that shard i is sent.
  auto begin = [&](UOpRef i, int64_t distance) {
    UOpRef at = b.add(b.mul(i, number(part - own)), number(first - distance * own));
    return least(most(at, number(0)), number(own - longest[distance]));
  };
  List pieces, row{c.index(part)};
  auto all = [&](UOpRef scalar) { return b.splat(scalar, row); };
  UOpRef element = b.add(b.iota(DType::I64, row, 0), all(b.add(b.mul(mine, number(part)), number(first))));
  UOpRef index = nullptr;
  int64_t before = 0;
  for (auto [distance, count] : longest) {
    List length{c.index(count)};
    UOpRef sent = b.add(b.iota(DType::I64, length, 0), b.splat(begin(b.sub(mine, number(distance)), distance), length));
    pieces.push_back(from(distance, b.gather(x, sent, axis), by));
    UOpRef inPart = b.sub(element, all(b.mul(b.add(mine, number(distance)), number(own))));
    UOpRef inPiece = b.add(b.sub(inPart, all(begin(mine, distance))), all(number(before)));
    UOpRef isHere = b.lt(all(number(-1)), inPart); // a later distance has what is behind this part
    index = index ? b.select(isHere, inPiece, index) : inPiece;
    before += count;
  }
  if (!before) return nullptr;
  index = least(most(index, all(number(0))), all(number(before - 1))); // what is nowhere is filled
  return b.gather(pieces.size() > 1 ? b.concat(pieces, axis) : pieces[0], index, axis);
}

/// For n, along an axis, the part of what the slide says; x is the part of the source. Null: an error.
UOpRef Partition::slid(UOpRef n, UOpRef x, unsigned axis, const Slide &s, MeshAxes by) {
  auto refuse = [&](const Twine &why) {
    fail(n, "along axis " + Twine(axis) + " of " + typeText(n->dtype, n->shape) + ", which is cut, " + why +
                ": write a reshard before it that leaves this axis whole");
    return nullptr;
  };
  int64_t shards = mesh.count(by);
  auto first = idxSub(c, s.begin, s.before)->constIndex();
  UOpRef whole = s.whole, part = divided(c, whole, shards), own = x->shape[axis];
  if (!part) return refuse("its extent of " + indexText(whole) + " is not divided by the " + Twine(shards) + " shards");
  if (!first) return refuse("what moves depends on an extent");
  constexpr int64_t farthest = int64_t(1) << 40;
  if (std::abs(*first) > farthest || own->hi > farthest || part->hi > farthest) return refuse("elements move too far");
  UOpRef made = nullptr;
  if (part == own) {
    if (!own->constIndex() && std::abs(*first) > own->lo)
      return refuse("elements move by " + Twine(*first) + ", and parts may have " + Twine(own->lo));
    made = slidAlike(x, axis, *first, by);
  } else {
    if (!part->constIndex() || !own->constIndex())
      return refuse("parts of " + indexText(own) + " become parts of " + indexText(part) +
                    ", which is possible for extents that are constants");
    if (*own->constIndex() > 0) made = slidApart(x, axis, *first, *part->constIndex(), by);
  }
  if (!made) return refuse("there is nothing that could move");
  // A shift gives zeros where there is no shard; all else that is filled is selected.
  UOpRef extent = idxMul(c, own, c.index(shards)), end = idxAdd(c, s.before, s.count);
  bool isAtBegin = s.before->constIndex() == 0 || (s.begin->constIndex() == 0 && part == own && s.fill == 0),
       isAtEnd = end == whole || (idxAdd(c, s.begin, s.count) == extent && part == own && s.fill == 0);
  if (isAtBegin && isAtEnd) return made;
  UOpRef at = b.add(b.iota(DType::I64, made->shape, axis),
                    b.splat(b.mul(rankIndex(by), b.fromIndex(part, DType::I64)), made->shape));
  auto index = [&](UOpRef i) { return b.splat(b.fromIndex(i, DType::I64), made->shape); };
  UOpRef isTaken = b.bin(Op::And, b.lt(index(idxSub(c, s.before, c.index(1))), at), b.lt(at, index(end)));
  return b.select(isTaken, made, b.splat(b.bits(n->dtype, s.fill), made->shape));
}
