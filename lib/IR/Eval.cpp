//===- Eval.cpp: walking a graph -------------------------------------------===//
// Takes:    roots and values for what is free in them.
// Gives:    their values, each node evaluated once, dropped after its last reader.
// Keeps:    no recursion over graphs; only functions within functions nest, 64 deep at most.
#include "EvalImpl.h"
#include "astra/IR/Text.h"
#include <array>

using namespace astra;
using namespace astra::eval;
using Values = Evaluator::Values;

// ---- tensors
int64_t Tensor::count() const { return product(shape); }

uint64_t astra::tensorBytes(DType t, llvm::ArrayRef<int64_t> shape) {
  if (byteSize(t)) return uint64_t(product(shape)) * byteSize(t);
  if (shape.empty()) return 1;
  return uint64_t(product(shape.drop_back())) * ((shape.back() * bitWidth(t) + 7) / 8);
}

Tensor eval::zeros(DType t, llvm::ArrayRef<int64_t> shape) {
  return {t, {shape.begin(), shape.end()}, std::vector<uint8_t>(uint64_t(product(shape)) * elementBytes(t))};
}

/// Calls f(byte, shift, element) for every element of a packed sub-byte tensor.
template <class F> static void eachPacked(const Tensor &t, F f) {
  uint64_t row = t.shape.empty() ? 1 : t.shape.back(), width = bitWidth(t.dtype), rowBytes = (row * width + 7) / 8;
  for (uint64_t i = 0, n = t.count(); i < n; ++i) f(i / row * rowBytes + i % row * width / 8, i % row * width % 8, i);
}
Tensor eval::packSubByte(const Tensor &t) {
  Tensor p{t.dtype, t.shape, std::vector<uint8_t>(tensorBytes(t.dtype, t.shape))};
  eachPacked(t, [&](uint64_t byte, unsigned shift, uint64_t i) { p.bytes[byte] |= t.bytes[i] << shift; });
  return p;
}
Tensor eval::unpackSubByte(const Tensor &t) {
  Tensor u = zeros(t.dtype, t.shape);
  uint8_t mask = (1u << bitWidth(t.dtype)) - 1;
  eachPacked(t, [&](uint64_t byte, unsigned shift, uint64_t i) { u.bytes[i] = t.bytes[byte] >> shift & mask; });
  return u;
}

void astra::canonicalizeNaN(Tensor &t) {
  DType part = partOf(t.dtype);
  if (!info(part).exponentBits || !byteSize(part)) return; // integers; f4e2m1 has no NaN
  unsigned w = byteSize(part);
  uint64_t canonical = canonicalNaN(part);
  for (size_t i = 0; i < t.bytes.size(); i += w) {
    uint64_t bits = 0;
    memcpy(&bits, &t.bytes[i], w);
    if (isNaN(part, bits)) memcpy(&t.bytes[i], &canonical, w);
  }
}

// ---- dims
static std::string found(const Tensor &t) {
  std::string s = info(t.dtype).text;
  for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? ", " : "[") + std::to_string(t.shape[i]);
  return t.shape.empty() ? s : s + "]";
}

llvm::Error Scope::bind(UOpRef dim, int64_t v, const llvm::Twine &where) {
  if (v < dim->lo || v > dim->hi)
    return llvm::createStringError(where + ": dim " + dim->str + " is " + llvm::Twine(v) + ", its bounds are " +
                                   llvm::Twine(dim->lo) + ".." + llvm::Twine(dim->hi));
  auto [it, isNew] = dims.try_emplace(dim->str, v);
  if (!isNew && it->second != v)
    return llvm::createStringError(where + ": dim " + dim->str + " is " + llvm::Twine(v) + " here and " +
                                   llvm::Twine(it->second) + " elsewhere");
  return llvm::Error::success();
}

