//===- CustomLoops.cpp: kernels whose loops are loops of kernels -------------===//
// Takes:    a custom op whose function has loops that a kernel has no form for (StraightKernel.cpp): what they carry
//           goes through any arithmetic, for any number of trips.
// Gives:    an equal custom op: a kernel stores what the loop begins with, a loop of the graph runs one that does a
//           step for every program, and a last one reads what the loop has carried.
// Keeps:    bits: each program computes what it computed. A program whose loop has ended keeps its values while others
//           go on.
#include "Inline.h"
#include "KernelGrid.h"
#include "StraightKernel.h"
#include "Thresholds.h"
#include "astra/IR/Index.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

using List = SmallVector<UOpRef, 8>;

/// `kernel` with other values in place of the results of a control op of its function.
static UOpRef withResults(Builder &b, UOpRef kernel, UOpRef control, ArrayRef<UOpRef> results, ArrayRef<UOpRef> more) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : topoSort(kernel->fns[0]->src)) {
    if (n == control) continue;
    SmallVector<UOpRef, 6> src;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    now[n] = n->op == Op::Proj && n->src[0] == control ? results[n->ints[0]] : b.c.withSources(n, src);
  }
  return customWith(b, kernel, List(llvm::map_range(kernel->fns[0]->src, [&](UOpRef r) { return now.lookup(r); })),
                    more);
}

/// Whether a value is rather computed in each step than stored before the first.
static bool isCheap(UOpRef x) {
  size_t operations = 0;
  for (UOpRef n : topoSort(x)) {
    if (n->isIndex() || has(n->op, Movement) || n->ntensors == 0) continue;
    if (!has(n->op, Elementwise) && n->op != Op::SliceAt) return false;
    ++operations;
  }
  return operations <= threshold::cheapInLoop;
}

namespace {
/// A loop of a kernel's function that is taken out of it.
class LoopOfKernels {
public:
  LoopOfKernels(Builder &b, UOpRef kernel, UOpRef loop) : b(b), kernel(kernel), loop(loop), grid(b, kernel) {}

  /// The kernel without the loop; null where it carries dims.
  UOpRef run() {
    if (loop->op == Op::While && !loop->indices().empty()) return nullptr;
    if (!findValues()) return nullptr;
    UOpRef begin = customWith(b, kernel, stores, {});
    for (size_t i = 0; i < stores.size(); ++i) given.push_back(resultOf(b, begin, i));
    UOpRef outer = isScan() ? scan() : whileLoop();
    return last(outer);
  }

private:
  bool isScan() const { return loop->op == Op::Scan && !endsByProgram; }
  size_t carries() const { return loop->op == Op::Scan ? size_t(loop->ints[0]) : loop->ntensors; }
  /// Whether a step gives it back as it came.
  bool stays(size_t i) const {
    return i >= carries() || (body()->src[i]->op == Op::Arg && body()->src[i]->ints[0] == int64_t(i));
  }
  size_t kernelArgs() const { return kernel->ntensors; }
  /// The function whose arguments are the loop's values.
  UOpRef body() const { return loop->fns.back(); }

  size_t store(UOpRef tile) {
    stores.push_back(grid.place(b, tile, 0));
    return stores.size() - 1;
  }

  /// What the first kernel stores: first all that is carried.
  bool findValues() {
    UOpRef i64 = nullptr;
    numbers.assign(loop->ntensors, none);
    for (size_t i = 0; i < carries(); ++i)
      if (!stays(i)) numbers[i] = store(loop->src[i]);
    if (loop->op == Op::Scan) {
      UOpRef trips = loop->src.back();
      endsByProgram = grid.varies(trips);
      bool isData = trips->op == Op::Extent;
      for (UOpRef n : topoSort(trips))
        if (!n->isIndex() && !isData) return false; // arithmetic of data dims
      i64 = isData ? b.min(b.max(trips->src[0], b.litInt(DType::I64, trips->ints[0])),
                           b.litInt(DType::I64, trips->ints[1]))
                   : b.fromIndex(trips, DType::I64);
    }
    if (counts()) counter = store(b.litInt(DType::I64, 0));
    if (!isScan()) {
      UOpRef goesOn = loop->op == Op::Scan ? b.lt(b.litInt(DType::I64, 0), i64)
                                           : inlineFunction(b.c, loop->fns[0], loop->tensors())[0];
      flag = store(goesOn);
    }
    changing = stores.size();
    if (endsByProgram) end = store(i64);
    for (size_t i = 0; i < loop->ntensors; ++i)
      if (stays(i) && !isCheap(loop->src[i])) numbers[i] = store(loop->src[i]);
    return true;
  }
  /// Whether a step needs its number.
  bool counts() const { return loop->op == Op::Scan && (loop->ints[1] > 0 || endsByProgram); }

