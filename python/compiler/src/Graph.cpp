//===- Graph.cpp: a graph that Python builds --------------------------------===//
// Takes, gives, keeps: Graph.h.
#include "Graph.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace astra;
using namespace astra::python;

/// All nodes that the roots reach through sources, and functions too where `functions`; sources first.
static std::vector<UOpRef> ordered(llvm::ArrayRef<UOpRef> roots, bool functions,
                                   llvm::function_ref<bool(UOpRef)> stops = nullptr) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen;
  std::vector<std::pair<UOpRef, size_t>> stack;
  auto enter = [&](UOpRef x) {
    if (seen.insert(x).second) stack.push_back({x, 0});
  };
  for (UOpRef root : roots) {
    enter(root);
    while (!stack.empty()) {
      auto &[x, next] = stack.back();
      size_t n = stops && stops(x) ? 0 : x->src.size() + (functions ? x->fns.size() : 0);
      if (next == n) {
        order.push_back(x);
        stack.pop_back();
        continue;
      }
      size_t i = next++;
      enter(i < x->src.size() ? x->src[i] : x->fns[i - x->src.size()]);
    }
  }
  return order;
}

static void inherit(const Inherit &o, UOpRef to, UOpRef from) {
  if (!o.to || to->isIndex()) return;
  if (o.from == o.to) return o.to->inherit(to, from);
  if (const Origin *origin = o.from->find(from))
    for (const std::string &name : origin->names) o.to->add(to, name);
}

llvm::Expected<std::vector<UOpRef>> python::rebuild(Context &c, llvm::ArrayRef<UOpRef> roots, Replacement &with,
                                                    Inherit origins) {
  for (UOpRef x : ordered(roots, true, [&](UOpRef x) { return with.count(x); })) {
    if (with.count(x)) continue;
    llvm::SmallVector<UOpRef, 8> src, fns;
    for (UOpRef s : x->src) src.push_back(with.at(s));
    for (UOpRef f : x->fns) fns.push_back(with.at(f));
    llvm::Expected<UOpRef> made = c.tryMake(x->op, src, x->ints, x->str, x->dtype, fns);
    if (!made) return made.takeError();
    with[x] = *made;
    inherit(origins, *made, x);
  }
  std::vector<UOpRef> out;
  for (UOpRef root : roots) out.push_back(with.at(root));
  return out;
}

UOpRef Graph::leaf(DType t, llvm::ArrayRef<UOpRef> shape) {
  llvm::Expected<UOpRef> made = c.tryMake(Op::Param, shape, {}, "%" + std::to_string(leaves++), t);
  return made ? *made : fail(llvm::toString(made.takeError()));
}

llvm::Expected<UOpRef> Graph::dim(llvm::StringRef name, int64_t lo, int64_t hi) {
  auto [it, isNew] = dims.try_emplace(name, nullptr);
  if (!isNew && it->second->lo == lo && it->second->hi == hi) return it->second;
  if (!isNew)
    return llvm::createStringError("the dim '" + name + "' has bounds " + llvm::Twine(it->second->lo) + ".." +
                                   llvm::Twine(it->second->hi) + " elsewhere, here " + llvm::Twine(lo) + ".." +
                                   llvm::Twine(hi));
  llvm::Expected<UOpRef> made = c.tryMake(Op::Dim, {}, {lo, hi}, name);
  if (!made) {
    dims.erase(name);
    return made.takeError();
  }
  return it->second = *made;
}

std::vector<UOpRef> Graph::leavesOf(llvm::ArrayRef<UOpRef> roots) const {
  std::vector<UOpRef> out;
  for (UOpRef x : ordered(roots, true))
    if (x->is(Op::Param)) out.push_back(x);
  llvm::sort(out, [](UOpRef x, UOpRef y) { return x->id < y->id; });
  return out;
}

//===- Lines of the user's ----------------------------------------------------===//

void Graph::place(llvm::StringRef file, int64_t line) {
  if (placeOf.size() == c.size()) return;
  auto [it, isNew] = lastPlace.try_emplace(file, 0, 0);
  if (isNew || it->second.first != line) {
    places.push_back((llvm::sys::path::filename(file) + ":" + llvm::Twine(line)).str());
    it->second = {line, uint32_t(places.size())};
  }
  placeOf.resize(c.size(), it->second.second);
}

Origins &Graph::origins() {
  for (; known < placeOf.size(); ++known) {
    UOpRef x = c.node(known);
    if (placeOf[known] && !x->isIndex() && !lines.find(x)) lines.add(x, places[placeOf[known] - 1]);
  }
  return lines;
}

//===- Work -------------------------------------------------------------------===//

static constexpr int64_t mostWork = int64_t(1) << 62;

static int64_t times(int64_t x, int64_t y) { return y && x > mostWork / y ? mostWork : x * y; }

