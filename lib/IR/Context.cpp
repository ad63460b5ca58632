//===- Context.cpp: the arena and interner ---------------------------------===//
// Takes:    parts of a node.
// Gives:    the one node with these parts. On a hash hit every part is still compared.
// Keeps:    structural hashes free of addresses and ids.
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

using namespace astra;

static uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

static constexpr int64_t big = int64_t(1) << 62;
static int64_t saturate(__int128 v) { return v > big ? big : v < -big ? -big : int64_t(v); }

/// Bounds of an index node from those of its sources.
static std::pair<int64_t, int64_t> bounds(Op op, llvm::ArrayRef<UOpRef> s, llvm::ArrayRef<int64_t> ints) {
  using W = __int128;
  auto floorDiv = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); };
  switch (op) {
  case Op::Const: return {ints[0], ints[0]};
  case Op::Dim: return {ints[0], ints[1]};
  case Op::Extent: return {ints[0], ints[1]};
  case Op::Range: return {0, std::max<int64_t>(s[0]->hi - 1, 0)};
  case Op::Add: {
    std::pair<int64_t, int64_t> r{saturate(W(s[0]->lo) + s[1]->lo), saturate(W(s[0]->hi) + s[1]->hi)};
    if (r.first >= 0) return r; // as it nearly always is
    auto better = idxSumBounds(s[0], s[1]);
    return better ? std::pair(std::max(r.first, better->first), std::min(r.second, better->second)) : r;
  }
  case Op::Mul: {
    W p[] = {W(s[0]->lo) * s[1]->lo, W(s[0]->lo) * s[1]->hi, W(s[0]->hi) * s[1]->lo, W(s[0]->hi) * s[1]->hi};
    return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
  }
  case Op::FloorDiv:
    if (s[1]->lo <= 0) return {-big, big};
    return {std::min(floorDiv(s[0]->lo, s[1]->lo), floorDiv(s[0]->lo, s[1]->hi)),
            std::max(floorDiv(s[0]->hi, s[1]->lo), floorDiv(s[0]->hi, s[1]->hi))};
  case Op::Mod:
    if (s[1]->lo <= 0) return {-big, big};
    if (s[0]->lo >= 0 && s[0]->hi < s[1]->lo) return {s[0]->lo, s[0]->hi};
    return {0, s[0]->lo >= 0 ? std::min(s[0]->hi, s[1]->hi - 1) : s[1]->hi - 1};
  case Op::Min: return {std::min(s[0]->lo, s[1]->lo), std::min(s[0]->hi, s[1]->hi)};
  case Op::Max: return {std::max(s[0]->lo, s[1]->lo), std::max(s[0]->hi, s[1]->hi)};
  case Op::Select: return {std::min(s[1]->lo, s[2]->lo), std::max(s[1]->hi, s[2]->hi)};
  default: return {-big, big};
  }
}

Context::Context() {
  table.resize(1024);
  shapeTable.resize(256);
}
Context::~Context() = default;

template <class T> static llvm::ArrayRef<T> copyTo(llvm::BumpPtrAllocator &arena, llvm::ArrayRef<T> xs) {
  if (xs.empty()) return {};
  T *p = arena.Allocate<T>(xs.size());
  std::copy(xs.begin(), xs.end(), p);
  return {p, xs.size()};
}

Shape Context::internShape(llvm::ArrayRef<UOpRef> shape) {
  if (shape.empty()) return {};
  uint64_t h = shape.size();
  for (UOpRef d : shape) h = mix(h, d->hash);
  if ((shapes.size() + 1) * 2 > shapeTable.size()) {
    std::vector<uint32_t> bigger(shapeTable.size() * 2);
    for (uint32_t i = 0; i < shapes.size(); ++i) {
      size_t at = shapes[i].first & (bigger.size() - 1);
      while (bigger[at]) at = (at + 1) & (bigger.size() - 1);
      bigger[at] = i + 1;
    }
    shapeTable.swap(bigger);
  }
  size_t mask = shapeTable.size() - 1, at = h & mask;
  for (; shapeTable[at]; at = (at + 1) & mask) {
    auto &[hash, s] = shapes[shapeTable[at] - 1];
    if (hash == h && s == shape) return s;
  }
  Shape copy = copyTo<UOpRef>(arena, shape);
  shapes.push_back({h, copy});
  shapeTable[at] = shapes.size();
  return copy;
}

void Context::grow() {
  std::vector<uint32_t> bigger(table.size() * 2);
  for (UOpRef n : nodes) {
    size_t at = n->hash & (bigger.size() - 1);
    while (bigger[at]) at = (at + 1) & (bigger.size() - 1);
    bigger[at] = n->id + 1;
  }
  table.swap(bigger);
}