  UOpRef argOf(size_t number, size_t at) const { // of a function: what was stored as `number`
    return b.arg(int64_t(at), given[number]->dtype, given[number]->shape);
  }
  UOpRef own(size_t number, Shape shape) const { return grid.tile(b, argOf(number, kernelArgs() + number), shape); }

  /// What each program stores in a step: what it carries, then the slices of what is stacked.
  List step() {
    List args;
    UOpRef t = counts() ? own(counter, {}) : nullptr;
    for (size_t i = 0; i < loop->ntensors; ++i) {
      UOpRef v = loop->src[i];
      if (numbers[i] != none) v = own(numbers[i], v->shape);
      bool sliced = loop->op == Op::Scan && i >= carries() && i < carries() + size_t(loop->ints[1]);
      args.push_back(sliced ? slice(v, t) : v);
    }
    List values = inlineFunction(b.c, body(), args);
    UOpRef active = isScan() ? nullptr : own(flag, {});
    auto goOn = [&](UOpRef now, UOpRef before) {
      return active ? b.select(b.splat(active, now->shape), now, before) : now;
    };
    List out, now(args);
    for (size_t i = 0; i < carries(); ++i)
      if (!stays(i)) out.push_back(now[i] = goOn(values[i], args[i]));
    if (counts()) out.push_back(b.add(t, b.litInt(DType::I64, 1)));
    if (!isScan()) {
      UOpRef again =
          loop->op == Op::Scan ? b.lt(out[counter], own(end, {})) : inlineFunction(b.c, loop->fns[0], now)[0];
      out.push_back(b.bin(Op::And, active, again));
    }
    for (size_t i = carries(); i < values.size(); ++i) out.push_back(values[i]);
    return List(llvm::map_range(out, [&](UOpRef x) { return grid.place(b, x, 0); }));
  }
  /// Element t along axis 0.
  UOpRef slice(UOpRef x, UOpRef t) {
    if (x->op == Op::Iota && x->dtype == DType::I64 && x->rank() == 1) return t;
    List start(x->rank(), b.litInt(DType::I64, 0)), size(x->shape.begin(), x->shape.end());
    start[0] = t, size[0] = b.idx(1);
    return b.reshape(b.sliceAt(x, start, size), x->shape.drop_front());
  }

  /// A step of all programs, as the body of a loop of the graph whose arguments are what is stored, then the kernel's.
  List stepOfAll() {
    List args, more;
    for (auto [i, x] : llvm::enumerate(kernel->tensors()))
      args.push_back(b.arg(int64_t(given.size() + i), x->dtype, x->shape));
    for (size_t i = 0; i < given.size(); ++i) more.push_back(argOf(i, i));
    List src(args);
    src.append(more.begin(), more.end());
    UOpRef function = b.c.make(Op::Func, step(), {int64_t(src.size())});
    src.append(kernel->indices().begin(), kernel->indices().end());
    UOpRef now = b.c.make(Op::Custom, src, {}, kernel->str, DType::Void, {function});
    List results;
    for (size_t i = 0; i < function->src.size(); ++i) results.push_back(resultOf(b, now, i));
    return results;
  }
  List operands() const {
    List all(given);
    all.append(kernel->tensors().begin(), kernel->tensors().end());
    return all;
  }

  UOpRef scan() {
    List src = operands(), results = stepOfAll();
    UOpRef function = b.c.make(Op::Func, results, {int64_t(src.size())});
    src.push_back(loop->src.back());
    return b.c.make(Op::Scan, src, {int64_t(changing), 0}, {}, DType::Void, {function});
  }
  /// While any program goes on. What is carried by all of them and does not change stays where it is.
  UOpRef whileLoop() {
    List src = operands(), results = stepOfAll();
    if (results.size() > changing) return nullptr; // stacked, by trips that programs decide
    for (size_t i = changing; i < src.size(); ++i) results.push_back(b.arg(int64_t(i), src[i]->dtype, src[i]->shape));
    auto axes = llvm::to_vector<4>(llvm::seq<int64_t>(0, int64_t(grid.dims.size())));
    UOpRef any = b.reduce(ReduceKind::Or, argOf(flag, flag), axes);
    UOpRef functions[] = {b.c.make(Op::Func, {any}, {int64_t(src.size())}),
                          b.c.make(Op::Func, results, {int64_t(src.size())})};
    return b.c.make(Op::While, src, {}, {}, DType::Void, functions);
  }

