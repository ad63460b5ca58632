//===- Interleave.cpp: forward and backward turns of a pipeline together ----===//
// Takes:    the loss of a training whose layers are a scan over a batch; stages, microbatches (see Pipeline.cpp).
// Gives:    its gradients by one scan over turns (1F1B): in each turn every stage takes one microbatch forward and
//           another one backward. Stage s takes microbatch m forward in turn m + s, and backward in turn m + 2S - 2 -
//           s; in between what it began with is in a ring of 2S - 1 values. The last stage does both in one turn, with
//           the loss of the microbatch between them.
// Keeps:    whole tensors, as Pipeline.cpp does: the stages are an axis in front. What becomes of a microbatch is what
//           the pass spmd makes of the loss for shards that cut the batch: sums between those shards are sums over
//           microbatches, carried from turn to turn, the first microbatch first. Whatever else they would exchange is
//           refused.
// Does not: take a loss that is no linear function of such sums, or layers that read rows beside what they carry.
#include "Partition.h"
#include "astra/Autograd/Autograd.h"
#include "astra/Autograd/Vmap.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/SetVector.h"

using namespace astra;
using namespace astra::distribute;
using llvm::Error;
using llvm::Expected;

namespace {
Error fail(const Twine &why) { return llvm::createStringError("--pipeline: schedule=1f1b: " + why); }

/// Values of a microbatch, and what they read that is the same for all microbatches.
struct Function {
  List roots;           // over stand-ins
  List given, standIns; // of each other
};

/// The function of a scan over turns, while it is written: what it carries, the number of the turn, and what it closes
/// over, in order of use.
class Turns {
public:
  Turns(Context &c, List begins, UOpRef count) : c(c), b(c), begins(std::move(begins)), count(count) {}

  UOpRef carried(size_t i) { return b.arg(i, begins[i]->dtype, begins[i]->shape); }
  UOpRef number() { return b.arg(begins.size(), DType::I64, {}); }
  UOpRef closed(UOpRef outside) {
    auto [place, isNew] = places.try_emplace(outside, given.size());
    if (isNew) given.push_back(outside);
    return b.arg(begins.size() + 1 + place->second, outside->dtype, outside->shape);
  }
  /// What is carried behind the last turn.
  List run(ArrayRef<UOpRef> next) {
    List src = begins, out, length{count};
    src.push_back(b.iota(DType::I64, length, 0));
    llvm::append_range(src, given);
    UOpRef f = c.make(Op::Func, next, {int64_t(src.size())});
    src.push_back(count);
    UOpRef scan = c.make(Op::Scan, src, {int64_t(begins.size()), 1}, {}, DType::Void, {f});
    for (auto [i, x] : llvm::enumerate(begins)) {
      List proj = stacked(scan, x->shape);
      out.push_back(c.make(Op::Proj, proj, {int64_t(i)}, {}, x->dtype));
    }
    return out;
  }

private:
  Context &c;
  Builder b;
  List begins, given;
  llvm::DenseMap<UOpRef, size_t> places; // in given
  UOpRef count;
};

class Interleaving {
public:
  Interleaving(Module &m, int64_t stages, int64_t microbatches, const Entry &step, ArrayRef<UOpRef> wrt)
      : m(m), c(m.ctx()), b(c), stages(stages), microbatches(microbatches), step(step), wrt(wrt), outer{c, m.origins} {
    trained.insert(wrt.begin(), wrt.end());
  }

  Expected<Derivatives> run(UOpRef whole, UOpRef seed, ArrayRef<UOpRef> beside) {
    if (Error e = ofMicrobatch(whole)) return std::move(e);
    for (UOpRef w : wrt)
      if (above({w}, {batch}).contains(w)) return fail("a gradient by the rows of a batch is not taken: " + place(w));
    for (UOpRef x : above(beside, {batch}))
      if (llvm::is_contained(beside, x))
        return fail("what a training step updates or keeps beside the loss is of the whole batch: " + place(x));
    if (Error e = divide()) return std::move(e);
    if (Error e = linear(seed)) return std::move(e);
    if (Error e = sumsAhead()) return std::move(e);
    return turns(beside);
  }

private:
  std::string place(UOpRef n) const { return placeOf(m, n); }
  /// A leaf that nothing made before depends on; none is left in the result.
  UOpRef standIn(DType t, Shape shape) { return b.param("\1" + std::to_string(c.size()), t, shape); }
  UOpRef standIn(UOpRef like) { return standIn(like->dtype, like->shape); }
  UOpRef zeros(DType t, Shape shape) { return b.splat(b.lit(t, 0), shape); }
  UOpRef i64(int64_t v) { return b.litInt(DType::I64, v); }

