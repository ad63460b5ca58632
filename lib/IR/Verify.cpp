//===- Verify.cpp: rules for modules, entries and functions ----------------===//
// Takes:    a module whose nodes have passed their type rules.
// Gives:    nothing, or the first rule broken, with the entry or function, the op and where it came from.
// Keeps:    time linear in the graph; functions are visited once, callees first.
#include "astra/IR/Verify.h"
#include "VerifyNode.h"
#include "astra/IR/Eval.h"
#include "astra/IR/External.h"
#include "astra/IR/Index.h"
#include "astra/IR/ShardingRule.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace astra;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {
constexpr unsigned deepestControl = 16; // programs of a bundle nest as deep

class Verifier {
public:
  Verifier(const Module &m, Stage stage) : m(m), stage(stage) {}

  Error run() {
    if (auto e = declarations()) return e;
    for (UOpRef f : functions())
      if (auto e = function(f)) return e;
    for (const Entry &e : m.entries)
      if (auto error = entry(e)) return error;
    return Error::success();
  }

private:
  Error fail(const Twine &what) const { return llvm::createStringError(where + what); }
  Error fail(UOpRef n, const Twine &what) const { return fail("at " + verifier::placeOf(n, &m.origins) + ": " + what); }
  static std::string typeOf(UOpRef n) { return typeText(n->dtype, n->shape); }
  static bool sameType(UOpRef a, UOpRef b) { return a->dtype == b->dtype && a->shape == b->shape; }

  // ---- the module's declarations
  /// That a sharding says something of each axis, and cuts into equal parts. A stacked tensor has the axis of shards in
  /// front, of which nothing is said.
  Error sharding(const Sharding &s, UOpRef value, const Twine &what) {
    if (!s.isDeclared()) return Error::success();
    if (m.mesh.isEmpty()) return fail(what + " is sharded, and the module has no mesh");
    bool isStacked = m.mesh.form == MeshForm::Stacked && !s.isReplicated();
    size_t rank = value->rank() - (isStacked && value->rank());
    if (s.axes.size() != rank)
      return fail(what + " is " + typeOf(value) + ", its sharding " + shardingText(m.mesh, s) + " is of rank " +
                  Twine(s.axes.size()));
    MeshAxes used = 0;
    for (size_t i = 0; i < s.axes.size(); ++i) {
      if (s.axes[i] & ~m.mesh.all()) return fail(what + " is cut by an axis that the mesh does not have");
      if (s.axes[i] & used) return fail(what + ": an axis of the mesh cuts two of its axes");
      used |= s.axes[i];
      int64_t n = m.mesh.count(s.axes[i]);
      auto extent = value->shape[i]->constIndex();
      if (m.mesh.form == MeshForm::Whole && extent && *extent % n)
        return fail(what + ": axis " + Twine(i) + " has an extent of " + Twine(*extent) + ", which the " + Twine(n) +
                    " shards of " + shardingText(m.mesh, s) + " do not divide");
    }
    return Error::success();
  }
  /// What stands between shards.
  Error collective(UOpRef n) {
    if (n->is(Op::Reshard)) {
      if (m.mesh.isEmpty()) return Error::success(); // it changes nothing there
      if (m.mesh.form != MeshForm::Whole) return fail(n, "it is of modules of whole tensors");
      auto s = shardingFor(m.mesh, n->str, n->shape);
      if (!s) return fail(n, llvm::toString(s.takeError()));
      return sharding(*s, n, "its value");
    }
    if (!isCollective(n->op)) return Error::success();
    if (m.mesh.form != MeshForm::PerShard || m.mesh.isEmpty())
      return fail(n, "it exchanges values between shards: it is of modules that are written per shard (mesh @m { ... } "
                     "per_shard)");
    if (llvm::cantFail(parseGroup(n->str)).mesh.axes != m.mesh.axes)
      return fail(n, "group=\"" + n->str + "\" is of another mesh than the module's, " + meshText(m.mesh));
    return Error::success();
  }
  Error data(UOpRef value, const Sharding &s, const Bytes &bytes) {
    if (!bytes) return Error::success();
    llvm::SmallVector<int64_t, 6> shape;
    for (UOpRef d : value->shape) {
      if (!d->constIndex()) return fail("@" + value->str + " has data and a symbolic shape");
      shape.push_back(*d->constIndex());
      if (m.mesh.form == MeshForm::PerShard && shape.size() <= s.axes.size())
        shape.back() *= m.mesh.count(s.axes[shape.size() - 1]);
    }
    if (uint64_t expected = tensorBytes(value->dtype, shape); bytes->size() != expected)
      return fail("@" + value->str + " has " + Twine(bytes->size()) + " bytes of data, expected " + Twine(expected));
    if (value->dtype == DType::Bool && llvm::any_of(*bytes, [](uint8_t b) { return b > 1; }))
      return fail("@" + value->str + " holds a bool that is neither 0 nor 1");
    return Error::success();
  }
  Error declarations() {
    llvm::StringSet<> names;
    for (UOpRef d : m.dims) {
      if (d->op != Op::Dim) return fail("a dim is declared by " + Twine(info(d->op).mnemonic));
      if (!names.insert(d->str).second) return fail("two dims are called " + d->str);
      globals.insert(d);
    }
    names.clear();
    if (!m.mesh.isEmpty())
      if (std::string why = checkMesh(m.mesh); !why.empty()) return fail(why);
    auto global = [&](UOpRef value, Op op, const Sharding &s, const Bytes &bytes) {
      if (value->op != op) return fail(Twine("a ") + info(op).mnemonic + " is declared by " + info(value->op).mnemonic);
      if (!names.insert(value->str).second) return fail("two parameters or states are called @" + value->str);
      globals.insert(value);
      if (auto e = undeclaredDim(value)) return e;
      if (auto e = sharding(s, value, "@" + value->str)) return e;
      return data(value, s, bytes);
    };
    for (const Param &p : m.params)
      if (auto e = global(p.value, Op::Param, p.sharding, p.data)) return e;
    for (const StateVar &s : m.states) {
      if (auto e = global(s.value, Op::State, s.sharding, s.initial)) return e;
      states[s.value->str] = s.value;
    }
    for (const Equation &e : m.equations)
      for (UOpRef side : {e.left, e.right})
        for (UOpRef n : topoSort(side))
          if (!n->isIndex() || n->op == Op::Extent || (n->op == Op::Dim && !globals.count(n)))
            return fail("an equation uses something else than declared dims");
    names.clear();
    for (const Entry &e : m.entries)
      if (!names.insert(e.name).second) return fail("two entries are called @" + e.name);
    for (const Directive &d : m.directives) {
      if (!names.insert(d.name).second) return fail("two entries are called @" + d.name);
      if (stage != Stage::Graph)
        return fail(Twine(transformName(d.transform)) + " @" + d.name +
                    " is left after the numerics stage, where functions are arithmetic that is not differentiated: ask "
                    "for it in the text from before that stage (the pass grad makes the entry)");
    }
    return Error::success();
  }
  Error undeclaredDim(UOpRef value) {
    for (UOpRef n : topoSort(value))
      if (n->op == Op::Dim && !globals.count(n)) return fail("dim " + n->str + " is not declared");
    return Error::success();
  }

