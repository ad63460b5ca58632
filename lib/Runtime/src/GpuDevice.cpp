//===- GpuDevice.cpp: NVIDIA's and AMD's GPUs -----------------------------===//
// Takes:    the name of a device, the path of its driver.
// Gives:    the table of a device whose queues run by themselves (Device.h).
// Keeps:    the context that is current on the caller's thread: it is put back after every use of ours. Code for this
//           architecture and no other; PTX only where the caller allows it.
// Does not: end calls (Flight.cpp), or know what differs between the two drivers beyond contexts and names.
#include "Gpu.h"

#include <cstdio>
#include <cstdlib>

using namespace astra::rt;

static void lose(astra_device *device, const char *why, int number);

namespace {

/// The device is current for a scope.
class Current {
public:
  explicit Current(Gpu &gpu) : gpu(gpu) {
    if (gpu.kind->isCuda) {
      entered = gpu.calls.pushContext(gpu.context) == kDriverOk;
    } else {
      gpu.calls.currentDevice(&before);
      entered = gpu.calls.setDevice(gpu.ordinal) == kDriverOk;
    }
  }
  ~Current() {
    if (!entered) return;
    void *ours;
    if (gpu.kind->isCuda)
      gpu.calls.popContext(&ours);
    else
      gpu.calls.setDevice(before);
  }
  Current(const Current &) = delete;

private:
  Gpu &gpu;
  int before = 0;
  bool entered;
};

/// Calls the driver with the device current. `diag` may be null.
template <typename Call> Status drive(astra_device *device, const char *what, astra_diag *diag, Call call) {
  if (Status s = checkDevice(device, diag)) return s;
  int error;
  {
    Current current(*device->gpu);
    error = call(device->gpu->calls);
  }
  return error == kDriverOk ? ASTRA_OK : driverFailed(device, error, what, diag);
}

/// The same where nothing is to be done about an error: what a lost context had is the driver's to free.
template <typename Call> void giveBack(astra_device *device, Call call) {
  Current current(*device->gpu);
  call(device->gpu->calls);
}

/// Waits by `call`. After an error nobody knows what still runs and touches memory: it is tried again, and then lost.
template <typename Call> Status waitFor(astra_device *device, astra_diag *diag, Call call) {
  constexpr int kTimes = 3;
  for (int i = 0; i < kTimes; i++) {
    Status s = drive(device, "to wait", diag, call);
    if (!s || s == ASTRA_DEVICE_LOST) return s;
  }
  lose(device, "a wait fails", kTimes);
  return checkDevice(device, diag);
}

//===- Making -------------------------------------------------------------===//

/// "sm_90", "gfx942" into device->level.
Status readArchitecture(astra_device *device, astra_diag *diag) {
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
  constexpr size_t kArchName = 1160;      // of gcnArchName in hipDeviceProp_tR0600, which has 1472 bytes
  Gpu &gpu = *device->gpu;
  if (gpu.kind->isCuda) {
    int major = 0, minor = 0, error = gpu.calls.attribute(&major, kMajor, gpu.ordinal);
    if (!error) error = gpu.calls.attribute(&minor, kMinor, gpu.ordinal);
    if (error) return driverFailed(device, error, "to say what it is", diag);
    gpu.sm = major * 10 + minor;
    snprintf(device->level, sizeof(device->level), "sm_%d", gpu.sm);
    return ASTRA_OK;
  }
  char properties[4096] = {};
  if (int error = gpu.calls.properties(properties, gpu.ordinal))
    return driverFailed(device, error, "to say what it is", diag);
  // "gfx942:sramecc+:xnack-": our code fits any setting.
  const char *name = properties + kArchName;
  size_t length = strcspn(name, ":");
  if (length == 0 || length >= sizeof(device->level))
    return fail(diag, ASTRA_UNSUPPORTED, "the driver names no architecture of this GPU; a newer driver may");
  memcpy(device->level, name, length);
  return ASTRA_OK;
}

Status makeQueue(astra_device *device, void *&out, astra_diag *diag) {
  constexpr unsigned kNonBlocking = 1; // ordered with no default stream
  return drive(device, "a stream", diag, [&](DriverCalls &c) { return c.streamCreate(&out, kNonBlocking); });
}

void freeQueue(astra_device *device, void *queue) {
  giveBack(device, [&](DriverCalls &c) { return c.streamDestroy(queue); });
}

Status openDevice(astra_device *device, const char *number, const char *path, astra_diag *diag) {
  Gpu &gpu = *device->gpu;
  const DriverKind &kind = *gpu.kind;
  if (Status s = openDriver(gpu.calls, kind, path, diag)) return s;
  int error = gpu.calls.init(0), count = 0;
  if (error == kDriverStub && kind.isCuda)
    return fail(diag, ASTRA_UNSUPPORTED, "%.300s is a stub to link with, no driver of %s GPUs; install the driver",
                path ? path : kind.library, kind.maker);
  if (error && error != kDriverNoDevice) return driverFailed(device, error, "to begin", diag);
  if (!error) error = gpu.calls.version(&gpu.version);
  if (!error && gpu.version < kind.least)
    return fail(diag, ASTRA_UNSUPPORTED, "the driver of %s GPUs is of version %d, and %d (%s) or newer is needed",
                kind.maker, gpu.version, kind.least, kind.leastName);
  if (!error) error = gpu.calls.deviceCount(&count);
  if (error && error != kDriverNoDevice) return driverFailed(device, error, "to count devices", diag);
  if (error || count == 0)
    return fail(diag, ASTRA_UNSUPPORTED, "the driver of %s GPUs finds none in this machine", kind.maker);
  char *end;
  long n = strtol(number, &end, 10);
  bool padded = *number == '0' && number[1]; // a device has one spelling
  if (*number < '0' || *number > '9' || *end || n >= count || padded)
    return fail(diag, ASTRA_UNKNOWN_NAME, "there is no device '%s%.32s'; this machine has %s0 to %s%d", kind.prefix,
                number, kind.prefix, kind.prefix, count - 1);
  if ((error = gpu.calls.deviceGet(&gpu.ordinal, int(n)))) return driverFailed(device, error, "the device", diag);
  if (Status s = readArchitecture(device, diag)) return s;
  if (kind.isCuda && (error = gpu.calls.retainContext(&gpu.context, gpu.ordinal)))
    return driverFailed(device, error, "a context", diag);
  if (Status s = makeQueue(device, gpu.queue, diag)) {
    if (kind.isCuda) gpu.calls.releaseContext(gpu.ordinal);
    return s;
  }
  return ASTRA_OK;
}

Status init(astra_device *device, const char *name, const astra_device_options &o, astra_diag *diag) {
  const DriverKind &kind = strncmp(name, driverKinds[0].prefix, 5) == 0 ? driverKinds[0] : driverKinds[1];
  if (o.level || o.emulator)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the device '%.64s' takes no level and no emulator", name);
  if (o.flags & ~uint32_t(ASTRA_DEVICE_ALLOW_PTX))
    return fail(diag, ASTRA_NEWER_CLIENT, "the flags %#x are not known to this library; use a newer one", o.flags);
  astra_device_options host = o;
  host.driver = nullptr, host.flags = 0;
  if (Status s = cpu::init(device, name, host, diag)) return s; // its threads, on which calls wait
  device->gpu = device->runtime->heap.make<Gpu>();
  Status s = device->gpu ? ASTRA_OK : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a device");
  if (!s) {
    device->gpu->kind = &kind;
    device->gpu->allowPtx = o.flags & ASTRA_DEVICE_ALLOW_PTX;
    s = openDevice(device, name + strlen(kind.prefix), o.driver, diag);
  }
  if (!s) return ASTRA_OK;
  device->runtime->heap.destroy(device->gpu);
  cpu::destroy(device);
  return s;
}

void destroy(astra_device *device) {
  Gpu &gpu = *device->gpu;
  stopWatching(device);
  freeEvents(device);
  freeQueue(device, gpu.queue);
  if (gpu.kind->isCuda) gpu.calls.releaseContext(gpu.ordinal);
  device->runtime->heap.destroy(device->gpu);
  cpu::destroy(device);
}

int hasFeature(const char *) { return -1; }

//===- Code ---------------------------------------------------------------===//

/// The PTX of a target of GPUs, or kNone.
uint32_t textOf(const astra_bundle &bundle, const fmt::Target &t) {
  if (bundle.file.sections[t.section()].kind == uint32_t(fmt::SectionKind::DeviceText)) return t.section();
  return t.gpu()->text();
}

/// The CUDA that a bundle's code for NVIDIA GPUs needs of a driver: that of its ptxas' major version ("CUDA
/// Compatibility", minor version compatibility). 0 if it does not say.
int neededCuda(const fmt::Manifest &m) {
  for (uint32_t i = 0; i < m.toolchain()->size(); i++) {
    const fmt::Component *c = m.toolchain()->Get(i);
    if (strcmp(c->name()->c_str(), "ptxas") == 0) return int(strtol(c->version()->c_str(), nullptr, 10));
  }
  return 0;
}

/// Whether code is of this architecture: "sm_90a" is of sm_90 alone, with instructions that no later one has.
bool isLevel(const char *arch, const char *level) {
  size_t n = strlen(level);
  return strncmp(arch, level, n) == 0 && (!arch[n] || (strncmp(arch, "sm_", 3) == 0 && strcmp(arch + n, "a") == 0));
}

/// Whether a target is code that this device's driver takes.
bool isReady(const astra_device *device, const astra_bundle &bundle, const fmt::Target &t) {
  const Gpu &gpu = *device->gpu;
  const char *arch = strchr(t.name()->c_str(), ':');
  return bundle.file.sections[t.section()].kind == uint32_t(fmt::SectionKind::DeviceCode) &&
         isLevel(arch ? arch + 1 : "", device->level) &&
         (!gpu.kind->isCuda || neededCuda(bundle.manifest()) <= gpu.version / 1000);
}

/// Code of this architecture; else, where that is allowed, the PTX of the nearest older one.
Status choose(const astra_device *device, const astra_bundle &bundle, uint32_t &out, astra_diag *diag) {
  const fmt::Manifest &m = bundle.manifest();
  const Gpu &gpu = *device->gpu;
  const char *prefix = gpu.kind->prefix, *other = nullptr, *text = nullptr, *code = nullptr;
  int best = 0;
  uint32_t ready = kNone;
  for (uint32_t i = 0; i < m.targets()->size(); i++) {
    const fmt::Target *t = m.targets()->Get(i);
    if (t->abi() != fmt::kGpuKernelAbi || t->arch() != gpu.kind->arch) continue;
    const char *name = t->name()->c_str(), *arch = strchr(name, ':');
    arch = arch ? arch + 1 : name;
    if (isReady(device, bundle, *t)) {
      ready = i;
      if (arch[strlen(arch) - 1] == 'a') break; // which is preferred
    }
    if (isLevel(arch, device->level) &&
        bundle.file.sections[t->section()].kind == uint32_t(fmt::SectionKind::DeviceCode))
      code = name;
    other = name;
    if (!gpu.kind->isCuda || strncmp(arch, "sm_", 3) != 0 || textOf(bundle, *t) == kNone) continue;
    char *end;
    long sm = strtol(arch + 3, &end, 10);
    if (*end || sm > gpu.sm || sm <= best) continue; // "sm_90a" is of one architecture alone
    best = int(sm), text = name;
    if (gpu.allowPtx) out = i;
  }
  if (ready != kNone) {
    out = ready;
    return ASTRA_OK;
  }
  if (!other)
    return fail(diag, ASTRA_NO_TARGET, "the bundle has no code for %s GPUs; compile it with --target=%s%s",
                gpu.kind->maker, prefix, device->level);
  if (code && !(best && gpu.allowPtx))
    return fail(
        diag, ASTRA_UNSUPPORTED,
        "the bundle's code for %.64s was made with CUDA %d and the driver is of CUDA %d.%d; install a driver of "
        "CUDA %d.0 or newer, or compile the bundle with the ptxas of CUDA %d",
        code, neededCuda(m), gpu.version / 1000, gpu.version % 1000 / 10, neededCuda(m), gpu.version / 1000);
  if (!best)
    return fail(diag, ASTRA_NO_TARGET,
                "the bundle has code for %.64s and this GPU is %s%s; compile it with --target=%s%s", other, prefix,
                device->level, prefix, device->level);
  if (!gpu.allowPtx)
    return fail(diag, ASTRA_NO_TARGET,
                "the bundle has PTX of %.64s and no code for %s%s; compile it with ptxas for --target=%s%s, or let the "
                "driver compile the PTX (ASTRA_DEVICE_ALLOW_PTX)",
                text, prefix, device->level, prefix, device->level);
  return ASTRA_OK;
}

void unload(astra_device *device, Code &code) {
  if (code.base) giveBack(device, [&](DriverCalls &c) { return c.moduleUnload(code.base); });
  device->runtime->heap.release(code.functions, code.bytes, alignof(void *));
  code = {};
}

/// Bytes of shared memory that a launch passes: all that a block has, where its code does not state them.
unsigned dynamicShared(astra_device *device, const fmt::GpuCode &gpu) {
  return device->gpu->kind->isCuda && gpu.shared() > fmt::kMostStaticShared ? unsigned(gpu.shared()) : 0;
}

Status load(astra_device *device, const astra_bundle &bundle, uint32_t target, Code &out, astra_diag *diag) {
  const fmt::Manifest &m = bundle.manifest();
  const fmt::Target &t = *m.targets()->Get(target);
  Heap &heap = device->runtime->heap;
  uint32_t section = isReady(device, bundle, t) ? t.section() : textOf(bundle, t);
  if (Status s = checkHash(bundle.file, section, diag)) return s;
  const fmt::Section &from = bundle.file.sections[section];
  bool isText = from.kind == uint32_t(fmt::SectionKind::DeviceText);
  Array<char> text; // PTX ends with a zero
  if (isText && !text.init(heap, from.bytes + 1)) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for code");
  if (isText) memcpy(text.data(), bundle.file.section(section), from.bytes);
  const void *image = isText ? text.data() : static_cast<const void *>(bundle.file.section(section));
  uint64_t count = m.kernels()->size();
  out = {};
  if (count && !(out.functions = static_cast<void **>(heap.allocate(count * sizeof(void *), alignof(void *), true))))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for code");
  out.bytes = count * sizeof(void *);
  Status s = drive(device, isText ? "to compile the bundle's PTX" : "to load the bundle's code", diag,
                   [&](DriverCalls &c) { return c.moduleLoad(&out.base, image); });
  for (uint32_t i = 0; i < count && !s; i++) {
    const fmt::GpuCode &gpu = *m.kernels()->Get(i)->code()->Get(target)->gpu();
    s = drive(device, "a kernel of the bundle", diag,
              [&](DriverCalls &c) { return c.moduleFunction(&out.functions[i], out.base, gpu.symbol()->c_str()); });
    constexpr int kMostDynamicShared = 8;
    if (!s && gpu.maps() && gpu.maps()->size() && !device->gpu->calls.encodeMap)
      s = fail(diag, ASTRA_UNSUPPORTED,
               "kernel %.64s needs tensor maps, and the driver has no cuTensorMapEncodeTiled; "
               "install a driver of CUDA 12.0 or newer, or compile the bundle for %s%s",
               gpu.symbol()->c_str(), device->gpu->kind->prefix, device->level);
    if (unsigned bytes = dynamicShared(device, gpu); bytes && !s)
      s = drive(device, "a kernel's shared memory", diag,
                [&](DriverCalls &c) { return c.functionAttribute(out.functions[i], kMostDynamicShared, int(bytes)); });
  }
  if (s) unload(device, out);
  return s;
}

//===- Memory and launches ------------------------------------------------===//

Status settle(astra_device *device, void *queue, astra_diag *diag) {
  return waitFor(device, diag, [&](DriverCalls &c) { return c.streamSync(queue); });
}

Status allocate(astra_device *device, uint64_t bytes, bool zero, void *&out, astra_diag *diag) {
  Status s = drive(device, "memory", diag, [&](DriverCalls &c) { return c.allocate(&out, bytes); });
  if (s || !zero) return s;
  Gpu &gpu = *device->gpu;
  s = drive(device, "to fill memory", diag, [&](DriverCalls &c) { return c.fill(out, 0, bytes, gpu.queue); });
  if (!s) s = settle(device, gpu.queue, diag);
  if (s) {
    giveBack(device, [&](DriverCalls &c) { return c.release(out); });
    out = nullptr;
  }
  return s;
}

void releaseMemory(astra_device *device, void *memory, uint64_t) {
  giveBack(device, [&](DriverCalls &c) { return c.release(memory); });
}

} // namespace