llvm::Expected<int64_t> Scope::value(UOpRef root) {
  llvm::SmallVector<UOpRef, 8> stack{root};
  while (!stack.empty()) {
    UOpRef n = stack.back();
    if (known.count(n)) {
      stack.pop_back();
      continue;
    }
    int64_t r = 0;
    if (auto k = n->constIndex()) {
      r = *k;
    } else if (n->op == Op::Dim) {
      auto it = dims.find(n->str);
      if (it == dims.end())
        return llvm::createStringError("dim " + n->str + " is bound by no argument's shape; its value must be given");
      if (it->second < n->lo || it->second > n->hi)
        return llvm::createStringError("dim " + n->str + " is " + llvm::Twine(it->second) + ", its bounds are " +
                                       llvm::Twine(n->lo) + ".." + llvm::Twine(n->hi));
      r = it->second;
    } else if (n->src.size() == 2 && n->src[0]->isIndex() && n->src[1]->isIndex()) {
      bool ready = true;
      for (UOpRef s : n->src)
        if (!known.count(s)) ready = false, stack.push_back(s);
      if (!ready) continue;
      auto v = idxApply(n->op, known[n->src[0]], known[n->src[1]]);
      if (!v) return llvm::createStringError(indexText(n) + " overflows or divides by zero for these dims");
      r = *v;
    } else {
      return llvm::createStringError(indexText(n) + " has no value here");
    }
    known[n] = r;
    stack.pop_back();
  }
  return known[root];
}

llvm::Expected<Dims> Scope::values(llvm::ArrayRef<UOpRef> indices) {
  Dims r;
  for (UOpRef i : indices) {
    auto v = value(i);
    if (!v) return v.takeError();
    r.push_back(*v);
  }
  return r;
}

llvm::Error Evaluator::bindShape(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what) {
  if (t.dtype != node->dtype || t.shape.size() != node->rank())
    return llvm::createStringError(what + " is " + found(t) + ", expected " + typeText(node->dtype, node->shape));
  for (auto [d, v] : llvm::zip(node->shape, t.shape))
    if (d->op == Op::Dim)
      if (auto e = scope.bind(d, v, what)) return e;
  return llvm::Error::success();
}

llvm::Error Evaluator::bindMultiples(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what) {
  for (auto [extent, v] : llvm::zip(node->shape, t.shape)) {
    auto m = dimMultiple(extent);
    if (!m || scope.dims.contains(m->dim->str)) continue; // checkShape compares
    int64_t rest;
    if (__builtin_sub_overflow(v, m->offset, &rest) || rest % m->scale != 0)
      return llvm::createStringError(what + ": an extent is " + llvm::Twine(v) + ", which is not " + indexText(extent) +
                                     " for any " + m->dim->str);
    if (auto e = scope.bind(m->dim, rest / m->scale, what)) return e;
  }
  return llvm::Error::success();
}

llvm::Error Evaluator::checkShape(UOpRef node, const Tensor &t, Scope &scope, const llvm::Twine &what) {
  auto shape = scope.values(node->shape);
  if (!shape) return shape.takeError();
  if (t.dtype != node->dtype || llvm::ArrayRef(t.shape) != llvm::ArrayRef(*shape))
    return llvm::createStringError(what + " is " + found(t) + ", expected " + typeText(node->dtype, node->shape));
  return llvm::Error::success();
}

// ---- the walk
const Plan &Evaluator::planOf(UOpRef key, llvm::ArrayRef<UOpRef> roots) {
  auto &slot = plans[key];
  if (slot) return *slot;
  slot = std::make_unique<Plan>();
  slot->roots.assign(roots.begin(), roots.end());
  for (UOpRef n : topoSort(roots))
    if (!n->isIndex() || n->op == Op::Extent) {
      slot->at[n] = slot->order.size();
      slot->order.push_back(n);
    }
  slot->uses.resize(slot->order.size());
  for (UOpRef n : slot->order)
    for (UOpRef s : n->tensors()) ++slot->uses[slot->at[s]];
  for (UOpRef r : roots) ++slot->uses[slot->at[r]];
  return *slot;
}

