//===- Checks.cpp: what kernels of users assume, tested when they run ---------===//
// Takes:    values with custom ops in them, whose functions test integers by `extent` and wait for tests by `after`.
// Gives:    the same without `after` in functions; where tests are wanted, for each kernel that has some a scalar which
//           says the first program that fails, and what the tests say.
// Keeps:    bits of all results. A test in a loop is carried from trip to trip, one in a branch is a result of both
//           sides. A `while` ends where one fails.
// Does not: stop a program elsewhere: its accesses stay inside, whatever a test finds. Lift out of what decides whether
//           a `while` goes on.
#include "Checks.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

namespace {
constexpr int64_t mostChecks = 1 << 20; // of a kernel; the first of them has the greatest number

class Lift {
public:
  Lift(Context &c, bool tested, std::string &error) : b(c), tested(tested), error(error) {}

  /// Whether a function has tests that are wanted, or (not tests) values that wait for some.
  bool concerns(UOpRef fn, bool tests) {
    return llvm::any_of(topoSort(fn->src), [&](UOpRef n) {
      return (tested && n->op == Op::Extent) || (!tests && n->op == Op::After) ||
             llvm::any_of(n->fns, [&](UOpRef f) { return concerns(f, tests); });
    });
  }

  struct Body {
    SmallVector<UOpRef, 4> results;
    UOpRef failed = nullptr; // the greatest number of a test that fails, 0 if none does; null: there is no test
  };
  /// A function's body; arguments from `moved` on are one further.
  Body body(UOpRef fn, int64_t moved = -1) {
    Body out;
    llvm::DenseMap<UOpRef, UOpRef> now;
    llvm::DenseMap<UOpRef, int64_t> stackedFrom; // scans with a result more -> the first result that moved
    auto fails = [&](UOpRef number) { out.failed = out.failed ? b.max(out.failed, number) : number; };
    for (UOpRef n : topoSort(fn->src)) {
      SmallVector<UOpRef, 8> src;
      for (UOpRef s : n->src) src.push_back(now.lookup(s));
      if (n->op == Op::Arg && moved >= 0 && n->ints[0] >= moved)
        now[n] = b.arg(n->ints[0] + 1, n->dtype, n->shape);
      else if (n->op == Op::After)
        now[n] = src[0];
      else if (n->op == Op::Proj && stackedFrom.count(n->src[0]) && n->ints[0] >= stackedFrom[n->src[0]])
        now[n] = b.c.make(Op::Proj, src, {n->ints[0] + 1}, {}, n->dtype);
      else if (llvm::any_of(n->fns, [&](UOpRef f) { return concerns(f, false); }))
        now[n] = control(n, src, stackedFrom, fails);
      else
        now[n] = b.c.withSources(n, src);
      if (n->op == Op::Extent && tested) fails(test(n, src[0]));
    }
    for (UOpRef r : fn->src) out.results.push_back(now.lookup(r));
    return out;
  }

  std::vector<std::string> says;

private:
  UOpRef func(llvm::ArrayRef<UOpRef> results, int64_t args) { return b.c.make(Op::Func, results, {args}); }
  UOpRef number(int64_t v) { return b.litInt(DType::I64, v); }

  UOpRef test(UOpRef extent, UOpRef value) {
    UOpRef x = extent->src[0];
    says.push_back(x->op == Op::Tap ? x->str.str()
                                    : "an integer that a kernel computes is outside of " +
                                          std::to_string(extent->ints[0]) + " .. " + std::to_string(extent->ints[1]));
    UOpRef outside = b.bin(Op::Or, b.lt(value, number(extent->ints[0])), b.lt(number(extent->ints[1]), value));
    return b.select(outside, number(mostChecks - int64_t(says.size()) + 1), number(0));
  }

