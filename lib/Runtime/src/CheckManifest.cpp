//===- CheckManifest.cpp: every rule of the manifest's tables -------------===//
// Takes:    the bytes of the manifest section and the section table.
// Gives:    the checked manifest, or the first broken rule.
// Keeps:    time linear in the manifest, but that each entry looks once at every expression that it uses.
// Does not: check what depends on the values of dims.
#include "Checker.h"
#include "DType.h"

#include <algorithm>

using namespace astra::rt;
using astra::fmt::DimSource;
using astra::fmt::ExprCode;

namespace {

uint64_t hashName(const char *name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name; name++) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
  return hash ^ hash >> 32;
}

/// Names in a table are what callers look up: not empty, and no two alike. Sorted by hash first: that is fast, and
/// names that were made to have equal hashes cost no more than others.
template <typename T>
Status uniqueNames(Checker &c, const flatbuffers::Vector<flatbuffers::Offset<T>> *rows, const char *what) {
  struct Name {
    uint64_t hash;
    const char *text;
  };
  Array<Name> names;
  if (!names.init(c.heap, rows->size())) return fail(c.diag, ASTRA_OUT_OF_MEMORY, "no memory to check the manifest");
  for (uint32_t i = 0; i < rows->size(); i++) {
    const char *name = rows->Get(i)->name()->c_str();
    if (!*name || strlen(name) != rows->Get(i)->name()->size())
      return malformed(c.diag, "the name of a %s is empty or holds a zero byte", what);
    names[i] = {hashName(name), name};
  }
  std::sort(names.begin(), names.end(), [](const Name &a, const Name &b) {
    return a.hash != b.hash ? a.hash < b.hash : strcmp(a.text, b.text) < 0;
  });
  for (uint32_t i = 1; i < rows->size(); i++)
    if (names[i].hash == names[i - 1].hash && strcmp(names[i].text, names[i - 1].text) == 0)
      return malformed(c.diag, "two of the kind %s are named %.64s", what, names[i].text);
  return ASTRA_OK;
}

/// How many values a code takes from the stack.
uint32_t arity(ExprCode code) {
  return code == ExprCode::Const || code == ExprCode::Dim ? 0 : code == ExprCode::Not ? 1 : 2;
}

} // namespace

Status Checker::expressions() {
  uint32_t index = 0;
  for (const fmt::Expr *expr : *m.exprs()) {
    uint32_t depth = 0;
    for (const fmt::ExprOp *op : *expr->code()) {
      if (op->code() > ExprCode::Not)
        return malformed(diag, "expression %u has an unknown code %u", index, unsigned(op->code()));
      if (op->code() == ExprCode::Dim && (op->value() < 0 || op->value() >= m.dims()->size()))
        return malformed(diag, "expression %u uses dim %lld of %u", index, static_cast<long long>(op->value()),
                         m.dims()->size());
      if (depth < arity(op->code())) return malformed(diag, "expression %u takes more values than it has", index);
      depth += 1 - arity(op->code());
      if (depth > fmt::kMaxExprStack)
        return malformed(diag, "expression %u needs more than %u values at once", index, fmt::kMaxExprStack);
    }
    if (depth != 1) return malformed(diag, "expression %u leaves %u values instead of one", index, depth);
    index++;
  }
  return ASTRA_OK;
}

DimLevel Checker::uses(uint32_t index) {
  if (foundIn[index] == scope) return found[index];
  DimLevel level = DimLevel::Constant;
  for (const fmt::ExprOp *op : *m.exprs()->Get(index)->code())
    if (op->code() == ExprCode::Dim)
      if (DimLevel dim = levelOf(uint32_t(op->value())); dim > level) level = dim;
  foundIn[index] = scope;
  return found[index] = level;
}

Status Checker::expression(uint32_t index, DimLevel level, const char *what) {
  if (index >= m.exprs()->size()) return malformed(diag, "%s is expression %u of %u", what, index, m.exprs()->size());
  if (uses(index) > level) return malformed(diag, "%s (expression %u) uses a dim that has no value there", what, index);
  return ASTRA_OK;
}

