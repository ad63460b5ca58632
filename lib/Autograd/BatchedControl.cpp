//===- BatchedControl.cpp: what calls functions over one axis more ----------===//
// Takes:    a control op with a batched source.
// Gives:    what becomes of it, and of its results.
// Keeps:    what does not depend on the batch without a batch axis, so that a counter still counts for all.
#include "Batching.h"
#include "Modes.h"
#include "astra/IR/External.h"

using namespace astra;
using namespace astra::vmapping;

void Batching::proj(const Node &at) {
  const Outcome &o = at.images.outcomes.find(at.n->src[0])->second;
  size_t i = at.n->ints[0];
  if (!o.now) {
    at.images.batched[at.n] = o.values[i];
    return;
  }
  bool batched = i < o.batched.size() && o.batched[i], stacked = i >= o.stackedFrom; // carried dims never are
  List src = at.indices;
  if (batched) src.insert(src.begin() + stacked, size);
  src.insert(src.begin(), o.now);
  UOpRef x = c.make(Op::Proj, src, {int64_t(i)}, {}, at.n->dtype);
  if (batched)
    at.images.batched[at.n] = stacked ? front(x, 1) : x;
  else
    at.images.moved[at.n] = x;
}

/// All sources with the batch axis, and so the function.
llvm::Expected<UOpRef> Batching::withGradient(const Node &at) {
  UOpRef function = at.n->fns[0];
  Flags all(function->ints[0], true);
  auto r = body(function, all);
  if (!r) return r.takeError();
  List src, values;
  for (unsigned i = 0; i < at.n->ntensors; ++i) src.push_back(whole(at, i));
  for (size_t i = 0; i < r->values.size(); ++i) values.push_back(r->whole(*this, i));
  return c.make(Op::WithGradient, src, {}, {}, DType::Void, {c.make(Op::Func, values, function->ints)});
}

llvm::Expected<Batching::Results> Batching::body(UOpRef function, const Flags &flags) {
  std::vector<bool> key;
  for (unsigned i = 0; i < flags.size(); ++i) key.push_back(flags[i]);
  auto [known, fresh] = bodies.try_emplace({function->id, key});
  if (!fresh) return known->second;
  Images images;
  for (UOpRef n : topoSort(function->src))
    if (n->is(Op::Arg) && flags[n->ints[0]]) images.batched[n] = b.arg(n->ints[0], n->dtype, withSize(n->shape));
  if (auto e = add(function->src, images)) return std::move(e);
  Results r{{}, Flags(function->src.size())};
  for (auto [i, v] : llvm::enumerate(function->src)) {
    r.values.push_back(images.of(v));
    if (images.batched.count(v)) r.batched.set(i);
  }
  return known->second = r;
}

/// `flags`, and what the first `carried` results make batched with them, until nothing changes.
llvm::Expected<Batching::Results> Batching::settle(UOpRef function, Flags &flags, unsigned carried) {
  for (;;) {
    auto r = body(function, flags);
    if (!r) return r;
    bool settled = true;
    for (unsigned i = 0; i < carried; ++i)
      if (r->batched[i] && !flags[i]) {
        flags.set(i);
        settled = false;
      }
    if (settled) return r;
  }
}

/// A predicate that all elements share chooses as before.
llvm::Expected<Batching::Outcome> Batching::cond(const Node &at) {
  ArrayRef<UOpRef> fns = at.n->fns;
  Flags flags(at.n->src.size() - 1);
  List src{at.source(0)};
  for (size_t i = 1; i < at.n->src.size(); ++i) {
    if (at.batched(i)) flags.set(i - 1);
    src.push_back(at.source(i));
  }
  auto yes = body(fns[0], flags);
  if (!yes) return yes.takeError();
  auto no = body(fns[1], flags);
  if (!no) return no.takeError();
  Outcome o{nullptr, {}, yes->batched};
  o.batched |= no->batched;
  UOpRef functions[2];
  for (unsigned f = 0; f < 2; ++f) {
    const Results &r = f ? *no : *yes;
    List values;
    for (size_t i = 0; i < r.values.size(); ++i) values.push_back(o.batched[i] ? r.whole(*this, i) : r.values[i]);
    functions[f] = c.make(Op::Func, values, fns[f]->ints);
  }
  o.now = c.make(Op::Cond, src, {}, {}, DType::Void, functions);
  return o;
}