UOpRef Context::intern(Op op, DType dtype, Shape shape, llvm::ArrayRef<UOpRef> src, uint32_t ntensors,
                       llvm::ArrayRef<int64_t> ints, llvm::StringRef str, llvm::ArrayRef<UOpRef> fns) {
  uint64_t h = mix(uint64_t(op) + 1, uint64_t(dtype));
  for (UOpRef s : src) h = mix(h, s->hash);
  h = mix(h, src.size());
  for (int64_t i : ints) h = mix(h, uint64_t(i));
  for (char ch : str) h = mix(h, uint8_t(ch));
  for (UOpRef f : fns) h = mix(h, f->hash);
  if ((nodes.size() + 1) * 2 > table.size()) grow();
  size_t mask = table.size() - 1, at = h & mask;
  for (; table[at]; at = (at + 1) & mask) {
    UOpRef n = nodes[table[at] - 1];
    if (n->hash == h && n->op == op && n->dtype == dtype && n->src == src && n->ints == ints && n->str == str &&
        n->fns == fns)
      return n;
  }
  UOp *n = new (arena.Allocate<UOp>()) UOp();
  n->op = op;
  n->dtype = dtype;
  n->id = nodes.size();
  n->hash = h;
  n->shape = internShape(shape);
  n->src = copyTo(arena, src);
  n->ntensors = ntensors;
  n->ints = copyTo(arena, ints);
  n->str = str.empty()
               ? llvm::StringRef()
               : llvm::StringRef(static_cast<char *>(memcpy(arena.Allocate(str.size(), 1), str.data(), str.size())),
                                 str.size());
  n->fns = copyTo(arena, fns);
  std::tie(n->lo, n->hi) = dtype == DType::Index ? bounds(op, src, ints) : std::pair<int64_t, int64_t>(0, 0);
  nodes.push_back(n);
  table[at] = nodes.size();
  return n;
}

llvm::Expected<UOpRef> Context::tryMake(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints,
                                        llvm::StringRef str, DType dtype, llvm::ArrayRef<UOpRef> fns) {
  uint32_t ntensors = 0;
  while (ntensors < src.size() && !src[ntensors]->isIndex()) ++ntensors;
  auto type = inferType(*this, op, src, ints, str, dtype, fns);
  if (!type) return type.takeError();
  UOpRef n;
  if (type->dtype == DType::Index && src.size() == 2 && ntensors == 0) switch (op) {
    case Op::Add: n = idxAdd(*this, src[0], src[1]); break;
    case Op::Sub: n = idxSub(*this, src[0], src[1]); break;
    case Op::Mul: n = idxMul(*this, src[0], src[1]); break;
    case Op::FloorDiv: n = idxDiv(*this, src[0], src[1]); break;
    case Op::Mod: n = idxMod(*this, src[0], src[1]); break;
    case Op::Min: n = idxMin(*this, src[0], src[1]); break;
    case Op::Max: n = idxMax(*this, src[0], src[1]); break;
    default: return llvm::createStringError("%s is not defined on symbolic integers", info(op).mnemonic);
    }
  else
    n = intern(op, type->dtype, type->shape, src, ntensors, ints, str, fns);
  if (overflowed && op != Op::Const) { // a literal holds no symbolic integer: the next node tells
    overflowed = false;
    return llvm::createStringError("%s: a symbolic integer leaves 62 bits or 2^14 terms", info(op).mnemonic);
  }
  return n;
}

UOpRef Context::make(Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints, llvm::StringRef str, DType dtype,
                     llvm::ArrayRef<UOpRef> fns) {
  auto n = tryMake(op, src, ints, str, dtype, fns);
  if (!n) llvm::report_fatal_error(llvm::Twine("internal error: ") + llvm::toString(n.takeError()));
  return *n;
}

UOpRef Context::withSources(UOpRef like, llvm::ArrayRef<UOpRef> src) {
  if (like->src == src) return like;
  return make(like->op, src, like->ints, like->str, like->dtype, like->fns);
}

UOpRef Context::index(int64_t value) {
  if (value > big || value < -big) overflowed = true;
  return intern(Op::Const, DType::Index, {}, {}, 0, {value}, {}, {});
}

UOpRef Context::literal(DType t, uint64_t bits) { return make(Op::Const, {}, {int64_t(bits)}, {}, t); }

namespace {
/// Which nodes a walk has met: a set while they are few, since the small graph of an extent may have high ids, then a
/// bit for every id.
class Met {
public:
  explicit Met(uint32_t ids) : ids(ids) {}
  bool insert(uint32_t id) {
    if (!many.empty()) {
      bool before = many[id];
      many[id] = true;
      return !before;
    }
    if (!few.insert(id).second) return false;
    if (few.size() <= ids / 64) return true;
    many.resize(ids);
    for (uint32_t m : few) many[m] = true;
    return true;
  }

private:
  uint32_t ids;
  llvm::SmallDenseSet<uint32_t, 32> few;
  std::vector<bool> many;
};
} // namespace

std::vector<UOpRef> astra::topoSort(llvm::ArrayRef<UOpRef> roots) {
  std::vector<UOpRef> order;
  std::vector<std::pair<UOpRef, uint32_t>> stack;
  uint32_t most = 0;
  for (UOpRef r : roots) most = std::max(most, r->id + 1);
  Met met(most); // sources have smaller ids than their users
  for (UOpRef r : roots) {
    if (!met.insert(r->id)) continue;
    stack.push_back({r, 0});
    while (!stack.empty()) {
      auto &[n, next] = stack.back();
      if (next == n->src.size()) {
        order.push_back(n);
        stack.pop_back();
        continue;
      }
      UOpRef s = n->src[next++];
      if (met.insert(s->id)) stack.push_back({s, 0});
    }
  }
  return order;
}