  UOpRef control(UOpRef n, llvm::ArrayRef<UOpRef> src, llvm::DenseMap<UOpRef, int64_t> &stackedFrom,
                 llvm::function_ref<void(UOpRef)> fails) {
    bool tests = tested && llvm::any_of(n->fns, [&](UOpRef f) { return concerns(f, true); });
    SmallVector<UOpRef, 2> fns;
    if (!tests) {
      for (UOpRef f : n->fns) fns.push_back(func(body(f).results, f->ints[0]));
      return b.c.make(n->op, src, n->ints, n->str, n->dtype, fns);
    }
    auto result = [&](UOpRef now, int64_t k) { return b.c.make(Op::Proj, {now}, {k}, {}, DType::I64); };
    if (n->op == Op::Cond) {
      for (UOpRef f : n->fns) {
        Body side = body(f);
        side.results.push_back(side.failed ? side.failed : number(0));
        fns.push_back(func(side.results, f->ints[0]));
      }
      UOpRef now = b.c.make(Op::Cond, src, n->ints, n->str, n->dtype, fns);
      fails(result(now, int64_t(n->fns[0]->src.size())));
      return now;
    }
    if (n->op == Op::Scan) {
      int64_t carries = n->ints[0];
      UOpRef f = n->fns[0];
      Body step = body(f, carries);
      UOpRef before = b.arg(carries, DType::I64, {});
      step.results.insert(step.results.begin() + carries, b.max(before, step.failed));
      SmallVector<UOpRef, 8> given(src);
      given.insert(given.begin() + carries, number(0));
      UOpRef now =
          b.c.make(Op::Scan, given, {carries + 1, n->ints[1]}, n->str, n->dtype, {func(step.results, f->ints[0] + 1)});
      stackedFrom[n] = carries;
      fails(result(now, carries));
      return now;
    }
    if (n->op == Op::While && n->indices().empty() && !concerns(n->fns[0], true)) {
      int64_t carries = n->ntensors;
      UOpRef before = b.arg(carries, DType::I64, {});
      Body test = body(n->fns[0]), step = body(n->fns[1]);
      test.results[0] = b.bin(Op::And, test.results[0], b.eq(before, number(0)));
      step.results.push_back(b.max(before, step.failed));
      for (const Body &f : {test, step}) fns.push_back(func(f.results, carries + 1));
      SmallVector<UOpRef, 8> given(src);
      given.push_back(number(0));
      UOpRef now = b.c.make(Op::While, given, n->ints, n->str, n->dtype, fns);
      fails(result(now, carries));
      return now;
    }
    error = std::string("--check: a kernel tests something in what decides whether a ") + info(n->op).mnemonic +
            " goes on: that is not supported; compute it in the loop, or compile without --check";
    return n;
  }

  Builder b;
  bool tested;
  std::string &error;
};

/// Of the numbers that programs stored, the first that is not 0, as KernelChecks says it.
UOpRef firstFailure(Builder &b, UOpRef stored, int64_t says) {
  auto number = [&](int64_t v) { return b.splat(b.litInt(DType::I64, v), stored->shape); };
  UOpRef program = b.reshape(b.iota(DType::I64, {idxProduct(b.c, stored->shape)}, 0), stored->shape);
  UOpRef test = b.sub(number(mostChecks), stored), none = b.litInt(DType::I64, INT64_MAX);
  UOpRef key = b.add(b.add(b.mul(program, number(says)), test), number(2));
  SmallVector<int64_t, 8> axes(stored->rank());
  for (auto [i, a] : llvm::enumerate(axes)) a = int64_t(i);
  UOpRef least = b.reduce(ReduceKind::Min, b.select(b.eq(stored, number(0)), number(INT64_MAX), key), axes);
  return b.select(b.eq(least, none), b.litInt(DType::I64, 0), least);
}
} // namespace

std::vector<UOpRef> astra::liftChecks(Context &c, llvm::ArrayRef<UOpRef> roots, bool tested,
                                      std::vector<KernelChecks> &checks, std::string &error,
                                      llvm::function_ref<void(UOpRef, UOpRef)> inherit) {
  std::vector<UOpRef> order = topoSort(roots);
  if (llvm::none_of(order, [](UOpRef n) { return n->op == Op::Custom; })) return roots.vec();
  Builder b(c);
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (UOpRef n : order) {
    SmallVector<UOpRef, 8> src;
    for (UOpRef s : n->src) src.push_back(now.lookup(s));
    Lift lift(c, tested, error);
    if (n->op != Op::Custom || !lift.concerns(n->fns[0], false)) {
      now[n] = c.withSources(n, src);
      inherit(now[n], n);
      continue;
    }
    UOpRef fn = n->fns[0];
    Lift::Body body = lift.body(fn);
    if (!error.empty()) return roots.vec();
    size_t results = body.results.size(), tensors = n->ntensors;
    SmallVector<UOpRef, 4> grid(src.begin() + tensors, src.end()), begin, size, zeros(grid.size(), b.idx(0)),
        ones(grid.size(), b.idx(1));
    if (body.failed) {
      SmallVector<llvm::StringRef, 4> names;
      n->str.split(names, ',');
      for (auto [name, extent] : llvm::zip_equal(names, grid)) {
        IndexBlock mine = idxBlock(c, extent, b.dim(name, 0, std::max<int64_t>(0, extent->hi - 1)), 1);
        begin.push_back(mine.begin), size.push_back(mine.size);
      }
      SmallVector<UOpRef, 12> place{b.shrink(b.reshape(body.failed, ones), zeros, size)};
      place.append(begin), place.append(grid);
      body.results.push_back(c.make(Op::Place, place, {0}));
    }
    UOpRef kernel = c.make(Op::Custom, src, n->ints, n->str, n->dtype, {c.make(Op::Func, body.results, fn->ints)});
    now[n] = kernel;
    inherit(kernel, n);
    if (!body.failed) continue;
    SmallVector<UOpRef, 5> stored{kernel};
    stored.append(grid);
    UOpRef all = c.make(Op::Proj, stored, {int64_t(results)}, {}, DType::I64);
    checks.push_back({firstFailure(b, all, int64_t(lift.says.size())), lift.says, grid});
    inherit(checks.back().failed, n);
  }
  std::vector<UOpRef> out;
  for (UOpRef r : roots) out.push_back(now.lookup(r));
  return out;
}