/// By a predicate of its own each element chooses between the results of both branches.
llvm::Expected<Batching::Outcome> Batching::choice(const Node &at) {
  ArrayRef<UOpRef> args = at.n->src.drop_front(), fns = at.n->fns;
  size_t count = fns[0]->src.size();
  List branch[2];
  for (unsigned f = 0; f < 2; ++f) {
    Images images;
    for (UOpRef n : topoSort(fns[f]->src)) {
      if (!n->is(Op::Arg)) continue;
      UOpRef given = args[n->ints[0]];
      if (n->shape != given->shape)
        return refuse(at.n, "its predicate differs from element to element, and a branch names the dims of its "
                            "arguments anew");
      images.batched[n] = whole(given, at.images);
    }
    if (auto e = add(fns[f]->src, images)) return std::move(e);
    for (UOpRef v : fns[f]->src) branch[f].push_back(whole(v, images));
  }
  Outcome o{nullptr, {}, Flags(count, true)};
  for (size_t i = 0; i < count; ++i) o.values.push_back(chosen(at.source(0), branch[0][i], branch[1][i]));
  return o;
}

/// As long as the condition does not depend on the batch all elements go together. Where it does, the loop goes on
/// until the last element is done, and those that are done keep their values. If no element takes more than a known
/// number of trips, the loop counts them beside the carried values: reverse mode looks for that.
llvm::Expected<Batching::Outcome> Batching::whileLoop(const Node &at) {
  UOpRef condition = at.n->fns[0], step = at.n->fns[1], goes = nullptr;
  size_t count = at.n->ntensors;
  Outcome o{nullptr, {}, Flags(count)};
  for (size_t i = 0; i < count; ++i)
    if (at.batched(i)) o.batched.set(i);
  auto next = settle(step, o.batched, count);
  if (!next) return next.takeError();
  auto go = body(condition, o.batched);
  if (go && go->batched[0] && collective && (exchanges(condition) || exchanges(step)))
    return refuse(at.n, "its condition differs from shard to shard, and a turn exchanges values between shards");
  if (go && go->batched[0]) {
    if (!at.n->indices().empty())
      return refuse(at.n, "its condition differs from element to element, and it carries dims");
    o.batched.set();
    if (next = body(step, o.batched); !next) return next.takeError();
    if (go = body(condition, o.batched); go) goes = go->values[0];
  }
  if (!go) return go.takeError();
  UOpRef test = goes ? b.reduce(ReduceKind::Or, goes, {0}) : go->values[0];
  List values, src;
  for (size_t i = 0; i < count; ++i) {
    UOpRef now = o.batched[i] ? next->whole(*this, i) : next->values[i];
    if (goes) now = chosen(goes, now, b.arg(i, now->dtype, now->shape));
    values.push_back(now);
    src.push_back(o.batched[i] ? whole(at, i) : at.source(i));
  }
  int64_t carried = count;
  if (UOpRef most = goes ? autograd::tripBound(c, at.n) : nullptr) {
    UOpRef done = b.arg(carried++, DType::I64, {}), limit = b.fromIndex(at.images.now(c, most)[0], DType::I64);
    test = b.bin(Op::And, b.lt(done, limit), test);
    values.push_back(b.add(done, b.litInt(DType::I64, 1)));
    src.push_back(b.litInt(DType::I64, 0));
  }
  src.append(at.indices);
  UOpRef functions[] = {c.make(Op::Func, {test}, {carried}), c.make(Op::Func, values, {carried})};
  o.now = c.make(Op::While, src, {}, at.n->str, DType::Void, functions);
  return o;
}

