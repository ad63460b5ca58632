//===- Json.cpp: a bundle as JSON ------------------------------------------===//
// Takes:    a checked bundle.
// Gives:    header and sections, then the manifest exactly as its schema has it, expressions in infix form.
// Keeps:    the order of the file.
// Does not: leave anything out but the bytes of code and weights.
#include "llvm/Support/JSON.h"
#include "Describe.h"
#include "astra/astra.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace llvm;

namespace {

struct Writer {
  json::OStream &j;
  const fmt::ManifestT &m;

  void expr(StringRef key, uint32_t index) {
    if (index != fmt::kNone) j.attribute(key, tool::exprText(m, index));
  }
  void numbers(StringRef key, const std::vector<uint32_t> &xs) {
    j.attributeArray(key, [&] {
      for (uint32_t x : xs) j.value(x);
    });
  }
  void exprs(StringRef key, const std::vector<uint32_t> &xs) {
    j.attributeArray(key, [&] {
      for (uint32_t x : xs) j.value(tool::exprText(m, x));
    });
  }
  template <typename Items, typename Give> void objects(StringRef key, const Items &items, Give give) {
    j.attributeArray(key, [&] {
      for (const auto &item : items) j.object([&] { give(*item); });
    });
  }
  void dtype(fmt::DType t) { j.attribute("dtype", astra_dtype_name(int32_t(t))); }
  void tensor(const fmt::TensorT &t) {
    j.attribute("name", t.name);
    dtype(t.dtype);
    exprs("shape", t.shape);
    if (!t.bound.empty()) exprs("bound", t.bound);
    if (t.tap) j.attribute("tap", true);
  }
  void place(StringRef key, const fmt::PlaceT *p) {
    if (p)
      j.attributeObject(key, [&] {
        j.attribute("offset", p->offset);
        j.attribute("length", p->length);
        j.attribute("sha256", toHex(p->sha256, true));
      });
  }
  void instruction(const fmt::InstrUnion &i);
  void routine(const fmt::RoutineT &r);
  void params();
  void kernels();
  void targets();
  void entries();
  void manifest();
};

void Writer::instruction(const fmt::InstrUnion &i) {
  j.attribute("op", StringRef(fmt::EnumNameInstr(i.type)).lower());
  if (const auto *x = i.AsLaunch()) {
    objects("variants", x->variants, [&](const fmt::VariantT &v) {
      expr("guard", v.guard);
      j.attribute("kernel", m.kernels[v.kernel]->name);
    });
    numbers("buffers", x->buffers);
    if (!x->origins.empty())
      j.attributeArray("origins", [&] {
        for (uint32_t n : x->origins) j.value(m.origins[n]);
      });
    if (x->more_origins) j.attribute("more_origins", x->more_origins);
  } else if (const auto *x = i.AsCopy()) {
    j.attribute("dst", x->dst);
    j.attribute("src", x->src);
    expr("bytes", x->bytes);
  } else if (const auto *x = i.AsSetDim()) {
    j.attribute("dim", m.dims[x->dim]->name);
    expr("value", x->value);
  } else if (const auto *x = i.AsReadDim()) {
    j.attribute("dim", m.dims[x->dim]->name);
    j.attribute("buffer", x->buffer);
  } else if (const auto *x = i.AsWhile()) {
    j.attribute("cond", x->cond);
    j.attribute("flag", x->flag);
    j.attribute("body", x->body);
  } else if (const auto *x = i.AsLoop()) {
    j.attribute("counter", m.dims[x->counter]->name);
    expr("count", x->count);
    j.attribute("body", x->body);
  } else if (const auto *x = i.AsCond()) {
    j.attribute("flag", x->flag);
    j.attribute("then", x->then);
    if (x->otherwise != fmt::kNone) j.attribute("otherwise", x->otherwise);
  } else if (const auto *x = i.AsSwap()) {
    j.attribute("a", x->a);
    j.attribute("b", x->b);
  } else if (const auto *x = i.AsWait()) {
    j.attribute("left", x->left);
  } else if (const auto *x = i.AsExternal()) {
    j.attribute("function", m.functions[x->function]->name);
    j.attribute("inputs", x->inputs);
    if (x->beside) j.attribute("beside", true);
    objects("tensors", x->tensors, [&](const fmt::HostTensorT &t) {
      j.attribute("buffer", t.buffer);
      dtype(t.dtype);
      exprs("shape", t.shape);
    });
  }
}

void Writer::routine(const fmt::RoutineT &r) {
  objects("buffers", r.buffers, [&](const fmt::BufferT &b) {
    j.attribute("kind", StringRef(fmt::EnumNameBufferKind(b.kind)).lower());
    j.attribute("index", b.index);
    expr("bytes", b.bytes);
    if (b.offset) j.attribute("offset", b.offset);
  });
  exprs("slots", r.slots);
  j.attributeArray("programs", [&] {
    for (const auto &p : r.programs)
      j.array([&] {
        for (const fmt::InstrUnion &i : p->code) j.object([&] { instruction(i); });
      });
  });
}

void Writer::params() {
  objects("params", m.params, [&](const fmt::ParamT &p) {
    j.attribute("name", p.name);
    dtype(p.dtype);
    j.attributeArray("shape", [&] {
      for (int64_t x : p.shape) j.value(x);
    });
    j.attribute("layout", p.layout);
    j.attribute("stored_bytes", p.stored_bytes);
    place("place", p.place.get());
    if (p.prepare != fmt::kNone) j.attribute("prepare", p.prepare);
    if (p.fixed) j.attribute("fixed", true);
    if (p.derive != fmt::kNone) j.attribute("derive", p.derive);
  });
}

void Writer::kernels() {
  std::vector<tool::Computes> computes = tool::computedBy(m);
  auto computed = computes.begin();
  objects("kernels", m.kernels, [&](const fmt::KernelT &k) {
    j.attribute("name", k.name);
    j.attributeArray("origins", [&] {
      for (const std::string &name : computed->names) j.value(name);
    });
    if (computed->more) j.attribute("more_origins", computed->more);
    ++computed;
    j.attributeArray("access", [&] {
      for (fmt::Access a : k.access) j.value(StringRef(fmt::EnumNameAccess(a)).lower());
    });
    expr("flops", k.flops);
    expr("steps", k.steps);
    expr("bytes", k.bytes);
    objects("code", k.code, [&](const fmt::KernelCodeT &c) {
      j.attribute("offset", c.offset);
      expr("items", c.items);
      expr("scratch", c.scratch);
      j.attribute("plan", c.plan);
      if (c.bound != fmt::CostTerm::Unknown) {
        j.attribute("cycles", c.cycles);
        j.attribute("bound", tool::boundText(c.bound));
      }
      if (!c.gpu) return;
      j.attributeObject("gpu", [&] {
        j.attribute("symbol", c.gpu->symbol);
        j.attribute("threads", c.gpu->threads);
        j.attribute("group", c.gpu->group);
        numbers("dims", c.gpu->dims);
        j.attribute("shared", c.gpu->shared);
        j.attribute("registers", c.gpu->registers);
        j.attribute("scalar_registers", c.gpu->scalar_registers);
        j.attribute("stack", c.gpu->stack);
        j.attribute("spills", c.gpu->spills);
      });
    });
  });
}

void Writer::targets() {
  objects("targets", m.targets, [&](const fmt::TargetT &t) {
    j.attribute("name", t.name);
    j.attribute("arch", fmt::EnumNameArch(t.arch));
    j.attribute("abi", t.abi);
    j.attribute("section", t.section);
    j.attribute("rank", t.rank);
    j.attributeArray("features", [&] {
      for (const std::string &f : t.features) j.value(f);
    });
    if (!t.gpu) return;
    j.attributeObject("gpu", [&] {
      j.attribute("warp", t.gpu->warp);
      if (t.gpu->text != fmt::kNone) j.attribute("text", t.gpu->text);
      if (t.gpu->of == fmt::kNone) return;
      j.attribute("of", m.targets[t.gpu->of]->name);
      j.attribute("of_sha256", toHex(t.gpu->of_sha256, true));
    });
  });
}

void Writer::entries() {
  objects("entries", m.entries, [&](const fmt::EntryT &e) {
    j.attribute("name", e.name);
    objects("inputs", e.inputs, [&](const fmt::TensorT &t) { tensor(t); });
    objects("outputs", e.outputs, [&](const fmt::TensorT &t) { tensor(t); });
    j.attributeArray("binds", [&] {
      for (const fmt::DimBind &b : e.binds)
        j.object([&] {
          j.attribute("dim", m.dims[b.dim()]->name);
          j.attribute("input", b.input());
          j.attribute("axis", b.axis());
        });
    });
    j.attributeArray("multiples", [&] {
      for (const fmt::DimMultiple &x : e.multiples)
        j.object([&] {
          j.attribute("dim", m.dims[x.dim()]->name);
          j.attribute("input", x.input());
          j.attribute("axis", x.axis());
          j.attribute("scale", x.scale());
          j.attribute("offset", x.offset());
        });
    });
    numbers("host_dims", e.host_dims);
    numbers("equations", e.equations);
    numbers("reads", e.reads);
    numbers("writes", e.writes);
    j.attributeObject("routine", [&] { routine(*e.routine); });
    if (e.strided)
      j.attributeObject("strided", [&] {
        objects("tensors", e.strided->tensors, [&](const fmt::StridedTensorT &t) {
          j.attribute("name", (t.output ? e.outputs : e.inputs)[t.index]->name);
          j.attribute("span", m.dims[t.span]->name);
          j.attributeArray("strides", [&] {
            for (uint32_t d : t.strides) j.value(m.dims[d]->name);
          });
        });
        j.attributeObject("routine", [&] { routine(*e.strided->routine); });
      });
  });
}

void Writer::manifest() {
  j.attribute("contract", m.contract);
  j.attribute("numerics", m.numerics);
  j.attribute("module", m.module_);
  objects("toolchain", m.toolchain, [&](const fmt::ComponentT &c) {
    j.attribute("name", c.name);
    j.attribute("version", c.version);
    j.attribute("license", c.license);
  });
  if (!m.commit.empty()) j.attribute("commit", m.commit);
  if (!m.model_sha256.empty()) j.attribute("model_sha256", toHex(m.model_sha256, true));
  j.attributeArray("options", [&] {
    for (const std::string &o : m.options) j.value(o);
  });
  objects("dims", m.dims, [&](const fmt::DimT &d) {
    j.attribute("name", d.name);
    j.attribute("source", StringRef(fmt::EnumNameDimSource(d.source)).lower());
    j.attribute("lo", d.lo);
    j.attribute("hi", d.hi);
    expr("bound", d.bound);
  });
  objects("equations", m.equations, [&](const fmt::EquationT &e) { j.attribute("text", e.text); });
  params();
  objects("prepares", m.prepares, [&](const fmt::RoutineT &r) { routine(r); });
  objects("derives", m.derives, [&](const fmt::RoutineT &r) { routine(r); });
  objects("assets", m.assets, [&](const fmt::AssetT &a) {
    j.attribute("name", a.name);
    place("place", a.place.get());
  });
  if (!m.functions.empty())
    objects("functions", m.functions, [&](const fmt::HostFunctionT &f) {
      j.attribute("name", f.name);
      j.attribute("deterministic", f.deterministic);
      j.attribute("effects", f.effects);
    });
  objects("states", m.states, [&](const fmt::StateT &s) {
    j.attribute("name", s.name);
    dtype(s.dtype);
    exprs("shape", s.shape);
    place("init", s.init.get());
  });
  kernels();
  targets();
  entries();
}

} // namespace

void tool::printJSON(raw_ostream &out, const BundleFile &b) {
  json::OStream j(out, 1);
  Writer w{j, b.manifest};
  j.object([&] {
    j.attribute("format", (Twine(b.header().major) + "." + Twine(b.header().minor)).str());
    j.attribute("features", b.header().features);
    j.attribute("bytes", b.header().fileBytes);
    j.attribute("digest", toHex(b.header().digest, true));
    if (!b.signer().empty()) j.attribute("signer", toHex(b.signer(), true));
    j.attributeArray("sections", [&] {
      for (const fmt::Section &s : b.sections())
        j.object([&] {
          j.attribute("kind", tool::kindName(s.kind));
          j.attribute("offset", s.offset);
          j.attribute("bytes", s.bytes);
          j.attribute("sha256", toHex(s.sha256, true));
        });
    });
    j.attributeObject("manifest", [&] { w.manifest(); });
  });
  out << "\n";
}
