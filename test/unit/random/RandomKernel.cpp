//===- RandomKernel.cpp: kernels of users, in random modules ----------------===//
// Takes:    values that a module has.
// Gives:    custom ops over them, of what the other ops of random modules are made of.
// Keeps:    each element is stored once, so that the evaluator takes it; floats are scattered in one order.
#include "Grower.h"

using namespace astra;
using namespace astra::test;

/// A kernel as a user writes one: programs read blocks, the last of an axis maybe cut, of two values of one type, and
/// store blocks of one to three outputs: an elementwise tile, a reduction along axes that they read whole, a
/// transposition, or scatter elements.
void Grower::kernel() {
  static constexpr int64_t blocks[] = {1, 2, 3, 4, 7, 8, 16};
  UOpRef x = anyOf([&](UOpRef n) {
    return n->rank() && n->rank() < 4 && isArithmetic(n->dtype) && !isSubByte(n->dtype) &&
           llvm::all_of(n->shape, [&](UOpRef d) { return valueOf(d) >= 0; }) && elements(n->shape) <= mostElements;
  });
  UOpRef y = x ? like(x) : nullptr;
  if (!y) return;
  Index counts, begin, size;
  std::string names;
  std::vector<unsigned> read; // axes that each program reads whole
  auto program = [&](UOpRef count) {
    std::string name = "g" + std::to_string(counts.size());
    names += (counts.empty() ? "" : ",") + name;
    counts.push_back(count);
    return b.dim(name, 0, std::max<int64_t>(0, count->hi - 1));
  };
  for (auto [a, n] : llvm::enumerate(x->shape))
    if (counts.size() < 3 && chance(60)) {
      int64_t step = oneOf(blocks);
      IndexBlock block = idxBlock(c, n, program(idxCeilDiv(c, n, b.idx(step))), step);
      begin.push_back(block.begin), size.push_back(block.size);
    } else
      begin.push_back(b.idx(0)), size.push_back(n), read.push_back(unsigned(a));
  if (counts.empty()) program(b.idx(1));
  auto tile = [&](int64_t i) { return b.shrink(b.arg(i, x->dtype, x->shape), begin, size); };
  std::vector<UOpRef> results, args{x, y};
  auto place = [&](UOpRef value, ArrayRef<UOpRef> first, ArrayRef<UOpRef> extents) {
    llvm::SmallVector<UOpRef, 8> src{value};
    src.append(first.begin(), first.end());
    src.append(extents.begin(), extents.end());
    if (auto r = c.tryMake(Op::Place, src, {0}))
      results.push_back(*r);
    else
      llvm::consumeError(r.takeError());
  };
  for (int64_t k = 1 + upTo(3); k-- > 0;) {
    size_t before = pool.size();
    UOpRef value = bodyOf(tile(0), tile(1));
    pool.resize(before); // what has a program's shape stays inside
    switch (x->dtype == DType::Bool ? 0 : upTo(4)) {
    case 1:
      if (!read.empty() && read.size() < x->rank()) {
        static constexpr ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min};
        Index first, extents;
        for (unsigned a = 0; a < x->rank(); ++a)
          if (!llvm::is_contained(read, a)) first.push_back(begin[a]), extents.push_back(x->shape[a]);
        llvm::SmallVector<int64_t> axes(read.begin(), read.end());
        place(b.reduce(oneOf(kinds), value, axes), first, extents);
        break;
      }
      [[fallthrough]];
    case 0: place(value, begin, x->shape); break;
    case 2: {
      llvm::SmallVector<int64_t, 4> turned;
      Index first, extents;
      for (unsigned a = x->rank(); a-- > 0;)
        turned.push_back(a), first.push_back(begin[a]), extents.push_back(x->shape[a]);
      place(b.permute(value, turned), first, extents);
      break;
    }
    case 3: {
      UOpRef at = like(DType::I64, x->shape);
      if (!at) break;
      static constexpr ScatterKind kinds[] = {ScatterKind::Add, ScatterKind::Max, ScatterKind::Min};
      UOpRef all = idxProduct(c, size),
             where = b.shrink(b.arg(int64_t(args.size()), DType::I64, x->shape), begin, size),
             base = b.splat(b.lit(x->dtype, 0), {b.idx(1 + upTo(12))});
      auto r =
          c.tryMake(Op::Scatter, {base, b.reshape(where, {all}), b.reshape(value, {all})}, {0, int64_t(oneOf(kinds))});
      if (!r) {
        llvm::consumeError(r.takeError());
        break;
      }
      args.push_back(at);
      results.push_back(*r);
    }
    }
  }
  if (results.empty()) return;
  UOpRef function = c.make(Op::Func, results, {int64_t(args.size())});
  args.insert(args.end(), counts.begin(), counts.end());
  auto made = c.tryMake(Op::Custom, args, {}, names, DType::Void, {function});
  if (!made) return llvm::consumeError(made.takeError());
  for (auto [i, r] : llvm::enumerate(results)) {
    llvm::SmallVector<UOpRef, 6> src{*made};
    src.append(r->shape.begin(), r->shape.end());
    if (UOpRef y = add(Op::Proj, src, {int64_t(i)}, r->dtype)) add(Op::Detach, {y}); // no derivative is declared
  }
}