DimLevel Checker::levelOf(uint32_t d) {
  if (levelIn[d] == scope) return levels[d];
  DimLevel level =
      hasInternal && m.dims()->Get(d)->source() == DimSource::Internal ? DimLevel::Internal : DimLevel::Never;
  // An internal dim of another entry may be bound by dims that this one does not have: then it may not set it.
  if (uint32_t bound = m.dims()->Get(d)->bound(); level == DimLevel::Internal && bound != kNone)
    for (const fmt::ExprOp *op : *m.exprs()->Get(bound)->code())
      if (uint32_t used = uint32_t(op->value()); op->code() == ExprCode::Dim &&
                                                 m.dims()->Get(used)->source() != DimSource::Internal &&
                                                 (levelIn[used] != scope || levels[used] == DimLevel::Never))
        level = DimLevel::Never;
  setLevel(d, level);
  return level;
}

Status Checker::dims() {
  if (m.dims()->size() > fmt::kMaxDims)
    return malformed(diag, "%u dims; at most %u are allowed", m.dims()->size(), fmt::kMaxDims);
  if (Status s = uniqueNames(*this, m.dims(), "dim")) return s;
  for (const fmt::Dim *dim : *m.dims()) {
    if (dim->source() > DimSource::Internal)
      return malformed(diag, "dim %.64s has an unknown source", dim->name()->c_str());
    if (dim->lo() > dim->hi())
      return malformed(diag, "dim %.64s has no legal value: its lo is above its hi", dim->name()->c_str());
    if (dim->bound() != kNone && dim->bound() >= m.exprs()->size())
      return malformed(diag, "dim %.64s has the bound expression %u of %u", dim->name()->c_str(), dim->bound(),
                       m.exprs()->size());
    if (!dim->says() && !dim->grid()) continue;
    uint32_t axes = dim->grid() ? dim->grid()->size() : 0;
    if (!dim->says() || !dim->says()->size() || !axes || axes > fmt::kMaxGrid || dim->source() != DimSource::Internal)
      return malformed(diag, "dim %.64s says what a kernel tests, and no kernel has such tests", dim->name()->c_str());
    for (uint32_t extent : *dim->grid())
      if (extent >= m.exprs()->size())
        return malformed(diag, "dim %.64s has the extent %u of %u of a grid", dim->name()->c_str(), extent,
                         m.exprs()->size());
  }
  for (const fmt::Equation *e : *m.equations())
    if (e->lhs() >= m.exprs()->size() || e->rhs() >= m.exprs()->size())
      return malformed(diag, "equation '%.64s' names an expression that does not exist", e->text()->c_str());
  return ASTRA_OK;
}

Status Checker::place(const fmt::Place *place, const char *what, const char *name) {
  uint64_t end;
  if (!weights) return malformed(diag, "%s %.64s has stored bytes, but there is no weights section", what, name);
  if (place->offset() % fmt::kAlign || !add(place->offset(), place->length(), end) || end > weights->bytes)
    return malformed(diag, "the bytes of %s %.64s are not at a multiple of 64 inside the weights section", what, name);
  if (place->sha256()->size() != 32) return malformed(diag, "the hash of %s %.64s has not 32 bytes", what, name);
  return ASTRA_OK;
}

