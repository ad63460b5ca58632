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

Status chooseTarget(const astra_device *device, const astra_bundle &bundle, uint32_t &out, astra_diag *diag) {
  if (device->type.choose) return device->type.choose(device, bundle, out, diag);
  const fmt::Manifest &m = bundle.manifest();
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
  if (!named && device->emulator.launch)
    return fail(diag, ASTRA_NO_TARGET, "the bundle has no target emu:%.64s; compile it with --target=%.64s,emu:%.64s",
                device->level, device->level, device->level);
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

/// What programs call of the host, as it is registered now, and declared as the bundle needs it.
[[gnu::cold]] Status resolveFunctions(astra_loaded *loaded, astra_diag *diag) {
  const auto *rows = loaded->bundle->manifest().functions();
  uint32_t count = rows ? rows->size() : 0;
  if (!loaded->functions.init(loaded->runtime->heap, count))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a loaded bundle");
  for (uint32_t i = 0; i < count; i++) {
    const fmt::HostFunction *row = rows->Get(i);
    const char *name = row->name()->c_str();
    HostFunction &f = loaded->functions[i] = loaded->runtime->functionOf(name);
    if (!f.fn)
      return fail(diag, ASTRA_UNKNOWN_NAME,
                  "the bundle calls the function '%.64s', which is not registered; register it with "
                  "astra_runtime_register before the bundle is loaded",
                  name);
    if (row->deterministic() && !(f.flags & ASTRA_FUNCTION_DETERMINISTIC))
      return fail(diag, ASTRA_WRONG_CONTRACT,
                  "the bundle calls the function '%.64s' as a deterministic one, and it is registered without "
                  "ASTRA_FUNCTION_DETERMINISTIC",
                  name);
    if (!row->effects() && (f.flags & ASTRA_FUNCTION_EFFECTS))
      return fail(diag, ASTRA_WRONG_CONTRACT,
                  "the function '%.64s' is registered with effects, and the bundle calls it as one without; compile "
                  "the bundle with effects declared",
                  name);
  }
  return ASTRA_OK;
}

void destroy(astra_loaded *loaded) {
  loaded->device->type.unload(loaded->device, loaded->code);
  for (ParamValue &value : loaded->owned) freeParam(loaded->device, value);
  loaded->runtime->heap.destroy(loaded);
}

/// The weights as they are in the file, or where the device has its own memory a copy there.
Status placeWeights(astra_loaded *loaded, astra_diag *diag) {
  const FileView &file = loaded->bundle->file;
  astra_device *device = loaded->device;
  if (!file.weights) return ASTRA_OK;
  const uint8_t *base = file.data + file.weights->offset;
  if (device->gpu && file.weights->bytes) {
    DeviceMemory &memory = loaded->weights;
    void *queue = ownQueue(device);
    if (Status s = memory.reserve(device, file.weights->bytes, diag)) return s;
    if (Status s = device->type.copy(device, queue, Way::In, memory.data(), base, memory.size(), diag)) return s;
    if (Status s = device->type.settle(device, queue, diag)) return s;
    base = memory.data();
  }
  const fmt::Manifest &m = loaded->bundle->manifest();
  for (uint32_t i = 0; i < m.params()->size(); i++)
    if (const fmt::Place *place = m.params()->Get(i)->place()) loaded->params[i] = base + place->offset();
  return ASTRA_OK;
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
  if (Status s = checkDevice(device, diag)) return s;
  if (Status s = chooseTarget(device, *bundle, target, diag)) return s;
  Heap &heap = bundle->runtime->heap;
  astra_loaded *loaded = heap.make<astra_loaded>(bundle, device);
  if (!loaded) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a loaded bundle");
  loaded->target = target;
  Status s = ASTRA_OK;
  if (!loaded->params.init(heap, m.params()->size()) || !loaded->owned.init(heap, m.params()->size()))
    s = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a loaded bundle");
  if (!s) s = resolveFunctions(loaded, diag);
  if (!s) s = device->type.load(device, *bundle, target, loaded->code, diag);
  if (!s) s = placeWeights(loaded, diag);
  if (s) {
    destroy(loaded);
    return s;
  }
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
