//===- Pipeline.cpp: a scan over layers as a pipeline -----------------------===//
// Takes:    a module of whole tensors in which a scan carries a batch through layers whose weights are stacked; an axis
//           of the mesh, a number of microbatches.
// Gives:    a scan over turns: in each one every stage computes its layers for one microbatch, and what they give moves
//           to the next stage (GPipe). Still of whole tensors: the stages are an axis in front, which the pass spmd
//           cuts, and the gradient is the pipeline backwards.
// Keeps:    the bits of the forward pass, where the rows of a batch are independent. Row r is of microbatch r modulo
//           their number, so that a batch may be cut by another axis of the mesh.
// Does not: give stages other numbers of layers. Gradients that interleave forward and backward turns are taken of the
//           scan as it was (Interleave.cpp), which entry `forward` keeps for them.
#include "Partition.h"
#include "astra/Autograd/Vmap.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::distribute;
using llvm::Error;

namespace {
class Pipelining {
public:
  Pipelining(Module &m, MeshAxes axis, int64_t stages, int64_t microbatches)
      : m(m), c(m.ctx()), b(c), axis(axis), stages(stages), microbatches(microbatches) {}

  /// `keepForward`: entry `forward` stays a scan over layers; without one it is a copy of main.
  Error run(bool keepForward) {
    for (Entry &e : m.entries)
      if (Error error = find(e)) return error;
    for (const Entry &e : m.entries)
      if (Error error = untouched(e)) return error;
    if (!batch)
      return llvm::createStringError("--pipeline: no entry has a scan over layers: one that carries one value, whose "
                                     "first extent is a dim, over slices of weights, and gives nothing else");
    if (Error error = takeIn()) return error;
    // Other axes of the mesh may cut each microbatch.
    int64_t rows = m.mesh.count(m.mesh.all() & ~axis);
    auto part = dimOfParts(m, batch, microbatches * rows);
    if (!part) return part.takeError();
    UOpRef ofMicrobatch = idxMul(c, *part, c.index(rows));
    Substitution all{c, m.origins}, one{c, m.origins};
    one.image[batch] = ofMicrobatch;
    all.image[batch] = idxMul(c, ofMicrobatch, c.index(microbatches));
    for (UOpRef scan : scans) layers[scan] = one.function(scan->fns[0]);
    Error failed = Error::success();
    bool hasFailed = false;
    all.instead = [&](UOpRef n) -> UOpRef {
      if (layers.count(n)) return n; // nobody reads it
      if (!n->is(Op::Proj) || !layers.count(n->src[0]) || hasFailed) return nullptr;
      auto y = piped(n->src[0], all.image, ofMicrobatch);
      if (y) return m.origins.inherit(*y, n->src[0]), *y;
      failed = llvm::joinErrors(std::move(failed), y.takeError());
      hasFailed = true;
      return n;
    };
    std::optional<Entry> forward;
    if (keepForward) {
      Substitution dims{c, m.origins};
      dims.image[batch] = all.image[batch];
      forward = *(m.entry("forward") ? m.entry("forward") : m.entry("main"));
      forward->name = "forward";
      for (auto *values : {&forward->inputs, &forward->outputs})
        for (Value &v : *values) v.value = dims.of(v.value)[0];
      for (StateUpdate &u : forward->updates) u.value = dims.of(u.value)[0];
      llvm::erase_if(m.entries, [](const Entry &e) { return e.name == "forward"; });
    }
    all.all(m);
    if (hasFailed) return failed;
    llvm::consumeError(std::move(failed));
    if (forward) m.entries.push_back(std::move(*forward));
    for (Param &p : m.params)
      if (llvm::is_contained(weights, p.value)) cut(p.value, p.sharding);
    for (StateVar &s : m.states)
      if (llvm::is_contained(weights, s.value)) cut(s.value, s.sharding);
    return Error::success();
  }

private:
  Error find(Entry &e) {
    List roots;
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    for (UOpRef n : topoSort(roots)) {
      if (!n->is(Op::Scan) || n->ints[0] != 1 || n->ints[1] < 1 || n->fns[0]->src.size() != 1) continue;
      UOpRef carried = n->src[0];
      if (!carried->rank() || !carried->shape[0]->is(Op::Dim)) continue;
      for (Value &v : e.inputs)
        if (llvm::is_contained(n->tensors().slice(1, n->ints[1]), v.value)) cut(v.value, v.sharding);
      if (llvm::is_contained(scans, n)) continue;
      auto length = n->indices()[0]->constIndex();
      if (!length || *length % stages)
        return llvm::createStringError("--pipeline: entry @" + e.name + " has a scan over " +
                                       indexText(n->indices()[0]) + " layers, which " + Twine(stages) +
                                       " stages do not divide");
      if (batch && batch != carried->shape[0])
        return llvm::createStringError("--pipeline: two scans over layers carry batches of " + batch->str + " and of " +
                                       carried->shape[0]->str);
      batch = carried->shape[0];
      scans.push_back(n);
      for (UOpRef w : n->tensors().slice(1, n->ints[1])) weights.push_back(w);
    }
    return Error::success();
  }

