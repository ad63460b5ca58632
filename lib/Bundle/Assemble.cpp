//===- Assemble.cpp: from a schedule and its code to the parts of a bundle --===//
// Takes:    module, schedule, code per target.
// Gives:    the manifest and the weights.
// Keeps:    one expression table for all; each table of the manifest is filled by one function.
// Does not: write (Writer.cpp).
#include "astra/Bundle/Assemble.h"
#include "Costs.h"
#include "astra/Bundle/Exprs.h"
#include "astra/IR/Text.h"
#include "format/Format.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ThreadPool.h"
#include <cmath>

using namespace astra;
using namespace llvm;

namespace {

fmt::DType dtypeOf(DType t) {
  static_assert(uint8_t(DType::Bool) == uint8_t(fmt::DType::Bool) + 1 && DType::F8E8M0 == DType(numDTypes - 1) &&
                    uint8_t(DType::F8E8M0) == uint8_t(fmt::DType::F8E8M0) + 1,
                "the manifest's dtypes are the IR's without index");
  return fmt::DType(uint8_t(t) - 1);
}

std::vector<int64_t> constantShape(Shape shape) {
  std::vector<int64_t> out;
  for (UOpRef extent : shape) out.push_back(*extent->constIndex());
  return out;
}

/// Bytes of a row-major tensor, of a type as kernels see it.
uint64_t denseBytes(ArrayRef<int64_t> shape, DType dtype) {
  uint64_t bytes = byteSize(dtype);
  for (int64_t extent : shape) bytes *= uint64_t(extent);
  return bytes;
}

class Assembler {
public:
  Assembler(const Module &module, const Schedule &schedule, std::vector<CompiledTarget> code, std::vector<GpuPart> gpus,
            unsigned jobs, Provenance provenance)
      : module(module), schedule(schedule), code(std::move(code)), gpus(std::move(gpus)), jobs(jobs),
        provenance(std::move(provenance)), ctx(*module.context) {}

  Expected<BundleParts> run() {
    manifest.contract = "astra-num/1";
    manifest.numerics = provenance.numerics;
    manifest.module_ = module.name;
    std::string ptxas;
    for (const GpuPart &g : gpus)
      if (!g.gpu.ptxasVersion.empty()) ptxas = g.gpu.ptxasVersion;
    manifest.toolchain = toolchain(ptxas);
    for (auto step : {&Assembler::dims, &Assembler::params, &Assembler::states, &Assembler::kernels,
                      &Assembler::targets, &Assembler::equations, &Assembler::entries, &Assembler::limits})
      if (Error e = (this->*step)()) return std::move(e);
    manifest.exprs = exprs.take();
    manifest.commit = provenance.commit;
    manifest.model_sha256 = provenance.modelSha256;
    manifest.options = provenance.options;
    for (CompiledTarget &c : code) parts.images.push_back({std::move(c.image.bytes)});
    for (GpuPart &g : gpus) parts.images.push_back(codeOf(g.gpu.binary));
    for (GpuPart &g : gpus)
      if (g.cpu) parts.images.push_back({std::move(g.host.image.bytes)});
    return std::move(parts);
  }

private:
  const Module &module;
  const Schedule &schedule;
  std::vector<CompiledTarget> code;
  std::vector<GpuPart> gpus;
  unsigned jobs;
  Provenance provenance;
  Context &ctx;
  BundleParts parts;
  fmt::ManifestT &manifest = parts.manifest;
  ExprTable exprs;
  StringMap<uint32_t> origins;   // their numbers in the manifest
  StringMap<uint32_t> functions; // theirs

  Error dims();
  Error params();
  Error states();
  Error kernels();
  Error targets();
  Error equations();
  Error entries();
  Error limits();

  /// Puts the number of x's expression into `out`.
  Error set(uint32_t &out, UOpRef x) {
    Expected<uint32_t> n = exprs.add(x);
    if (!n) return n.takeError();
    out = *n;
    return Error::success();
  }
  Error set(std::vector<uint32_t> &out, ArrayRef<UOpRef> xs) {
    for (UOpRef x : xs)
      if (Error e = set(out.emplace_back(), x)) return e;
    return Error::success();
  }

