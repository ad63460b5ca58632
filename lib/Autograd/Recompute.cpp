//===- Recompute.cpp: values that are computed again instead of kept -------===//
#include "Recompute.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;

static bool isView(UOpRef n) { return has(n->op, Movement) && n->op != Op::Pad; }
static bool isCallResult(UOpRef n) { return has(n->op, Control); }

static UOpRef baseOf(UOpRef n) {
  while (isView(n)) n = n->src[0];
  return n;
}

static double bytesOf(UOpRef n) {
  double bytes = byteSize(n->dtype);
  for (UOpRef d : n->shape) bytes *= double(std::max<int64_t>(d->hi, 0));
  return bytes;
}

/// These nodes in their order, each behind what it needs beside them and no other needed before: a mask stands where it
/// is used. Leaves are left out.
static std::vector<UOpRef> withSources(ArrayRef<UOpRef> active) {
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> seen;
  std::vector<std::pair<UOpRef, unsigned>> stack;
  auto visit = [&](UOpRef n) {
    if (!has(n->op, Leaf) && seen.insert(n).second) stack.push_back({n, 0});
  };
  for (UOpRef a : active) {
    visit(a);
    while (!stack.empty()) {
      auto &[n, next] = stack.back();
      if (next < n->ntensors) {
        visit(n->src[next++]);
        continue;
      }
      order.push_back(n);
      stack.pop_back();
    }
  }
  return order;
}

/// For each place between two nodes, the bytes of the values before it that are read behind it.
static std::vector<double> crossings(ArrayRef<UOpRef> order) {
  llvm::DenseMap<UOpRef, size_t> at, lastRead;
  for (auto [i, n] : llvm::enumerate(order)) {
    at[n] = i;
    for (UOpRef s : n->tensors()) lastRead[baseOf(s)] = i;
  }
  std::vector<double> change(order.size() + 1), out(order.size());
  for (auto [n, end] : lastRead)
    if (auto begin = at.find(n); begin != at.end()) { // sums of whole numbers: in any order
      change[begin->second] += bytesOf(n);
      change[end] -= bytesOf(n);
    }
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) out[i] = sum += change[i];
  return out;
}

void Recompute::cut(ArrayRef<UOpRef> active) {
  std::vector<UOpRef> order = withSources(active);
  std::vector<double> across = crossings(order), until; // until: the bytes of values up to a node
  double sum = 0;
  for (UOpRef n : order) until.push_back(sum += isView(n) ? 0 : bytesOf(n));
  size_t from = 0;
  for (unsigned k = 1; k <= segments && from < order.size(); ++k) {
    size_t to = order.size(); // the segment's end
    if (k < segments) {
      double share = sum / segments, near = share / 4;
      auto place = [&](double bytes) { return size_t(llvm::lower_bound(until, bytes) - until.begin()); };
      size_t low = std::max(place(share * k - near), from), high = std::min(place(share * k + near), order.size() - 1);
      if (low > high) continue;
      to = size_t(std::min_element(across.begin() + low, across.begin() + high + 1) - across.begin()) + 1;
    }
    for (; from < to; ++from) segment[order[from]] = last;
    ++last;
  }
  if (last) --last;
  current = last;
  for (UOpRef n : order)
    for (UOpRef s : n->tensors())
      if (auto of = segment.find(baseOf(s)); of != segment.end() && of->second < segment[n]) crossing.insert(of->first);
}

void Recompute::begin(UOpRef n, ArrayRef<UOpRef> before) {
  current = segment.lookup(n);
  now.clear();
  llvm::SmallVector<UOpRef, 16> sources{c.literal(DType::U8, 0)}; // nobody reads it
  if (token) sources.push_back(token);
  for (UOpRef b : before)
    if (isArithmetic(b->dtype)) sources.push_back(b);
  if (sources.size() > 1) token = c.make(Op::After, sources);
}

UOpRef Recompute::marked(UOpRef n) { return token && isArithmetic(n->dtype) ? c.make(Op::After, {n, token}) : n; }

/// Whether n is there already, or always.
bool Recompute::isKept(UOpRef n) const {
  auto of = segment.find(n);
  return of == segment.end() || isCallResult(n) || (!isView(n) && (of->second != current || crossing.contains(n)));
}

/// A node whose sources are done.
UOpRef Recompute::remade(UOpRef n) {
  llvm::SmallVector<UOpRef, 4> src(n->src);
  for (unsigned i = 0; i < n->ntensors; ++i) {
    src[i] = now.lookup(src[i]);
    if (n->op == Op::Random && src[i] == n->src[i]) src[i] = marked(src[i]); // a key may be a state
  }
  UOpRef result = c.withSources(n, src);
  if (origins && result != n) origins->inherit(result, n);
  return result;
}

UOpRef Recompute::of(UOpRef n) {
  if (current == last || isCallResult(n)) return n;
  std::vector<std::pair<UOpRef, unsigned>> stack;
  auto need = [&](UOpRef s) {
    if (now.contains(s)) return;
    if (!isKept(s))
      stack.push_back({s, 0});
    else if (s->op == Op::Arg || (!has(s->op, Leaf) && s->dtype != DType::Void))
      now[s] = marked(s);
    else
      now[s] = s;
  };
  for (UOpRef s : n->tensors()) {
    need(s);
    while (!stack.empty()) {
      auto &[x, next] = stack.back();
      if (next < x->ntensors) {
        need(x->src[next++]);
        continue;
      }
      UOpRef done = x;
      stack.pop_back();
      if (!now.contains(done)) now[done] = remade(done);
    }
  }
  return remade(n);
}
