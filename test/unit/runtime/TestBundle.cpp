//===- TestBundle.cpp: bundles for the tests of the runtime ---------------===//
// Takes:    see TestBundle.h.
// Gives:    the standard bundle, entry by entry; a reader of linked images.
// Keeps:    deterministic bytes.
// Does not: check (tests do).
#include "TestBundle.h"
#include "src/Sha256.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>

using namespace astra;
using namespace astra::test;

Image::Image(const char *path) {
  std::ifstream in(path, std::ios::binary);
  Bytes file((std::istreambuf_iterator<char>(in)), {});
  auto *elf = reinterpret_cast<Elf64_Ehdr *>(file.data());
  auto *sections = reinterpret_cast<Elf64_Shdr *>(file.data() + elf->e_shoff);
  const char *names = reinterpret_cast<char *>(file.data() + sections[elf->e_shstrndx].sh_offset);
  for (int i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr &s = sections[i];
    if (strcmp(names + s.sh_name, ".image") == 0) code.assign(&file[s.sh_offset], &file[s.sh_offset] + s.sh_size);
    if (s.sh_type != SHT_SYMTAB) continue;
    auto *symbol = reinterpret_cast<Elf64_Sym *>(file.data() + s.sh_offset);
    const char *strings = reinterpret_cast<char *>(file.data() + sections[s.sh_link].sh_offset);
    for (size_t k = 0; k < s.sh_size / sizeof(*symbol); k++)
      symbols.emplace_back(strings + symbol[k].st_name, symbol[k].st_value);
  }
}

uint64_t Image::offset(const std::string &name) const {
  for (const auto &[symbol, value] : symbols)
    if (symbol == name) return value;
  fprintf(stderr, "no kernel %s in the image\n", name.c_str());
  abort();
}

ManifestMaker::ManifestMaker() : x86(ASTRA_IMAGE_X86), aarch64(ASTRA_IMAGE_AARCH64) {
  m.contract = "astra-num/1", m.numerics = "strict", m.module_ = "test";
  auto target = [&](const char *name, fmt::Arch arch, uint32_t section, uint32_t rank,
                    std::vector<std::string> features) {
    auto t = std::make_unique<fmt::TargetT>();
    t->name = name, t->arch = arch, t->section = section, t->rank = rank, t->features = std::move(features);
    m.targets.push_back(std::move(t));
  };
  target("cpu:x86-64", fmt::Arch::X86_64, 1, 0, {"sse2"});
  target("cpu:x86-64-v3", fmt::Arch::X86_64, 1, 1, {"avx2", "fma"});
  target("cpu:x86-64-future", fmt::Arch::X86_64, 1, 9, {"quantum"});
  target("cpu:aarch64", fmt::Arch::AArch64, 2, 0, {"asimd"});
}

uint32_t ManifestMaker::expr(Code code) {
  auto e = std::make_unique<fmt::ExprT>();
  e->code = std::move(code);
  m.exprs.push_back(std::move(e));
  return uint32_t(m.exprs.size() - 1);
}

uint32_t ManifestMaker::dim(const char *name, fmt::DimSource source, int64_t lo, int64_t hi) {
  auto d = std::make_unique<fmt::DimT>();
  d->name = name, d->source = source, d->lo = lo, d->hi = hi;
  m.dims.push_back(std::move(d));
  return uint32_t(m.dims.size() - 1);
}

uint32_t ManifestMaker::kernel(const char *name, std::vector<fmt::Access> access, uint32_t items, uint32_t scratch) {
  auto k = std::make_unique<fmt::KernelT>();
  k->name = name, k->access = std::move(access);
  for (const auto &target : m.targets) {
    auto code = std::make_unique<fmt::KernelCodeT>();
    code->offset = (target->arch == fmt::Arch::X86_64 ? x86 : aarch64).offset(name);
    code->items = items, code->scratch = scratch, code->plan = "by hand";
    k->code.push_back(std::move(code));
  }
  m.kernels.push_back(std::move(k));
  return uint32_t(m.kernels.size() - 1);
}