  /// Whether a value with the batch in its shape has the same elements for every row, if its sources have.
  bool repeats(UOpRef n, const Nodes &ofBatch) const {
    auto inner = [](Shape shape) {
      List out;
      for (UOpRef e : shape)
        if (e->constIndex() != 1) out.push_back(e);
      return out;
    };
    switch (n->op) {
    case Op::Expand:
    case Op::Permute:
    case Op::Detach: return true;
    case Op::Reshape: return inner(n->shape) == inner(n->src[0]->shape);
    case Op::Iota: return !ofBatch.contains(n->shape[n->ints[0]]);
    default: return has(n->op, Elementwise);
    }
  }

  /// Layers that close over what is repeated for each row of the batch, as a row of a weight or the count of a mean,
  /// compute it themselves: a microbatch has fewer rows. Rows of the batch beside what the layers carry are refused.
  Error takeIn() {
    Substitution taken{c, m.origins};
    Error failed = Error::success();
    bool hasFailed = false;
    taken.instead = [&](UOpRef n) -> UOpRef {
      if (!llvm::is_contained(scans, n) || hasFailed) return nullptr;
      auto now = withRepeated(n, taken.image);
      if (now) return *now;
      failed = llvm::joinErrors(std::move(failed), now.takeError());
      hasFailed = true;
      return nullptr;
    };
    taken.all(m);
    if (hasFailed) return failed;
    llvm::consumeError(std::move(failed));
    for (UOpRef &scan : scans) scan = taken.image.lookup(scan);
    return Error::success();
  }
  llvm::Expected<UOpRef> withRepeated(UOpRef scan, const llvm::DenseMap<UOpRef, UOpRef> &image) {
    UOpRef f = scan->fns[0];
    auto tensors = scan->tensors();
    const size_t own = 1 + scan->ints[1]; // what is carried, and weights by layers
    List given, roots(tensors.begin() + own, tensors.end());
    Nodes ofBatch = above(roots, {batch}); // its extents are asked for
    auto hasRows = [&](UOpRef v) { return llvm::any_of(v->shape, [&](UOpRef e) { return ofBatch.contains(e); }); };
    if (llvm::none_of(roots, hasRows)) return nullptr;
    llvm::DenseMap<UOpRef, UOpRef> inside; // of values outside: the argument
    for (UOpRef v : tensors.take_front(own)) given.push_back(image.lookup(v));
    Nodes read(roots.begin(), roots.end()); // by the layers, or for what they read
    std::vector<UOpRef> order = topoSort(roots);
    for (UOpRef n : llvm::reverse(order)) {
      if (!read.contains(n) || !hasRows(n)) continue;
      if (!repeats(n, ofBatch))
        return llvm::createStringError("--pipeline: layers read rows of the batch beside what they carry: " +
                                       placeOf(m, n) + " (" + typeText(n->dtype, n->shape) + ")");
      read.insert(n->tensors().begin(), n->tensors().end());
    }
    for (UOpRef n : order)
      if (read.contains(n) && !hasRows(n)) {
        inside[n] = b.arg(given.size(), n->dtype, n->shape);
        given.push_back(image.lookup(n));
      }
    Substitution repeated{c, m.origins, inside};
    List values = repeated.of(roots);
    Substitution body{c, m.origins};
    for (UOpRef n : topoSort(f->src)) {
      for (UOpRef g : n->fns) body.image[g] = g; // has arguments of its own
      if (n->is(Op::Arg) && uint64_t(n->ints[0]) >= own) body.image[n] = values[n->ints[0] - own];
    }
    UOpRef now = c.make(Op::Func, body.of(f->src), {int64_t(given.size())});
    m.origins.inherit(now, f);
    for (UOpRef index : scan->indices()) given.push_back(image.lookup(index));
    return c.make(Op::Scan, given, scan->ints, scan->str, scan->dtype, {now});
  }