Status astra::rt::pin(astra_device *device, uint64_t bytes, void *&out, astra_diag *diag) {
  constexpr unsigned kPortable = 1; // pinned for every context
  return drive(device, "pinned memory of the host", diag,
               [&](DriverCalls &c) { return c.pin(&out, bytes, kPortable); });
}

void astra::rt::unpin(astra_device *device, void *memory) {
  giveBack(device, [&](DriverCalls &c) { return c.unpin(memory); });
}

Status astra::rt::clear(astra_device *device, void *queue, void *to, uint64_t bytes, astra_diag *diag) {
  if (bytes == 0) return ASTRA_OK;
  return drive(device, "to fill memory", diag, [&](DriverCalls &c) { return c.fill(to, 0, bytes, queue); });
}

Status astra::rt::within(astra_device *device, Status (*fn)(void *arg), void *arg) {
  Current current(*device->gpu);
  return fn(arg);
}

namespace {

Status copy(astra_device *device, void *queue, Way way, void *to, const void *from, uint64_t bytes, astra_diag *diag) {
  if (bytes == 0) return ASTRA_OK;
  return drive(device, "a copy", diag, [&](DriverCalls &c) {
    return (way == Way::In ? c.copyIn : way == Way::Out ? c.copyOut : c.copyOn)(to, from, bytes, queue);
  });
}

/// A tensor map, 128 bytes that the driver understands, of all the lines of a buffer.
Status encodeMap(astra_device *device, const Launch &l, const fmt::TensorMap &map, void *out, astra_diag *diag) {
  enum { kUint32 = 2, kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kZeros = 0 };
  constexpr uint32_t kBoxWords = 32;
  uint64_t line = 4 * map.words(), lines = l.bufferBytes[map.buffer()] / line;
  if (!lines || lines > INT32_MAX)
    return fail(diag, ASTRA_UNSUPPORTED, "kernel %.64s reads %llu lines by a tensor map; one has 1 to 2147483647",
                l.kernel->name()->c_str(), static_cast<unsigned long long>(lines));
  const uint64_t extents[] = {map.words(), lines}, strides[] = {line};
  const uint32_t box[] = {kBoxWords, map.box()}, steps[] = {1, 1};
  return drive(device, "a tensor map", diag, [&](DriverCalls &c) {
    return c.encodeMap(out, kUint32, 2, l.buffers[map.buffer()], extents, strides, box, steps, kNoInterleave,
                       kSwizzle128, kPromote256, kZeros);
  });
}

Status launch(astra_device *device, const Launch &l, astra_diag *diag) {
  const fmt::GpuCode &gpu = *l.code->gpu();
  uint64_t perBlock = gpu.threads() / gpu.group(), blocks = (uint64_t(l.items) + perBlock - 1) / perBlock;
  // AMD's limit is of threads: "HIP C++ language extensions", 2^32 of a dimension are too many.
  uint64_t most = device->gpu->kind->isCuda ? INT32_MAX : UINT32_MAX / gpu.threads();
  if (blocks > most)
    return fail(diag, ASTRA_UNSUPPORTED, "kernel %.64s needs %llu blocks; a launch has at most %llu",
                l.kernel->name()->c_str(), static_cast<unsigned long long>(blocks),
                static_cast<unsigned long long>(most));
  void *arguments[2 * fmt::kMaxKernelBuffers + fmt::kMaxKernelMaps];
  alignas(64) unsigned char maps[fmt::kMaxKernelMaps][128];
  int64_t numbers[fmt::kMaxKernelBuffers];
  uint32_t count = 0;
  for (uint32_t i = 0; i < l.kernel->access()->size(); i++) arguments[count++] = const_cast<void **>(&l.buffers[i]);
  for (uint32_t i = 0; i < gpu.dims()->size(); i++) {
    numbers[i] = l.dims[gpu.dims()->Get(i)];
    arguments[count++] = &numbers[i];
  }
  for (uint32_t i = 0; gpu.maps() && i < gpu.maps()->size(); i++) {
    if (Status s = encodeMap(device, l, *gpu.maps()->Get(i), maps[i], diag)) return s;
    arguments[count++] = maps[i];
  }
  return drive(device, l.kernel->name()->c_str(), diag, [&](DriverCalls &c) {
    return c.launch(const_cast<void *>(l.entry), unsigned(blocks), 1, 1, gpu.threads(), 1, 1,
                    dynamicShared(device, gpu), l.queue, arguments, nullptr);
  });
}

//===- Events -------------------------------------------------------------===//

Status makeEvent(astra_device *device, void *&out, astra_diag *diag) {
  constexpr unsigned kNoTiming = 2;
  return drive(device, "an event", diag, [&](DriverCalls &c) { return c.eventCreate(&out, kNoTiming); });
}

void freeEvent(astra_device *device, void *event) {
  giveBack(device, [&](DriverCalls &c) { return c.eventDestroy(event); });
}

Status record(astra_device *device, void *event, void *queue, astra_diag *diag) {
  return drive(device, "an event", diag, [&](DriverCalls &c) { return c.eventRecord(event, queue); });
}

Status await(astra_device *device, void *queue, void *event) {
  return drive(device, "to order streams", nullptr, [&](DriverCalls &c) { return c.streamWait(queue, event, 0); });
}

Status ended(astra_device *device, void *event, bool wait) {
  bool isReady = true;
  Status s = waitFor(device, nullptr, [&](DriverCalls &c) {
    int error = wait ? c.eventSync(event) : c.eventQuery(event);
    isReady = error != kDriverNotReady;
    return isReady ? error : int(kDriverOk);
  });
  return s ? s : isReady ? Status(ASTRA_OK) : Status(ASTRA_NOT_READY);
}

Status notify(astra_device *device, void *queue, void (*fn)(void *), void *arg) {
  return drive(device, "to tell of an end", nullptr, [&](DriverCalls &c) { return c.hostFunction(queue, fn, arg); });
}

} // namespace