static std::unique_ptr<fmt::PlaceT> place(Bytes &weights, const std::vector<float> &values) {
  auto p = std::make_unique<fmt::PlaceT>();
  weights.resize((weights.size() + 63) / 64 * 64);
  p->offset = weights.size(), p->length = values.size() * 4, p->sha256.resize(32);
  const auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
  weights.insert(weights.end(), bytes, bytes + p->length);
  rt::Sha256 hash;
  hash.update(bytes, p->length);
  hash.finish(p->sha256.data());
  return p;
}

uint32_t ManifestMaker::param(const char *name, std::vector<int64_t> shape, const std::vector<float> &stored,
                              const char *layout) {
  auto p = std::make_unique<fmt::ParamT>();
  p->name = name, p->dtype = fmt::DType::F32, p->shape = std::move(shape), p->layout = layout,
  p->stored_bytes = stored.size() * 4;
  p->place = place(weights, stored);
  m.params.push_back(std::move(p));
  return uint32_t(m.params.size() - 1);
}

void ManifestMaker::asset(const char *name, const std::vector<float> &values) {
  auto a = std::make_unique<fmt::AssetT>();
  a->name = name, a->place = place(weights, values);
  m.assets.push_back(std::move(a));
}

uint32_t ManifestMaker::state(const char *name, std::vector<uint32_t> shape, const std::vector<float> *init) {
  auto s = std::make_unique<fmt::StateT>();
  s->name = name, s->dtype = fmt::DType::F32, s->shape = std::move(shape);
  if (init) s->init = place(weights, *init);
  m.states.push_back(std::move(s));
  return uint32_t(m.states.size() - 1);
}

fmt::EntryT &ManifestMaker::entry(const char *name) {
  m.entries.push_back(std::make_unique<fmt::EntryT>());
  m.entries.back()->name = name;
  m.entries.back()->routine = std::make_unique<fmt::RoutineT>();
  addProgram(*m.entries.back()->routine);
  return *m.entries.back();
}

