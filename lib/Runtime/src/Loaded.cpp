//===- Loaded.cpp: a bundle on a device -----------------------------------===//
// Takes:    a bundle and a device.
// Gives:    the chosen target, mapped code, the params' stored bytes (in place, from the bundle's mapping).
// Keeps:    of the targets that the device can run, the one with the highest rank; a forced level or nothing.
// Does not: copy weights.
#include "Device.h"
#include "Session.h"

using namespace astra::rt;

namespace {

/// The first feature that is lacking, or null.
const char *lacking(const astra_device *device, const fmt::Target &target) {
  if (target.features())
    for (const auto *feature : *target.features())
      if (device->type.hasFeature(feature->c_str()) != 1) return feature->c_str();
  return nullptr;
}

Status chooseTarget(const astra_device *device, const fmt::Manifest &m, uint32_t &out, astra_diag *diag) {
  const fmt::Target *best = nullptr;
  const char *lacks = nullptr, *lacker = nullptr;
  bool named = false;
  for (uint32_t i = 0; i < m.targets()->size(); i++) {
    const fmt::Target *t = m.targets()->Get(i);
    const char *colon = strchr(t->name()->c_str(), ':');
    if (*device->level && strcmp(colon ? colon + 1 : "", device->level) != 0) continue;
    named = true;
    if (!device->type.accepts(*t)) continue;
    if (const char *feature = lacking(device, *t)) {
      lacks = feature, lacker = t->name()->c_str();
      continue;
    }
    if (best && best->rank() >= t->rank()) continue;
    best = t, out = i;
  }
  if (best) return ASTRA_OK;
  if (!named)
    return fail(diag, ASTRA_NO_TARGET,
                "the bundle has no code for the level '%.64s'; it has %u targets, the first is %.64s", device->level,
                m.targets()->size(), m.targets()->Get(0)->name()->c_str());
  if (lacks)
    return fail(diag, ASTRA_NO_TARGET,
                "this CPU lacks %.64s, which %.64s needs; compile the bundle for a lower level too", lacks, lacker);
  return fail(diag, ASTRA_NO_TARGET,
              "the bundle has no code for this kind of machine; the first of its %u targets is %.64s",
              m.targets()->size(), m.targets()->Get(0)->name()->c_str());
}

void destroy(astra_loaded *loaded) {
  Heap &heap = loaded->runtime->heap;
  loaded->device->type.unload(loaded->device, loaded->code);
  for (ParamValue &value : loaded->owned) freeParam(heap, value);
  heap.destroy(loaded);
}

} // namespace

astra_status astra_loaded_init(astra_loaded **out, astra_bundle *bundle, astra_device *const *devices,
                               uint32_t num_devices, astra_diag *diag) {
  if (Status s = checkHandle(bundle, "the bundle", diag)) return s;
  if (!out || !devices || num_devices == 0)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "out or devices is NULL; give both");
  if (num_devices != 1)
    return fail(diag, ASTRA_UNSUPPORTED, "%u devices; this library loads a bundle on one", num_devices);
  astra_device *device = devices[0];
  if (Status s = checkHandle(device, "the device", diag)) return s;
  if (device->runtime != bundle->runtime)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "bundle and device belong to different runtimes; use one");
  const fmt::Manifest &m = bundle->manifest();
  uint32_t target = 0;
  if (Status s = chooseTarget(device, m, target, diag)) return s;
  Heap &heap = bundle->runtime->heap;
  astra_loaded *loaded = heap.make<astra_loaded>(bundle, device);
  if (!loaded) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a loaded bundle");
  loaded->target = target;
  Status s = ASTRA_OK;
  if (!loaded->params.init(heap, m.params()->size()) || !loaded->owned.init(heap, m.params()->size()))
    s = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a loaded bundle");
  if (!s)
    s = device->type.load(device, *bundle, bundle->file.sections[m.targets()->Get(target)->section()], loaded->code,
                          diag);
  if (s) {
    destroy(loaded);
    return s;
  }
  for (uint32_t i = 0; i < m.params()->size(); i++)
    if (const fmt::Place *place = m.params()->Get(i)->place())
      loaded->params[i] = bundle->file.data + bundle->file.weights->offset + place->offset();
  bundle->users++, device->users++;
  bundle->runtime->log(ASTRA_LOG_INFO, "module %.64s runs its code for %.64s", m.module_()->c_str(),
                       m.targets()->Get(target)->name()->c_str());
  *out = loaded;
  return ASTRA_OK;
}

astra_status astra_loaded_free(astra_loaded **loaded) {
  if (!loaded || !*loaded) return ASTRA_OK;
  if (Status s = checkFree(*loaded, "the loaded bundle")) return s;
  astra_bundle *bundle = (*loaded)->bundle;
  astra_device *device = (*loaded)->device;
  destroy(*loaded);
  bundle->users--, device->users--;
  *loaded = nullptr;
  return ASTRA_OK;
}

const char *astra_loaded_target(const astra_loaded *loaded) {
  return loaded ? loaded->bundle->manifest().targets()->Get(loaded->target)->name()->c_str() : nullptr;
}

//===- Params that users set ----------------------------------------------===//

void astra::rt::freeParam(Heap &heap, ParamValue &value) {
  heap.release(value.data, value.bytes, kParamAlign);
  value = {};
}