Status Checker::params() {
  if (Status s = uniqueNames(*this, m.params(), "param")) return s;
  for (const fmt::Param *p : *m.params()) {
    const char *name = p->name()->c_str();
    const DType *dtype = dtypeOf(static_cast<int32_t>(p->dtype()));
    if (!dtype) return malformed(diag, "param %.64s has an unknown dtype", name);
    uint32_t rank = p->shape() ? p->shape()->size() : 0;
    uint64_t dense;
    if (rank > fmt::kMaxRank)
      return malformed(diag, "param %.64s has %u axes; at most %u are allowed", name, rank, fmt::kMaxRank);
    if (!denseBytes(*dtype, rank ? p->shape()->data() : nullptr, rank, dense))
      return malformed(diag, "the shape of param %.64s is negative or too large", name);
    if (p->stored_bytes() > INT64_MAX) return malformed(diag, "param %.64s is too large", name);
    if (p->prepare() == kNone && !p->fixed() && p->stored_bytes() != dense)
      return malformed(diag, "param %.64s has %llu stored bytes and no prepare program; its row-major size is %llu",
                       name, static_cast<unsigned long long>(p->stored_bytes()),
                       static_cast<unsigned long long>(dense));
    if (p->prepare() != kNone && p->prepare() >= m.prepares()->size())
      return malformed(diag, "param %.64s has the prepare program %u of %u", name, p->prepare(), m.prepares()->size());
    if (p->fixed() && !p->place()) return malformed(diag, "the constant %.64s has no bytes", name);
    uint32_t derives = m.derives() ? m.derives()->size() : 0;
    if (p->derive() != kNone && p->derive() >= derives)
      return malformed(diag, "param %.64s has the derive program %u of %u", name, p->derive(), derives);
    if (p->derive() != kNone && !p->fixed())
      return malformed(diag, "param %.64s has a derive program and is not fixed", name);
    if (!p->place()) continue;
    if (Status s = place(p->place(), "param", name)) return s;
    if (p->place()->length() != p->stored_bytes())
      return malformed(diag, "the stored size of param %.64s differs from its place", name);
  }
  return ASTRA_OK;
}

Status Checker::states() {
  if (Status s = uniqueNames(*this, m.states(), "state")) return s;
  newScope(false);
  for (uint32_t d = 0; d < m.dims()->size(); d++)
    if (m.dims()->Get(d)->source() == DimSource::Session) setLevel(d, DimLevel::Session);
  // A constant that many axes share is computed once.
  struct Known {
    int64_t value;
    bool isKnown;
  };
  Array<Known> constants;
  if (!constants.init(heap, m.exprs()->size()))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to check the manifest");
  for (const fmt::State *state : *m.states()) {
    const char *name = state->name()->c_str();
    const DType *dtype = dtypeOf(static_cast<int32_t>(state->dtype()));
    if (!dtype) return malformed(diag, "state %.64s has an unknown dtype", name);
    uint32_t rank = state->shape() ? state->shape()->size() : 0;
    if (rank > fmt::kMaxRank)
      return malformed(diag, "state %.64s has %u axes; at most %u are allowed", name, rank, fmt::kMaxRank);
    int64_t shape[fmt::kMaxRank];
    for (uint32_t i = 0; i < rank; i++) {
      if (Status s = expression(state->shape()->Get(i), state->init() ? DimLevel::Constant : DimLevel::Session,
                                "the shape of a state"))
        return s;
      if (!state->init()) continue;
      Known &constant = constants[state->shape()->Get(i)];
      if (!constant.isKnown)
        if (Status s = evaluate(m, state->shape()->Get(i), nullptr, constant.value, diag)) return s;
      constant.isKnown = true, shape[i] = constant.value;
    }
    if (!state->init()) continue;
    if (Status s = place(state->init(), "state", name)) return s;
    uint64_t dense;
    if (!denseBytes(*dtype, shape, rank, dense) || dense != state->init()->length())
      return malformed(diag, "the first bytes of state %.64s are not as many as its shape needs", name);
  }
  return ASTRA_OK;
}

Status Checker::assets() {
  if (!m.assets()) return ASTRA_OK;
  if (Status s = uniqueNames(*this, m.assets(), "asset")) return s;
  for (const fmt::Asset *asset : *m.assets())
    if (Status s = place(asset->place(), "asset", asset->name()->c_str())) return s;
  return ASTRA_OK;
}