  /// Where gradients have been taken already, other scans go over the same weights.
  Error untouched(const Entry &e) {
    List roots;
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    for (UOpRef n : topoSort(roots))
      if (n->is(Op::Scan) && !llvm::is_contained(scans, n) &&
          llvm::any_of(n->tensors().slice(n->ints[0], n->ints[1]),
                       [&](UOpRef w) { return llvm::is_contained(weights, w); }))
        return llvm::createStringError(
            "--pipeline: entry @" + e.name + " goes over the layers in another scan too, as " +
            "a gradient does that has been taken already; a pipeline comes before gradients");
    return Error::success();
  }

  /// Weights that a scan takes apart are of the stages.
  void cut(UOpRef value, Sharding &s) {
    if (!s.isDeclared()) s.axes.assign(value->rank(), 0);
    if (!s.axes[0] && !(s.used() & axis)) s.axes[0] = axis;
  }

  List zeros(unsigned rank) { return List(rank, c.index(0)); }
  UOpRef splat(double v, DType t, Shape shape) { return b.splat(b.lit(t, v), shape); }

  llvm::Expected<UOpRef> piped(UOpRef scan, const llvm::DenseMap<UOpRef, UOpRef> &image, UOpRef rows) {
    UOpRef x = image.lookup(scan->src[0]), one = c.index(1), count = c.index(microbatches), depth = c.index(stages);
    int64_t slices = scan->ints[1], perStage = *scan->indices()[0]->constIndex() / stages;
    List shape(x->shape.begin(), x->shape.end()); // of a microbatch
    shape[0] = rows;

    // Turn t: stage 0 takes microbatch t, each other stage what the one before it gave in turn t - 1.
    List args; // of a turn: what the stages gave, the microbatch, weights, closed-over values
    args.push_back(b.arg(0, x->dtype, stacked(depth, shape)));
    args.push_back(b.arg(1, x->dtype, shape));
    List given, leaves{b.arg(1000, x->dtype, shape)}, inner{leaves[0]};
    for (UOpRef source : scan->tensors().drop_front()) {
      UOpRef w = image.lookup(source);
      if (int64_t(given.size()) < slices) { // [stages, layers of one, ..]
        List parts(w->shape.begin(), w->shape.end());
        parts[0] = c.index(perStage);
        w = b.reshape(w, stacked(depth, parts));
        leaves.push_back(b.arg(1000 + int64_t(leaves.size()), w->dtype, parts));
        inner.push_back(leaves.back());
      }
      args.push_back(b.arg(int64_t(args.size()), w->dtype, w->shape));
      if (int64_t(given.size()) >= slices) inner.push_back(args.back());
      given.push_back(w);
    }
    List src(inner);
    src.push_back(c.index(perStage));
    UOpRef ofStage = c.make(Op::Scan, src, scan->ints, {}, DType::Void, {layers.lookup(scan)});
    UOpRef y = c.make(Op::Proj, stacked(ofStage, shape), {0}, {}, x->dtype);

    List size(args[0]->shape.begin(), args[0]->shape.end()), lo = zeros(size.size()), whole = size;
    size[0] = c.index(stages - 1), lo[0] = one;
    UOpRef moved = b.pad(b.shrink(args[0], zeros(size.size()), size), lo, zeros(size.size()));
    UOpRef fed = b.expand(b.reshape(args[1], stacked(one, shape)), whole);
    UOpRef isFirst = b.lt(b.iota(DType::I64, whole, 0), b.splat(b.litInt(DType::I64, 1), whole));
    List batched{b.select(isFirst, fed, moved)};
    for (int64_t i = 0; i < slices; ++i) batched.push_back(args[2 + i]);
    auto outs = vmap(c, {y}, leaves, batched, depth, &m.origins);
    if (!outs) return outs.takeError();
    UOpRef out = (*outs)[0], turn = c.make(Op::Func, {out, out}, {int64_t(args.size())});

    UOpRef micro = dealt(b, x, rows, count);
    List behind = zeros(micro->rank());
    behind[0] = c.index(stages - 1);
    UOpRef turns = c.index(microbatches + stages - 1);
    List all{splat(0.0, x->dtype, whole), b.pad(micro, zeros(micro->rank()), behind)};
    llvm::append_range(all, given);
    all.push_back(turns);
    UOpRef piping = c.make(Op::Scan, all, {1, 1}, {}, DType::Void, {turn});
    UOpRef each = c.make(Op::Proj, stacked(piping, stacked(turns, whole)), {1}, {}, x->dtype);

    // What the last stage gave from turn S - 1 on; -0.0 adds nothing.
    List first = zeros(each->rank()), taken(each->shape.begin(), each->shape.end());
    first[0] = c.index(stages - 1), taken[0] = count;
    each = b.shrink(each, first, taken);
    UOpRef isLast = b.lt(b.splat(b.litInt(DType::I64, stages - 2), each->shape), b.iota(DType::I64, each->shape, 1));
    UOpRef last = b.reduce(ReduceKind::Sum, b.select(isLast, each, splat(-0.0, x->dtype, each->shape)), {1});
    return b.reshape(axisMoved(b, last, 0, 1), x->shape); // as they were dealt
  }