llvm::Expected<TensorPtr> Evaluator::stored(UOpRef n, Scope &scope) {
  bool isParam = n->op == Op::Param;
  std::string what = (isParam ? "param %" : "state %") + n->str.str();
  TensorPtr &slot = storedByName[what];
  if (!slot) {
    const auto &map = isParam ? given.params : given.states;
    Bytes data;
    if (auto it = map.find(n->str.str()); it != map.end()) {
      slot = std::make_shared<Tensor>(it->second);
    } else {
      auto shape = scope.values(n->shape);
      if (!shape) return shape.takeError();
      const Param *p = isParam && module ? module->param(n->str) : nullptr;
      const StateVar *s = !isParam && module ? module->state(n->str) : nullptr;
      if (p) data = p->data;
      if (s) data = s->initial;
      if (!data && isParam) return llvm::createStringError(what + " has no data; it must be given");
      Tensor t{n->dtype, {shape->begin(), shape->end()}, {}};
      t.bytes = data ? *data : std::vector<uint8_t>(tensorBytes(t.dtype, t.shape));
      slot = std::make_shared<Tensor>(std::move(t));
    }
    auto checked = std::make_shared<Tensor>(*slot);
    slot = nullptr;
    if (auto e = checkBytes(*checked, what)) return std::move(e);
    if (!isParam) canonicalizeNaN(*checked);
    if (!byteSize(checked->dtype)) *checked = unpackSubByte(*checked);
    slot = checked;
  }
  if (auto e = checkShape(n, *slot, scope, what)) return std::move(e);
  return slot;
}

llvm::Error eval::checkBytes(const Tensor &t, const llvm::Twine &what) {
  for (int64_t d : t.shape)
    if (d < 0) return llvm::createStringError(what + " has a negative extent");
  if (t.bytes.size() != tensorBytes(t.dtype, t.shape))
    return llvm::createStringError(what + " is " + found(t) + " and has " + llvm::Twine(t.bytes.size()) +
                                   " bytes, expected " + llvm::Twine(tensorBytes(t.dtype, t.shape)));
  if (t.dtype == DType::Bool && llvm::any_of(t.bytes, [](uint8_t b) { return b > 1; }))
    return llvm::createStringError(what + " has a bool that is neither 0 nor 1");
  return llvm::Error::success();
}

// ---- what a node gives, from its evaluated parts
namespace astra::eval {
void opHasNoMeaning(); // not constexpr: reaching a call is the compile error
}
namespace {
using Meaning = Result (*)(const Call &);
Result ofFunctions(const Call &c) {
  return c.fail("a function has no meaning before the numerics stage has decomposed it");
}
Result ofKernels(const Call &c) { return c.fail("belongs to a kernel, not to a graph"); }
Result ofShards(const Call &c) { return c.fail("has a meaning among the shards of a module alone"); }
Result ofNothing(const Call &c) { return c.fail("is not evaluated by itself"); }

/// Of ops that their traits say nothing of.
constexpr struct {
  Op op;
  Meaning meaning;
} meanings[] = {
    {Op::Const, evalLeaf},          {Op::Iota, evalLeaf},
    {Op::FromIndex, evalLeaf},      {Op::Scale2, evalConversion},
    {Op::Cast, evalConversion},     {Op::Bitcast, evalConversion},
    {Op::Lookup16, evalConversion}, {Op::Complex, evalComplex},
    {Op::Real, evalComplex},        {Op::Reshape, evalMovement},
    {Op::Permute, evalMovement},    {Op::Expand, evalMovement},
    {Op::Pad, evalMovement},        {Op::Place, evalMovement},
    {Op::Shrink, evalMovement},     {Op::Flip, evalMovement},
    {Op::Window, evalMovement},     {Op::Imag, evalComplex},
    {Op::Words, evalMovement},      {Op::SliceAt, evalMovement},
    {Op::UpdateAt, evalMovement},   {Op::Detach, evalMovement},
    {Op::Tap, evalMovement},        {Op::After, evalMovement},
    {Op::Reduce, evalReduce},       {Op::WithGradient, evalMovement},
    {Op::Contract, evalContract},   {Op::ArgReduce, evalArgReduce},
    {Op::Cumulate, evalCumulate},   {Op::Gather, evalIndexing},
    {Op::Pick, evalIndexing},       {Op::Scatter, evalIndexing},
    {Op::Compact, evalIndexing},    {Op::Random, evalIndexing},
    {Op::ArgSort, evalArgSort},     {Op::Arg, ofNothing},
    {Op::Param, ofNothing},         {Op::State, ofNothing},
    {Op::Dim, ofNothing},           {Op::Extent, ofNothing},
    {Op::AllReduce, ofShards},      {Op::ReduceScatter, ofShards},
    {Op::AllGather, ofShards},      {Op::AllToAll, ofShards},
    {Op::Shift, ofShards},          {Op::RankIndex, ofShards},
    {Op::Reshard, evalMovement},
};
constexpr std::array<Meaning, numOps> meaningOf = [] {
  std::array<Meaning, numOps> table{};
  constexpr unsigned Kernel = KernelLevel;
  constexpr unsigned traits[] = {
#define OP(Name, mnemonic, sources, groups, Type, attributes, traits, meaning) traits,
#include "astra/IR/Ops.def"
#undef OP
  };
  for (unsigned i = 0; i < numOps; ++i)
    table[i] = traits[i] & KernelLevel   ? ofKernels
               : traits[i] & Control     ? ofNothing
               : traits[i] & Function    ? ofFunctions
               : traits[i] & Elementwise ? evalElementwise
                                         : nullptr;
  for (const auto &row : meanings) table[unsigned(row.op)] = row.meaning;
  for (Meaning m : table)
    if (!m) opHasNoMeaning();
  return table;
}();
} // namespace