  // ---- what there is
  /// The scan over layers. A batch is a multiple of the microbatches by now.
  bool isLayers(UOpRef n, UOpRef rows) const {
    return n->is(Op::Scan) && n->ints[0] == 1 && n->ints[1] >= 1 && n->fns[0]->src.size() == 1 && n->src[0]->rank() &&
           (rows ? n->src[0]->shape[0] == rows : dimMultiple(n->src[0]->shape[0]).has_value()) &&
           n->indices()[0]->constIndex() && *n->indices()[0]->constIndex() % stages == 0;
  }

  /// The loss as each of as many shards as there are microbatches computes it.
  Error ofMicrobatch(UOpRef whole) {
    UOpRef rows = nullptr;
    for (UOpRef n : topoSort({whole}))
      if (isLayers(n, nullptr) && dimMultiple(n->src[0]->shape[0])->scale % microbatches == 0)
        rows = n->src[0]->shape[0];
    if (!rows) return fail("the loss reads no scan over layers");
    batch = dimMultiple(rows)->dim;

    Module one;
    one.context = m.context, one.dims = m.dims, one.equations = m.equations, one.origins = m.origins;
    one.mesh = {"m", {{"microbatches", microbatches}}, MeshForm::Whole};
    for (UOpRef n : topoSort({whole})) {
      if (n->is(Op::Param)) one.params.push_back({n, nullptr, {}, {}});
      if (n->is(Op::State)) one.states.push_back({n, nullptr, {}});
    }
    Entry e{step.name, step.inputs, {{"loss", whole}}, {}};
    for (Value &v : e.inputs) {
      v.sharding = {};
      if (!above({v.value}, {batch}).contains(v.value)) continue;
      if (v.value->shape[0] != rows ||
          llvm::any_of(v.value->shape.drop_front(), [&](UOpRef d) { return above({d}, {batch}).contains(d); }))
        return fail("input %" + v.name + " (" + typeText(v.value->dtype, v.value->shape) +
                    ") has the batch elsewhere than along its first axis");
      v.sharding.axes.assign(v.value->rank(), 0);
      v.sharding.axes[0] = 1;
    }
    one.entries.push_back(e);
    if (Error error = partition(one))
      return fail("the loss is no sum over microbatches: " + llvm::toString(std::move(error)));
    loss = one.entries[0].outputs[0].value;
    for (auto [was, now] : llvm::zip(e.inputs, one.entries[0].inputs))
      if (was.sharding.isDeclared()) inputs.push_back({was.value, now.value});
    for (UOpRef n : topoSort({loss}))
      if (one.origins.find(n) && !m.origins.find(n)) // for what is said of it
        for (const std::string &name : one.origins.find(n)->names) m.origins.add(n, name);
    mine = divided(c, rows, microbatches);
    for (UOpRef n : topoSort({loss})) {
      if (!isLayers(n, mine)) continue;
      if (layers) return fail("the loss reads two scans over layers");
      layers = n;
    }
    if (!layers) return fail("the loss reads no scan over layers");
    return Error::success();
  }

