//===- Stack.cpp: the shards of one rank in one program ---------------------===//
// Takes:    a module in the form PerShard.
// Gives:    the form Stacked: vmap over the shards that a rank has, whose number is dim `shards`. A collective is a
//           call of a function whose name says what it does, `astra.mesh.OP/MESH/AXES/KIND`: of an engine that the
//           program opens.
// Keeps:    what is equal in all shards has no axis and is computed once. Calls have no effects, so that they may stand
//           in functions: all ranks run one schedule, and so come to the same calls in the same order.
#include "astra/Autograd/Vmap.h"
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/IR/External.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace astra;
using llvm::Error;
using llvm::Twine;
using List = llvm::SmallVector<UOpRef, 8>;

namespace {
class Stacking {
public:
  Stacking(Module &m, bool withFolds) : m(m), c(m.ctx()), b(c), mesh(m.mesh), withFolds(withFolds) {}

  Error run() {
    std::string name = "shards";
    while (llvm::any_of(m.dims, [&](UOpRef d) { return d->str == name; })) name += '_';
    count = b.dim(name, 1, mesh.shards());
    m.dims.push_back(count);
    for (Param &p : m.params)
      if (auto e = param(p)) return e;
    for (StateVar &s : m.states)
      if (auto e = state(s)) return e;
    for (Entry &e : m.entries)
      if (auto error = entry(e)) return error;
    if (!begin.updates.empty()) {
      if (m.entry(begin.name)) return llvm::createStringError("an entry is called " + begin.name + " already");
      m.entries.push_back(std::move(begin));
    }
    if (withFolds && !folds.empty())
      if (auto e = addFolds()) return e;
    m.mesh.form = MeshForm::Stacked;
    return Error::success();
  }

private:
  /// [count, shape]
  List stacked(Shape shape, UOpRef n) const {
    List all{n};
    all.append(shape.begin(), shape.end());
    return all;
  }
  UOpRef call(llvm::StringRef op, MeshAxes over, const Twine &kind, UOpRef x, Type result) {
    ExternalSpec s{true, false, false, {std::move(result)}};
    List src{x};
    llvm::append_range(src, extentsOf(s));
    std::string name = ("astra.mesh." + op + "/" + groupText(mesh, over) + "/" + kind).str();
    UOpRef made = c.make(Op::External, src, encode(s), name);
    List proj{made};
    proj.append(s.results[0].shape.begin(), s.results[0].shape.end());
    return c.make(Op::Proj, proj, {0}, {}, s.results[0].dtype);
  }
  UOpRef index(MeshAxes over) {
    List shape{count};
    return call("index", over, "", b.iota(DType::I64, shape, 0), {DType::I64, {count}});
  }
  /// What the first of the shards has, where all have the same.
  UOpRef first(UOpRef x) {
    List zeros(x->rank(), c.index(0)), size(x->shape.begin(), x->shape.end());
    size[0] = c.index(1);
    return b.reshape(b.shrink(x, zeros, size), x->shape.drop_front());
  }

  /// For each kind and type of what is folded an entry of two vectors: on a GPU engines fold by its kernels.
  Error addFolds() {
    std::string name = "folded";
    while (llvm::any_of(m.dims, [&](UOpRef d) { return d->str == name; })) name += '_';
    UOpRef n = b.dim(name, 1, mostFolded);
    m.dims.push_back(n);
    for (auto [kind, type] : folds) {
      static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
      Entry e{("mesh_" + llvm::StringRef(kinds[kind]) + "_" + info(type).text).str(), {}, {}, {}};
      if (m.entry(e.name)) return llvm::createStringError("an entry is called " + e.name + " already");
      UOpRef x = b.arg(0, type, {n}), y = b.arg(1, type, {n});
      e.inputs = {{"x", x, {}}, {"y", y, {}}};
      e.outputs = {{"z", b.bin(ops[kind], x, y), {}}};
      m.entries.push_back(std::move(e));
    }
    return Error::success();
  }
  void noteFold(UOpRef n) {
    DType t = n->dtype;
    if (isComplex(t)) t = t == DType::C64 ? DType::F32 : DType::F64; // sums, part by part
    folds.insert({n->ints[0], t});
  }

  std::pair<UOpRef, bool> collective(UOpRef n, UOpRef x) {
    MeshGroup g = llvm::cantFail(parseGroup(n->str));
    if (n->op == Op::AllReduce || n->op == Op::ReduceScatter) noteFold(n);
    bool isAll = g.size() == mesh.shards();
    MeshAxes over = isAll ? mesh.all() : g.over;
    Type t{n->dtype, {}};
    List local = stacked(n->shape, count);
    t.shape.append(local.begin(), local.end());
    switch (n->op) {
    case Op::RankIndex: return {index(over), true};
    case Op::AllReduce:
    case Op::AllGather: {
      bool reduces = n->op == Op::AllReduce, same = n->ints.back();
      if (isAll) t.shape.erase(t.shape.begin());
      std::string kind = reduces ? kinds[n->ints[0]] : "";
      if (isAll) kind += reduces ? ".one" : "one";
      UOpRef y = call(reduces ? "all_reduce" : "all_gather", over, kind, x, t);
      return {same && !isAll ? first(y) : y, !isAll && !same};
    }
    case Op::ReduceScatter: return {call("reduce_scatter", over, kinds[n->ints[0]], x, t), true};
    case Op::AllToAll: return {call("all_to_all", over, "", x, t), true};
    default: {
      std::string by = std::to_string(n->ints[0]);
      return {call("permute", over, (n->ints[0] < 0 ? "" : "+") + by + (n->ints[1] ? ".wrap" : ""), x, t), true};
    }
    }
  }