Bytes ManifestMaker::manifest() {
  flatbuffers::FlatBufferBuilder builder;
  fmt::FinishManifestBuffer(builder, fmt::Manifest::Pack(builder, &m));
  return Bytes(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
}

uint32_t test::addBuffer(fmt::RoutineT &r, fmt::BufferKind kind, uint32_t index, uint32_t bytes, uint64_t offset) {
  auto b = std::make_unique<fmt::BufferT>();
  b->kind = kind, b->index = index, b->bytes = bytes, b->offset = offset;
  r.buffers.push_back(std::move(b));
  return uint32_t(r.buffers.size() - 1);
}

uint32_t test::addProgram(fmt::RoutineT &r) {
  r.programs.push_back(std::make_unique<fmt::ProgramT>());
  return uint32_t(r.programs.size() - 1);
}

void test::addLaunch(fmt::RoutineT &r, uint32_t program, uint32_t kernel, std::vector<uint32_t> buffers) {
  fmt::LaunchT launch;
  launch.variants.push_back(std::make_unique<fmt::VariantT>());
  launch.variants.back()->kernel = kernel;
  launch.buffers = std::move(buffers);
  addInstr(r, program, std::move(launch));
}

void test::addTensor(std::vector<std::unique_ptr<fmt::TensorT>> &list, const char *name, std::vector<uint32_t> shape,
                     std::vector<uint32_t> bound, fmt::DType dtype) {
  auto t = std::make_unique<fmt::TensorT>();
  t->name = name, t->dtype = dtype, t->shape = std::move(shape), t->bound = std::move(bound);
  list.push_back(std::move(t));
}

//===- Files --------------------------------------------------------------===//

static fmt::Section *sectionTable(Bytes &bundle) {
  return reinterpret_cast<fmt::Section *>(bundle.data() + sizeof(fmt::Header));
}

static void rehashSection(uint8_t *bundle, uint32_t index) {
  fmt::Section &s = reinterpret_cast<fmt::Section *>(bundle + sizeof(fmt::Header))[index];
  rt::Sha256 hash;
  hash.update(bundle + s.offset, s.bytes);
  hash.finish(s.sha256);
}

static void rehashHeader(uint8_t *bundle) {
  auto *header = reinterpret_cast<fmt::Header *>(bundle);
  rt::Sha256 hash;
  hash.update(header, offsetof(fmt::Header, digest));
  hash.update(header + 1, header->sectionCount * sizeof(fmt::Section));
  hash.finish(header->digest);
}

void test::rehash(Bytes &bundle) {
  for (uint32_t i = 0; i < reinterpret_cast<fmt::Header *>(bundle.data())->sectionCount; i++) {
    const fmt::Section &s = sectionTable(bundle)[i];
    if (s.kind == uint32_t(fmt::SectionKind::Signature) || s.offset > bundle.size() ||
        s.bytes > bundle.size() - s.offset)
      continue;
    rehashSection(bundle.data(), i);
  }
  rehashHeader(bundle.data());
}

void test::rehashManifest(uint8_t *bundle) {
  rehashSection(bundle, 0);
  rehashHeader(bundle);
}

Bytes test::assemble(const std::vector<RawSection> &sections, uint64_t features, Bytes (*sign)(const fmt::Header &)) {
  fmt::Header header = {};
  memcpy(header.magic, fmt::kMagic, 8);
  header.major = fmt::kMajor, header.minor = fmt::kMinor, header.features = features,
  header.sectionCount = uint32_t(sections.size());
  Bytes out(sizeof(header) + sections.size() * sizeof(fmt::Section));
  for (size_t i = 0; i < sections.size(); i++) {
    bool mapped = sections[i].kind == fmt::SectionKind::Code || sections[i].kind == fmt::SectionKind::Weights;
    uint64_t alignment = mapped ? fmt::kMapAlign : fmt::kAlign;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    fmt::Section record = {};
    record.kind = uint32_t(sections[i].kind), record.offset = out.size(), record.bytes = sections[i].bytes.size();
    sectionTable(out)[i] = record;
    out.insert(out.end(), sections[i].bytes.begin(), sections[i].bytes.end());
  }
  header.fileBytes = out.size();
  memcpy(out.data(), &header, sizeof(header));
  rehash(out);
  if (sign) {
    Bytes signature = sign(*reinterpret_cast<fmt::Header *>(out.data()));
    memcpy(out.data() + out.size() - signature.size(), signature.data(), signature.size());
  }
  return out;
}

Bytes test::assemble(ManifestMaker &maker, uint64_t features) {
  return assemble({{fmt::SectionKind::Manifest, maker.manifest()},
                   {fmt::SectionKind::Code, maker.x86.code},
                   {fmt::SectionKind::Code, maker.aarch64.code},
                   {fmt::SectionKind::Weights, maker.weights}},
                  features);
}

static const Bytes deviceCode = {0x7f, 'E', 'L', 'F', 'c', 'u', 'b', 'i', 'n'};

Bytes test::assembleGpu(ManifestMaker &maker) {
  return assemble({{fmt::SectionKind::Manifest, maker.manifest()},
                   {fmt::SectionKind::Code, maker.x86.code},
                   {fmt::SectionKind::Code, maker.aarch64.code},
                   {fmt::SectionKind::DeviceCode, deviceCode},
                   {fmt::SectionKind::DeviceText, {'/', '/', 'P', 'T', 'X'}},
                   {fmt::SectionKind::Weights, maker.weights}},
                  fmt::kFeatureGpu);
}

ManifestMaker test::gpuManifest() {
  ManifestMaker k = standardManifest();
  auto add = [&](const char *name, fmt::Arch arch, uint32_t abi, uint32_t section) -> fmt::GpuTargetT & {
    auto t = std::make_unique<fmt::TargetT>();
    t->name = name, t->arch = arch, t->abi = abi, t->section = section;
    t->gpu = std::make_unique<fmt::GpuTargetT>();
    t->gpu->warp = 32;
    k.m.targets.push_back(std::move(t));
    return *k.m.targets.back()->gpu;
  };
  bool x86 =
#if defined(__x86_64__)
      true;
#else
      false;
#endif
  add("cuda:sm_90", fmt::Arch::NVIDIA, fmt::kGpuKernelAbi, 3).text = 4;
  fmt::GpuTargetT &host =
      add("emu:cuda:sm_90", x86 ? fmt::Arch::X86_64 : fmt::Arch::AArch64, fmt::kHostBuildAbi, x86 ? 1 : 2);
  host.of = 4;
  host.of_sha256.resize(32);
  rt::Sha256 hash;
  hash.update(deviceCode.data(), deviceCode.size());
  hash.finish(host.of_sha256.data());
  for (const auto &kernel : k.m.kernels)
    for (uint64_t offset : {uint64_t(0), kernel->code[x86 ? 0 : 3]->offset}) {
      auto code = std::make_unique<fmt::KernelCodeT>();
      code->offset = offset, code->items = kernel->code[0]->items, code->scratch = kernel->code[0]->scratch;
      code->gpu = std::make_unique<fmt::GpuCodeT>();
      code->gpu->symbol = kernel->name, code->gpu->threads = 64, code->gpu->group = 2, code->gpu->shared = 48;
      code->gpu->dims = {3, 0};
      kernel->code.push_back(std::move(code));
    }
  return k;
}

static const Bytes deviceText = {'/', '/', 'P', 'T', 'X'};

Bytes test::textHash() {
  Bytes out(32);
  rt::Sha256 hash;
  hash.update(deviceText.data(), deviceText.size());
  hash.finish(out.data());
  return out;
}

Bytes test::deviceBundle(void (*change)(fmt::ManifestT &)) {
  constexpr bool x86 =
#if defined(__x86_64__)
      true;
#else
      false;
#endif
  const Bytes cubin = {0x7f, 'E', 'L', 'F', 'c', 'u', 'b', 'i', 'n'}, hsaco = {0x7f, 'E', 'L', 'F', 'h', 's', 'a'};
  ManifestMaker k = standardManifest();
  uint32_t none = k.number(0);
  auto add = [&](const char *name, fmt::Arch arch, uint32_t abi, uint32_t section) -> fmt::GpuTargetT & {
    auto t = std::make_unique<fmt::TargetT>();
    t->name = name, t->arch = arch, t->abi = abi, t->section = section;
    t->gpu = std::make_unique<fmt::GpuTargetT>();
    t->gpu->warp = 64;
    k.m.targets.push_back(std::move(t));
    return *k.m.targets.back()->gpu;
  };
  auto addHost = [&](const char *name, uint32_t of, const Bytes &code) {
    fmt::GpuTargetT &host = add(name, x86 ? fmt::Arch::X86_64 : fmt::Arch::AArch64, fmt::kHostBuildAbi, x86 ? 1 : 2);
    host.of = of;
    host.of_sha256.resize(32);
    rt::Sha256 hash;
    hash.update(code.data(), code.size());
    hash.finish(host.of_sha256.data());
  };
  add("cuda:sm_90", fmt::Arch::NVIDIA, fmt::kGpuKernelAbi, 3).text = 4;
  add("hip:gfx942", fmt::Arch::AMD, fmt::kGpuKernelAbi, 5);
  addHost("emu:cuda:sm_90", 4, cubin);
  addHost("emu:hip:gfx942", 5, hsaco);
  for (const auto &kernel : k.m.kernels)
    for (uint64_t offset :
         {uint64_t(0), uint64_t(0), kernel->code[x86 ? 0 : 3]->offset, kernel->code[x86 ? 0 : 3]->offset}) {
      auto code = std::make_unique<fmt::KernelCodeT>();
      code->offset = offset, code->items = kernel->code[0]->items, code->scratch = none;
      code->gpu = std::make_unique<fmt::GpuCodeT>();
      code->gpu->symbol = kernel->name, code->gpu->threads = 64, code->gpu->group = 64;
      code->gpu->dims = {0, 1, 2, 3, 4};
      kernel->code.push_back(std::move(code));
    }
  if (change) change(k.m);
  return assemble({{fmt::SectionKind::Manifest, k.manifest()},
                   {fmt::SectionKind::Code, k.x86.code},
                   {fmt::SectionKind::Code, k.aarch64.code},
                   {fmt::SectionKind::DeviceCode, cubin},
                   {fmt::SectionKind::DeviceText, deviceText},
                   {fmt::SectionKind::DeviceCode, hsaco},
                   {fmt::SectionKind::Weights, k.weights}},
                  fmt::kFeatureGpu);
}

//===- The standard bundle ------------------------------------------------===//

ManifestMaker test::standardManifest() {
  using fmt::Access;
  using fmt::BufferKind;
  ManifestMaker k;
  auto component = std::make_unique<fmt::ComponentT>();
  component->name = "by hand", component->version = "1", component->license = "MIT";
  k.m.toolchain.push_back(std::move(component));

  // Dims 0 .. 3 are what kernels.c expects: n, the data dim k, a loop's counter, a number of the host.
  uint32_t n = k.dim("n", fmt::DimSource::Shape, 0, 5000);
  uint32_t data = k.dim("k", fmt::DimSource::Internal, 0, 5000);
  uint32_t counter = k.dim("i", fmt::DimSource::Internal, 0, 1000000);
  uint32_t count = k.dim("count", fmt::DimSource::Host, 0, 1000);
  uint32_t cap = k.dim("cap", fmt::DimSource::Session, 1, 100);
  k.m.dims[data]->bound = k.expr({{fmt::ExprCode::Dim, n}});
  uint32_t nValue = k.expr({{fmt::ExprCode::Dim, n}}), dataValue = k.expr({{fmt::ExprCode::Dim, data}});
  uint32_t nBytes = k.dimValue(n, 4), zero = k.number(0), one = k.number(1), four = k.number(4), eight = k.number(8);
  uint32_t three = k.number(3), bytes32 = k.number(32), bytes96 = k.number(96), bytes16 = k.number(16);
  auto bind = [&](fmt::EntryT &e) { e.binds.push_back({n, 0, 0}); };

  uint32_t add = k.kernel("add", {Access::Read, Access::Read, Access::Write}, nValue, zero);
  uint32_t twice = k.kernel("twice", {Access::Read, Access::Read, Access::Write}, nValue, zero);
  { // @add(x[n], y[n]) -> z[n]
    fmt::EntryT &e = k.entry("add");
    bind(e);
    addTensor(e.inputs, "x", {nValue});
    addTensor(e.inputs, "y", {nValue});
    addTensor(e.outputs, "z", {nValue});
    fmt::RoutineT &r = *e.routine;
    uint32_t x = addBuffer(r, BufferKind::Input, 0, nBytes), y = addBuffer(r, BufferKind::Input, 1, nBytes),
             z = addBuffer(r, BufferKind::Output, 0, nBytes);
    addLaunch(r, 0, add, {x, y, z});
  }
  { // @double(x[n]) -> z[n]: two variants, chosen by n < 16
    fmt::EntryT &e = k.entry("double");
    bind(e);
    addTensor(e.inputs, "x", {nValue});
    addTensor(e.outputs, "z", {nValue});
    fmt::RoutineT &r = *e.routine;
    uint32_t x = addBuffer(r, BufferKind::Input, 0, nBytes), z = addBuffer(r, BufferKind::Output, 0, nBytes);
    fmt::LaunchT launch;
    launch.buffers = {x, x, z};
    for (int v = 0; v < 2; v++) launch.variants.push_back(std::make_unique<fmt::VariantT>());
    launch.variants[0]->guard = k.expr({{fmt::ExprCode::Dim, n}, {fmt::ExprCode::Const, 16}, {fmt::ExprCode::Lt, 0}});
    launch.variants[0]->kernel = add, launch.variants[1]->kernel = twice;
    k.m.origins = {"scale", "sum"};
    launch.origins = {1, 0}, launch.more_origins = 3;
    addInstr(r, 0, std::move(launch));
  }
  { // @apply(x[n, 3]) -> y[n, 8]: a packed weight with a prepare program, scratch memory
    std::vector<float> stored(24);
    for (int i = 0; i < 8; i++)
      for (int c = 0; c < 3; c++) stored[size_t((i / 4 * 3 + c) * 4 + i % 4)] = float(i * 3 + c);
    uint32_t w = k.param("w", {8, 3}, stored, "[n/4][k][4]");
    uint32_t pack = k.kernel("pack", {Access::Read, Access::Write}, eight, zero);
    auto prepare = std::make_unique<fmt::RoutineT>();
    uint32_t from = addBuffer(*prepare, BufferKind::Input, 0, bytes96),
             to = addBuffer(*prepare, BufferKind::Output, 0, bytes96);
    addLaunch(*prepare, addProgram(*prepare), pack, {from, to});
    k.m.params[w]->prepare = uint32_t(k.m.prepares.size());
    k.m.prepares.push_back(std::move(prepare));

    uint32_t apply = k.kernel("apply", {Access::Read, Access::Read, Access::Write}, nValue, bytes32);
    fmt::EntryT &e = k.entry("apply");
    bind(e);
    addTensor(e.inputs, "x", {nValue, three});
    addTensor(e.outputs, "y", {nValue, eight});
    fmt::RoutineT &r = *e.routine;
    uint32_t x = addBuffer(r, BufferKind::Input, 0, k.dimValue(n, 12)), p = addBuffer(r, BufferKind::Param, w, bytes96),
             y = addBuffer(r, BufferKind::Output, 0, k.dimValue(n, 32));
    addLaunch(r, 0, apply, {x, p, y});
  }
  uint32_t accumulate;
  { // @accumulate(x[]) -> y[]: a state with a first value
    std::vector<float> first = {10};
    uint32_t sum = k.state("sum", {}, &first);
    uint32_t kernel = accumulate = k.kernel("accumulate", {Access::ReadWrite, Access::Read, Access::Write}, one, zero);
    fmt::EntryT &e = k.entry("accumulate");
    addTensor(e.inputs, "x", {});
    addTensor(e.outputs, "y", {});
    e.reads = e.writes = {sum};
    fmt::RoutineT &r = *e.routine;
    uint32_t s = addBuffer(r, BufferKind::State, sum, four), x = addBuffer(r, BufferKind::Input, 0, four),
             y = addBuffer(r, BufferKind::Output, 0, four);
    addLaunch(r, 0, kernel, {s, x, y});
  }
  { // @compact(x[n]) -> v[k <= n], t[]: a data dim and a sum over it
    uint32_t compact = k.kernel("compact", {Access::Read, Access::Write, Access::Write}, one, zero);
    uint32_t total = k.kernel("total", {Access::Read, Access::Write}, one, zero);
    fmt::EntryT &e = k.entry("compact");
    bind(e);
    addTensor(e.inputs, "x", {nValue});
    addTensor(e.outputs, "v", {dataValue}, {nValue});
    addTensor(e.outputs, "t", {});
    fmt::RoutineT &r = *e.routine;
    r.slots = {eight};
    uint32_t x = addBuffer(r, BufferKind::Input, 0, nBytes), v = addBuffer(r, BufferKind::Output, 0, nBytes),
             t = addBuffer(r, BufferKind::Output, 1, four);
    uint32_t found = addBuffer(r, BufferKind::Slot, 0, eight);
    addLaunch(r, 0, compact, {x, v, found});
    fmt::ReadDimT read;
    read.dim = data, read.buffer = found;
    addInstr(r, 0, std::move(read));
    addLaunch(r, 0, total, {v, t});
  }
  uint32_t step = k.kernel("step", {Access::Read, Access::Write}, one, zero);
  uint32_t small = k.kernel("small", {Access::Read, Access::Write}, one, zero);
  auto copy = [&](fmt::RoutineT &r, uint32_t program, uint32_t dst, uint32_t src) {
    fmt::CopyT c;
    c.dst = dst, c.src = src, c.bytes = four;
    addInstr(r, program, std::move(c));
  };
  auto carried = [&](fmt::RoutineT &r, uint32_t program, uint32_t a, uint32_t b) {
    addLaunch(r, program, step, {a, b});
    fmt::SwapT swap;
    swap.a = a, swap.b = b;
    addInstr(r, program, std::move(swap));
  };
  { // @loop(x[]) -> y[]: count times y = 2 y + i, count a host dim, carried by swaps
    fmt::EntryT &e = k.entry("loop");
    addTensor(e.inputs, "x", {});
    addTensor(e.outputs, "y", {});
    e.host_dims = {count};
    fmt::RoutineT &r = *e.routine;
    r.slots = {four, four};
    uint32_t x = addBuffer(r, BufferKind::Input, 0, four), y = addBuffer(r, BufferKind::Output, 0, four);
    uint32_t a = addBuffer(r, BufferKind::Slot, 0, four), b = addBuffer(r, BufferKind::Slot, 1, four);
    uint32_t body = addProgram(r);
    carried(r, body, a, b);
    copy(r, 0, a, x);
    fmt::LoopT loop;
    loop.counter = counter, loop.count = k.expr({{fmt::ExprCode::Dim, count}}), loop.body = body;
    addInstr(r, 0, std::move(loop));
    copy(r, 0, y, a);
  }
  { // @grow(x[]) -> y[]: while y < 100: y = 2 y + 0; then a cond that doubles once more if it is small (never)
    fmt::EntryT &e = k.entry("grow");
    addTensor(e.inputs, "x", {});
    addTensor(e.outputs, "y", {});
    fmt::RoutineT &r = *e.routine;
    r.slots = {four, four, one};
    uint32_t x = addBuffer(r, BufferKind::Input, 0, four), y = addBuffer(r, BufferKind::Output, 0, four);
    uint32_t a = addBuffer(r, BufferKind::Slot, 0, four), b = addBuffer(r, BufferKind::Slot, 1, four),
             flag = addBuffer(r, BufferKind::Slot, 2, one);
    uint32_t test = addProgram(r), body = addProgram(r), otherwise = addProgram(r);
    copy(r, 0, a, x);
    addLaunch(r, test, small, {a, flag});
    carried(r, body, a, b);
    copy(r, otherwise, y, a);
    fmt::WhileT loop;
    loop.cond = test, loop.flag = flag, loop.body = body;
    addInstr(r, 0, std::move(loop));
    fmt::CondT cond;
    cond.flag = flag, cond.then = body, cond.otherwise = otherwise;
    addInstr(r, 0, std::move(cond));
  }
  { // @decode(x[4]) -> y[4]: a cache of `cap` rows, of which the host dim `count` are filled
    uint32_t cache = k.state("cache", {k.expr({{fmt::ExprCode::Dim, cap}}), four}, nullptr);
    uint32_t append = k.kernel("append", {Access::ReadWrite, Access::Read}, four, zero);
    uint32_t columns = k.kernel("columns", {Access::Read, Access::Write}, four, zero);
    fmt::EntryT &e = k.entry("decode");
    addTensor(e.inputs, "x", {four});
    addTensor(e.outputs, "y", {four});
    e.host_dims = {count, cap};
    k.m.equations.push_back(std::make_unique<fmt::EquationT>());
    k.m.equations.back()->text = "min(count, cap - 1) == count";
    k.m.equations.back()->lhs = k.expr({{fmt::ExprCode::Dim, count},
                                        {fmt::ExprCode::Dim, cap},
                                        {fmt::ExprCode::Const, 1},
                                        {fmt::ExprCode::Sub, 0},
                                        {fmt::ExprCode::Min, 0}});
    k.m.equations.back()->rhs = k.expr({{fmt::ExprCode::Dim, count}});
    e.equations = {0};
    e.reads = e.writes = {cache};
    fmt::RoutineT &r = *e.routine;
    uint32_t c = addBuffer(r, BufferKind::State, cache, k.dimValue(cap, 16)),
             x = addBuffer(r, BufferKind::Input, 0, bytes16), y = addBuffer(r, BufferKind::Output, 0, bytes16);
    addLaunch(r, 0, append, {c, x});
    addLaunch(r, 0, columns, {c, y});
  }
  { // @gate(g[] : i32) -> y[]: does not end before the caller writes to g
    uint32_t kernel = k.kernel("gate", {Access::Read, Access::Write}, one, zero);
    fmt::EntryT &e = k.entry("gate");
    addTensor(e.inputs, "g", {}, {}, fmt::DType::I32);
    addTensor(e.outputs, "y", {});
    fmt::RoutineT &r = *e.routine;
    uint32_t g = addBuffer(r, BufferKind::Input, 0, four), y = addBuffer(r, BufferKind::Output, 0, four);
    addLaunch(r, 0, kernel, {g, y});
  }
  { // @overdraw(x[n]) -> v[k <= n]: accumulates, then reads a data dim that is out of its bounds
    fmt::EntryT &e = k.entry("overdraw");
    bind(e);
    addTensor(e.inputs, "x", {nValue});
    addTensor(e.outputs, "y", {});
    e.reads = e.writes = {0};
    fmt::RoutineT &r = *e.routine;
    r.slots = {eight};
    uint32_t s = addBuffer(r, BufferKind::State, 0, four), x = addBuffer(r, BufferKind::Input, 0, nBytes),
             y = addBuffer(r, BufferKind::Output, 0, four);
    addLaunch(r, 0, accumulate, {s, x, y});
    fmt::SetDimT set;
    set.dim = data, set.value = k.expr({{fmt::ExprCode::Dim, n}, {fmt::ExprCode::Const, 1}, {fmt::ExprCode::Add, 0}});
    addInstr(r, 0, std::move(set));
  }
  { // @environment() -> y[]
    uint32_t kernel = k.kernel("environment", {Access::Write}, one, zero);
    fmt::EntryT &e = k.entry("environment");
    addTensor(e.outputs, "y", {});
    addLaunch(*e.routine, 0, kernel, {addBuffer(*e.routine, BufferKind::Output, 0, four)});
  }
  { // @derived(x[8]) -> y[8]: x + d, d = a + b computed by the compiler
    uint32_t a = k.param("a", {8}, std::vector<float>(8, 1), "row-major"),
             b = k.param("b", {8}, std::vector<float>(8, 2), "row-major"),
             d = k.param("d", {8}, std::vector<float>(8, 3), "row-major");
    uint32_t kernel = k.kernel("sum", {Access::Read, Access::Read, Access::Write}, eight, zero);
    auto derive = std::make_unique<fmt::RoutineT>();
    uint32_t from = addBuffer(*derive, BufferKind::Param, a, bytes32),
             with = addBuffer(*derive, BufferKind::Param, b, bytes32),
             to = addBuffer(*derive, BufferKind::Output, 0, bytes32);
    addLaunch(*derive, addProgram(*derive), kernel, {from, with, to});
    k.m.params[d]->fixed = true, k.m.params[d]->derive = uint32_t(k.m.derives.size());
    k.m.derives.push_back(std::move(derive));
    fmt::EntryT &e = k.entry("derived");
    addTensor(e.inputs, "x", {eight});
    addTensor(e.outputs, "y", {eight});
    fmt::RoutineT &r = *e.routine;
    uint32_t x = addBuffer(r, BufferKind::Input, 0, bytes32), p = addBuffer(r, BufferKind::Param, d, bytes32),
             y = addBuffer(r, BufferKind::Output, 0, bytes32);
    addLaunch(r, 0, kernel, {x, p, y});
  }
  k.asset("words", {1, 2, 3});
  k.asset("empty", {});
  return k;
}