static void lose(astra_device *device, const char *why, int number) {
  Gpu &gpu = *device->gpu;
  Lock lock(gpu.losing);
  if (gpu.lost.load(std::memory_order_relaxed)) return;
  gpu.loss.size = sizeof(gpu.loss);
  fail(&gpu.loss, ASTRA_DEVICE_LOST,
       "the GPU %s%s is lost (%.64s, %d); free the handles of the device and make new ones, in a new process if the "
       "driver wants it",
       gpu.kind->prefix, device->level, why, number);
  gpu.lost.store(true, std::memory_order_release);
}

Status astra::rt::driverFailed(astra_device *device, int error, const char *what, astra_diag *diag) {
  Gpu &gpu = *device->gpu;
  const char *name = nullptr;
  if (!gpu.calls.errorName || gpu.calls.errorName(error, &name) || !name) name = "an error without a name";
  if (error == kDriverOutOfMemory)
    return fail(diag, ASTRA_OUT_OF_MEMORY, "the GPU has no memory left (%s%s: %s)", gpu.kind->prefix, device->level,
                what);
  if (!isLoss(error))
    return fail(diag, ASTRA_DRIVER, "the driver of the GPU %s%s refuses: %.64s (%.64s, %d)", gpu.kind->prefix,
                device->level, what, name, error);
  lose(device, name, error);
  return checkDevice(device, diag);
}

void *astra::rt::ownQueue(const astra_device *device) { return device->gpu ? device->gpu->queue : nullptr; }

Status astra::rt::checkDevice(const astra_device *device, astra_diag *diag) {
  if (!device->gpu || !device->gpu->lost.load(std::memory_order_acquire)) return ASTRA_OK;
  return fail(diag, ASTRA_DEVICE_LOST, "%s", device->gpu->loss.text);
}

const DeviceType astra::rt::gpuDevice = {init,      destroy,   hasFeature,    nullptr, choose, load,      unload,
                                         launch,    allocate,  releaseMemory, copy,    settle, makeQueue, freeQueue,
                                         makeEvent, freeEvent, record,        await,   ended,  notify};