  /// The parts of all shards, one behind another.
  llvm::Expected<Bytes> parts(UOpRef local, const Sharding &s, const Bytes &whole) {
    Tensor t{local->dtype, {}, *whole};
    for (auto [d, a] : llvm::zip(local->shape, s.axes)) t.shape.push_back(*d->constIndex() * mesh.count(a));
    auto out = std::make_shared<std::vector<uint8_t>>();
    for (int64_t shard = 0; shard < mesh.shards(); ++shard) {
      auto part = shardOf(t, mesh, s, shard, "@" + local->str);
      if (!part) return part.takeError();
      llvm::append_range(*out, part->bytes);
    }
    return Bytes(std::move(out));
  }
  /// A parameter has the parts of all shards; a rank reads those of its own.
  Error param(Param &p) {
    if (p.sharding.isReplicated()) return Error::success();
    UOpRef local = p.value;
    if (p.data) {
      auto data = parts(local, p.sharding, p.data);
      if (!data) return data.takeError();
      p.data = *data;
      p.file.clear(), p.tensor.clear();
    }
    p.value = b.param(local->str, local->dtype, stacked(local->shape, c.index(mesh.shards())));
    leaves.push_back(local);
    images.push_back(b.gather(p.value, index(mesh.all()), 0));
    return Error::success();
  }
  Error state(StateVar &s) {
    if (s.sharding.isReplicated()) return Error::success();
    UOpRef local = s.value;
    s.value = b.state(local->str, local->dtype, stacked(local->shape, count));
    leaves.push_back(local);
    images.push_back(s.value);
    if (!s.initial || llvm::all_of(*s.initial, [](uint8_t v) { return v == 0; })) {
      s.initial = nullptr;
      return Error::success();
    }
    auto data = parts(local, s.sharding, s.initial);
    if (!data) return data.takeError();
    s.initial = nullptr;
    UOpRef all = b.param((local->str + ".begin").str(), local->dtype, stacked(local->shape, c.index(mesh.shards())));
    m.params.push_back({all, *data, {}, {}, ParamKind::Constant, {}});
    begin.updates.push_back({local->str.str(), b.gather(all, index(mesh.all()), 0)});
    return Error::success();
  }

  Error entry(Entry &e) {
    std::vector<UOpRef> from = leaves, to = images, roots;
    for (Value &v : e.inputs) {
      if (v.sharding.isReplicated()) continue;
      from.push_back(v.value);
      v.value = b.arg(v.value->ints[0], v.value->dtype, stacked(v.value->shape, count));
      to.push_back(v.value);
    }
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    CollectiveImage image = [this](UOpRef n, UOpRef x) { return collective(n, x); };
    auto r = vmapShards(c, roots, from, to, count, image, &m.origins);
    if (!r) return llvm::createStringError("entry @" + e.name + ": " + llvm::toString(r.takeError()));
    auto wanted = [&](size_t i, const Sharding &s) {
      UOpRef x = r->values[i];
      if (s.isReplicated() == !r->batched[i]) return x;
      if (s.isReplicated()) return first(x);
      return b.expand(b.reshape(x, stacked(x->shape, c.index(1))), stacked(x->shape, count));
    };
    size_t i = 0;
    for (Value &v : e.outputs) v.value = wanted(i++, v.sharding);
    for (StateUpdate &u : e.updates) u.value = wanted(i++, m.state(u.state)->sharding);
    return Error::success();
  }

  static constexpr const char *kinds[] = {"sum", "prod", "max", "min"};
  static constexpr int64_t mostFolded = 1 << 24; ///< elements; engines fold in pieces of 8 MiB

  Module &m;
  Context &c;
  Builder b;
  const Mesh &mesh;
  bool withFolds;
  std::set<std::pair<int64_t, DType>> folds; ///< kinds and types of what collectives fold
  UOpRef count = nullptr;
  std::vector<UOpRef> leaves, images; // of parameters and states
  Entry begin{"shards_init", {}, {}, {}};
};
} // namespace

Error astra::stackShards(Module &m, bool withFolds) {
  if (m.mesh.isEmpty() || m.mesh.form != MeshForm::PerShard) return Error::success();
  return Stacking(m, withFolds).run();
}

std::string astra::meshRecord(const Module &m) {
  if (m.mesh.isEmpty()) return "";
  std::string out = "mesh\t" + meshText(m.mesh) + "\n";
  auto line = [&](llvm::StringRef kind, const Sharding &s, const Twine &name) {
    if (!s.isReplicated()) out += (kind + "\t" + shardingList(m.mesh, s) + "\t" + name + "\n").str();
  };
  for (const StateVar &s : m.states) line("state", s.sharding, s.value->str);
  for (const Entry &e : m.entries) {
    for (const Value &v : e.inputs) line("input", v.sharding, e.name + "\t" + v.name);
    for (const Value &v : e.outputs) line("output", v.sharding, e.name + "\t" + v.name);
  }
  return out;
}