static int64_t countOf(Shape shape) {
  int64_t n = 1;
  for (UOpRef d : shape) n = times(n, std::max<int64_t>(d->hi, 0));
  return n;
}

/// The element operations of one node, those of its functions being known.
static int64_t workOfNode(UOpRef x, const llvm::DenseMap<UOpRef, int64_t> &ofFunction) {
  if (x->isIndex() || x->is(Op::Const) || x->is(Op::Param) || x->is(Op::Arg) || x->is(Op::Func)) return 0;
  int64_t n = 0;
  if (!x->fns.empty()) { // a body counts once for each step, a kernel's once for each program
    int64_t trips = x->is(Op::Scan) ? std::max<int64_t>(x->indices()[0]->hi, 1) : x->is(Op::While) ? 100 : 1;
    if (x->is(Op::Custom))
      for (UOpRef extent : x->indices()) trips = times(trips, std::max<int64_t>(extent->hi, 0));
    for (UOpRef f : x->fns) n = std::min(mostWork, n + times(trips, ofFunction.lookup(f)));
    return n;
  }
  n = countOf(x->shape);
  for (UOpRef s : x->tensors()) n = std::max(n, countOf(s->shape));
  if (!x->is(Op::Contract)) return n;
  // Every label's extent is that of an axis: at most the product of all of them.
  int64_t most = 1;
  for (UOpRef e : x->indices()) most = times(most, std::max<int64_t>(e->hi, 1));
  return std::max(n, most);
}

int64_t Graph::workOf(llvm::ArrayRef<UOpRef> roots) const {
  llvm::DenseMap<UOpRef, int64_t> ofFunction;
  auto sumOf = [&](llvm::ArrayRef<UOpRef> roots) {
    int64_t sum = 0;
    for (UOpRef x : ordered(roots, false)) sum = std::min(mostWork, sum + workOfNode(x, ofFunction));
    return sum;
  };
  for (UOpRef x : ordered(roots, true)) // a function before those that call it: each is looked at once
    if (x->is(Op::Func)) ofFunction[x] = sumOf(x->src);
  return sumOf(roots);
}

std::vector<int64_t> Graph::depthsOf(llvm::ArrayRef<UOpRef> roots) const {
  llvm::DenseMap<UOpRef, int64_t> depth;
  for (UOpRef x : ordered(roots, false)) {
    int64_t most = 0;
    for (UOpRef s : x->tensors()) most = std::max(most, depth.lookup(s));
    depth[x] = most + 1;
  }
  std::vector<int64_t> out;
  for (UOpRef root : roots) out.push_back(depth.lookup(root));
  return out;
}

//===- Bodies -----------------------------------------------------------------===//

Graph::Closed Graph::close(llvm::ArrayRef<UOpRef> results, llvm::ArrayRef<UOpRef> placeholders, uint32_t mark,
                           bool hoist, llvm::ArrayRef<UOpRef> also) {
  llvm::DenseSet<UOpRef> inside(placeholders.begin(), placeholders.end());
  Replacement with;
  int64_t arguments = 0;
  auto argument = [&](UOpRef x) {
    UOpRef arg = make(Op::Arg, x->shape, {arguments++}, x->dtype);
    if (arg) with[x] = arg;
  };
  for (UOpRef p : placeholders) argument(p);
  Closed out;
  auto capture = [&](UOpRef x) {
    out.captured.push_back(x);
    argument(x);
  };
  for (UOpRef x : also)
    if (!with.count(x)) capture(x);

  // What depends on a placeholder, sources first.
  std::vector<UOpRef> order = ordered(results, false);
  for (UOpRef x : order)
    if (llvm::any_of(x->src, [&](UOpRef s) { return inside.count(s); })) inside.insert(x);
  // Literals, be they repeated, and what is made of symbolic integers alone, are written again inside.
  llvm::DenseSet<UOpRef> plain;
  for (UOpRef x : order)
    if (x->is(Op::Const) ||
        (has(x->op, Movement) && llvm::all_of(x->tensors(), [&](UOpRef s) { return plain.count(s); })))
      plain.insert(x);
  auto isOutside = [&](UOpRef x) {
    if (x->isIndex() || plain.count(x) || inside.count(x)) return false;
    if (x->is(Op::Param)) return true;
    if (x->tensors().empty()) return false;
    return hoist || x->id < mark;
  };
  for (UOpRef x : ordered(results, false, [&](UOpRef x) { return with.count(x) || isOutside(x); }))
    if (!with.count(x) && isOutside(x)) capture(x);
  if (failed()) return {};
  llvm::Expected<std::vector<UOpRef>> body = rebuild(c, results, with, {&origins(), &lines});
  if (!body) return fail(llvm::toString(body.takeError())), Closed();
  out.function = make(Op::Func, *body, {arguments});
  return out;
}