  // ---- bodies
  std::vector<UOpRef> functions() const {
    std::vector<UOpRef> found;
    llvm::DenseSet<UOpRef> seen;
    auto scan = [&](llvm::ArrayRef<UOpRef> roots) {
      for (UOpRef n : topoSort(roots))
        for (UOpRef f : n->fns)
          if (seen.insert(f).second) found.push_back(f);
    };
    scan(m.roots());
    for (size_t i = 0; i < found.size(); ++i) scan(found[i]);
    llvm::sort(found, [](UOpRef a, UOpRef b) { return a->id < b->id; }); // callees are made before their callers
    return found;
  }
  struct Signature {
    std::vector<UOpRef> args;          // null where it is not used
    llvm::SmallVector<UOpRef, 2> dims; // that neither the module nor a while inside declares
    unsigned depth = 0;
  };

  /// What its type rule took as a fact must be one of this module (Context::equations).
  Error reshape(UOpRef n) const {
    Context &c = m.ctx();
    if (n->op != Op::Reshape || c.equations.empty() ||
        idxAreEqual(c, idxProduct(c, n->shape), idxProduct(c, n->src[0]->shape), m.equations))
      return Error::success();
    return fail(n, "reshape: from " + typeOf(n->src[0]) + " to " + typeOf(n) +
                       ": that the numbers of elements are equal does not follow from the module's equations");
  }