  /// What depends on a microbatch, and sums over microbatches.
  Error divide() {
    std::vector<UOpRef> order = topoSort({loss});
    for (UOpRef n : order)
      if (n->is(Op::Proj) && n->src[0] == layers) y = n;
    Nodes leaves = trained;
    leaves.insert(y);
    Nodes active = above({loss}, leaves);
    for (UOpRef n : order) {
      for (UOpRef f : n->fns)
        if (Error e = closedFunction(f)) return e;
      if (!isCollective(n->op)) continue;
      if (!n->is(Op::AllReduce) || n->ints[0] != 0)
        return fail("the loss is no sum over microbatches: rows of several ones meet at " + place(reader(n, order)));
      (active.contains(n->src[0]) ? sums : ahead).push_back(n);
    }
    Nodes summed = above({loss}, {sums.begin(), sums.end()});
    for (UOpRef n : sums)
      if (summed.contains(n->src[0]))
        return fail("the loss is no sum over microbatches: rows are computed from a sum over all rows at " + place(n));
    for (UOpRef n : layers->tensors().drop_front())
      if (above({n}, {batch}).contains(n))
        return fail("layers read rows beside what they carry: " + place(n) + " (" + typeText(n->dtype, n->shape) + ")");
    return Error::success();
  }
  Error closedFunction(UOpRef f) {
    std::vector<UOpRef> order = topoSort(f->src);
    for (UOpRef n : order) {
      if (isCollective(n->op))
        return fail("the loss is no sum over microbatches: rows of several ones meet at " + place(reader(n, order)));
      for (UOpRef g : n->fns)
        if (Error e = closedFunction(g)) return e;
    }
    return Error::success();
  }
  /// A shard's number has no name; what reads it may have one.
  UOpRef reader(UOpRef n, ArrayRef<UOpRef> order) const {
    Nodes over = above(order, {n});
    for (UOpRef r : order)
      if (over.contains(r) && m.origins.find(r)) return r;
    return n;
  }

  /// The sums as values that are given; the cotangent of each, which may depend on none of them.
  Error linear(UOpRef seed) {
    Substitution cut{c, m.origins};
    standY = cut.image[y] = standIn(y);
    for (UOpRef n : ahead) standAhead.push_back(cut.image[n] = standIn(n));
    for (UOpRef n : sums) standSums.push_back(cut.image[n] = standIn(n));
    top = cut.of({loss})[0];
    for (UOpRef n : sums) ofSums.push_back(cut.of({n->src[0]})[0]);
    for (UOpRef n : ahead) ofAhead.push_back(cut.of({n->src[0]})[0]);
    source = cut.of({layers->src[0]})[0];
    for (UOpRef n : layers->tensors().drop_front()) read.push_back(cut.of({n})[0]);

    Nodes rows = trained;
    rows.insert(standY);
    for (auto [was, now] : inputs) rows.insert(now);
    if (above({top}, rows).contains(top))
      return fail("the loss is no sum over microbatches: it reads weights or rows beside sums over rows at " +
                  place(top));
    auto d = vjp(c, {top}, {seed}, standSums, &m.origins);
    if (!d) return d.takeError();
    cotangents.assign(d->derivatives.begin(), d->derivatives.end());
    Nodes all(standSums.begin(), standSums.end());
    if (!dependsOn(cotangents, all)) return Error::success();
    for (UOpRef n : topoSort({top})) {
      if (n->isIndex() || !isDifferentiable(n->dtype) || !above({n}, all).contains(n)) continue;
      auto one = vjp(c, {n}, {b.splat(b.lit(n->dtype, 1), n->shape)}, standSums, &m.origins);
      if (one && dependsOn(one->derivatives, all))
        return fail("the loss is no sum over microbatches: it is not linear in a sum over rows at " + place(n));
      llvm::consumeError(one.takeError());
    }
    return fail("the loss is no sum over microbatches: it is not linear in a sum over rows at " + place(top));
  }
  static bool dependsOn(ArrayRef<UOpRef> roots, const Nodes &leaves) {
    Nodes over = above(roots, leaves);
    return llvm::any_of(roots, [&](UOpRef r) { return over.contains(r); });
  }