Status Checker::targets() {
  if (m.targets()->size() == 0) return malformed(diag, "the bundle has no target");
  if (m.targets()->size() > fmt::kMaxTargets)
    return malformed(diag, "%u targets; at most %u are allowed", m.targets()->size(), fmt::kMaxTargets);
  if (Status s = uniqueNames(*this, m.targets(), "target")) return s;
  for (const fmt::Target *t : *m.targets()) {
    if (Status s = target(*t)) return s;
    for (const fmt::Target *other : *m.targets())
      if (other != t && t->abi() == fmt::kCpuKernelAbi && other->abi() == t->abi() && other->arch() == t->arch() &&
          other->rank() == t->rank())
        return malformed(diag, "targets %.64s and %.64s have the same rank", t->name()->c_str(),
                         other->name()->c_str());
  }
  return ASTRA_OK;
}

/// Its name says what it is, and so do architecture, ABI, kind of section.
Status Checker::target(const fmt::Target &t) {
  const char *name = t.name()->c_str();
  if (t.arch() > fmt::Arch::AMD) return malformed(diag, "target %.64s has an unknown architecture", name);
  if (t.abi() < fmt::kCpuKernelAbi || t.abi() > fmt::kHostBuildAbi)
    return fail(diag, ASTRA_NEWER_FORMAT,
                "target %.64s has kernel ABI %u; this library knows %u to %u: use a newer library", name, t.abi(),
                fmt::kCpuKernelAbi, fmt::kHostBuildAbi);
  auto kind = fmt::SectionKind(t.section() < sectionCount ? sections[t.section()].kind : 0);
  if (kind != fmt::SectionKind::Code &&
      (t.abi() != fmt::kGpuKernelAbi || (kind != fmt::SectionKind::DeviceCode && kind != fmt::SectionKind::DeviceText)))
    return malformed(diag, "target %.64s has no code section", name);
  bool isGpu = t.arch() > fmt::Arch::AArch64;
  if (isGpu != (t.abi() == fmt::kGpuKernelAbi) || isGpu == (kind == fmt::SectionKind::Code))
    return malformed(diag, "target %.64s has a kernel ABI or a section of another kind of machine", name);
  if (t.abi() == fmt::kCpuKernelAbi) return ASTRA_OK;
  const fmt::GpuTarget *gpu = t.gpu();
  if (!gpu || (gpu->warp() != 32 && gpu->warp() != 64))
    return malformed(diag, "target %.64s has no warps of 32 or 64 threads", name);
  if (gpu->text() != kNone && (!isGpu || gpu->text() >= sectionCount ||
                               sections[gpu->text()].kind != static_cast<uint32_t>(fmt::SectionKind::DeviceText)))
    return malformed(diag, "target %.64s has a text that is not there", name);
  if (isGpu) return ASTRA_OK;
  if (gpu->of() >= m.targets()->size() || m.targets()->Get(gpu->of())->abi() != fmt::kGpuKernelAbi)
    return malformed(diag, "target %.64s is the host build of target %u, which is no GPU", name, gpu->of());
  uint32_t of = m.targets()->Get(gpu->of())->section();
  if (!gpu->of_sha256() || gpu->of_sha256()->size() != 32 || of >= sectionCount ||
      memcmp(gpu->of_sha256()->data(), sections[of].sha256, 32) != 0)
    return malformed(diag, "target %.64s is the host build of other code than that of %.64s", name,
                     m.targets()->Get(gpu->of())->name()->c_str());
  return ASTRA_OK;
}