static Result evalTable(const Call &c) { return meaningOf[unsigned(c.node->op)](c); }

Result eval::evalOp(const Call &c) {
  if (computesComplex(c)) return evalComplex(c);
  if (!has(c.node->op, Elementwise) || !c.in.empty()) return evalTable(c);
  llvm::SmallVector<Tensor, 2> scalars; // symbolic integers compared with each other
  for (int64_t v : c.indices) {
    scalars.push_back(zeros(DType::I64, {}));
    Native<int64_t>::store(scalars.back().bytes.data(), 0, v);
  }
  llvm::SmallVector<const Tensor *, 2> sources;
  for (const Tensor &t : scalars) sources.push_back(&t);
  return evalTable({c.node, sources, {}, c.shape});
}

llvm::Expected<Values> Evaluator::evalNode(UOpRef n, Scope &scope, llvm::ArrayRef<TensorPtr> args,
                                           llvm::ArrayRef<TensorPtr> in) {
  auto one = [](TensorPtr t) { return Values{std::move(t)}; };
  switch (n->op) {
  case Op::Arg:
    if (n->ints[0] >= int64_t(args.size()))
      return llvm::createStringError("argument " + llvm::Twine(n->ints[0]) + " of " + llvm::Twine(args.size()));
    return one(args[n->ints[0]]);
  case Op::Param:
  case Op::State: {
    auto t = stored(n, scope);
    if (!t) return t.takeError();
    return one(*t);
  }
  case Op::Extent: {
    int64_t v = Native<int64_t>::load(in[0]->bytes.data(), 0);
    if (v < n->lo || v > n->hi) {
      if (n->src[0]->op == Op::Tap) return llvm::createStringError(n->src[0]->str);
      return llvm::createStringError("extent: the value is " + llvm::Twine(v) + ", its bounds are " +
                                     llvm::Twine(n->lo) + ".." + llvm::Twine(n->hi));
    }
    scope.setExtent(n, v);
    return Values{};
  }
  case Op::Cond: return evalCond(n, scope, in);
  case Op::While: return evalWhile(n, scope, in);
  case Op::Scan: return evalScan(n, scope, in);
  case Op::Custom: return evalCustom(n, scope, in);
  case Op::External: return evalExternal(n, scope, in);
  default: break;
  }
  auto indices = scope.values(n->indices());
  if (!indices) return indices.takeError();
  auto shape = scope.values(n->shape);
  if (!shape) return shape.takeError();
  __int128 bytes = elementBytes(n->dtype);
  for (int64_t d : *shape) {
    if (d < 0) return llvm::createStringError("%s: an extent of its result is negative", info(n->op).mnemonic);
    bytes = std::min<__int128>(bytes * d, __int128(1) << 64);
  }
  if (bytes > (__int128(1) << 36))
    return llvm::createStringError("%s: its result exceeds 64 GiB", info(n->op).mnemonic);
  llvm::SmallVector<const Tensor *, 4> sources;
  for (const TensorPtr &t : in) sources.push_back(t.get());
  Call c{n, sources, *indices, *shape};
  if (has(n->op, Function) && options.function) {
    std::vector<Tensor> copies;
    for (const Tensor *t : sources) copies.push_back(*t);
    auto t = options.function(n, copies);
    if (!t) return t.takeError();
    return one(std::make_shared<Tensor>(std::move(*t)));
  }
  auto t = isCollective(n->op) && options.collective ? options.collective(n, sources.empty() ? Tensor() : *sources[0])
                                                     : evalOp(c);
  if (!t) return t.takeError();
  if (n->op == Op::Tap && options.tap) {
    Tensor kept = byteSize(t->dtype) ? *t : packSubByte(*t);
    canonicalizeNaN(kept);
    options.tap(n->str, kept);
  }
  return one(std::make_shared<Tensor>(std::move(*t)));
}

