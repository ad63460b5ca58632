//===- Directives.cpp: the entries that a module asks for ------------------===//
// Takes:    a module with directives (Module.h).
// Gives:    for each an entry: of `grad` the outputs of the entry it names, then NAME.grad for each name behind wrt,
//           the derivatives of the first output, a scalar; of `jvp` the entry's inputs and a tangent NAME.dot for each
//           name, its outputs, then OUTPUT.dot for each of a float or complex type; of `vmap` its inputs and outputs,
//           with an axis more where it says so. States are updated as the entry does it.
// Keeps:    the entries that are there.
#include "astra/Autograd/Autograd.h"
#include "astra/Autograd/Vmap.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringSet.h"

using namespace astra;
using llvm::Error;
using llvm::Twine;

namespace {
struct Maker {
  Module &m;
  const Directive &d;
  const Entry &of;
  std::vector<UOpRef> wrt = {};

  Error fail(const Twine &what) const {
    return llvm::createStringError(Twine(transformName(d.transform)) + " @" + d.name + ": " + what);
  }
  Error find() {
    for (const Directive::Name &n : d.wrt) {
      UOpRef x = nullptr;
      if (n.global) {
        const Param *p = m.param(n.text);
        const StateVar *s = m.state(n.text);
        x = p ? p->value : s ? s->value : nullptr;
      } else if (auto in = llvm::find_if(of.inputs, [&](const Value &v) { return v.name == n.text; });
                 in != of.inputs.end())
        x = in->value;
      if (!x)
        return fail(n.global ? "no parameter or state is called @" + n.text
                             : "entry @" + of.name + " has no input %" + n.text);
      if (!isDifferentiable(x->dtype))
        return fail(Twine(n.global ? "@" : "%") + n.text + " is " + typeText(x->dtype, x->shape) +
                    ", expected a float or complex type");
      if (llvm::is_contained(wrt, x)) return fail(Twine(n.global ? "@" : "%") + n.text + " is named twice");
      wrt.push_back(x);
    }
    return Error::success();
  }
  /// Outputs that are not differentiated, and states' new values, follow the others in `values`.
  void take(Entry &e, const llvm::SmallBitVector &differentiated, const Derivatives &r) const {
    auto first = r.values.begin(), rest = first + differentiated.count();
    for (unsigned i = 0; i < of.outputs.size(); ++i) e.outputs[i].value = differentiated[i] ? *first++ : *rest++;
    for (StateUpdate &u : e.updates) u.value = *rest++;
  }
  std::vector<UOpRef> beside(const llvm::SmallBitVector &differentiated) const {
    std::vector<UOpRef> out;
    for (unsigned i = 0; i < of.outputs.size(); ++i)
      if (!differentiated[i]) out.push_back(of.outputs[i].value);
    for (const StateUpdate &u : of.updates) out.push_back(u.value);
    return out;
  }

  llvm::Expected<Entry> grad() {
    Builder b(m.ctx());
    if (of.outputs.empty() || of.outputs[0].value->rank() || !isFloat(of.outputs[0].value->dtype))
      return fail("the first output of @" + of.name + " is " +
                  (of.outputs.empty() ? "missing" : typeText(of.outputs[0].value->dtype, of.outputs[0].value->shape)) +
                  ", expected a scalar of a float type");
    UOpRef y = of.outputs[0].value;
    llvm::SmallBitVector differentiated(of.outputs.size());
    differentiated[0] = true;
    auto r = vjp(m.ctx(), y, b.lit(y->dtype, 1), wrt, &m.origins, beside(differentiated));
    if (!r) return fail(llvm::toString(r.takeError()));
    Entry e = of;
    take(e, differentiated, *r);
    for (auto [n, x] : llvm::zip(d.wrt, r->derivatives)) e.outputs.push_back({n.text + ".grad", x});
    return e;
  }
  llvm::Expected<Entry> jvp() {
    Builder b(m.ctx());
    Entry e = of;
    std::vector<UOpRef> tangents, outputs;
    llvm::SmallBitVector differentiated(of.outputs.size());
    for (auto [n, x] : llvm::zip(d.wrt, wrt)) {
      tangents.push_back(b.arg(e.inputs.size(), x->dtype, x->shape));
      e.inputs.push_back({n.text + ".dot", tangents.back()});
    }
    for (unsigned i = 0; i < of.outputs.size(); ++i)
      if (isDifferentiable(of.outputs[i].value->dtype))
        differentiated[i] = true, outputs.push_back(of.outputs[i].value);
    auto r = astra::jvp(m.ctx(), outputs, wrt, tangents, &m.origins, beside(differentiated));
    if (!r) return fail(llvm::toString(r.takeError()));
    take(e, differentiated, *r);
    for (auto [i, x] : llvm::zip(differentiated.set_bits(), r->derivatives))
      e.outputs.push_back({of.outputs[i].name + ".dot", x});
    return e;
  }
  /// Where each of `values` has the batch axis: as `places` say, else `otherwise`.
  template <typename Axis>
  llvm::Expected<std::vector<Axis>> axes(llvm::ArrayRef<Directive::Place> places, llvm::ArrayRef<Value> values,
                                         const char *kind, Axis otherwise) const {
    std::vector<Axis> list(values.size(), otherwise);
    for (const Directive::Place &p : places) {
      auto v = llvm::find_if(values, [&](const Value &o) { return o.name == p.name; });
      if (v == values.end()) return fail("entry @" + of.name + " has no " + kind + " %" + p.name);
      list[v - values.begin()] = p.axis;
    }
    return list;
  }
  llvm::Expected<Entry> vmap() {
    if (d.size->lo < 0) return fail("the extent of the axis may be negative");
    auto in = axes<std::optional<int64_t>>(d.in, of.inputs, "input", std::nullopt);
    if (!in) return in.takeError();
    auto out = axes<int64_t>(d.out, of.outputs, "output", 0);
    if (!out) return out.takeError();
    auto e = vmapEntry(m, of, d.name, d.size, *in, *out);
    if (!e) return fail(llvm::toString(e.takeError()));
    return e;
  }
  llvm::Expected<Entry> run() {
    if (m.entry(d.name)) return fail("an entry of this name is there already");
    if (auto e = find()) return std::move(e);
    auto e = d.transform == Transform::Grad ? grad() : d.transform == Transform::Jvp ? jvp() : vmap();
    if (!e) return e;
    e->name = d.name;
    for (auto *list : {&e->inputs, &e->outputs}) {
      llvm::StringSet<> names;
      for (const Value &v : *list)
        if (!names.insert(v.name).second)
          return fail("two " + Twine(list == &e->inputs ? "inputs" : "outputs") + " would be called %" + v.name);
    }
    return e;
  }
};
} // namespace

Error astra::runDirectives(Module &m) {
  while (!m.directives.empty()) {
    const Directive &d = m.directives.front();
    if (m.stage != Stage::Graph)
      return llvm::createStringError(Twine(transformName(d.transform)) + " @" + d.name +
                                     ": the module is past the numerics stage, where functions are arithmetic that is "
                                     "not differentiated; expected the text from before that stage");
    const Entry *of = m.entry(d.of);
    if (!of)
      return llvm::createStringError(Twine(transformName(d.transform)) + " @" + d.name + ": no entry is called @" +
                                     d.of);
    auto e = Maker{m, d, *of}.run();
    if (!e) return e.takeError();
    m.entries.push_back(std::move(*e));
    m.directives.erase(m.directives.begin());
  }
  return Error::success();
}
