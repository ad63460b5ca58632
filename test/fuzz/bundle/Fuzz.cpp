//===- Fuzz.cpp: libFuzzer's view of the bundle reader ---------------------===//
// Takes:    bytes of libFuzzer as the manifest of a bundle, with right hashes and with the standard bundle's code and
//           weights, so that what is accepted is loaded, and its programs run.
// Gives:    what sanitizers and libFuzzer's limits see: AddressSanitizer, UndefinedBehaviorSanitizer with its check of
//           alignment, time and memory out of proportion to the file.
// Keeps:    no machine code runs: the device is an emulator's that does nothing, since code is trusted once its hash is
//           right. Entries with loops are not called: an altered one may be endless.
// Does not: alter code or the file around the manifest (MutateTest.cpp does).
#include "TestBundle.h"
#include "astra/astra.hpp"
#include "src/Checker.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace astra;
using test::Bytes;

namespace {

constexpr size_t manifestAt = sizeof(fmt::Header) + 6 * sizeof(fmt::Section), most = fmt::kMapAlign - manifestAt;

/// What an altered size may ask for.
void *allocate(void *, size_t bytes, size_t alignment) {
  void *memory = nullptr;
  bool fits = bytes <= size_t(16) << 20;
  return fits && posix_memalign(&memory, std::max(alignment, sizeof(void *)), bytes) == 0 ? memory : nullptr;
}

/// Reads and writes nothing; takes the addresses that it is given as those of memory.
astra_status launch(void *, const astra_emulated_launch *l, astra_diag *) {
  for (uint32_t i = 0; i < l->num_buffers; i++)
    if (l->buffer_bytes[i] && !l->buffers[i]) abort();
  return ASTRA_OK;
}

struct Host {
  Host() {
    astra_allocator hooks = ASTRA_INIT(astra_allocator);
    hooks.allocate = allocate, hooks.release = [](void *, void *p, size_t, size_t) { free(p); };
    astra_runtime_options o = ASTRA_INIT(astra_runtime_options);
    o.allocator = &hooks;
    runtime = Runtime(&o);
    emulator.launch = launch;
    Device::Options options;
    options.emulator = &emulator;
    cpu = Device(runtime, "cpu");
    emulated = Device(runtime, "emu:cuda:sm_90", options);
    test::ManifestMaker maker = test::gpuManifest();
    standard = maker.manifest();
    Bytes bundle = test::assembleGpu(maker);
    bytes = bundle.size();
    memory = static_cast<uint8_t *>(aligned_alloc(64, (bytes + 63) / 64 * 64));
    memcpy(memory, bundle.data(), bytes);
  }
  astra_emulator emulator = ASTRA_INIT(astra_emulator);
  Runtime runtime;
  Device cpu = Device(static_cast<astra_device *>(nullptr)), emulated = Device(static_cast<astra_device *>(nullptr));
  Bytes standard;
  uint8_t *memory; ///< the bundle
  size_t bytes;
};
Host &host() {
  static Host *made = new Host;
  return *made;
}

bool hasLoops(const fmt::Routine &routine) {
  for (const fmt::Program *p : *routine.programs())
    for (uint32_t i = 0; i < p->code_type()->size(); i++)
      if (auto type = p->code_type()->GetEnum<fmt::Instr>(i); type == fmt::Instr::While || type == fmt::Instr::Loop)
        return true;
  return false;
}

/// Extents a little above the least ones; empty memory if that is too much.
struct Argument {
  Argument(const astra_tensor_info &info) : dtype(info.dtype) {
    uint64_t bytes = 16;
    for (int32_t i = 0; i < info.ndim; i++) {
      shape.push_back(std::min(info.upper[i], info.lower[i] < INT64_MAX - 3 ? info.lower[i] + 3 : info.lower[i]));
      if (__builtin_mul_overflow(bytes, uint64_t(std::max<int64_t>(shape.back(), 1)), &bytes)) bytes = UINT64_MAX;
    }
    if (bytes <= uint64_t(1) << 20) memory.resize(bytes + 64);
  }
  astra_tensor describe() {
    astra_tensor t = ASTRA_INIT(astra_tensor);
    t.data = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64, t.data_bytes = memory.size() - 64;
    t.dtype = dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
    return t;
  }
  int32_t dtype;
  std::vector<int64_t> shape;
  Bytes memory;
};

void call(Session &session, const Stream &stream, Entry entry) {
  std::vector<Argument> arguments;
  arguments.reserve(entry.info().num_inputs + entry.info().num_outputs);
  Call call(session, entry);
  for (uint32_t i = 0; i < entry.info().num_inputs; i++) {
    if (arguments.emplace_back(entry.input(i)).memory.empty()) return;
    call.input(arguments.back().describe());
  }
  for (uint32_t i = 0; i < entry.info().num_outputs; i++) {
    Argument &a = arguments.emplace_back(entry.output(i));
    uint64_t bytes = 0;
    a.shape = call.bound(i, &bytes);
    if (bytes > uint64_t(1) << 20) return;
    a.memory.resize(bytes + 64);
    call.output(a.describe());
  }
  call.run(stream);
}

void use(const astra::Bundle &bundle, const fmt::Manifest &m) {
  fmt::ManifestT unpacked;
  m.UnPackTo(&unpacked); // as tools do
  astra_bundle_info info = bundle.info();
  for (uint32_t i = 0; i < info.num_targets; i++) bundle.target(i);
  for (uint32_t i = 0; i < info.num_params; i++) bundle.param(i);
  for (uint32_t i = 0; i < info.num_states; i++) bundle.state(i);
  Loaded onCpu(bundle, host().cpu);
  std::vector<astra_dim_value> dims;
  for (uint32_t i = 0; i < info.num_dims; i++)
    if (astra_dim_info d = bundle.dim(i); d.is_host || d.is_session) dims.push_back({d.name, d.lower});
  Loaded loaded(bundle, host().emulated);
  Session session(loaded, dims);
  Stream stream(host().emulated);
  auto tried = [](auto attempt) {
    try {
      attempt();
    } catch (const Error &) { // a refusal
    }
  };
  for (uint32_t i = 0; i < info.num_params; i++) {
    Argument value(bundle.param(i));
    if (!value.memory.empty()) tried([&] { session.setParam(bundle.param(i).name, value.describe()); });
  }
  for (uint32_t i = 0; i < info.num_entries; i++)
    if (!hasLoops(*m.entries()->Get(i)->routine())) tried([&] { call(session, stream, bundle.entry(i)); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 16 || size > most) return 0;
  uint8_t *memory = host().memory;
  memset(memory + manifestAt, 0, most);
  memcpy(memory + manifestAt, data, size);
  reinterpret_cast<fmt::Section *>(memory + sizeof(fmt::Header))->bytes = size;
  test::rehashManifest(memory);
  try {
    astra::Bundle bundle(host().runtime, memory, host().bytes);
    use(bundle, *fmt::GetManifest(memory + manifestAt));
  } catch (const Error &) { // a refusal
  }
  return 0;
}

//===- Alterations ----------------------------------------------------------===//

namespace {

using flatbuffers::TypeTable;

template <typename T> T load(const uint8_t *at) {
  T value;
  memcpy(&value, at, sizeof(T));
  return value;
}

struct Place {
  size_t at, bytes;
};

size_t bytesOf(unsigned type) {
  static constexpr size_t sizes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return sizes[type];
}

/// Where the numbers of a manifest are that is a tree: fields, elements of vectors.
void numbersOf(const uint8_t *data, size_t from, const TypeTable &type, std::vector<Place> &out) {
  size_t at = from + load<uint32_t>(data + from), fields = at - size_t(int64_t(load<int32_t>(data + at)));
  const uint8_t *kinds = nullptr;
  for (size_t i = 0; i < type.num_elems; i++) {
    size_t offset = 4 + 2 * i + 2 <= load<uint16_t>(data + fields) ? load<uint16_t>(data + fields + 4 + 2 * i) : 0;
    if (!offset) continue;
    flatbuffers::TypeCode code = type.type_codes[i];
    size_t place = at + offset;
    const TypeTable *inner = code.base_type == flatbuffers::ET_SEQUENCE ? type.type_refs[code.sequence_ref]() : nullptr;
    if (!code.is_repeating) {
      if (inner)
        numbersOf(data, place, *inner, out);
      else if (code.base_type < flatbuffers::ET_STRING)
        out.push_back({place, bytesOf(code.base_type)});
      continue;
    }
    size_t list = place + load<uint32_t>(data + place), count = load<uint32_t>(data + list), first = list + 4;
    if (code.base_type == flatbuffers::ET_UTYPE) kinds = data + first;
    for (size_t k = 0; k < count; k++) {
      if (!inner) {
        if (code.base_type < flatbuffers::ET_STRING)
          out.push_back({first + k * bytesOf(code.base_type), bytesOf(code.base_type)});
      } else if (inner->st == flatbuffers::ST_STRUCT) {
        for (size_t m = 0; m < inner->num_elems; m++)
          out.push_back({first + k * size_t(inner->values[inner->num_elems]) + size_t(inner->values[m]),
                         bytesOf(inner->type_codes[m].base_type)});
      } else if (inner->st == flatbuffers::ST_TABLE) {
        numbersOf(data, first + 4 * k, *inner, out);
      } else if (kinds[k] < inner->num_elems && inner->type_codes[kinds[k]].sequence_ref >= 0) {
        numbersOf(data, first + 4 * k, *inner->type_refs[inner->type_codes[kinds[k]].sequence_ref](), out);
      }
    }
  }
}

bool isTree(const uint8_t *data, size_t size) {
  rt::Heap heap((astra_allocator()));
  void *aligned = aligned_alloc(64, (size + 63) / 64 * 64);
  memcpy(aligned, data, size);
  bool is = size >= 16 && rt::checkTree(aligned, size, heap, nullptr) == ASTRA_OK;
  free(aligned);
  return is;
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/// Numbers of the manifest become others of the kind that indices, sizes and lengths are; seldom libFuzzer alters
/// bytes, references among them. The first manifest is the standard bundle's.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 32 == 0) return LLVMFuzzerMutate(data, size, room);
  // From what is no tree no alteration leads back.
  if (bool begins = size < 256; (begins || !isTree(data, size)) && host().standard.size() <= room) {
    std::copy(host().standard.begin(), host().standard.end(), data);
    size = host().standard.size();
    if (begins) return size;
  }
  std::vector<Place> places;
  numbersOf(data, 0, *fmt::ManifestTypeTable(), places);
  for (unsigned n = random() % 2 ? 1 : 1 + random() % 4; n; n--) {
    Place p = places[random() % places.size()], other = places[random() % places.size()];
    uint64_t number = 0;
    memcpy(&number, data + p.at, p.bytes);
    switch (random() % 6) {
    case 0: number = random() % 9; break;
    case 1: number += random() % 3 - 1; break;
    case 2: number = 0, memcpy(&number, data + other.at, std::min(p.bytes, other.bytes)); break;
    case 3: number += 64 * (random() % 9) - 256; break;
    case 4: number ^= uint64_t(1) << random() % (8 * p.bytes); break;
    default: number = random() % 2 ? UINT64_MAX : uint64_t(INT64_MAX) >> random() % 64;
    }
    memcpy(data + p.at, &number, p.bytes);
  }
  return size;
}
