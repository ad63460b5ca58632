//===- Annotate.cpp: shardings by patterns of names -------------------------===//
// Takes:    a mesh, and rules of a command line.
// Gives:    the module with them: parameters, states, inputs and outputs have shardings, taps a reshard behind them.
// Does not: decide whether shardings agree (Partition.cpp).
#include "astra/Distribute/Distribute.h"
#include "astra/IR/ShardingRule.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/GlobPattern.h"

using namespace astra;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {
constexpr size_t mostAlternatives = 64; // of braces in a pattern: *.{mean,squares}

/// What is wrong with the braces of a pattern, with the character, or "".
std::string oddBraces(StringRef pattern) {
  size_t begin = StringRef::npos, commas = 0;
  auto at = [](size_t i, const char *what) { return ("at character " + Twine(i + 1) + " " + what).str(); };
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '[') {
      i = std::min(pattern.find(']', i + 2), pattern.size());
    } else if (pattern[i] == '{') {
      if (begin != StringRef::npos) return at(i, "there is { within braces");
      begin = i, commas = 0;
    } else if (pattern[i] == '}') {
      if (begin == StringRef::npos) return at(i, "there is } without {");
      if (!commas) return at(begin, "braces name one thing; they name several, with commas");
      begin = StringRef::npos;
    } else {
      commas += pattern[i] == ',';
    }
  }
  return begin == StringRef::npos ? "" : at(begin, "there is { without }");
}

struct Rule {
  const ShardRule &given;
  llvm::GlobPattern pattern;
  bool isUsed = false;
};

struct Annotation {
  const Mesh &mesh;
  std::vector<Rule> rules = {};

  Error wrong(const ShardRule &r, const Twine &what) const {
    return llvm::createStringError("--shard '" + r.pattern + "=" + r.sharding + "': " + what);
  }
  Error read(llvm::ArrayRef<ShardRule> given) {
    for (const ShardRule &r : given) {
      if (std::string odd = oddBraces(r.pattern); !odd.empty()) return wrong(r, "this is no pattern: " + odd);
      auto pattern = llvm::GlobPattern::create(r.pattern, mostAlternatives);
      if (!pattern) return wrong(r, "this is no pattern: " + llvm::toString(pattern.takeError()));
      rules.push_back({r, *pattern});
    }
    return Error::success();
  }
  Rule *ruleOf(StringRef name) {
    for (Rule &r : rules)
      if (r.pattern.match(name)) {
        r.isUsed = true;
        return &r;
      }
    return nullptr;
  }
  /// x, called `name`, with what a rule says of it.
  Error annotate(StringRef name, UOpRef x, Sharding &to, bool isStored) {
    Rule *r = ruleOf(name);
    if (!r) return Error::success();
    auto sharding = shardingFor(mesh, r->given.sharding, x->shape);
    if (!sharding) return wrong(r->given, llvm::toString(sharding.takeError()));
    if (sharding->axes.size() != x->rank())
      return wrong(r->given, "'" + name + "' is " + typeText(x->dtype, x->shape) + ", of rank " + Twine(x->rank()) +
                                 ", and this is of rank " + Twine(sharding->axes.size()));
    if (sharding->gathered && !isStored)
      return wrong(r->given,
                   "'" + name + "' is neither a parameter nor a state: those alone are stored cut and read whole");
    for (unsigned i = 0; i < x->rank(); ++i)
      if (auto n = x->shape[i]->constIndex(); n && *n % mesh.count(sharding->axes[i]))
        return wrong(r->given, "axis " + Twine(i) + " of '" + name + "' has an extent of " + Twine(*n) + ", which " +
                                   Twine(mesh.count(sharding->axes[i])) + " shards do not divide");
    to = std::move(*sharding);
    return Error::success();
  }
};
} // namespace

Error astra::annotate(Module &m, const Mesh &mesh, llvm::ArrayRef<ShardRule> rules) {
  if (!m.mesh.isEmpty() && m.mesh.axes != mesh.axes)
    return llvm::createStringError("--mesh=" + meshText(mesh) + ": the module has the mesh " + meshText(m.mesh));
  if (m.mesh.isEmpty()) m.mesh = mesh;
  if (m.mesh.form != MeshForm::Whole && !rules.empty())
    return llvm::createStringError("--shard: the module is written per shard, its shardings stand in its text");
  Annotation a{m.mesh};
  if (Error e = a.read(rules)) return e;
  for (Param &p : m.params)
    if (Error e = a.annotate(p.value->str, p.value, p.sharding, true)) return e;
  for (StateVar &s : m.states)
    if (Error e = a.annotate(s.value->str, s.value, s.sharding, true)) return e;
  for (Entry &e : m.entries)
    for (auto *values : {&e.inputs, &e.outputs})
      for (Value &v : *values)
        if (Error error = a.annotate(v.name, v.value, v.sharding, false)) return error;
  Error failed = Error::success();
  bool hasFailed = false;
  mapValues(m, [&](UOpRef x) {
    if (!x->is(Op::Tap) || hasFailed) return x;
    Sharding s;
    if (Error e = a.annotate(x->str, x, s, false)) {
      failed = llvm::joinErrors(std::move(failed), std::move(e));
      hasFailed = true;
    }
    return s.isDeclared() ? m.ctx().make(Op::Reshard, {x}, {}, shardingText(m.mesh, s)) : x;
  });
  if (hasFailed) return failed;
  llvm::consumeError(std::move(failed));
  for (const Rule &r : a.rules)
    if (!r.isUsed)
      return a.wrong(r.given, "no parameter, state, input, output or named value matches, or a rule before it does");
  return Error::success();
}
