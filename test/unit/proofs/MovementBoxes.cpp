//===- MovementBoxes.cpp: every small chain of movement ops ----------------===//
#include "Boxes.h"
#include "astra/IR/Builder.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::proofs;
using llvm::SmallVector;
using Shapes = SmallVector<UOpRef, 3>;

namespace {
/// Every way to choose one of choices[i] for each i.
template <class T> std::vector<SmallVector<T, 6>> product(llvm::ArrayRef<std::vector<T>> choices) {
  std::vector<SmallVector<T, 6>> all{{}};
  for (const auto &options : choices) {
    std::vector<SmallVector<T, 6>> longer;
    for (const auto &head : all)
      for (const T &o : options) {
        longer.push_back(head);
        longer.back().push_back(o);
      }
    all = std::move(longer);
  }
  return all;
}

struct Moves {
  Context &c;
  Builder b{c};
  bool (*wanted)(Op);

  /// Every movement op of small arguments over x.
  std::vector<UOpRef> over(UOpRef x) {
    std::vector<UOpRef> out;
    auto keep = [&](Op op, llvm::ArrayRef<UOpRef> indices, llvm::ArrayRef<int64_t> ints = {}) {
      SmallVector<UOpRef, 8> src{x};
      src.append(indices.begin(), indices.end());
      auto n = c.tryMake(op, src, ints);
      if (n)
        out.push_back(*n);
      else
        llvm::consumeError(n.takeError());
    };
    unsigned rank = x->rank();
    UOpRef zero = b.idx(0), one = b.idx(1);
    Shape s = x->shape;
    if (wanted(Op::Reshape)) {
      std::vector<UOpRef> extents{zero, one, b.idx(2), b.idx(3), b.idx(4), b.idx(6)};
      for (UOpRef e : s)
        if (!llvm::is_contained(extents, e)) extents.push_back(e);
      for (unsigned r = 1; r <= std::min(3u, rank + 1); ++r)
        for (const auto &to : product<UOpRef>(SmallVector<std::vector<UOpRef>, 3>(r, extents)))
          if (idxProduct(c, to) == idxProduct(c, s)) keep(Op::Reshape, to);
    }
    if (wanted(Op::Permute)) {
      SmallVector<int64_t, 3> perm;
      for (unsigned i = 0; i < rank; ++i) perm.push_back(i);
      do keep(Op::Permute, {}, perm);
      while (std::next_permutation(perm.begin(), perm.end()));
    }
    if (wanted(Op::Expand)) {
      SmallVector<std::vector<UOpRef>, 3> to;
      for (UOpRef e : s) to.push_back(e == one ? std::vector<UOpRef>{zero, one, b.idx(3)} : std::vector<UOpRef>{e});
      for (const auto &t : product<UOpRef>(to)) keep(Op::Expand, t);
    }
    if (wanted(Op::Pad)) {
      std::vector<UOpRef> amounts{zero, one};
      if (rank == 1) amounts.push_back(b.idx(2));
      if (rank < 3)
        for (const auto &p : product<UOpRef>(SmallVector<std::vector<UOpRef>, 4>(2 * rank, amounts)))
          for (int64_t value : {0, 7}) keep(Op::Pad, p, {value});
    }
    if (wanted(Op::Shrink)) {
      SmallVector<std::vector<UOpRef>, 6> choices(2 * rank);
      for (unsigned i = 0; i < rank; ++i) {
        int64_t most = rank < 3 ? 3 : 1;
        for (int64_t k = 0; k <= most; ++k) {
          choices[i].push_back(b.idx(k));
          choices[rank + i].push_back(s[i]->constIndex() ? b.idx(k) : idxSub(c, s[i], b.idx(k)));
        }
      }
      for (const auto &p : product<UOpRef>(choices)) keep(Op::Shrink, p);
    }
    if (wanted(Op::Flip))
      for (unsigned set = 0; set < 1u << rank; ++set) {
        SmallVector<int64_t, 3> axes;
        for (unsigned i = 0; i < rank; ++i)
          if (set >> i & 1) axes.push_back(i);
        keep(Op::Flip, {}, axes);
      }
    if (wanted(Op::Window))
      for (unsigned i = 0; i < rank; ++i)
        for (int64_t size : {1, 2})
          for (int64_t stride : {1, 2}) keep(Op::Window, {}, {int64_t(i), size, stride, 1});
    return out;
  }
};

bool anyMove(Op op) { return has(op, Movement) && op != Op::Window; }

Tensor counted(DType t, std::vector<int64_t> shape) {
  Tensor x{t, shape, {}};
  x.bytes.resize(tensorBytes(t, shape));
  for (size_t i = 0; i < x.bytes.size(); ++i) x.bytes[i] = uint8_t(100 + i);
  return x;
}
} // namespace