/// What a launch on a GPU, or in an emulator, relies on.
Status Checker::gpuCode(const fmt::Kernel &k, const fmt::KernelCode &code, const fmt::Target &target) {
  const char *name = k.name()->c_str(), *where = target.name()->c_str();
  const fmt::GpuCode *gpu = code.gpu();
  if (!gpu) return malformed(diag, "kernel %.64s does not say how it is launched on %.64s", name, where);
  if (gpu->threads() == 0 || gpu->threads() > fmt::kMaxBlockThreads || gpu->threads() % target.gpu()->warp() ||
      gpu->group() == 0 || gpu->threads() % gpu->group())
    return malformed(diag, "kernel %.64s has blocks of %u threads, %u an item, on %.64s", name, gpu->threads(),
                     gpu->group(), where);
  if (gpu->shared() > fmt::kMaxBlockShared)
    return malformed(diag, "kernel %.64s takes %llu bytes of shared memory on %.64s", name,
                     static_cast<unsigned long long>(gpu->shared()), where);
  if (gpu->dims()->size() > fmt::kMaxKernelBuffers)
    return malformed(diag, "kernel %.64s takes %u dims on %.64s", name, gpu->dims()->size(), where);
  for (uint32_t d : *gpu->dims())
    if (d >= m.dims()->size())
      return malformed(diag, "kernel %.64s takes dim %u of %u on %.64s", name, d, m.dims()->size(), where);
  if (!gpu->maps()) return ASTRA_OK;
  if (gpu->maps()->size() > fmt::kMaxKernelMaps || target.arch() == fmt::Arch::AMD)
    return malformed(diag, "kernel %.64s takes %u tensor maps on %.64s", name, gpu->maps()->size(), where);
  for (const fmt::TensorMap *map : *gpu->maps())
    if (map->buffer() >= k.access()->size() || !map->box() || map->box() > fmt::kMaxBoxLines || !map->words() ||
        map->words() % 4 || map->words() > INT32_MAX)
      return malformed(diag, "kernel %.64s takes a tensor map of buffer %u, %llu words a line, on %.64s", name,
                       map->buffer(), static_cast<unsigned long long>(map->words()), where);
  return ASTRA_OK;
}

Status Checker::kernels() {
  for (const fmt::Kernel *k : *m.kernels()) {
    const char *name = k->name()->c_str();
    if (k->access()->size() > fmt::kMaxKernelBuffers)
      return malformed(diag, "kernel %.64s takes %u buffers; at most %u are allowed", name, k->access()->size(),
                       fmt::kMaxKernelBuffers);
    for (uint32_t i = 0; i < k->access()->size(); i++)
      if (static_cast<fmt::Access>(k->access()->Get(i)) > fmt::Access::ReadWrite)
        return malformed(diag, "kernel %.64s has an unknown access", name);
    if (k->code()->size() != m.targets()->size())
      return malformed(diag, "kernel %.64s has code for %u of %u targets", name, k->code()->size(),
                       m.targets()->size());
    for (uint32_t t = 0; t < k->code()->size(); t++) {
      const fmt::Target *target = m.targets()->Get(t);
      if (target->abi() != fmt::kCpuKernelAbi)
        if (Status s = gpuCode(*k, *k->code()->Get(t), *target)) return s;
      uint64_t offset = k->code()->Get(t)->offset();
      if (offset >= sections[target->section()].bytes || (target->arch() == fmt::Arch::AArch64 && offset % 4))
        return malformed(diag, "kernel %.64s begins outside the code of %.64s", name, target->name()->c_str());
    }
  }
  return ASTRA_OK;
}

Status Checker::tensor(const fmt::Tensor &t, bool isOutput) {
  const char *name = t.name()->c_str();
  if (!dtypeOf(static_cast<int32_t>(t.dtype()))) return malformed(diag, "tensor %.64s has an unknown dtype", name);
  uint32_t rank = t.shape() ? t.shape()->size() : 0;
  if (rank > fmt::kMaxRank)
    return malformed(diag, "tensor %.64s has %u axes; at most %u are allowed", name, rank, fmt::kMaxRank);
  bool bounded = t.bound() && t.bound()->size();
  if (bounded && (!isOutput || t.bound()->size() != rank))
    return malformed(diag, "the bound of tensor %.64s has not one number per axis", name);
  for (uint32_t i = 0; i < rank; i++) {
    if (Status s =
            expression(t.shape()->Get(i), bounded ? DimLevel::Internal : DimLevel::Entry, "the shape of a tensor"))
      return s;
    if (bounded)
      if (Status s = expression(t.bound()->Get(i), DimLevel::Entry, "the bound of a tensor")) return s;
  }
  return ASTRA_OK;
}