  // ---- functions of a microbatch
  /// What `roots` read that no row counts for becomes arguments: the largest such values.
  Function opened(ArrayRef<UOpRef> roots) {
    Nodes rows = above(roots, {batch}), stored;
    llvm::SetVector<UOpRef> given;
    auto take = [&](UOpRef n) {
      if (!rows.contains(n) && stored.contains(n)) given.insert(n);
    };
    for (UOpRef n : topoSort(roots)) {
      bool isLeaf = n->is(Op::Param) || n->is(Op::State) || n->is(Op::Arg);
      if (n->isIndex()) continue;
      if (isLeaf || llvm::any_of(n->src, [&](UOpRef s) { return stored.contains(s); })) stored.insert(n);
      if (rows.contains(n))
        for (UOpRef s : n->tensors()) take(s);
    }
    for (UOpRef r : roots) take(r);
    Function f;
    Substitution s{c, m.origins};
    for (UOpRef n : given) {
      f.given.push_back(n);
      f.standIns.push_back(s.image[n] = standIn(n));
    }
    f.roots = s.of(roots);
    return f;
  }
  /// Of `given` those that a gradient is wanted of, by their places.
  llvm::SmallVector<unsigned> activeOf(ArrayRef<UOpRef> given) const {
    Nodes over = above(given, trained);
    llvm::SmallVector<unsigned> out;
    for (auto [i, n] : llvm::enumerate(given))
      if (over.contains(n) && isDifferentiable(n->dtype)) out.push_back(i);
    return out;
  }
  /// The roots for microbatch `number`, clamped; `more` are images of other leaves.
  List at(Turns &t, const Function &f, ArrayRef<UOpRef> roots, UOpRef number,
          ArrayRef<std::pair<UOpRef, UOpRef>> more = {}) {
    Substitution s{c, m.origins};
    for (auto [was, now] : inputs) {
      UOpRef all = t.closed(dealt(b, was, mine, c.index(microbatches)));
      List start(all->rank(), i64(0)), size = stacked(c.index(1), now->shape);
      start[0] = number;
      s.image[now] = b.reshape(b.sliceAt(all, start, size), now->shape);
    }
    for (auto [n, stand] : llvm::zip(f.given, f.standIns)) s.image[stand] = t.closed(outer.of({n})[0]);
    for (auto [was, now] : more) s.image[was] = now;
    return s.of(roots);
  }

  /// Sums over rows that no weight counts for, as the number of rows that a mask leaves: before the first turn.
  Error sumsAhead() {
    for (auto [n, stand, root] : llvm::zip(ahead, standAhead, ofAhead)) {
      Function f = opened({root});
      Turns t(c, {zeros(n->dtype, n->shape)}, c.index(microbatches));
      UOpRef part = at(t, f, f.roots, t.number())[0];
      outer.image[stand] = t.run({b.add(t.carried(0), part)})[0];
    }
    return Error::success();
  }

  // ---- turns
  UOpRef isStage(int64_t s, Shape shape) { return b.eq(b.iota(DType::I64, shape, 0), b.splat(i64(s), shape)); }
  /// What the stages have, from the stage in front (by 1) or behind (by -1); nothing comes to the first, or last.
  UOpRef moved(UOpRef x, int64_t by) {
    List none(x->rank(), c.index(0)), one = none, size(x->shape.begin(), x->shape.end());
    one[0] = c.index(1), size[0] = c.index(stages - 1);
    return by > 0 ? b.pad(b.shrink(x, none, size), one, none) : b.pad(b.shrink(x, one, size), none, one);
  }
  /// What one stage has.
  UOpRef only(UOpRef x, int64_t stage) {
    UOpRef none = b.splat(b.lit(x->dtype, -0.0), x->shape); // -0.0 adds nothing
    return b.reduce(ReduceKind::Sum, b.select(isStage(stage, x->shape), x, none), {0});
  }
  /// One value for each stage.
  UOpRef ofAll(UOpRef x) {
    List one = stacked(c.index(1), x->shape), all = stacked(c.index(stages), x->shape);
    return b.expand(b.reshape(x, one), all);
  }
  UOpRef within(UOpRef n, int64_t lo, int64_t end) {
    return b.bin(Op::And, b.bin(Op::Le, i64(lo), n), b.lt(n, i64(end)));
  }
  UOpRef plus(UOpRef sum, UOpRef part, UOpRef counts) {
    return b.add(sum, b.select(b.broadcastTo(counts, part->shape), part, zeros(part->dtype, part->shape)));
  }