/// The batch axis comes after the axis that a scan slices and stacks.
llvm::Expected<Batching::Outcome> Batching::scan(const Node &at) {
  UOpRef function = at.n->fns[0];
  size_t carries = at.n->ints[0], slices = at.n->ints[1], count = at.n->ntensors;
  Flags flags(count);
  for (size_t i = 0; i < count; ++i)
    if (at.batched(i)) flags.set(i);
  auto r = settle(function, flags, carries);
  if (!r) return r.takeError();
  Outcome o{nullptr, {}, r->batched, carries};
  List values, src;
  for (size_t i = 0; i < carries; ++i)
    if (flags[i]) o.batched.set(i);
  for (size_t i = 0; i < r->values.size(); ++i) values.push_back(o.batched[i] ? r->whole(*this, i) : r->values[i]);
  for (size_t i = 0; i < count; ++i) {
    UOpRef x = flags[i] ? whole(at, i) : at.source(i);
    bool sliced = i >= carries && i < carries + slices;
    src.push_back(sliced && flags[i] ? front(x, 1) : x);
  }
  src.append(at.indices);
  UOpRef now = c.make(Op::Func, values, function->ints);
  o.now = c.make(Op::Scan, src, at.n->ints, {}, DType::Void, {now});
  return o;
}

/// The batch axis is the outermost of the grid: a program reads its element's part of what is batched, and stores into
/// its element's part.
llvm::Expected<Batching::Outcome> Batching::custom(const Node &at) {
  UOpRef function = at.n->fns[0];
  llvm::SmallVector<llvm::StringRef, 4> names;
  at.n->str.split(names, ',');
  std::string name = "batch0";
  for (unsigned k = 1; llvm::is_contained(names, name); ++k) name = "batch" + std::to_string(k);
  UOpRef element = c.make(Op::Dim, {}, {0, std::max<int64_t>(0, size->hi - 1)}, name);
  IndexBlock mine = idxBlock(c, size, element, 1);
  auto extended = [&](UOpRef first, ArrayRef<UOpRef> rest) {
    List all{first};
    all.append(rest.begin(), rest.end());
    return all;
  };
  List zeros(64, c.index(0)), src, values;
  Images images;
  for (unsigned i = 0; i < at.n->ntensors; ++i) src.push_back(at.source(i));
  for (UOpRef n : topoSort(function->src))
    if (n->is(Op::Arg) && at.batched(n->ints[0])) {
      List begin = extended(mine.begin, ArrayRef(zeros).take_front(n->rank())), shape = extended(mine.size, n->shape);
      UOpRef part = b.shrink(b.arg(n->ints[0], n->dtype, withSize(n->shape)), begin, shape);
      if (mine.size->constIndex() != 1) { // of a batch without elements there is none
        List none(n->rank() + 1, c.index(0)), missing = none;
        missing[0] = idxSub(c, c.index(1), mine.size);
        part = b.pad(part, none, missing);
      }
      images.moved[n] = b.reshape(part, n->shape);
    }
  if (auto e = add(function->src, images)) return std::move(e);
  Images begins; // what programs scatter into, of all elements: it is read once, by no program
  for (UOpRef n : topoSort(function->src))
    if (n->is(Op::Arg) && at.batched(n->ints[0])) begins.batched[n] = b.arg(n->ints[0], n->dtype, withSize(n->shape));
  for (UOpRef r : function->src) {
    UOpRef now = images.of(r);
    if (now->is(Op::Scatter)) {
      if (auto e = add({r->src[0]}, begins)) return std::move(e);
      values.push_back(scattered(now, whole(r->src[0], begins), mine.begin));
      continue;
    }
    ArrayRef<UOpRef> begin = now->indices().take_front(now->rank()), extents = now->shape;
    Shape tile = now->src[0]->shape;
    List none(tile.size() + 1, c.index(0)),
        parts{b.shrink(b.reshape(now->src[0], extended(c.index(1), tile)), none, extended(mine.size, tile))};
    parts.append(extended(mine.begin, begin));
    parts.append(extended(size, extents));
    values.push_back(c.make(Op::Place, parts, now->ints));
  }
  src.append(extended(size, at.indices));
  Outcome o{nullptr, {}, Flags(values.size(), true)};
  auto made = c.tryMake(Op::Custom, src, {}, name + "," + at.n->str.str(), DType::Void,
                        {c.make(Op::Func, values, function->ints)});
  if (!made) return refuse(at.n, llvm::toString(made.takeError()));
  if (llvm::none_of(values, [](UOpRef v) { return v->is(Op::Scatter); })) {
    o.now = *made;
    return o;
  }
  for (auto [i, v] : llvm::enumerate(values)) {
    List shape{*made};
    shape.append(v->shape.begin(), v->shape.end());
    UOpRef x = c.make(Op::Proj, shape, {int64_t(i)}, {}, v->dtype), r = images.of(function->src[i]);
    o.values.push_back(v->is(Op::Scatter) ? apart(x, r->shape[r->ints[0]], r->ints[0]) : x);
  }
  return o;
}