/// A DimBind or a DimMultiple.
template <class Bind> Status Checker::bind(const fmt::Entry &e, const Bind &b) {
  const char *name = e.name()->c_str();
  if (b.dim() >= m.dims()->size() || m.dims()->Get(b.dim())->source() != DimSource::Shape)
    return malformed(diag, "entry %.64s binds dim %u, which is not one that shapes bind", name, b.dim());
  if (b.input() >= e.inputs()->size())
    return malformed(diag, "entry %.64s binds a dim to input %u of %u", name, b.input(), e.inputs()->size());
  const fmt::Tensor *input = e.inputs()->Get(b.input());
  if (b.axis() >= (input->shape() ? input->shape()->size() : 0))
    return malformed(diag, "entry %.64s binds a dim to axis %u of %.64s", name, b.axis(), input->name()->c_str());
  if (levelIn[b.dim()] == scope)
    return malformed(diag, "entry %.64s binds dim %.64s twice", name, m.dims()->Get(b.dim())->name()->c_str());
  setLevel(b.dim(), DimLevel::Entry);
  return ASTRA_OK;
}

Status Checker::entry(const fmt::Entry &e) {
  const char *name = e.name()->c_str();
  newScope(true);
  for (const fmt::DimBind *b : *e.binds())
    if (Status s = bind(e, *b)) return s;
  uint32_t multiples = e.multiples() ? e.multiples()->size() : 0;
  for (uint32_t i = 0; i < multiples; i++) {
    const fmt::DimMultiple *x = e.multiples()->Get(i);
    if (Status s = bind(e, *x)) return s;
    if (x->scale() < 1) return malformed(diag, "entry %.64s takes a dim %lld times", name, (long long)x->scale());
  }
  for (uint32_t d : *e.host_dims()) {
    if (d >= m.dims()->size() ||
        (m.dims()->Get(d)->source() != DimSource::Host && m.dims()->Get(d)->source() != DimSource::Session))
      return malformed(diag, "entry %.64s lists dim %u as a host dim, which it is not", name, d);
    setLevel(d, m.dims()->Get(d)->source() == DimSource::Session ? DimLevel::Session : DimLevel::Entry);
  }
  auto isBounded = [&](uint32_t d) {
    uint32_t bound = m.dims()->Get(d)->bound();
    return bound == kNone || uses(bound) <= levels[d]
               ? ASTRA_OK
               : malformed(diag, "the bound of dim %.64s has no value in entry %.64s",
                           m.dims()->Get(d)->name()->c_str(), name);
  };
  for (const fmt::DimBind *b : *e.binds())
    if (Status s = isBounded(b->dim())) return s;
  for (uint32_t i = 0; i < multiples; i++)
    if (Status s = isBounded(e.multiples()->Get(i)->dim())) return s;
  for (uint32_t d : *e.host_dims())
    if (Status s = isBounded(d)) return s;
  if (Status s = uniqueNames(*this, e.inputs(), "input")) return s;
  if (Status s = uniqueNames(*this, e.outputs(), "output")) return s;
  for (const fmt::Tensor *t : *e.inputs())
    if (Status s = tensor(*t, false)) return s;
  for (const fmt::Tensor *t : *e.outputs())
    if (Status s = tensor(*t, true)) return s;
  for (uint32_t i : *e.equations()) {
    if (i >= m.equations()->size())
      return malformed(diag, "entry %.64s checks equation %u of %u", name, i, m.equations()->size());
    if (Status s = expression(m.equations()->Get(i)->lhs(), DimLevel::Entry, "an equation")) return s;
    if (Status s = expression(m.equations()->Get(i)->rhs(), DimLevel::Entry, "an equation")) return s;
  }
  for (const auto *list : {e.reads(), e.writes()})
    for (uint32_t s : *list) {
      if (s >= m.states()->size())
        return malformed(diag, "entry %.64s uses state %u of %u", name, s, m.states()->size());
      (list == e.reads() ? readIn : writtenIn)[s] = scope;
    }
  if (e.strided())
    for (const fmt::StridedTensor *t : *e.strided()->tensors())
      if (Status s = strided(e, *t)) return s;
  if (Status s = routine(*e.routine(), &e)) return s;
  return e.strided() ? routine(*e.strided()->routine(), &e) : ASTRA_OK;
}