  Expected<Derivatives> turns(ArrayRef<UOpRef> beside) {
    // Of one stage: its layers, and their gradients.
    int64_t slices = layers->ints[1], perStage = *layers->indices()[0]->constIndex() / stages, kept = 2 * stages - 1;
    List weights, leaves{standIn(source)}, inner = leaves, wanted{leaves[0]};
    llvm::SmallVector<unsigned> active = activeOf(read);
    for (auto [i, n] : llvm::enumerate(read)) {
      List shape(n->shape.begin(), n->shape.end());
      UOpRef whole = outer.of({n})[0];
      if (int64_t(i) < slices) {
        shape[0] = c.index(perStage);
        whole = b.reshape(whole, stacked(c.index(stages), shape));
      }
      weights.push_back(whole);
      inner.push_back(standIn(n->dtype, shape));
      if (int64_t(i) < slices) leaves.push_back(inner.back());
      if (llvm::is_contained(active, i)) wanted.push_back(inner.back());
    }
    List src = inner;
    src.push_back(c.index(perStage));
    UOpRef scan = c.make(Op::Scan, src, layers->ints, {}, DType::Void, layers->fns);
    UOpRef given = c.make(Op::Proj, stacked(scan, source->shape), {0}, {}, source->dtype), back = standIn(source);
    auto ofStage = vjp(c, {given}, {back}, wanted, &m.origins);
    if (!ofStage) return ofStage.takeError();

    // Of a microbatch: what is in front of the layers, what is behind them up to its part of the sums.
    Function front = opened({source}), behind = opened(ofSums);
    llvm::SmallVector<unsigned> frontActive = activeOf(front.given), behindActive = activeOf(behind.given);
    List cots;
    for (UOpRef n : cotangents) cots.push_back(standIn(n));
    auto pick = [](const Function &f, ArrayRef<unsigned> which) {
      List out;
      for (unsigned i : which) out.push_back(f.standIns[i]);
      return out;
    };
    List behindWanted{standY};
    llvm::append_range(behindWanted, pick(behind, behindActive));
    auto ofBehind = vjp(c, behind.roots, cots, behindWanted, &m.origins);
    if (!ofBehind) return ofBehind.takeError();
    UOpRef toFront = standIn(source);
    auto ofFront = vjp(c, front.roots, {toFront}, pick(front, frontActive), &m.origins);
    if (!ofFront) return ofFront.takeError();

    // What is carried: what the stages gave forward and backward, the ring, sums, gradients.
    List all = stacked(c.index(stages), source->shape), ring = all;
    ring.insert(ring.begin() + 1, c.index(kept));
    List begins{zeros(source->dtype, all), zeros(source->dtype, all), zeros(source->dtype, ring)};
    auto begin = [&](UOpRef like) { begins.push_back(zeros(like->dtype, like->shape)); };
    for (UOpRef n : sums) begin(n);
    for (unsigned i : behindActive) begin(behind.given[i]);
    for (unsigned i : frontActive) begin(front.given[i]);
    for (unsigned i : active) begin(int64_t(i) < slices ? weights[i] : ofAll(read[i]));

    int64_t count = microbatches + 2 * stages - 2;
    Turns t(c, begins, c.index(count));
    UOpRef now = t.number();
    List next, args;
    for (UOpRef w : weights) args.push_back(t.closed(w));
    auto before = [&](int64_t turns) { return b.sub(now, i64(turns)); };

    // Forward.
    UOpRef x = at(t, front, front.roots, now)[0];
    x = b.select(isStage(0, all), ofAll(x), moved(t.carried(0), 1));
    List batched{x};
    Substitution same{c, m.origins}; // closed-over values are no leaves of vmap
    for (auto [i, w] : llvm::enumerate(args))
      if (int64_t(i) < slices)
        batched.push_back(w);
      else
        same.image[inner[1 + i]] = w;
    auto forward = vmap(c, same.of({given}), leaves, batched, c.index(stages), &m.origins);
    if (!forward) return forward.takeError();
    UOpRef out = (*forward)[0];
    next.push_back(out);

    // The loss of the microbatch that the last stage has done.
    List parts(ofBehind->values.begin(), ofBehind->values.end());
    llvm::append_range(parts, ofBehind->derivatives);
    std::vector<std::pair<UOpRef, UOpRef>> more{{standY, only(out, stages - 1)}};
    for (auto [stand, n] : llvm::zip(cots, cotangents)) more.push_back({stand, t.closed(outer.of({n})[0])});
    List lossParts = at(t, behind, parts, before(stages - 1), more);
    UOpRef cotangent = lossParts[sums.size()];

    // Backward, from what the ring has kept 2 (S - 1 - s) turns.
    List starts(ring.size(), i64(0)), slot = all;
    starts[1] = b.bin(Op::Mod, now, i64(kept));
    slot.insert(slot.begin() + 1, c.index(1));
    UOpRef held = b.updateAt(t.carried(2), b.reshape(x, slot), starts);
    UOpRef turn = b.add(b.mul(b.iota(DType::I64, slot, 0), i64(2)), b.add(now, i64(1)));
    UOpRef began = b.reshape(b.pick(held, b.bin(Op::Mod, turn, i64(kept)), 1), all);
    UOpRef toLast = b.select(isStage(stages - 1, all), ofAll(cotangent), moved(t.carried(1), -1));
    leaves.push_back(back), batched.push_back(toLast), batched[0] = began;
    auto backward = vmap(c, same.of(ofStage->derivatives), leaves, batched, c.index(stages), &m.origins);
    if (!backward) return backward.takeError();
    next.push_back((*backward)[0]), next.push_back(held);

    UOpRef isLoss = within(before(stages - 1), 0, microbatches),
           isFront = within(before(2 * stages - 2), 0, microbatches);
    auto sum = [&](UOpRef part, UOpRef counts) { next.push_back(plus(t.carried(next.size()), part, counts)); };
    for (size_t i = 0; i < sums.size(); ++i) sum(lossParts[i], isLoss);
    for (size_t i = 0; i < behindActive.size(); ++i) sum(lossParts[sums.size() + 1 + i], isLoss);
    if (!frontActive.empty())
      for (UOpRef part : at(t, front, List(ofFront->derivatives.begin(), ofFront->derivatives.end()),
                            before(2 * stages - 2), {{toFront, only(next[1], 0)}}))
        sum(part, isFront);
    for (UOpRef part : llvm::ArrayRef(*backward).drop_front()) { // stage s has microbatch t - (2S - 2 - s)
      List column(part->rank(), c.index(1));
      column[0] = c.index(stages);
      sum(part, within(b.add(b.iota(DType::I64, column, 0), before(2 * stages - 2)), 0, microbatches));
    }
    List made = t.run(next);

    // From what the microbatches read to weights.
    ArrayRef<UOpRef> rest = ArrayRef<UOpRef>(made).drop_front(3);
    for (UOpRef stand : standSums) outer.image[stand] = rest.consume_front();
    Derivatives result{{outer.of({top})[0]}, {}};
    llvm::append_range(result.values, beside);
    List values, theirs;
    auto add = [&](UOpRef value, UOpRef gradient) {
      values.push_back(outer.of({value})[0]), theirs.push_back(gradient);
    };
    for (unsigned i : behindActive) add(behind.given[i], rest.consume_front());
    for (unsigned i : frontActive) add(front.given[i], rest.consume_front());
    for (unsigned i : active) {
      UOpRef g = rest.consume_front();
      add(read[i], int64_t(i) < slices ? b.reshape(g, read[i]->shape) : b.reduce(ReduceKind::Sum, g, {0}));
    }
    auto d = vjp(c, values, theirs, wrt, &m.origins);
    if (!d) return d.takeError();
    result.derivatives = d->derivatives;
    return result;
  }