  Module &m;
  Context &c;
  Builder b;
  MeshAxes axis;
  int64_t stages, microbatches;
  UOpRef batch = nullptr; // the dim
  List scans, weights;
  llvm::DenseMap<UOpRef, UOpRef> layers; // of a scan its function, for a microbatch
};
} // namespace

llvm::Expected<PipelineRule> astra::parsePipeline(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 3> parts;
  text.split(parts, ',');
  PipelineRule rule{parts[0].str(), 0};
  if (parts.size() < 2 || parts.size() > 3 || !parts[1].consume_front("microbatches=") ||
      parts[1].getAsInteger(10, rule.microbatches))
    return llvm::createStringError("'" + text + "' is not AXIS,microbatches=N or AXIS,microbatches=N,schedule=1f1b");
  if (rule.microbatches < 1 || rule.microbatches > 1 << 20)
    return llvm::createStringError("--pipeline: " + Twine(rule.microbatches) + " microbatches; 1 to 2^20 are possible");
  if (parts.size() == 2) return rule;
  rule.interleaved = parts[2] == "schedule=1f1b";
  if (!rule.interleaved && parts[2] != "schedule=gpipe")
    return llvm::createStringError("--pipeline: '" + parts[2] + "' is neither schedule=gpipe nor schedule=1f1b");
  if (rule.interleaved && rule.microbatches > mostShards)
    return llvm::createStringError("--pipeline: " + Twine(rule.microbatches) +
                                   " microbatches; schedule=1f1b has 1 to " + Twine(mostShards));
  return rule;
}

Error astra::pipelineLayers(Module &m, const PipelineRule &rule, bool ofTraining) {
  auto at = llvm::find_if(m.mesh.axes, [&](const MeshAxis &a) { return a.name == rule.axis; });
  if (at == m.mesh.axes.end()) return llvm::createStringError("--pipeline: the mesh has no axis '" + rule.axis + "'");
  if (m.mesh.form != MeshForm::Whole) return llvm::createStringError("--pipeline: the module is written per shard");
  if (rule.interleaved && !ofTraining)
    return llvm::createStringError("--pipeline: schedule=1f1b is of trainings, whose gradients it takes: with --train, "
                                   "or Lowered.with_training");
  if (rule.interleaved && !m.entry("main"))
    return llvm::createStringError("--pipeline: schedule=1f1b: the module has no entry main");
  if (at->size == 1)
    return llvm::createStringError("--pipeline: axis '" + rule.axis +
                                   "' of the mesh is one shard; a pipeline is of 2 or more: leave it out");
  return Pipelining(m, MeshAxes(1) << (at - m.mesh.axes.begin()), at->size, rule.microbatches).run(rule.interleaved);
}