llvm::Expected<Values> Evaluator::run(UOpRef key, llvm::ArrayRef<UOpRef> roots, Scope &scope,
                                      llvm::ArrayRef<TensorPtr> args) {
  const Plan &plan = planOf(key, roots);
  for (auto step : {bindShape, bindMultiples, checkShape})
    for (UOpRef n : plan.order)
      if (n->op == Op::Arg && n->ints[0] < int64_t(args.size()))
        if (auto e = step(n, *args[n->ints[0]], scope, "argument " + llvm::Twine(n->ints[0]))) return std::move(e);
  std::vector<Values> values(plan.order.size());
  std::vector<uint32_t> left = plan.uses;
  Values in;
  for (size_t i = 0; i < plan.order.size(); ++i) {
    UOpRef n = plan.order[i];
    if (n->op == Op::Proj) {
      values[i] = {values[plan.at.lookup(n->src[0])][n->ints[0]]};
      if (auto e = checkShape(n, *values[i][0], scope, "result " + llvm::Twine(n->ints[0]) + " of a control op"))
        return std::move(e);
    } else {
      in.clear();
      for (UOpRef s : n->tensors()) in.push_back(values[plan.at.lookup(s)][0]);
      auto v = evalNode(n, scope, args, in);
      if (!v) return v.takeError();
      values[i] = std::move(*v);
    }
    for (UOpRef s : n->tensors())
      if (uint32_t at = plan.at.lookup(s); --left[at] == 0) values[at].clear();
  }
  Values results;
  for (UOpRef r : roots) results.push_back(values[plan.at.lookup(r)][0]);
  return results;
}

// ---- entry points
static llvm::Expected<Values> checkedInputs(const EvalInputs &in) {
  Values args;
  for (size_t i = 0; i < in.inputs.size(); ++i) {
    if (auto e = checkBytes(in.inputs[i], "input " + llvm::Twine(i))) return std::move(e);
    args.push_back(std::make_shared<Tensor>(byteSize(in.inputs[i].dtype) ? in.inputs[i] : unpackSubByte(in.inputs[i])));
  }
  return args;
}
static Tensor outside(const Tensor &t) { return byteSize(t.dtype) ? t : packSubByte(t); }

