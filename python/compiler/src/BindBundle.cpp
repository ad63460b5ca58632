//===- BindBundle.cpp: what is in a bundle ----------------------------------===//
// Takes:    the bytes of a bundle.
// Gives:    dicts and lists: dims, kernels with their costs, the programs of entries. An expression is a list of
//           (operation, number) in postfix order, None where the bundle has none.
// Keeps:    what the runtime refuses is refused here.
// Does not: add up or print: astra._analysis.
#include "Bind.h"
#include "astra/Bundle/Reader.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

namespace {

struct Describing {
  const fmt::ManifestT &m;

  nb::object expr(uint32_t index) const {
    if (index == fmt::kNone) return nb::none();
    nb::list out;
    for (const fmt::ExprOp &op : m.exprs[index]->code)
      out.append(nb::make_tuple(llvm::StringRef(fmt::EnumNameExprCode(op.code())).lower(), op.value()));
    return std::move(out);
  }
  nb::dict instruction(const fmt::InstrUnion &i) const {
    nb::dict d;
    d["op"] = llvm::StringRef(fmt::EnumNameInstr(i.type)).lower();
    if (const auto *x = i.AsLaunch()) {
      nb::list kernels, guards, origins;
      for (const auto &v : x->variants) kernels.append(v->kernel), guards.append(expr(v->guard));
      for (uint32_t n : x->origins) origins.append(m.origins[n]);
      d["kernels"] = kernels, d["guards"] = guards, d["buffers"] = x->buffers, d["origins"] = origins;
    } else if (const auto *x = i.AsLoop()) {
      d["count"] = expr(x->count), d["body"] = x->body;
    } else if (const auto *x = i.AsWhile()) {
      d["condition"] = x->cond, d["body"] = x->body;
    } else if (const auto *x = i.AsCond()) {
      d["then"] = x->then;
      d["otherwise"] = x->otherwise == fmt::kNone ? nb::object(nb::none()) : nb::cast(x->otherwise);
    } else if (const auto *x = i.AsCopy()) {
      d["bytes"] = expr(x->bytes), d["buffers"] = std::vector<uint32_t>{x->src, x->dst};
    }
    return d;
  }
  nb::dict routine(const fmt::RoutineT &r) const {
    nb::list buffers, slots, programs;
    for (const auto &b : r.buffers)
      buffers.append(
          nb::make_tuple(llvm::StringRef(fmt::EnumNameBufferKind(b->kind)).lower(), b->index, expr(b->bytes)));
    for (uint32_t s : r.slots) slots.append(expr(s));
    for (const auto &p : r.programs) {
      nb::list code;
      for (const fmt::InstrUnion &i : p->code) code.append(instruction(i));
      programs.append(code);
    }
    nb::dict d;
    d["buffers"] = buffers, d["slots"] = slots, d["programs"] = programs;
    return d;
  }
  nb::dict all() const {
    nb::list dims, kernels, entries, params, states, targets;
    for (const auto &d : m.dims) dims.append(nb::make_tuple(d->name, d->lo, d->hi));
    for (const auto &t : m.targets) targets.append(t->name);
    for (const auto &k : m.kernels) {
      nb::list code;
      for (const auto &c : k->code) code.append(nb::make_tuple(c->plan, expr(c->scratch)));
      nb::dict d;
      d["name"] = k->name, d["steps"] = expr(k->steps), d["bytes"] = expr(k->bytes);
      d["code"] = code;
      kernels.append(d);
    }
    for (const auto &p : m.params) params.append(nb::make_tuple(p->name, p->stored_bytes, p->fixed));
    for (const auto &s : m.states) {
      nb::list shape;
      for (uint32_t x : s->shape) shape.append(expr(x));
      states.append(nb::make_tuple(s->name, int(s->dtype), shape));
    }
    for (const auto &e : m.entries) {
      nb::list outputs;
      for (const auto &o : e->outputs) outputs.append(o->name);
      nb::dict d = routine(*e->routine);
      d["name"] = e->name, d["outputs"] = outputs, d["reads"] = e->reads, d["writes"] = e->writes;
      entries.append(d);
    }
    nb::dict d;
    d["module"] = m.module_, d["dims"] = dims, d["kernels"] = kernels, d["entries"] = entries, d["params"] = params;
    d["states"] = states, d["targets"] = targets;
    return d;
  }
};

nb::dict describe(nb::bytes bundle) {
  std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (bundle.size() + 64) & ~size_t(63)),
                                                     std::free);
  if (!memory) throw std::bad_alloc();
  std::memcpy(memory.get(), bundle.c_str(), bundle.size());
  auto *bytes = static_cast<const char *>(memory.get());
  if (llvm::Error e = checkBundle("the bundle", {bytes, bundle.size()}, 0, nullptr)) raise(std::move(e));
  fmt::ManifestT manifest;
  auto *first = reinterpret_cast<const fmt::Section *>(bytes + sizeof(fmt::Header));
  fmt::GetManifest(bytes + first->offset)->UnPackTo(&manifest);
  return Describing{manifest}.all();
}

} // namespace

void python::bindBundle(nb::module_ &m) { m.def("describe_bundle", describe); }