Status astra::rt::findUserParam(const astra_bundle *bundle, const char *name, uint32_t &index, astra_diag *diag) {
  if (!name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name of the param is NULL; give one");
  for (uint64_t i = 0; i < bundle->userParams.size(); i++)
    if (strcmp(bundle->manifest().params()->Get(bundle->userParams[i])->name()->c_str(), name) == 0) {
      index = bundle->userParams[i];
      return ASTRA_OK;
    }
  return fail(diag, ASTRA_UNKNOWN_NAME, "the bundle has no param '%.64s' among %llu that can be set", name,
              static_cast<unsigned long long>(bundle->userParams.size()));
}

namespace {

/// Runs a prepare routine from row-major bytes to stored bytes. Everything it needs lives for this call only.
Status prepare(astra_loaded *loaded, const fmt::Routine &routine, void *rowMajor, uint64_t rowBytes, void *stored,
               uint64_t storedBytes, astra_diag *diag) {
  const fmt::Manifest &m = loaded->bundle->manifest();
  Heap &heap = loaded->runtime->heap;
  auto noMemory = [&] { return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to prepare a param"); };
  RoutineMemory memory{};
  Array<int64_t> dims;
  Array<void *> buffers;
  Array<uint8_t> arena, scratch;
  if (!memory.init(heap, m, routine) || !dims.init(heap, m.dims()->size()) ||
      !buffers.init(heap, routine.buffers()->size()))
    return noMemory();
  if (Status s = memory.evaluate(m, routine, loaded->target, dims.data(), diag)) return s;
  uint64_t scratchBytes;
  if (!mul(memory.scratchStride, loaded->device->executor.num_workers, scratchBytes) ||
      !arena.init(heap, memory.arenaBytes(), 64) || !scratch.init(heap, scratchBytes, 64))
    return noMemory();
  for (uint32_t i = 0; i < routine.buffers()->size(); i++) {
    const fmt::Buffer *b = routine.buffers()->Get(i);
    bool slot = b->kind() == fmt::BufferKind::Slot, input = b->kind() == fmt::BufferKind::Input;
    buffers[i] = slot ? arena.data() + memory.slotOffsets[b->index()] + b->offset() : input ? rowMajor : stored;
    if (!slot && memory.bufferBytes[i] > (input ? rowBytes : storedBytes))
      return malformed(diag, "a prepare program has a buffer larger than its param; the compiler made a mistake");
  }
  Frame frame{*loaded, routine, memory, dims.data(), buffers.data(), scratch.data(), nullptr, nullptr, diag};
  return frame.run(0);
}

} // namespace

Status astra::rt::makeParam(astra_loaded *loaded, uint32_t index, const astra_tensor *value, ParamValue &out,
                            astra_diag *diag) {
  const fmt::Manifest &m = loaded->bundle->manifest();
  const fmt::Param *p = m.params()->Get(index);
  const char *name = p->name()->c_str();
  Heap &heap = loaded->runtime->heap;
  astra_tensor tensor;
  View view;
  if (Status s = readStruct(tensor, value, "the tensor", diag)) return s;
  if (Status s = resolve(view, tensor, name, diag)) return s;
  if (Status s = expect(view, int32_t(p->dtype()), p->shape() ? p->shape()->size() : 0,
                        p->shape() ? p->shape()->data() : nullptr, "param", name, diag))
    return s;
  ParamValue made{nullptr, p->stored_bytes() ? p->stored_bytes() : 1};
  made.data = heap.allocate(made.bytes, kParamAlign, true);
  if (!made.data) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for param %.64s", name);
  Status s = ASTRA_OK;
  if (p->prepare() == kNone) {
    gather(made.data, view);
  } else {
    Array<uint8_t> packed;
    if (!view.dense && !packed.init(heap, view.bytes, kParamAlign))
      s = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for param %.64s", name);
    if (!s && !view.dense) gather(packed.data(), view);
    if (!s)
      s = prepare(loaded, *m.prepares()->Get(p->prepare()),
                  view.dense ? view.data : reinterpret_cast<char *>(packed.data()), view.bytes, made.data,
                  p->stored_bytes(), diag);
  }
  if (s) {
    freeParam(heap, made);
    return s;
  }
  out = made;
  return ASTRA_OK;
}

astra_status astra_loaded_set_param(astra_loaded *loaded, const char *name, const astra_tensor *value,
                                    astra_diag *diag) {
  if (Status s = checkHandle(loaded, "the loaded bundle", diag)) return s;
  uint32_t index = 0;
  if (Status s = findUserParam(loaded->bundle, name, index, diag)) return s;
  ParamValue made;
  if (Status s = makeParam(loaded, index, value, made, diag)) return s;
  Lock lock(loaded->mutex);
  if (loaded->flying.load(std::memory_order_acquire)) {
    freeParam(loaded->runtime->heap, made);
    return fail(diag, ASTRA_BUSY,
                "a call is in flight; wait for its promise or for a mark of its stream before param %.64s is replaced",
                name);
  }
  freeParam(loaded->runtime->heap, loaded->owned[index]);
  loaded->owned[index] = made;
  loaded->params[index] = made.data;
  return ASTRA_OK;
}