  /// Checks the nodes of a body and the calls in it; collects its arguments, free dims and depth.
  Error body(llvm::ArrayRef<UOpRef> roots, Signature &s) {
    auto use = [&](UOpRef dim) {
      if (!globals.count(dim) && !llvm::is_contained(s.dims, dim)) s.dims.push_back(dim);
    };
    for (UOpRef n : topoSort(roots)) {
      for (UOpRef s : n->tensors())
        if (s->op == Op::Place) return fail(s, "a place is what a kernel's program stores, no value that is read");
      if (n->op != Op::Custom)
        for (UOpRef f : n->fns)
          for (UOpRef r : f->src)
            if (r->op == Op::Place) return fail(n, "a function that stores by a place is for custom");
      if (auto rule = verifier::brokenRule(n, stage)) return fail(n, *rule);
      if (auto e = reshape(n)) return e;
      if (auto e = collective(n)) return e;
      if (n->op == Op::Dim) use(n);
      if (n->op == Op::Func) return fail(n, "a function stands among values");
      if (n->op == Op::Arg) {
        if (size_t(n->ints[0]) >= s.args.size())
          return fail("argument " + Twine(n->ints[0]) + " is used, there are " + Twine(s.args.size()));
        UOpRef &slot = s.args[n->ints[0]];
        if (slot && slot != n)
          return fail("argument " + Twine(n->ints[0]) + " is used as " + typeOf(slot) + " and as " + typeOf(n));
        slot = n;
      }
      for (UOpRef f : n->fns) {
        const Signature &callee = signatures.find(f)->second;
        s.depth = std::max(s.depth, callee.depth + 1);
        if (s.depth > deepestControl) return fail(n, "control is nested more than " + Twine(deepestControl) + " deep");
        llvm::SmallVector<StringRef, 2> carried;
        if (n->op == Op::While || n->op == Op::Custom) n->str.split(carried, ',', -1, false);
        for (StringRef name : carried)
          if (llvm::any_of(m.dims, [&](UOpRef d) { return d->str == name; }))
            return fail(n, "dim " + name + " is the module's: a " + info(n->op).mnemonic + " has dims of its own");
        if (n->op == Op::Custom)
          if (auto e = grid(n, carried, callee)) return e;
        for (UOpRef d : callee.dims)
          if (!llvm::is_contained(carried, d->str)) use(d);
      }
      if (auto e = call(n)) return e;
    }
    return Error::success();
  }

  /// What a custom kernel's function says of its grid's dims, and what its scatters begin with.
  Error grid(UOpRef n, llvm::ArrayRef<StringRef> names, const Signature &callee) {
    auto axisOf = [&](UOpRef d) { return size_t(llvm::find(names, d->str) - names.begin()); };
    for (UOpRef d : callee.dims)
      if (size_t axis = axisOf(d); axis < names.size())
        if (int64_t last = std::max<int64_t>(0, n->indices()[axis]->hi - 1); d->lo != 0 || d->hi != last)
          return fail(n, "dim " + d->str + " of the grid is in " + Twine(d->lo) + ".." + Twine(d->hi) +
                             " in the function, its extent says 0.." + Twine(last));
    for (UOpRef r : n->fns[0]->src)
      for (UOpRef x : topoSort(r->op == Op::Scatter ? Shape(r->src[0]) : r->shape))
        if (x->op == Op::Dim && axisOf(x) < names.size())
          return fail(n, "what programs store into depends on dim " + x->str + " of the grid: it is one for all");
    return Error::success();
  }

  /// The arguments that an op gives to its functions.
  Error call(UOpRef n) {
    for (UOpRef f : n->fns) {
      const Signature &callee = signatures.find(f)->second;
      for (size_t i = 0; i < callee.args.size(); ++i) {
        UOpRef arg = callee.args[i], given = n->src[n->op == Op::Cond ? i + 1
                                                    : i < n->ntensors ? i
                                                                      : 0]; // a cotangent is as its result is
        if (!arg) continue;
        auto wrong = [&](const Twine &expected) {
          return fail(n, "argument " + Twine(i) + " of a function is " + typeOf(arg) + ", given " + typeOf(given) +
                             expected);
        };
        if ((n->op == Op::Cond || n->op == Op::WithGradient || n->op == Op::Custom) && !sameType(arg, given))
          return wrong("");
        if (n->op == Op::Scan) {
          bool slice = int64_t(i) >= n->ints[0] && int64_t(i) < n->ints[0] + n->ints[1];
          if (arg->dtype != given->dtype || arg->shape != given->shape.drop_front(slice))
            return wrong(slice ? ", of which it takes slices" : "");
        }
        if (n->op == Op::While)
          if (auto e = carriedArgument(n, arg, given, i)) return e;
      }
    }
    return Error::success();
  }
  Error carriedArgument(UOpRef n, UOpRef arg, UOpRef given, size_t i) {
    llvm::SmallVector<StringRef, 2> names;
    n->str.split(names, ',', -1, false);
    UOpRef next = n->fns.back()->src[i];
    bool fits = arg->dtype == given->dtype && arg->rank() == given->rank();
    for (size_t axis = 0; fits && axis < arg->rank(); ++axis) {
      llvm::SmallVector<UOpRef, 2> dims, starts;
      for (UOpRef d : topoSort(arg->shape[axis]))
        if (auto at = llvm::find(names, d->str); d->op == Op::Dim && at != names.end() && !globals.count(d))
          dims.push_back(d), starts.push_back(n->indices()[at - names.begin()]);
      fits = idxSubstitute(*m.context, arg->shape[axis], dims, starts) == given->shape[axis] &&
             (!dims.empty() || next->shape[axis] == arg->shape[axis]);
    }
    if (fits) return Error::success();
    return fail(n, "carried value " + Twine(i) + " is " + typeOf(arg) + " in the body, begins as " + typeOf(given) +
                       " and goes on as " + typeOf(next));
  }

