//===- WrittenKernels.cpp: parts of a graph as kernels of the kernel language -===//
// Takes:    see WrittenKernels.h; the table that kernels-gen/kernels_table.py writes.
// Gives:    the pass `kernels`: the largest parts first, so that none is computed twice.
// Keeps:    linear time in the nodes of the module, for each form of a kernel.
#include "astra/Schedule/WrittenKernels.h"
#include "KernelPattern.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

static constexpr WrittenKernel table[] = {
#include "WrittenKernels.inc"
};

ArrayRef<WrittenKernel> astra::writtenKernels() { return table; }

llvm::Expected<std::vector<std::string>> astra::kernelNames(StringRef text) {
  std::vector<std::string> known, out;
  for (const WrittenKernel &k : table) known.push_back(k.name);
  if (text == "all") return known;
  SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    if (!llvm::is_contained(known, name))
      return llvm::createStringError("'" + name + "' is not one of " + llvm::join(known, ", ") + ", all");
    if (llvm::is_contained(out, name)) return llvm::createStringError("'" + name + "' is given twice");
    out.push_back(name.str());
  }
  return out;
}

namespace {

/// One form of a kernel.
struct Form {
  const WrittenKernel *kernel;
  UOpRef ops, result; // over the same arguments
};

/// The part of a module that a form stands for.
struct Found {
  const Form *form;
  PatternMatch match;
};

class Pass {
public:
  Pass(Module &m, ArrayRef<std::string> names) : m(m), b(m.ctx()), order(topoSort(m.roots())) {
    for (const WrittenKernel &k : table)
      if (llvm::is_contained(names, k.name)) read(k);
    for (UOpRef n : order)
      for (UOpRef s : n->src) users[s].push_back(n);
    for (UOpRef r : m.roots()) users[r].push_back(nullptr);
  }

  std::vector<KernelUse> run() {
    findAll();
    keepLargest();
    replace();
    std::vector<KernelUse> out;
    for (const WrittenKernel &k : table) {
      auto places = llvm::count_if(found, [&](auto &f) { return f.second.form->kernel == &k; });
      if (places) out.push_back({k.name, unsigned(places)});
    }
    return out;
  }

private:
  Module &m;
  Builder b;
  std::vector<UOpRef> order;
  llvm::DenseMap<UOpRef, SmallVector<UOpRef, 2>> users; // null: the entry's own
  std::vector<std::shared_ptr<Context>> contexts;       // of the forms
  std::vector<Form> forms;
  llvm::DenseMap<UOpRef, Found> found; // by root

  void read(const WrittenKernel &k) {
    Module text = llvm::cantFail(parse(k.text, k.name), "the table of kernels");
    for (const Entry &e : text.entries)
      if (const Entry *kernel = text.entry(e.name + ".kernel"))
        forms.push_back({&k, e.outputs[0].value, kernel->outputs[0].value});
    contexts.push_back(text.context);
  }

  /// Whether all that reads a part's inner values is in the part.
  bool isClosed(const PatternMatch &match, UOpRef root) {
    llvm::DenseSet<UOpRef> part(match.inner.begin(), match.inner.end());
    part.insert(root);
    return llvm::all_of(match.inner, [&](UOpRef x) {
      return llvm::all_of(users.lookup(x), [&](UOpRef user) { return part.contains(user); });
    });
  }

  /// Of several forms that end in one node, that which computes the most.
  void findAll() {
    for (UOpRef n : order)
      for (const Form &f : forms) {
        if (n->op != f.ops->op || n->dtype != f.ops->dtype || n->rank() != f.ops->rank()) continue;
        std::optional<PatternMatch> match = matchPattern(b, f.ops, n);
        if (!match || !isClosed(*match, n) || !instantiate(b, f.result, match->leaves)) continue;
        auto [it, fresh] = found.try_emplace(n, Found{&f, *match});
        if (!fresh && match->inner.size() > it->second.match.inner.size()) it->second = {&f, std::move(*match)};
      }
  }

  /// A part of a part is left to the larger one.
  void keepLargest() {
    for (UOpRef n : llvm::reverse(order)) {
      auto it = found.find(n);
      if (it == found.end()) continue;
      for (UOpRef x : it->second.match.inner) found.erase(x);
    }
  }

  /// A kernel's result, which may be shaped anew, in place of the part that it stands for.
  UOpRef built(const Found &f, const Bindings &now) {
    Bindings leaves;
    for (auto [leaf, x] : f.match.leaves) leaves[leaf] = x->isIndex() ? x : now.lookup(x);
    UOpRef result = instantiate(b, f.form->result, std::move(leaves));
    SmallVector<UOpRef, 2> shaped;
    for (; result->op == Op::Reshape; result = result->src[0]) shaped.push_back(result);
    UOpRef out = resultOfCustom(readingInPlace(b, result->src[0]), result);
    for (UOpRef r : llvm::reverse(shaped)) out = b.reshape(out, r->shape);
    return out;
  }
  UOpRef resultOfCustom(UOpRef custom, UOpRef proj) {
    SmallVector<UOpRef, 8> src(proj->src);
    src[0] = custom;
    return b.c.withSources(proj, src);
  }

  /// A result that nothing but a cast reads is stored as that.
  UOpRef castInPlace(UOpRef cast, UOpRef x) {
    UOpRef proj = x->op == Op::Reshape ? x->src[0] : x;
    if (proj->op != Op::Proj || proj->src[0]->op != Op::Custom) return nullptr;
    UOpRef stored = storedAs(b, proj, cast->dtype);
    return stored ? b.reshape(stored, cast->shape) : nullptr;
  }

  void replace() {
    if (found.empty()) return;
    Bindings now;
    for (UOpRef n : order) {
      SmallVector<UOpRef, 8> src;
      for (UOpRef s : n->src) src.push_back(now.lookup(s));
      auto it = found.find(n);
      UOpRef to = nullptr;
      if (it != found.end())
        to = built(it->second, now);
      else if (n->op == Op::Cast && found.contains(n->src[0]) && users.lookup(n->src[0]).size() == 1)
        to = castInPlace(n, src[0]);
      now[n] = to = to ? to : b.c.withSources(n, src);
      m.origins.inherit(to, n);
      if (it != found.end())
        for (UOpRef x : it->second.match.inner) m.origins.inherit(to, x);
    }
    for (Entry &e : m.entries) {
      for (Value &v : e.outputs) v.value = now.lookup(v.value);
      for (StateUpdate &u : e.updates) u.value = now.lookup(u.value);
    }
  }
};

} // namespace

llvm::Expected<std::vector<KernelUse>> astra::useKernels(Module &m, ArrayRef<std::string> names) {
  if (names.empty()) return std::vector<KernelUse>();
  if (m.stage != Stage::Graph) return llvm::createStringError("kernels stand in graphs before the numerics stage");
  return Pass(m, names).run();
}