  UOpRef last(UOpRef outer) {
    if (!outer) return nullptr;
    List results, more;
    UOpRef function = outer->fns.back();
    for (size_t j = 0; j < body()->src.size(); ++j) {
      bool stacked = j >= carries();
      if (!stacked && stays(j)) {
        results.push_back(loop->src[j]);
        continue;
      }
      size_t number = stacked ? changing + j - carries() : numbers[j];
      UOpRef stored = function->src[number], value = body()->src[j];
      SmallVector<UOpRef, 8> src{outer};
      if (stacked) src.push_back(loop->src.back());
      src.append(stored->shape.begin(), stored->shape.end());
      UOpRef all = b.c.make(Op::Proj, src, {int64_t(number)}, {}, stored->dtype);
      UOpRef arg = b.arg(int64_t(kernelArgs() + more.size()), all->dtype, all->shape);
      more.push_back(all);
      if (stacked) { // its steps behind the grid
        auto order = llvm::to_vector<8>(llvm::seq<int64_t>(1, int64_t(all->rank())));
        order.insert(order.begin() + int64_t(grid.dims.size()), 0);
        SmallVector<UOpRef, 6> tile{loop->src.back()};
        tile.append(value->shape.begin(), value->shape.end());
        results.push_back(grid.tile(b, b.permute(arg, order), tile));
      } else
        results.push_back(grid.tile(b, arg, value->shape));
    }
    return withResults(b, kernel, loop, results, more);
  }

  static constexpr size_t none = ~size_t(0);
  Builder &b;
  UOpRef kernel, loop;
  KernelGrid grid;
  bool endsByProgram = false;                     // the number of trips is not one for all
  List stores, given;                             // what the first kernel stores, in it and in the graph
  size_t counter = none, flag = none, end = none; // numbers of these
  size_t changing = 0;                            // so many of the first are other values after a step
  SmallVector<size_t, 8> numbers;                 // of the loop's operands; none: a step computes it
};
} // namespace

/// The branches of a kernel's `cond` as values of its function, and selects. A `while` of a branch runs where that is
/// taken.
static UOpRef withoutBranches(Builder &b, UOpRef kernel, UOpRef cond) {
  List args(cond->tensors().drop_front()), results;
  UOpRef taken = cond->src[0];
  List sides[2];
  for (unsigned side : {0u, 1u}) {
    UOpRef when = side ? b.un(Op::Not, taken) : taken;
    llvm::DenseMap<UOpRef, UOpRef> now;
    for (UOpRef n : topoSort(cond->fns[side]->src)) {
      SmallVector<UOpRef, 6> src;
      for (UOpRef s : n->src) src.push_back(now.lookup(s));
      if (n->op == Op::Arg) {
        now[n] = args[n->ints[0]];
        continue;
      }
      if (n->op != Op::While) {
        now[n] = b.c.withSources(n, src);
        continue;
      }
      int64_t count = int64_t(n->ntensors);
      UOpRef flag = b.arg(count, DType::Bool, {});
      List again(n->fns[1]->src.begin(), n->fns[1]->src.end());
      again.push_back(flag);
      UOpRef functions[] = {b.c.make(Op::Func, {b.bin(Op::And, flag, n->fns[0]->src[0])}, {count + 1}),
                            b.c.make(Op::Func, again, {count + 1})};
      src.insert(src.begin() + count, when);
      now[n] = b.c.make(Op::While, src, {}, n->str, DType::Void, functions);
    }
    for (UOpRef r : cond->fns[side]->src) sides[side].push_back(now.lookup(r));
  }
  for (auto [yes, no] : llvm::zip_equal(sides[0], sides[1]))
    results.push_back(b.select(b.splat(taken, yes->shape), yes, no));
  return withResults(b, kernel, cond, results, {});
}

UOpRef astra::withoutLoops(Builder &b, UOpRef kernel) {
  for (;;) {
    auto isControl = [](UOpRef n) { return has(n->op, Control); };
    if (llvm::none_of(topoSort(kernel->fns[0]->src), isControl)) return kernel;
    StraightKernel now = straighten(b, kernel->fns[0]->src);
    UOpRef n = now.blocked, next = nullptr;
    if (n && (n->op == Op::Scan || n->op == Op::While)) next = LoopOfKernels(b, kernel, n).run();
    if (n && n->op == Op::Cond) next = withoutBranches(b, kernel, n);
    if (!next) return kernel;
    kernel = next;
  }
}