std::string proofs::movementBox(const Rule &r) {
  Run run(r);
  auto pairs = [&](Context &c, UOpRef x, const std::vector<EvalInputs> &inputs) {
    Moves first{c, Builder(c), anyMove};
    for (UOpRef inner : first.over(x)) {
      for (const EvalInputs &in : inputs) run.on(c, inner, in);
      for (unsigned i = 0; i < r.numRoots; ++i) {
        static Op root;
        root = r.roots[i];
        Moves second{c, Builder(c), [](Op op) { return op == root; }};
        for (UOpRef n : second.over(inner))
          for (const EvalInputs &in : inputs) run.on(c, n, in);
      }
    }
  };
  std::vector<std::vector<int64_t>> shapes{{0}, {1}, {2}, {3}, {1, 2, 3}, {2, 1, 2}, {1, 1, 2}};
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t k = 0; k < 3; ++k) shapes.push_back({i, k});
  for (const auto &shape : shapes) {
    Context c;
    Builder b(c);
    Shapes extents;
    for (int64_t e : shape) extents.push_back(b.idx(e));
    EvalInputs in;
    in.inputs = {counted(DType::U8, shape)};
    pairs(c, b.arg(0, DType::U8, extents), {in});
  }
  Context c;
  Builder b(c);
  std::vector<EvalInputs> each(3);
  for (int64_t n = 3; n <= 5; ++n) each[n - 3].inputs = {counted(DType::U8, {n, 1})};
  pairs(c, b.arg(0, DType::U8, {b.dim("n", 3, 5), b.idx(1)}), each);
  return run.verdict();
}

std::string proofs::splatBox(const Rule &r) {
  Run run(r);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {1}, {2}, {3, 1}, {2, 2}, {0, 2}}) {
    Context c;
    Builder b(c);
    Shapes extents;
    for (int64_t e : shape) extents.push_back(b.idx(e));
    Moves moves{c, Builder(c), [](Op op) { return has(op, Movement); }};
    for (uint64_t value : {0, 7})
      for (UOpRef n : moves.over(b.splat(b.bits(DType::U8, value), extents)))
        for (UOpRef twice : moves.over(n)) {
          run.on(c, n, {});
          run.on(c, twice, {});
        }
  }
  return run.verdict();
}

std::string proofs::foldBox(const Rule &r) {
  Run run(r);
  for (unsigned d = 0; d < numDTypes; ++d) {
    DType t = DType(d);
    if (!isArithmetic(t)) continue;
    Context c;
    Builder b(c);
    int64_t n = edges(t).size();
    std::vector<std::vector<int64_t>> shapes{{n, 1}, {1, n}, {1, n, 1}, {1, 1}, {1}, {0, 1}};
    for (const auto &shape : shapes) {
      Shapes extents;
      for (int64_t e : shape) extents.push_back(b.idx(e));
      UOpRef x = b.arg(0, t, extents);
      EvalInputs in;
      int64_t count = 1;
      for (int64_t e : shape) count *= e;
      in.inputs = {samples(t, 0, 2 * count, false, 0)};
      in.inputs[0].shape = shape;
      in.inputs[0].bytes.resize(tensorBytes(t, shape));
      for (unsigned set = 1; set < 1u << shape.size(); ++set) {
        SmallVector<int64_t, 4> axes;
        for (unsigned i = 0; i < shape.size(); ++i)
          if (set >> i & 1) axes.push_back(i);
        for (int64_t kind = 0; kind < 6; ++kind)
          for (int64_t order = 0; order < 3; ++order)
            for (bool bounded : {false, true}) { // to index 0 along axis 0
              ReduceSpec spec{ReduceKind(kind), ReduceOrder(order), axes, {}};
              SmallVector<UOpRef, 2> src{x};
              if (bounded) {
                spec.domain.push_back({{{0, -1}}, 0, 1});
                src.push_back(b.idx(0));
              }
              auto reduced = c.tryMake(Op::Reduce, src, encode(spec));
              if (reduced)
                run.on(c, *reduced, in);
              else
                llvm::consumeError(reduced.takeError());
            }
      }
      for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
        for (int64_t kind = 0; kind < 4; ++kind) {
          auto running = c.tryMake(Op::Cumulate, {x}, {kind, axis});
          if (running)
            run.on(c, *running, in);
          else
            llvm::consumeError(running.takeError());
        }
    }
  }
  return run.verdict();
}