llvm::Expected<std::vector<Tensor>> astra::evalNodes(llvm::ArrayRef<UOpRef> roots, const EvalInputs &in,
                                                     const EvalOptions &options) {
  Evaluator ev(options, in, nullptr);
  Scope scope;
  for (auto &[name, v] : in.dims) scope.dims[name] = v;
  auto args = checkedInputs(in);
  if (!args) return args.takeError();
  auto values = ev.run(nullptr, roots, scope, *args);
  if (!values) return values.takeError();
  std::vector<Tensor> out;
  for (const TensorPtr &t : *values) out.push_back(outside(*t));
  return out;
}

llvm::Expected<EvalResult> astra::evalEntry(const Module &m, const Entry &e, const EvalInputs &in,
                                            const EvalOptions &options) {
  if (m.mesh.form == MeshForm::PerShard && !options.collective) return evalShards(m, e, in, options);
  Evaluator ev(options, in, &m);
  Scope scope;
  for (auto &[name, v] : in.dims) scope.dims[name] = v;
  if (in.inputs.size() != e.inputs.size())
    return llvm::createStringError("entry @%s takes %zu inputs, %zu are given", e.name.c_str(), e.inputs.size(),
                                   in.inputs.size());
  auto args = checkedInputs(in);
  if (!args) return args.takeError();
  for (auto step : {Evaluator::bindShape, Evaluator::bindMultiples, Evaluator::checkShape})
    for (auto [v, t] : llvm::zip(e.inputs, *args))
      if (auto err = step(v.value, *t, scope, "input %" + v.name)) return std::move(err);
  for (const EntryEquation &q : m.equationsOf(e)) {
    auto l = scope.value(q.left), r = scope.value(q.right);
    if (!l) return l.takeError();
    if (!r) return r.takeError();
    if (*l != *r)
      return llvm::createStringError("the module states " + indexText(m.equations[q.number].left) +
                                     " == " + indexText(m.equations[q.number].right) + "; here the left side is " +
                                     llvm::Twine(*l) + " and the right side " + llvm::Twine(*r));
  }
  std::vector<UOpRef> roots;
  for (const Value &v : e.outputs) roots.push_back(v.value);
  for (const StateUpdate &u : e.updates) roots.push_back(u.value);
  auto values = ev.run(nullptr, roots, scope, *args);
  if (!values) return values.takeError();
  EvalResult result;
  for (const TensorPtr &t : llvm::ArrayRef(*values).take_front(e.outputs.size())) {
    result.outputs.push_back(outside(*t));
    canonicalizeNaN(result.outputs.back());
  }
  for (const StateVar &s : m.states) {
    auto t = ev.stored(s.value, scope);
    if (!t) return t.takeError();
    result.states[s.value->str.str()] = outside(**t);
  }
  for (auto [u, t] : llvm::zip(e.updates, llvm::ArrayRef(*values).drop_front(e.outputs.size()))) {
    const StateVar *s = m.state(u.state);
    if (!s) return llvm::createStringError("the module has no state %%%s", u.state.c_str());
    if (auto err = Evaluator::checkShape(s->value, *t, scope, "the new value of state %" + u.state))
      return std::move(err);
    canonicalizeNaN(result.states[u.state] = outside(*t));
  }
  return result;
}

llvm::Expected<uint64_t> astra::foldElementwise(Op op, llvm::ArrayRef<int64_t> ints, DType result,
                                                llvm::ArrayRef<std::pair<DType, uint64_t>> sources) {
  if (isComplex(result) || llvm::any_of(sources, [](auto s) { return isComplex(s.first); }))
    return llvm::createStringError("a complex value is no literal");
  UOp node{};
  node.op = op;
  node.dtype = result;
  node.ints = ints;
  std::vector<Tensor> values;
  for (auto [t, bits] : sources) {
    values.push_back(zeros(t, {}));
    memcpy(values.back().bytes.data(), &bits, elementBytes(t));
  }
  llvm::SmallVector<const Tensor *, 3> in;
  for (const Tensor &t : values) in.push_back(&t);
  auto out = evalOp({&node, in, {}, {}});
  if (!out) return out.takeError();
  canonicalizeNaN(*out);
  uint64_t bits = 0;
  memcpy(&bits, out->bytes.data(), elementBytes(result));
  return bits;
}