  Error function(UOpRef f) {
    where = "in a function: ";
    Signature s;
    s.args.resize(f->ints[0]);
    for (UOpRef r : f->src)
      if (r->dtype == DType::Void || r->isIndex()) return fail(r, "a function gives something that is not a tensor");
    if (auto e = body(f->src, s)) return e;
    for (UOpRef n : topoSort(f->src))
      if (n->op == Op::Param || n->op == Op::State)
        return fail("@" + n->str + " is used: a function sees only its arguments");
      else if (n->op == Op::External && externalOf(n).effects)
        return fail(n,
                    "'" + n->str + "' has effects: a call with effects stands in an entry, where calls have an order");
    signatures[f] = std::move(s);
    where.clear();
    return Error::success();
  }

  Error entry(const Entry &e) {
    where = "entry @" + e.name + ": ";
    Signature s;
    s.args.resize(e.inputs.size());
    llvm::StringMap<UOpRef> names;
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      UOpRef v = e.inputs[i].value;
      if (v->op != Op::Arg || v->ints[0] != int64_t(i))
        return fail("input " + e.inputs[i].name + " is not argument " + Twine(i));
      if (!names.try_emplace(e.inputs[i].name, v).second) return fail("two inputs are called %" + e.inputs[i].name);
      s.args[i] = v;
      if (auto error = sharding(e.inputs[i].sharding, v, "input %" + e.inputs[i].name)) return error;
    }
    llvm::StringSet<> seen;
    std::vector<UOpRef> roots;
    for (const Value &v : e.outputs) {
      if (v.value->dtype == DType::Void || v.value->isIndex()) return fail("output " + v.name + " is not a tensor");
      if (v.value->op == Op::Place) return fail("output " + v.name + " is a place: what a kernel's program stores");
      if (auto error = sharding(v.sharding, v.value, "output %" + v.name)) return error;
      if (!seen.insert(v.name).second) return fail("two outputs are called %" + v.name);
      if (auto it = names.find(v.name); it != names.end() && it->second != v.value)
        return fail("output %" + v.name + " has the name of an input and is another value");
      roots.push_back(v.value);
    }
    seen.clear();
    for (const StateUpdate &u : e.updates) {
      UOpRef state = states.lookup(u.state);
      if (!state) return fail("@" + u.state + " is set and is no state of the module");
      if (!seen.insert(u.state).second) return fail("@" + u.state + " is set twice");
      if (!sameType(u.value, state))
        return fail("@" + u.state + " is " + typeOf(state) + " and is set to " + typeOf(u.value));
      roots.push_back(u.value);
    }
    for (const Value &v : e.inputs) roots.push_back(v.value);
    if (auto error = body(roots, s)) return error;
    if (!s.dims.empty()) return fail("dim " + s.dims[0]->str + " is not declared");
    llvm::DenseSet<UOpRef> before; // calls with effects that another one comes after; null: one is the first
    for (UOpRef n : topoSort(roots)) {
      if ((n->op == Op::Param || n->op == Op::State) && !globals.count(n))
        return fail("@" + n->str + " is not declared");
      if (n->op == Op::External && externalOf(n).effects && !before.insert(callBefore(n)).second)
        return fail(n, "two calls with effects have no order: behind the operands of the later one, '" + n->str +
                           "' or the other, stands the call that comes before it");
    }
    where.clear();
    return Error::success();
  }

  const Module &m;
  Stage stage;
  std::string where;
  llvm::DenseSet<UOpRef> globals;
  llvm::StringMap<UOpRef> states;
  llvm::DenseMap<UOpRef, Signature> signatures;
};
} // namespace

Error astra::verify(const Module &m, Stage stage) { return Verifier(m, stage).run(); }