  bool isInternal(uint32_t dim) const { return dim >= schedule.moduleDims; }
  uint32_t number(UOpRef dim) const { return uint32_t(llvm::find(schedule.dims, dim) - schedule.dims.begin()); }
  /// Whether the shape of an input gives a dim of the module.
  bool isByShape(UOpRef dim) const {
    uint32_t d = number(dim);
    return d < schedule.moduleDims && manifest.dims[d]->source == fmt::DimSource::Shape;
  }
  Error instruction(fmt::ProgramT &out, const Instr &instr);
  Expected<fmt::ExternalT> external(const ExternalInstr &call);
  Expected<std::unique_ptr<fmt::RoutineT>> routine(const Routine &r);
  Expected<std::unique_ptr<fmt::StridedRoutineT>> strided(const StridedRoutine &r);
  Error costs(fmt::KernelT &out, const KernelSpec &spec);
  static TargetCode codeOf(GpuBinary &binary);
  static std::vector<fmt::Access> accessOf(const Kernel &k);
  Error gpuCode(fmt::KernelT &out, const GpuPart &g, size_t i, bool host);
  Expected<std::unique_ptr<fmt::TensorT>> output(const Value &value, ArrayRef<UOpRef> shape, ArrayRef<UOpRef> bound);
  void stateUse(fmt::EntryT &out) const;
};

//===- Limits ---------------------------------------------------------------===//

/// What a model may ask for and the format does not hold.
Error Assembler::limits() {
  auto tooMany = [](size_t rank, const Twine &what) -> Error {
    if (rank <= fmt::kMaxRank) return Error::success();
    return createStringError(std::make_error_code(std::errc::not_supported),
                             what + " has " + Twine(rank) + " axes; a bundle holds tensors of at most " +
                                 Twine(fmt::kMaxRank) + ": reshape it");
  };
  for (const auto &p : manifest.params)
    if (Error e = tooMany(p->shape.size(), "param " + p->name)) return e;
  for (const auto &s : manifest.states)
    if (Error e = tooMany(s->shape.size(), "state " + s->name)) return e;
  for (const auto &entry : manifest.entries)
    for (auto [list, kind] : {std::pair(&entry->inputs, "input "), std::pair(&entry->outputs, "output ")})
      for (const auto &t : *list)
        if (Error e = tooMany(t->shape.size(), kind + t->name + " of entry " + entry->name)) return e;
  return Error::success();
}

//===- Dims -----------------------------------------------------------------===//

/// A dim is bound by an input's axis that is the dim alone, or else a multiple of it in every entry that has the dim,
/// unless a state's shape needs it when the session is made.
Error Assembler::dims() {
  DenseSet<UOpRef> byShape, bySession;
  for (const Entry &e : module.entries)
    for (const Value &in : e.inputs) byShape.insert(in.value->shape.begin(), in.value->shape.end());
  DenseSet<UOpRef> lacking; // dims that an entry has and no input of it gives
  for (const Entry &e : module.entries) {
    DenseSet<UOpRef> given;
    for (const Value &in : e.inputs)
      for (UOpRef extent : in.value->shape)
        if (auto x = dimMultiple(extent)) given.insert(x->dim);
    for (UOpRef dim : module.dimsOf(e))
      if (!given.contains(dim)) lacking.insert(dim);
  }
  for (const Entry &e : module.entries)
    for (const Value &in : e.inputs)
      for (UOpRef extent : in.value->shape)
        if (auto x = dimMultiple(extent); x && !lacking.contains(x->dim)) byShape.insert(x->dim);
  for (UOpRef s : schedule.states)
    for (UOpRef x : topoSort(s->shape)) bySession.insert(x);

  for (auto [i, dim] : enumerate(schedule.dims)) exprs.bind(dim, i);
  for (auto [i, dim] : enumerate(schedule.dims)) {
    auto out = std::make_unique<fmt::DimT>();
    out->name = dim->str.str();
    out->source = isInternal(i)             ? fmt::DimSource::Internal
                  : bySession.contains(dim) ? fmt::DimSource::Session
                  : byShape.contains(dim)   ? fmt::DimSource::Shape
                                            : fmt::DimSource::Host;
    out->lo = dim->lo;
    out->hi = dim->hi;
    manifest.dims.push_back(std::move(out));
  }
  for (const DimCheck &check : schedule.checks) {
    fmt::DimT &out = *manifest.dims[uint32_t(llvm::find(schedule.dims, check.dim) - schedule.dims.begin())];
    out.says = check.says;
    for (UOpRef extent : check.grid)
      if (Error e = set(out.grid.emplace_back(), extent)) return e;
  }
  return Error::success();
}

Error Assembler::equations() {
  for (const Equation &q : module.equations) {
    auto out = std::make_unique<fmt::EquationT>();
    if (Error e = set(out->lhs, q.left)) return e;
    if (Error e = set(out->rhs, q.right)) return e;
    out->text = indexText(q.left) + " == " + indexText(q.right);
    manifest.equations.push_back(std::move(out));
  }
  return Error::success();
}

//===- Weights --------------------------------------------------------------===//

Error Assembler::params() {
  // What is read only by derive routines that read nothing else is not stored: when the user gives it, all is there.
  std::vector<bool> stored(schedule.params.size());
  auto paramsOf = [](const Routine &r) {
    SmallVector<uint32_t> out;
    for (const ProgramBuffer &b : r.buffers)
      if (b.kind == BufferKind::Param) out.push_back(b.index);
    return out;
  };
  for (const ScheduledEntry &e : schedule.entries)
    for (uint32_t k : paramsOf(e.routine)) stored[k] = true;
  for (const Routine &r : schedule.derives)
    if (SmallVector<uint32_t> read = paramsOf(r); read.size() > 1)
      for (uint32_t k : read) stored[k] = true;
  // What the prepare program would give is stored, so that nobody packs at load time.
  std::vector<std::pair<Bytes, Digest>> contents(stored.size());
  DefaultThreadPool pool(hardware_concurrency(jobs));
  for (auto [i, p] : enumerate(schedule.params)) {
    if (!p.data || !stored[i]) continue;
    contents[i].first = p.data;
    pool.async([&layout = p.layout, shape = constantShape(p.param->shape), bytes = byteSize(p.param->dtype),
                &own = contents[i]] {
      auto &[data, digest] = own;
      if (!layout.isRowMajor())
        data = std::make_shared<const std::vector<uint8_t>>(arrange(layout, shape, bytes, *data));
      digest = Weights::digest(*data);
    });
  }
  pool.wait();
  for (auto [i, p] : enumerate(schedule.params)) {
    assert(p.declared && "a scheduled param is one of the module or a folded one");
    auto out = std::make_unique<fmt::ParamT>();
    out->name = p.param->str.str();
    out->dtype = dtypeOf(p.declared->dtype);
    out->shape = constantShape(p.declared->shape);
    out->layout = text(p.layout);
    bool rowMajor = p.layout.isRowMajor();
    std::vector<int64_t> shape = constantShape(p.param->shape);
    out->stored_bytes = rowMajor
                            ? denseBytes(shape, p.param->dtype)
                            : *elementCount(ctx, p.layout, p.param->shape)->constIndex() * byteSize(p.param->dtype);
    if (contents[i].first) out->place = parts.weights.add(contents[i].first, contents[i].second);
    if (p.prepare >= 0) out->prepare = p.prepare;
    if (p.derive >= 0) out->derive = p.derive;
    out->fixed = p.fixed;
    manifest.params.push_back(std::move(out));
  }
  for (const Routine &r : schedule.prepares) {
    Expected<std::unique_ptr<fmt::RoutineT>> out = routine(r);
    if (!out) return out.takeError();
    manifest.prepares.push_back(std::move(*out));
  }
  for (const Routine &r : schedule.derives) {
    Expected<std::unique_ptr<fmt::RoutineT>> out = routine(r);
    if (!out) return out.takeError();
    manifest.derives.push_back(std::move(*out));
  }
  return Error::success();
}

Error Assembler::states() {
  assert(schedule.states.size() == module.states.size() && "the states of a schedule are the module's");
  for (auto [s, source] : zip_equal(schedule.states, module.states)) {
    auto out = std::make_unique<fmt::StateT>();
    out->name = s->str.str();
    out->dtype = dtypeOf(s->dtype);
    if (Error e = set(out->shape, s->shape)) return e;
    if (source.initial) out->init = parts.weights.add(source.initial, Weights::digest(*source.initial));
    manifest.states.push_back(std::move(out));
  }
  return Error::success();
}

//===- Kernels and targets --------------------------------------------------===//

/// Where there are CPUs, a kernel does the work of its followers, which have none.
Error Assembler::costs(fmt::KernelT &out, const KernelSpec &spec) {
  if (!code.empty() && spec.follows) return Error::success();
  LaunchCosts found = costsOf(ctx, spec, !code.empty());
  if (Error e = set(out.bytes, found.bytes)) return e;
  if (found.flops)
    if (Error e = set(out.flops, found.flops)) return e;
  return set(out.steps, found.steps);
}

std::vector<fmt::Access> Assembler::accessOf(const Kernel &k) {
  std::vector<fmt::Access> out;
  for (const KernelBuffer &b : k.buffers)
    out.push_back(!b.write ? fmt::Access::Read : b.read ? fmt::Access::ReadWrite : fmt::Access::Write);
  return out;
}

/// A cubin and its PTX, the PTX alone, or HSACO.
TargetCode Assembler::codeOf(GpuBinary &b) {
  std::vector<uint8_t> text(b.assembly.begin(), b.assembly.end());
  if (b.code.empty()) return {std::move(text), fmt::SectionKind::DeviceText};
  return {std::move(b.code), fmt::SectionKind::DeviceCode, std::move(text)};
}

/// What a kernel takes, and the number of the term that bounds it.
static void setCost(fmt::KernelCodeT &out, double cycles, fmt::CostTerm bound) {
  constexpr double most = 1e18;
  if (cycles <= 0) return;
  out.cycles = uint64_t(std::llround(std::min(std::max(cycles, 1.0), most))), out.bound = bound;
}
static constexpr fmt::CostTerm cpuTerms[numCostTerms] = {
    fmt::CostTerm::Instructions, fmt::CostTerm::Arithmetic, fmt::CostTerm::Chains, fmt::CostTerm::Divisions,
    fmt::CostTerm::Loads,        fmt::CostTerm::Stores,     fmt::CostTerm::L2,     fmt::CostTerm::L3,
    fmt::CostTerm::Memory,       fmt::CostTerm::Masks};
static constexpr fmt::CostTerm gpuTerms[numGpuTerms] = {fmt::CostTerm::Arithmetic, fmt::CostTerm::MatrixUnits,
                                                        fmt::CostTerm::Chains,     fmt::CostTerm::SharedMemory,
                                                        fmt::CostTerm::L2,         fmt::CostTerm::Memory};

/// How kernel i is launched on a GPU, or by the emulator.
Error Assembler::gpuCode(fmt::KernelT &out, const GpuPart &g, size_t i, bool host) {
  const GpuLaunch &launch = g.gpu.module.kernels[i];
  assert(accessOf(g.gpu.kernels[i]) == out.access && "a kernel has the same buffers on every target");
  auto entry = std::make_unique<fmt::KernelCodeT>();
  if (host) entry->offset = g.host.image.offsets[i];
  if (Error e = set(entry->items, g.gpu.items[i])) return e;
  entry->scratch = exprs.constant(0);
  entry->plan = text(g.gpu.kernels[i].plan);
  if (const auto &cost = g.gpu.costs[i]; cost && !host) {
    const double *most = max_element(*cost);
    setCost(*entry, *most, gpuTerms[most - cost->begin()]);
  }
  entry->gpu = std::make_unique<fmt::GpuCodeT>();
  fmt::GpuCodeT &t = *entry->gpu;
  t.symbol = launch.name;
  t.threads = launch.threads, t.group = launch.group, t.dims = launch.dims;
  for (const GpuMap &map : launch.maps) t.maps.emplace_back(map.buffer, map.box, map.words);
  t.shared = host ? g.host.shared[i] : launch.shared;
  if (!host && !g.gpu.binary.kernels.empty()) {
    const GpuUse &use = g.gpu.binary.kernels[i];
    t.shared = use.shared, t.registers = use.registers, t.scalar_registers = use.scalarRegisters;
    t.stack = use.stack, t.spills = use.spills;
  }
  out.code.push_back(std::move(entry));
  return Error::success();
}

Error Assembler::kernels() {
  for (auto [i, spec] : enumerate(schedule.kernels)) {
    auto out = std::make_unique<fmt::KernelT>();
    out->name = spec.name;
    out->access = accessOf(code.empty() ? gpus.front().gpu.kernels[i] : code.front().kernels[i].kernel);
    for (const CompiledTarget &target : code) {
      const CompiledKernel &k = target.kernels[i];
      auto entry = std::make_unique<fmt::KernelCodeT>();
      entry->offset = k.offset;
      if (Error e = set(entry->items, k.items)) return e;
      entry->scratch = exprs.constant(k.scratch);
      entry->plan = text(k.kernel.plan);
      if (k.cost) setCost(*entry, k.cost->total(), cpuTerms[size_t(k.cost->bound())]);
      out->code.push_back(std::move(entry));
    }
    for (const GpuPart &g : gpus)
      if (Error e = gpuCode(*out, g, i, false)) return e;
    for (const GpuPart &g : gpus)
      if (g.cpu)
        if (Error e = gpuCode(*out, g, i, true)) return e;
    // A cost that the format cannot say is left out: it says how a launch is split and where a call runs, not what it
    // computes.
    consumeError(costs(*out, spec));
    manifest.kernels.push_back(std::move(out));
  }
  return Error::success();
}

Error Assembler::targets() {
  for (const CompiledTarget &c : code) {
    auto out = std::make_unique<fmt::TargetT>();
    out->name = c.target->name;
    out->arch = c.target->arch == Arch::AArch64 ? fmt::Arch::AArch64 : fmt::Arch::X86_64;
    out->abi = fmt::kCpuKernelAbi;
    out->features.assign(c.target->features.begin(), c.target->features.end());
    out->rank = c.target->rank;
    manifest.targets.push_back(std::move(out));
  }
  for (bool host : {false, true})
    for (auto [i, g] : enumerate(gpus)) {
      if (host && !g.cpu) continue;
      const GpuTarget &gpu = *g.gpu.target;
      auto out = std::make_unique<fmt::TargetT>();
      out->name = std::string(host ? "emu:" : "") + gpu.name;
      out->abi = host ? fmt::kHostBuildAbi : fmt::kGpuKernelAbi;
      out->gpu = std::make_unique<fmt::GpuTargetT>();
      out->gpu->warp = gpu.warp;
      if (host) {
        out->arch = g.cpu->arch == Arch::AArch64 ? fmt::Arch::AArch64 : fmt::Arch::X86_64;
        out->features.assign(g.cpu->features.begin(), g.cpu->features.end());
        out->gpu->of = code.size() + i;
      } else {
        out->arch = gpu.flavour == GpuFlavour::CUDA ? fmt::Arch::NVIDIA : fmt::Arch::AMD;
      }
      manifest.targets.push_back(std::move(out));
    }
  return Error::success();
}

//===- Programs -------------------------------------------------------------===//

/// What is declared of a function is what all its calls declare.
Expected<fmt::ExternalT> Assembler::external(const ExternalInstr &call) {
  fmt::ExternalT t;
  auto [at, isNew] = functions.try_emplace(call.function, uint32_t(manifest.functions.size()));
  if (isNew) {
    manifest.functions.push_back(std::make_unique<fmt::HostFunctionT>());
    fmt::HostFunctionT &f = *manifest.functions.back();
    f.name = call.function, f.deterministic = f.effects = true;
  }
  t.function = at->second;
  fmt::HostFunctionT &f = *manifest.functions[t.function];
  f.deterministic &= call.deterministic, f.effects &= call.effects;
  t.inputs = uint32_t(call.operands.size());
  t.beside = call.beside;
  for (auto *list : {&call.operands, &call.results})
    for (const ExternalInstr::Tensor &x : *list) {
      fmt::HostTensorT &to = *t.tensors.emplace_back(std::make_unique<fmt::HostTensorT>());
      to.buffer = x.buffer, to.dtype = dtypeOf(x.dtype);
      if (Error e = set(to.shape, x.shape)) return std::move(e);
    }
  return std::move(t);
}

Error Assembler::instruction(fmt::ProgramT &out, const Instr &instr) {
  fmt::InstrUnion &u = out.code.emplace_back();
  auto dimNumber = [&](UOpRef dim) { return uint32_t(llvm::find(schedule.dims, dim) - schedule.dims.begin()); };
  auto add = [&](auto &&t, Error e) {
    u.Set(std::move(t));
    return e;
  };
  if (auto *i = std::get_if<LaunchInstr>(&instr)) {
    fmt::LaunchT t;
    for (const LaunchInstr::Variant &v : i->variants) {
      auto variant = std::make_unique<fmt::VariantT>();
      variant->kernel = v.kernel;
      if (v.left) {
        Expected<uint32_t> guard = exprs.addAtMost(v.left, v.right);
        if (!guard) return guard.takeError();
        variant->guard = *guard;
      }
      t.variants.push_back(std::move(variant));
    }
    t.buffers = i->buffers;
    for (const std::string &name : i->origins.names) {
      auto [at, isNew] = origins.try_emplace(name, uint32_t(manifest.origins.size()));
      if (isNew) manifest.origins.push_back(name);
      t.origins.push_back(at->second);
    }
    t.more_origins = i->origins.count - uint32_t(i->origins.names.size());
    return add(std::move(t), Error::success());
  }
  if (auto *i = std::get_if<CopyInstr>(&instr)) {
    fmt::CopyT t;
    t.dst = i->dst, t.src = i->src;
    Error e = set(t.bytes, i->bytes);
    return add(std::move(t), std::move(e));
  }
  if (auto *i = std::get_if<SetDimInstr>(&instr)) {
    fmt::SetDimT t;
    t.dim = dimNumber(i->dim);
    Error e = set(t.value, i->value);
    return add(std::move(t), std::move(e));
  }
  if (auto *i = std::get_if<ReadDimInstr>(&instr)) {
    fmt::ReadDimT t;
    t.dim = dimNumber(i->dim), t.buffer = i->buffer;
    return add(std::move(t), Error::success());
  }
  if (auto *i = std::get_if<WhileInstr>(&instr)) {
    fmt::WhileT t;
    t.cond = i->cond, t.flag = i->flag, t.body = i->body;
    return add(std::move(t), Error::success());
  }
  if (auto *i = std::get_if<LoopInstr>(&instr)) {
    fmt::LoopT t;
    t.counter = dimNumber(i->counter), t.body = i->body;
    Error e = set(t.count, i->count);
    return add(std::move(t), std::move(e));
  }
  if (auto *i = std::get_if<CondInstr>(&instr)) {
    fmt::CondT t;
    t.flag = i->flag, t.then = i->then, t.otherwise = i->otherwise;
    return add(std::move(t), Error::success());
  }
  if (auto *i = std::get_if<ExternalInstr>(&instr)) {
    Expected<fmt::ExternalT> t = external(*i);
    if (!t) return t.takeError();
    return add(std::move(*t), Error::success());
  }
  if (auto *i = std::get_if<WaitInstr>(&instr)) {
    fmt::WaitT t;
    t.left = i->left;
    return add(std::move(t), Error::success());
  }
  const auto &i = std::get<SwapInstr>(instr);
  fmt::SwapT t;
  t.a = i.a, t.b = i.b;
  return add(std::move(t), Error::success());
}

Expected<std::unique_ptr<fmt::RoutineT>> Assembler::routine(const Routine &r) {
  auto out = std::make_unique<fmt::RoutineT>();
  for (const ProgramBuffer &b : r.buffers) {
    auto buffer = std::make_unique<fmt::BufferT>();
    static_assert(uint8_t(BufferKind::Slot) == uint8_t(fmt::BufferKind::Slot) &&
                  uint8_t(BufferKind::Param) == uint8_t(fmt::BufferKind::Param));
    buffer->kind = fmt::BufferKind(b.kind);
    buffer->index = b.index;
    if (Error e = set(buffer->bytes, b.bytes)) return std::move(e);
    out->buffers.push_back(std::move(buffer));
  }
  if (Error e = set(out->slots, r.slots)) return std::move(e);
  for (const std::vector<Instr> &program : r.programs) {
    auto p = std::make_unique<fmt::ProgramT>();
    for (const Instr &instr : program)
      if (Error e = instruction(*p, instr)) return std::move(e);
    out->programs.push_back(std::move(p));
  }
  return std::move(out);
}

Expected<std::unique_ptr<fmt::StridedRoutineT>> Assembler::strided(const StridedRoutine &r) {
  auto out = std::make_unique<fmt::StridedRoutineT>();
  for (const StridedTensor &t : r.tensors) {
    auto to = std::make_unique<fmt::StridedTensorT>();
    to->output = t.isOutput, to->index = t.index, to->span = number(t.span);
    for (UOpRef stride : t.strides) to->strides.push_back(number(stride));
    out->tensors.push_back(std::move(to));
  }
  auto body = routine(r.routine);
  if (!body) return body.takeError();
  out->routine = std::move(*body);
  return std::move(out);
}

//===- Entries --------------------------------------------------------------===//

Expected<std::unique_ptr<fmt::TensorT>> Assembler::output(const Value &value, ArrayRef<UOpRef> shape,
                                                          ArrayRef<UOpRef> bound) {
  auto out = std::make_unique<fmt::TensorT>();
  out->name = value.name;
  out->dtype = dtypeOf(value.value->dtype);
  out->tap = value.value->is(Op::Tap);
  if (Error e = set(out->shape, shape)) return std::move(e);
  if (bound != shape)
    if (Error e = set(out->bound, bound)) return std::move(e);
  return std::move(out);
}

/// Which states the instructions of its routines read and write.
void Assembler::stateUse(fmt::EntryT &out) const {
  SmallBitVector reads(manifest.states.size()), writes(manifest.states.size());
  auto ofRoutine = [&](const fmt::RoutineT &r) {
    auto use = [&](uint32_t buffer, bool read, bool write) {
      const fmt::BufferT &b = *r.buffers[buffer];
      if (b.kind != fmt::BufferKind::State) return;
      if (read) reads.set(b.index);
      if (write) writes.set(b.index);
    };
    for (const auto &program : r.programs)
      for (const fmt::InstrUnion &i : program->code) {
        if (const fmt::LaunchT *launch = i.AsLaunch())
          for (const auto &v : launch->variants)
            for (auto [buffer, access] : zip_equal(launch->buffers, manifest.kernels[v->kernel]->access))
              use(buffer, access != fmt::Access::Write, access != fmt::Access::Read);
        if (const fmt::CopyT *copy = i.AsCopy()) use(copy->dst, false, true), use(copy->src, true, false);
        if (const fmt::ReadDimT *read = i.AsReadDim()) use(read->buffer, true, false);
        if (const fmt::WhileT *loop = i.AsWhile()) use(loop->flag, true, false);
        if (const fmt::CondT *cond = i.AsCond()) use(cond->flag, true, false);
        if (const fmt::ExternalT *call = i.AsExternal())
          for (const auto &t : ArrayRef(call->tensors).take_front(call->inputs)) use(t->buffer, true, false);
      }
    // A state's buffer that only a kernel's window writes keeps the rest of its bytes: it is read as well.
    for (const auto &b : r.buffers)
      if (b->kind == fmt::BufferKind::State && !writes[b->index]) reads.set(b->index);
  };
  ofRoutine(*out.routine);
  if (out.strided) ofRoutine(*out.strided->routine);
  for (unsigned s : reads.set_bits()) out.reads.push_back(s);
  for (unsigned s : writes.set_bits()) out.writes.push_back(s);
}

Error Assembler::entries() {
  for (const ScheduledEntry &e : schedule.entries) {
    auto out = std::make_unique<fmt::EntryT>();
    out->name = e.entry->name;
    DenseSet<UOpRef> bound;
    for (auto [i, in] : enumerate(e.entry->inputs)) {
      auto t = std::make_unique<fmt::TensorT>();
      t->name = in.name;
      t->dtype = dtypeOf(in.value->dtype);
      if (Error error = set(t->shape, in.value->shape)) return error;
      out->inputs.push_back(std::move(t));
      for (auto [axis, extent] : enumerate(in.value->shape))
        if (extent->is(Op::Dim) && isByShape(extent) && bound.insert(extent).second)
          out->binds.emplace_back(number(extent), i, axis);
    }
    for (auto [i, in] : enumerate(e.entry->inputs))
      for (auto [axis, extent] : enumerate(in.value->shape))
        if (auto x = dimMultiple(extent); x && isByShape(x->dim) && bound.insert(x->dim).second)
          out->multiples.emplace_back(number(x->dim), i, axis, x->scale, x->offset);
    for (auto [value, shape, extent] : zip_equal(e.entry->outputs, e.outputShapes, e.outputBounds)) {
      auto t = output(value, shape, extent);
      if (!t) return t.takeError();
      out->outputs.push_back(std::move(*t));
    }
    for (UOpRef dim : module.dimsOf(*e.entry)) {
      if (bound.contains(dim)) continue;
      if (isByShape(dim))
        return createStringError(std::errc::not_supported,
                                 "entry %s uses dim %s, which is bound by the shape of an input of another entry: give "
                                 "the entry an input with an axis of that extent, or use a dim of its own",
                                 out->name.c_str(), dim->str.str().c_str());
      out->host_dims.push_back(number(dim));
      bound.insert(dim);
    }
    for (const EntryEquation &q : module.equationsOf(*e.entry)) {
      auto own = std::make_unique<fmt::EquationT>(*manifest.equations[q.number]);
      if (Error error = set(own->lhs, q.left)) return error;
      if (Error error = set(own->rhs, q.right)) return error;
      const fmt::EquationT &stated = *manifest.equations[q.number];
      bool isSame = own->lhs == stated.lhs && own->rhs == stated.rhs;
      out->equations.push_back(isSame ? q.number : manifest.equations.size());
      if (!isSame) manifest.equations.push_back(std::move(own));
    }
    auto r = routine(e.routine);
    if (!r) return r.takeError();
    out->routine = std::move(*r);
    if (e.strided) {
      auto other = strided(*e.strided);
      if (!other) return other.takeError();
      out->strided = std::move(*other);
    }
    stateUse(*out);
    manifest.entries.push_back(std::move(out));
  }
  return Error::success();
}

} // namespace

Expected<BundleParts> astra::assemble(const Module &module, const Schedule &schedule, std::vector<CompiledTarget> code,
                                      std::vector<GpuPart> gpus, unsigned jobs, Provenance provenance) {
  assert(!(code.empty() && gpus.empty()) && "at least one target");
  return Assembler(module, schedule, std::move(code), std::move(gpus), jobs, std::move(provenance)).run();
}