  Module &m;
  Context &c;
  Builder b;
  int64_t stages, microbatches;
  const Entry &step;
  ArrayRef<UOpRef> wrt;
  Nodes trained;

  UOpRef batch = nullptr, mine = nullptr;        // the dim, the rows of a microbatch
  UOpRef loss = nullptr;                         // of a microbatch, with sums between microbatches
  std::vector<std::pair<UOpRef, UOpRef>> inputs; // with rows: of the batch, of a microbatch
  UOpRef layers = nullptr, y = nullptr;          // the scan, what it gives
  List sums, ahead;                              // over microbatches: with gradients, without
  List standSums, standAhead, ofSums, ofAhead;   // stand-ins, the part of a microbatch
  UOpRef standY = nullptr, top = nullptr;        // what the layers give, and the loss, over stand-ins
  UOpRef source = nullptr;                       // what the layers begin with
  List read, cotangents;                         // what they read beside it; of the sums
  Substitution outer;                            // what stand-ins are, outside of turns
};
} // namespace

Expected<Derivatives> astra::interleavedGradients(Module &m, const PipelineRule &rule, const Entry &step, UOpRef loss,
                                                  UOpRef seed, ArrayRef<UOpRef> wrt, ArrayRef<UOpRef> beside) {
  auto axis = llvm::find_if(m.mesh.axes, [&](const MeshAxis &a) { return a.name == rule.axis; });
  if (axis == m.mesh.axes.end()) return llvm::createStringError("--pipeline: the mesh has no axis '" + rule.axis + "'");
  return Interleaving(m, axis->size, rule.microbatches, step, wrt).run(loss, seed, beside);
}