/// Of a scatter of one element's program: into all elements, one behind another along the axis.
UOpRef Batching::scattered(UOpRef r, UOpRef all, UOpRef element) {
  int64_t axis = r->ints[0];
  UOpRef n = r->shape[axis], index = b.cast(r->src[1], DType::I64);
  auto number = [&](UOpRef x) { return b.splat(x, index->shape); };
  UOpRef zero = number(b.litInt(DType::I64, 0)), length = b.fromIndex(n, DType::I64);
  UOpRef inside = b.bin(Op::And, b.bin(Op::Le, zero, index), b.lt(index, number(length)));
  UOpRef first = number(b.mul(b.fromIndex(element, DType::I64), length));
  index = b.select(inside, b.add(index, first), number(b.litInt(DType::I64, -1)));
  llvm::SmallVector<int64_t, 6> order;
  List shape(r->shape);
  for (unsigned a = 0; a < r->rank(); ++a) {
    if (a == unsigned(axis)) order.push_back(0);
    order.push_back(a + 1);
  }
  shape[axis] = idxMul(c, size, n);
  return c.make(Op::Scatter, {b.reshape(b.permute(all, order), shape), index, r->src[2]}, r->ints);
}

/// What `scattered` gives, with the batch axis in front.
UOpRef Batching::apart(UOpRef x, UOpRef n, int64_t axis) {
  List shape(x->shape);
  shape[axis] = size;
  shape.insert(shape.begin() + axis + 1, n);
  llvm::SmallVector<int64_t, 6> order{axis};
  for (unsigned a = 0; a <= x->rank(); ++a)
    if (a != unsigned(axis)) order.push_back(a);
  return b.permute(b.reshape(x, shape), order);
}

/// One call for all elements: what does not depend on the batch is repeated along its axis.
llvm::Expected<Batching::Outcome> Batching::external(const Node &at) {
  ExternalSpec s = externalOf(at.n);
  if (s.effects) return refuse(at.n, "'" + at.n->str + "' has effects, and elements of a batch have no order");
  if (!s.batched)
    return refuse(at.n, "'" + at.n->str +
                            "' is called for one element at a time: a function that takes operands with "
                            "an axis more in front is declared batched=1");
  List src;
  for (unsigned i = 0; i < at.n->ntensors; ++i) src.push_back(whole(at, i));
  ArrayRef<UOpRef> extents = at.indices;
  for (Type &t : s.results) {
    List now = withSize(extents.take_front(t.shape.size()));
    extents = extents.drop_front(t.shape.size());
    t.shape.assign(now.begin(), now.end());
  }
  llvm::append_range(src, extentsOf(s));
  auto made = c.tryMake(Op::External, src, encode(s), at.n->str);
  if (!made) return refuse(at.n, llvm::toString(made.takeError()));
  Outcome o{nullptr, {}, Flags(s.results.size(), true)};
  o.now = *made;
  return o;
}