/// Its dims are its own, and no program may set them: the runtime does, before the entry's routine for strides runs.
Status Checker::strided(const fmt::Entry &e, const fmt::StridedTensor &t) {
  const auto *list = t.output() ? e.outputs() : e.inputs();
  const fmt::Tensor *tensor = t.index() < list->size() ? list->Get(t.index()) : nullptr;
  uint32_t rank = tensor && tensor->shape() ? tensor->shape()->size() : 0;
  if (!rank || t.strides()->size() != rank || dtypeOf(int32_t(tensor->dtype()))->bits < 8)
    return malformed(diag, "entry %.64s takes strides of a tensor that has none, or others", e.name()->c_str());
  for (uint32_t i = 0; i <= rank; i++) {
    uint32_t d = i < rank ? t.strides()->Get(i) : t.span();
    if (d >= m.dims()->size() || m.dims()->Get(d)->source() != DimSource::Internal || levelOf(d) != DimLevel::Internal)
      return malformed(diag, "a stride of entry %.64s is dim %u, which is not one of its own", e.name()->c_str(), d);
    setLevel(d, DimLevel::Entry);
  }
  return ASTRA_OK;
}

Status Checker::manifest() {
  if (!levels.init(heap, m.dims()->size()) || !levelIn.init(heap, m.dims()->size()) ||
      !found.init(heap, m.exprs()->size()) || !foundIn.init(heap, m.exprs()->size()) ||
      !readIn.init(heap, m.states()->size()) || !writtenIn.init(heap, m.states()->size()))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to check the manifest");
  for (uint32_t i = 0; i < sectionCount; i++)
    if (sections[i].kind == static_cast<uint32_t>(fmt::SectionKind::Weights)) weights = &sections[i];
  for (auto check : {&Checker::expressions, &Checker::dims, &Checker::params, &Checker::states, &Checker::assets,
                     &Checker::targets, &Checker::kernels})
    if (Status s = (this->*check)()) return s;
  newScope(false);
  for (const fmt::Routine *r : *m.prepares())
    if (Status s = routine(*r, nullptr)) return s;
  if (m.derives())
    for (const fmt::Routine *r : *m.derives())
      if (Status s = routine(*r, nullptr, true)) return s;
  if (Status s = uniqueNames(*this, m.entries(), "entry")) return s;
  for (const fmt::Entry *e : *m.entries())
    if (Status s = entry(*e)) return s;
  return ASTRA_OK;
}

Status astra::rt::checkManifest(const fmt::Manifest *&out, const void *data, uint64_t bytes,
                                const fmt::Section *sections, uint32_t sectionCount, Heap &heap, astra_diag *diag) {
  if (bytes < 16 || bytes >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return malformed(diag, "the manifest has %llu bytes, which no manifest has",
                     static_cast<unsigned long long>(bytes));
  if (Status s = checkTree(data, bytes, heap, diag)) return s;
  // The parts are apart now, so their count is bounded by the file, not by a number that large models reach.
  flatbuffers::Verifier verifier(static_cast<const uint8_t *>(data), bytes, 64, static_cast<uint32_t>(bytes));
  if (!fmt::VerifyManifestBuffer(verifier))
    return malformed(diag, "the manifest is not a valid FlatBuffer; the compiler or the file is broken");
  const fmt::Manifest *manifest = fmt::GetManifest(data);
  Checker checker{*manifest, sections, sectionCount, heap, diag};
  if (Status s = checker.manifest()) return s;
  out = manifest;
  return ASTRA_OK;
}
