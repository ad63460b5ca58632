//===- StandIn.cpp: a driver without a GPU -----------------------------------===//
// Takes:    the calls of the drivers' APIs that lib/Runtime/src/Driver.h names, bundles (StandIn.h, or the variable
//           ASTRA_STAND_IN_BUNDLE; ASTRA_STAND_IN_FAULT=call:n:error, ASTRA_STAND_IN_DELAY and ASTRA_STAND_IN_DEVICES
//           for programs).
// Gives:    what the drivers say they give: streams that run by themselves, events, memory of its own.
// Keeps:    device addresses are no addresses of the host: whoever follows one crashes. Memory begins as rubbish. Calls
//           need a context that is current. A lost device gives its error to every call.
// Does not: share a line with the runtime. It says nothing of a real driver or GPU.
#include "StandIn.h"
#include "Builds.h"
#include "Faults.h"
#include "astra/Emulator/Emulator.h"
#include "format/Format.h"
#include "format/manifest_generated.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace fmt = astra::fmt;
using namespace astra::standin;
namespace {

enum Error : int {
  Ok = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  MisalignedAddress = 716,
};
bool isLoss(int e) { return e == 4 || e == 214 || (e >= 700 && e != 701 && e < 720) || e == 999; }

constexpr uintptr_t kDeviceOffset = uintptr_t(0x2000) << 48; // no address of a process

struct Moment {
  bool done = false;
};
struct Event {
  int device;
  std::shared_ptr<Moment> recorded;
};
struct Module {
  int device;
  const Build *build;
};
struct Stream {
  int device;
  int64_t number;
  std::deque<std::function<int()>> work;
  bool stop = false, isRunning = false;
  std::thread thread;
};
struct Memory {
  int device;
  uint64_t bytes;
  uint8_t *host;
};
struct Context {
  int device;
  int retained = 0;
};

struct Driver {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 2, sm = 90, versions[2] = {13000, 60300000};
  std::string gfx = "gfx942:sramecc+:xnack-";
  std::vector<std::unique_ptr<Build>> builds;
  Faults faults;
  std::map<std::string, int64_t> calls;
  std::set<int64_t> held; // numbers of streams; -1 all
  unsigned delay = 0;
  int64_t streamsMade = 0;
  // Devices of CUDA first, then of HIP.
  int lost[8] = {};
  Context contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
  std::map<uintptr_t, Memory> memory;
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Module *> modules;
  uint64_t seed = 1;

  Driver() {
    if (const char *path = getenv("ASTRA_STAND_IN_BUNDLE")) {
      std::ifstream file(path, std::ios::binary);
      std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
      if (!bytes.empty()) add(bytes.data(), bytes.size(), false);
    }
    faults.addFrom("ASTRA_STAND_IN_FAULT");
    if (const char *devices = getenv("ASTRA_STAND_IN_DEVICES")) count = std::min(atoi(devices), 4);
    if (const char *late = getenv("ASTRA_STAND_IN_DELAY")) delay = unsigned(atoi(late));
  }
  void add(const void *data, uint64_t bytes, bool isDirect);
  void clearBuilds() {
    for (auto &b : builds)
      if (b->image) munmap(b->image, b->imageBytes);
    builds.clear();
  }
  void lose(int device, int error) {
    if (isLoss(error) && !lost[device]) lost[device] = error;
    changed.notify_all();
  }
  /// Host address of device memory, up to the end of what was allocated.
  Memory *find(const void *p, uint64_t &offset) {
    auto at = memory.upper_bound(reinterpret_cast<uintptr_t>(p));
    if (at == memory.begin()) return nullptr;
    --at;
    offset = reinterpret_cast<uintptr_t>(p) - at->first;
    return offset <= at->second.bytes ? &at->second : nullptr;
  }
  uint8_t *place(const void *p, uint64_t bytes) {
    uint64_t offset;
    Memory *m = find(p, offset);
    return m && m->bytes - offset >= bytes ? m->host + offset : nullptr;
  }
};

/// One for the process, as a driver is; it is never torn down under its threads.
Driver &driver() {
  static Driver *d = new Driver;
  return *d;
}

void Driver::add(const void *data, uint64_t bytes, bool isDirect) {
  auto *file = static_cast<const uint8_t *>(data);
  if (bytes < sizeof(fmt::Header)) return;
  auto *sections = reinterpret_cast<const fmt::Section *>(file + sizeof(fmt::Header));
  auto contents = [&](uint32_t i) {
    return std::vector<uint8_t>(file + sections[i].offset, file + sections[i].offset + sections[i].bytes);
  };
  std::vector<uint8_t> manifest = contents(0);
  const fmt::Manifest &m = *fmt::GetManifest(manifest.data());
  for (uint32_t i = 0; i < m.targets()->size(); ++i) {
    const fmt::Target &host = *m.targets()->Get(i);
    if (host.abi() != fmt::kHostBuildAbi) continue;
    const fmt::Target &gpu = *m.targets()->Get(host.gpu()->of());
    const fmt::Section &code = sections[gpu.section()];
    if (memcmp(host.gpu()->of_sha256()->data(), code.sha256, 32)) continue;
    auto b = std::make_unique<Build>();
    (code.kind == uint32_t(fmt::SectionKind::DeviceText) ? b->text : b->code) = contents(gpu.section());
    if (gpu.gpu()->text() != fmt::kNone) b->text = contents(gpu.gpu()->text());
    std::vector<uint8_t> image = contents(host.section());
    b->imageBytes = image.size();
    b->image = mmap(nullptr, image.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(b->image, image.data(), image.size());
    mprotect(b->image, image.size(), PROT_READ | PROT_EXEC);
    for (const fmt::Kernel *k : *m.kernels()) {
      const fmt::KernelCode &c = *k->code()->Get(i);
      const fmt::GpuCode &g = *c.gpu();
      const void *code = static_cast<uint8_t *>(b->image) + c.offset();
      Kernel kernel{k->name()->str(), code, g.threads(),      g.group(), host.gpu()->warp(),
                    g.shared(),       {},   g.dims()->size(), isDirect};
      for (uint32_t n = 0; g.maps() && n < g.maps()->size(); ++n) {
        const fmt::TensorMap &map = *g.maps()->Get(n);
        kernel.maps.push_back({map.buffer(), map.box(), map.words(), 0});
      }
      for (auto a : *k->access()) kernel.writes.push_back(a != fmt::Access::Read);
      b->kernels[k->code()->Get(host.gpu()->of())->gpu()->symbol()->str()] = kernel;
    }
    builds.push_back(std::move(b));
  }
}

//===- Calls ------------------------------------------------------------------===//

thread_local std::vector<Context *> contextStack; // CUDA
thread_local int hipDevice = 0;

enum Flavour { Cuda, Hip };
enum Needs { Nothing, AContext, AnyContext }; // one that is not lost, any

/// The device that is current on this thread, or -1.
int currentDevice(Flavour f) {
  Driver &d = driver();
  if (f == Hip) return hipDevice < d.count ? 4 + hipDevice : -1;
  return contextStack.empty() || !contextStack.back()->retained ? -1 : contextStack.back()->device;
}

/// A lost device touches no memory any more once a call has said so.
int loss(Driver &d, std::unique_lock<std::mutex> &lock, int device) {
  for (;;) {
    auto busy = std::find_if(d.streams.begin(), d.streams.end(),
                             [&](const Stream *s) { return s->device == device && s->isRunning; });
    if (busy == d.streams.end()) return d.lost[device];
    d.changed.wait(lock);
  }
}

template <typename F> int call(Flavour flavour, const char *name, Needs needs, F body) {
  Driver &d = driver();
  std::unique_lock lock(d.mutex);
  d.calls[name]++, d.calls[""]++;
  int device = currentDevice(flavour), error = d.faults.take(name);
  if (error) {
    if (device < 0 || !isLoss(error)) return error;
    d.lose(device, error);
    return loss(d, lock, device);
  }
  if (needs == Nothing) return body(d, lock, flavour * 4);
  if (device < 0) return InvalidContext;
  if (d.lost[device] && needs == AContext) return loss(d, lock, device);
  error = body(d, lock, device);
  // What gives back on a lost device does so, and says it.
  return d.lost[device] ? loss(d, lock, device) : error;
}

#define PAIR(needs, cuda, hip, parameters, ...)                                                                        \
  extern "C" int cuda parameters {                                                                                     \
    return call(Cuda, #cuda, needs,                                                                                    \
                [&]([[maybe_unused]] Driver & d, [[maybe_unused]] std::unique_lock<std::mutex> & lock,                 \
                    [[maybe_unused]] int device) __VA_ARGS__);                                                         \
  }                                                                                                                    \
  extern "C" int hip parameters {                                                                                      \
    return call(Hip, #hip, needs,                                                                                      \
                [&]([[maybe_unused]] Driver & d, [[maybe_unused]] std::unique_lock<std::mutex> & lock,                 \
                    [[maybe_unused]] int device) __VA_ARGS__);                                                         \
  }
#define ONE(flavour, needs, name, parameters, ...)                                                                     \
  extern "C" int name parameters {                                                                                     \
    return call(flavour, #name, needs,                                                                                 \
                [&]([[maybe_unused]] Driver & d, [[maybe_unused]] std::unique_lock<std::mutex> & lock,                 \
                    [[maybe_unused]] int device) __VA_ARGS__);                                                         \
  }

//===- Streams ----------------------------------------------------------------===//

void runStream(Stream *s) {
  Driver &d = driver();
  std::unique_lock lock(d.mutex);
  for (;;) {
    d.changed.wait(lock, [&] {
      bool isHeld = d.held.count(-1) || d.held.count(s->number);
      return s->stop || (!s->work.empty() && (!isHeld || d.lost[s->device]));
    });
    if (s->stop) return;
    std::function<int()> work = std::move(s->work.front());
    s->work.pop_front();
    s->isRunning = true;
    unsigned late = d.lost[s->device] ? 0 : d.delay;
    lock.unlock();
    if (late) std::this_thread::sleep_for(std::chrono::microseconds(late));
    int error = work();
    lock.lock();
    s->isRunning = false;
    if (error) d.lose(s->device, error);
    d.changed.notify_all();
  }
}

bool isIdle(const Stream *s) { return s->work.empty() && !s->isRunning; }

int queue(Driver &d, int device, void *stream, std::function<int()> work) {
  auto *s = static_cast<Stream *>(stream);
  if (!d.streams.count(s) || s->device != device) return InvalidHandle;
  s->work.push_back(std::move(work));
  d.changed.notify_all();
  return Ok;
}

/// Work that moves bytes; nothing is moved on a lost device.
int queueBytes(Driver &d, int device, void *stream, std::function<void()> move) {
  return queue(d, device, stream, [&d, device, move = std::move(move)] {
    {
      std::lock_guard lock(d.mutex);
      if (d.lost[device]) return int(Ok);
    }
    move();
    return int(Ok);
  });
}

//===- Kernels ----------------------------------------------------------------===//

struct Launched {
  const Kernel *kernel;
  std::vector<const void *> buffers;
  std::vector<int64_t> numbers;
  uint64_t blocks;
  std::vector<astra::EmulatedMap> maps;
};

int runDirect(const Kernel &k, const std::vector<uint8_t *> &places, const Launched &l) {
  auto *entry =
      reinterpret_cast<void (*)(void *const *, const int64_t *, void *, int64_t, int64_t)>(const_cast<void *>(k.code));
  alignas(64) uint8_t scratch[4096];
  std::vector<void *> buffers(places.begin(), places.end());
  entry(buffers.data(), l.numbers.data(), scratch, 0, int64_t(l.blocks));
  return Ok;
}

int runKernel(int device, const Launched &l) {
  Driver &d = driver();
  const Kernel &k = *l.kernel;
  std::vector<uint8_t *> places;
  std::vector<astra::EmulatedBuffer> buffers;
  uint64_t seed;
  {
    std::lock_guard lock(d.mutex);
    if (d.lost[device]) return Ok;
    if (int error = d.faults.take("kernel")) return error;
    seed = d.seed++;
    // The drivers know allocations, not buffers: one ends where the next argument's begins.
    for (size_t i = 0; i < l.buffers.size(); ++i) {
      const void *p = l.buffers[i];
      uint64_t offset = 0;
      if (reinterpret_cast<uintptr_t>(p) % 16) return MisalignedAddress;
      Memory *m = p ? d.find(p, offset) : nullptr;
      if (p && (!m || m->device != device)) return IllegalAddress;
      uint64_t end = m ? m->bytes : 0;
      for (const void *other : l.buffers)
        if (m && other > p)
          end = std::min<uint64_t>(end,
                                   offset + uint64_t(static_cast<const char *>(other) - static_cast<const char *>(p)));
      places.push_back(m ? m->host + offset : nullptr);
      buffers.push_back({{places.back(), end - offset}, k.writes[i]});
    }
  }
  if (k.isDirect) return runDirect(k, places, l);
  astra::EmulatedKernel kernel{k.name, k.code, k.threads, k.group, k.warp, k.shared};
  astra::EmulatedRun run{seed, 0};
  std::string wrong =
      astra::emulate(kernel, buffers, l.numbers, int64_t(l.blocks * (k.threads / k.group)), run, l.maps);
  if (wrong.empty()) return Ok;
  fprintf(stderr, "stand-in driver: %s\n", wrong.c_str());
  return IllegalAddress;
}

/// The bytes are those of a driver's image: its end is where it stops to be equal, or where the build's end.
bool isImage(const std::vector<uint8_t> &bytes, const void *image) {
  if (bytes.empty()) return false;
  auto *at = static_cast<const uint8_t *>(image);
  for (size_t i = 0; i < bytes.size(); ++i)
    if (at[i] != bytes[i]) return false;
  return true;
}

void forget(Driver &d, int device) {
  std::erase_if(d.memory, [&](const auto &m) { // not what is pinned: that is the host's
    bool isPinned = m.first == reinterpret_cast<uintptr_t>(m.second.host);
    return m.second.device == device && !isPinned && (free(m.second.host), true);
  });
}

int take(Driver &d, int device, void **out, size_t bytes, uintptr_t offset = 0) { // 0: memory of the host
  void *host = nullptr;
  if (!bytes || posix_memalign(&host, 256, bytes)) return bytes ? OutOfMemory : InvalidValue;
  memset(host, 0xcb, bytes);
  uintptr_t at = reinterpret_cast<uintptr_t>(host) + offset;
  d.memory[at] = {device, bytes, static_cast<uint8_t *>(host)};
  *out = reinterpret_cast<void *>(at);
  return Ok;
}
int giveBack(Driver &d, std::unique_lock<std::mutex> &lock, int device, void *memory) {
  auto at = d.memory.find(reinterpret_cast<uintptr_t>(memory));
  if (at == d.memory.end() || at->second.device != device) return InvalidValue;
  const std::vector<Stream *> running(d.streams.begin(), d.streams.end()); // waited for, as drivers do; some end first
  for (Stream *s : running)
    d.changed.wait(lock, [&] { return !d.streams.count(s) || s->device != device || isIdle(s) || d.lost[device]; });
  at = d.memory.find(reinterpret_cast<uintptr_t>(memory));
  free(at->second.host);
  d.memory.erase(at);
  return Ok;
}

int endStream(Driver &d, std::unique_lock<std::mutex> &lock, Stream *s) {
  d.changed.wait(lock, [&] { return isIdle(s) || d.lost[s->device]; });
  s->stop = true;
  d.changed.notify_all();
  d.streams.erase(s);
  lock.unlock();
  s->thread.join();
  lock.lock();
  delete s;
  return Ok;
}

} // namespace

//===- The drivers' functions -------------------------------------------------===//
// NOLINTBEGIN: the names are theirs.

PAIR(Nothing, cuInit, hipInit, (unsigned), { return d.count ? Ok : NoDevice; })
PAIR(Nothing, cuDriverGetVersion, hipDriverGetVersion, (int *out), {
  *out = d.versions[device / 4];
  return Ok;
})
PAIR(Nothing, cuDeviceGetCount, hipGetDeviceCount, (int *out), {
  *out = d.count;
  return d.count || device == 0 ? Ok : NoDevice;
})
PAIR(Nothing, cuDeviceGet, hipDeviceGet, (int *out, int number), {
  *out = number;
  return number >= 0 && number < d.count ? Ok : InvalidDevice;
})
PAIR(Nothing, cuDeviceGetAttribute, hipDeviceGetAttribute, (int *out, int which, int number), {
  if (number >= d.count || (which != 75 && which != 76)) return InvalidValue;
  *out = which == 75 ? d.sm / 10 : d.sm % 10;
  return Ok;
})
ONE(Hip, Nothing, hipGetDevicePropertiesR0600, (void *out, int number), {
  if (number >= d.count) return InvalidDevice;
  memset(out, 0, 1472);
  snprintf(static_cast<char *>(out) + 1160, 256, "%s", d.gfx.c_str());
  return Ok;
})
PAIR(Nothing, cuGetErrorName, hipDrvGetErrorName, (int error, const char **out), {
  static const std::map<int, const char *> names = {
      {1, "ERROR_INVALID_VALUE"},        {2, "ERROR_OUT_OF_MEMORY"},     {100, "ERROR_NO_DEVICE"},
      {200, "ERROR_INVALID_IMAGE"},      {201, "ERROR_INVALID_CONTEXT"}, {222, "ERROR_UNSUPPORTED_PTX_VERSION"},
      {500, "ERROR_NOT_FOUND"},          {700, "ERROR_ILLEGAL_ADDRESS"}, {701, "ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {716, "ERROR_MISALIGNED_ADDRESS"}, {719, "ERROR_LAUNCH_FAILED"}};
  auto at = names.find(error);
  *out = at == names.end() ? nullptr : at->second;
  return *out ? Ok : InvalidValue;
})
ONE(Cuda, Nothing, cuDevicePrimaryCtxRetain, (void **out, int number), {
  if (number >= d.count) return InvalidDevice;
  d.contexts[number].retained++;
  *out = &d.contexts[number];
  return Ok;
})
ONE(Cuda, Nothing, cuDevicePrimaryCtxRelease_v2, (int number), {
  if (number >= d.count || !d.contexts[number].retained) return InvalidContext;
  if (--d.contexts[number].retained == 0) forget(d, number);
  return Ok;
})
ONE(Cuda, Nothing, cuCtxPushCurrent_v2, (void *context), {
  contextStack.push_back(static_cast<Context *>(context));
  return Ok;
})
ONE(Cuda, Nothing, cuCtxPopCurrent_v2, (void **out), {
  if (contextStack.empty()) return InvalidContext;
  *out = contextStack.back();
  contextStack.pop_back();
  return Ok;
})
ONE(Cuda, Nothing, cuCtxGetCurrent, (void **out), {
  *out = contextStack.empty() ? nullptr : contextStack.back();
  return Ok;
})
ONE(Hip, Nothing, hipGetDevice, (int *out), {
  *out = hipDevice;
  return Ok;
})
ONE(Hip, Nothing, hipSetDevice, (int number), {
  if (number >= d.count) return InvalidDevice;
  hipDevice = number;
  return Ok;
})

PAIR(AContext, cuModuleLoadData, hipModuleLoadData, (void **out, const void *image), {
  for (auto &b : d.builds)
    if (isImage(b->code, image) || isImage(b->text, image)) {
      auto *m = new Module{device, b.get()};
      d.modules.insert(m);
      *out = m;
      return int(Ok);
    }
  return int(InvalidImage);
})
PAIR(AnyContext, cuModuleUnload, hipModuleUnload, (void *module), {
  auto *m = static_cast<Module *>(module);
  if (!d.modules.erase(m)) return int(InvalidHandle);
  delete m;
  return int(Ok);
})
PAIR(AContext, cuModuleGetFunction, hipModuleGetFunction, (void **out, void *module, const char *name), {
  auto *m = static_cast<Module *>(module);
  if (!d.modules.count(m)) return int(InvalidHandle);
  auto at = m->build->kernels.find(name);
  if (at == m->build->kernels.end()) return int(NotFound);
  *out = const_cast<Kernel *>(&at->second);
  return int(Ok);
})
ONE(Cuda, AContext, cuTensorMapEncodeTiled,
    (void *map, int type, uint32_t rank, void *address, const uint64_t *extents, const uint64_t *strides,
     const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill),
    {
      TensorMap of{type, rank, address, extents, strides, box, steps, interleave, swizzle, promotion, fill};
      return of.isAllowed(map) && d.place(address, of.bytes()) ? of.write(map), int(Ok) : int(InvalidValue);
    })
ONE(Cuda, AContext, cuFuncSetAttribute, (void *function, int which, int value), {
  if (which == 8) static_cast<Kernel *>(function)->granted = unsigned(value); // the most dynamic shared memory
  return which == 8 && unsigned(value) <= 227 << 10 ? int(Ok) : int(InvalidValue);
})
PAIR(AContext, cuMemAlloc_v2, hipMalloc, (void **out, size_t n), { return take(d, device, out, n, kDeviceOffset); })
PAIR(AContext, cuMemHostAlloc, hipHostMalloc, (void **out, size_t n, unsigned), { return take(d, device, out, n); })
PAIR(AnyContext, cuMemFree_v2, hipFree, (void *memory), { return giveBack(d, lock, device, memory); })
PAIR(AnyContext, cuMemFreeHost, hipHostFree, (void *memory), { return giveBack(d, lock, device, memory); })
PAIR(AContext, cuMemsetD8Async, hipMemsetD8Async, (void *to, unsigned char value, size_t bytes, void *stream), {
  uint8_t *place = d.place(to, bytes);
  if (!place) return int(InvalidValue);
  return queueBytes(d, device, stream, [=] { memset(place, value, bytes); });
})
PAIR(AContext, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, (void *to, const void *from, size_t bytes, void *stream), {
  uint8_t *place = d.place(to, bytes);
  if (!place) return int(InvalidValue);
  return queueBytes(d, device, stream, [=] { memcpy(place, from, bytes); });
})
PAIR(AContext, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void *to, const void *from, size_t bytes, void *stream), {
  uint8_t *place = d.place(from, bytes);
  if (!place) return int(InvalidValue);
  return queueBytes(d, device, stream, [=] { memcpy(to, place, bytes); });
})
PAIR(AContext, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (void *to, const void *from, size_t bytes, void *stream), {
  uint8_t *a = d.place(to, bytes), *b = d.place(from, bytes);
  if (!a || !b) return int(InvalidValue);
  return queueBytes(d, device, stream, [=] { memcpy(a, b, bytes); });
})
PAIR(AContext, cuStreamCreate, hipStreamCreateWithFlags, (void **out, unsigned), {
  auto *s = new Stream;
  s->device = device, s->number = d.streamsMade++;
  s->thread = std::thread(runStream, s);
  d.streams.insert(s);
  *out = s;
  return int(Ok);
})
PAIR(AnyContext, cuStreamDestroy_v2, hipStreamDestroy, (void *stream), {
  auto *s = static_cast<Stream *>(stream);
  return d.streams.count(s) ? endStream(d, lock, s) : int(InvalidHandle);
})
PAIR(AContext, cuStreamSynchronize, hipStreamSynchronize, (void *stream), {
  auto *s = static_cast<Stream *>(stream);
  if (!d.streams.count(s)) return int(InvalidHandle);
  d.changed.wait(lock, [&] { return isIdle(s) || d.lost[device]; });
  return d.lost[device];
})
PAIR(AContext, cuStreamWaitEvent, hipStreamWaitEvent, (void *stream, void *event, unsigned), {
  auto *e = static_cast<Event *>(event);
  if (!d.events.count(e)) return int(InvalidHandle);
  return queue(d, device, stream, [&d, device, moment = e->recorded] {
    std::unique_lock inner(d.mutex);
    d.changed.wait(inner, [&] { return !moment || moment->done || d.lost[device]; });
    return int(Ok);
  });
})
PAIR(AContext, cuEventCreate, hipEventCreateWithFlags, (void **out, unsigned), {
  auto *e = new Event{device, nullptr};
  d.events.insert(e);
  *out = e;
  return int(Ok);
})
PAIR(AnyContext, cuEventDestroy_v2, hipEventDestroy, (void *event), {
  auto *e = static_cast<Event *>(event);
  if (!d.events.erase(e)) return int(InvalidHandle);
  delete e;
  return int(Ok);
})
PAIR(AContext, cuEventRecord, hipEventRecord, (void *event, void *stream), {
  auto *e = static_cast<Event *>(event);
  if (!d.events.count(e)) return int(InvalidHandle);
  auto moment = std::make_shared<Moment>();
  e->recorded = moment;
  return queue(d, device, stream, [&d, moment] {
    std::lock_guard inner(d.mutex);
    moment->done = true;
    d.changed.notify_all();
    return int(Ok);
  });
})
PAIR(AContext, cuEventQuery, hipEventQuery, (void *event), {
  auto *e = static_cast<Event *>(event);
  if (!d.events.count(e)) return int(InvalidHandle);
  return !e->recorded || e->recorded->done ? int(Ok) : int(NotReady);
})
PAIR(AContext, cuEventSynchronize, hipEventSynchronize, (void *event), {
  auto *e = static_cast<Event *>(event);
  if (!d.events.count(e)) return int(InvalidHandle);
  auto moment = e->recorded;
  d.changed.wait(lock, [&] { return !moment || moment->done || d.lost[device]; });
  return d.lost[device];
})
PAIR(AContext, cuLaunchHostFunc, hipLaunchHostFunc, (void *stream, void (*fn)(void *), void *arg), {
  // As the drivers say: it is not called once the context is lost.
  return queueBytes(d, device, stream, [=] { fn(arg); });
})
PAIR(AContext, cuLaunchKernel, hipModuleLaunchKernel,
     (void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
      unsigned sharedBytes, void *stream, void **parameters, void **extra),
     {
       auto *k = static_cast<const Kernel *>(function);
       if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX != k->threads || blockY != 1 || blockZ != 1 || extra)
         return int(InvalidValue);
       unsigned wanted = device < 4 && k->shared > 48 << 10 ? unsigned(k->shared) : 0; // which the code does not state
       if (sharedBytes != wanted || wanted > k->granted) return int(InvalidValue);
       Launched l{k, {}, {}, gridX, {}};
       for (size_t i = 0; i < k->writes.size(); ++i) l.buffers.push_back(*static_cast<void **>(parameters[i]));
       for (uint32_t i = 0; i < k->numbers; ++i)
         l.numbers.push_back(*static_cast<int64_t *>(parameters[k->writes.size() + i]));
       for (size_t i = 0; i < k->maps.size(); ++i) {
         const void *map = parameters[k->writes.size() + k->numbers + i];
         l.maps.push_back(k->maps[i]);
         if (!TensorMap::read(map, l.buffers[k->maps[i].buffer], l.maps.back())) return int(InvalidValue);
       }
       return queue(d, device, stream, [device, l] { return runKernel(device, l); });
     })

// NOLINTEND

//===- What tests tell it -----------------------------------------------------===//

void standInReset() {
  Driver &d = driver();
  std::unique_lock lock(d.mutex);
  d.held.clear();
  // What a fault kept from being given back.
  while (!d.streams.empty()) endStream(d, lock, *d.streams.begin());
  for (Event *e : d.events) delete e;
  for (Module *m : d.modules) delete m;
  for (auto &[at, memory] : d.memory) free(memory.host);
  d.events.clear(), d.modules.clear(), d.memory.clear();
  for (Context &c : d.contexts) c.retained = 0;
  d.faults.clear(), d.calls.clear(), d.held.clear(), d.clearBuilds();
  d.delay = 0, d.streamsMade = 0, d.count = 2, d.sm = 90, d.gfx = "gfx942:sramecc+:xnack-";
  d.versions[0] = 13000, d.versions[1] = 60300000;
  for (int &l : d.lost) l = 0;
}
void standInBundle(const void *data, uint64_t bytes, bool isDirect) {
  std::lock_guard lock(driver().mutex);
  driver().add(data, bytes, isDirect);
}
void standInFail(const char *call, int64_t n, int error) {
  std::lock_guard lock(driver().mutex);
  driver().faults.add(call, n, error);
}
void standInHold(int64_t stream) {
  std::lock_guard lock(driver().mutex);
  driver().held.insert(stream);
}
void standInGo() {
  std::lock_guard lock(driver().mutex);
  driver().held.clear();
  driver().changed.notify_all();
}
void standInDelay(unsigned microseconds) {
  std::lock_guard lock(driver().mutex);
  driver().delay = microseconds;
}
int64_t standInCalls(const char *call) {
  std::lock_guard lock(driver().mutex);
  return driver().calls[call];
}
int64_t standInLive() {
  Driver &d = driver();
  std::lock_guard lock(d.mutex);
  int64_t live = int64_t(d.memory.size() + d.streams.size() + d.events.size() + d.modules.size());
  for (const Context &c : d.contexts) live += c.retained;
  return live;
}
void standInMachine(int devices, int sm, const char *gfx, int cudaVersion, int hipVersion) {
  Driver &d = driver();
  std::lock_guard lock(d.mutex);
  if (devices) d.count = devices;
  if (sm) d.sm = sm;
  if (gfx) d.gfx = gfx;
  if (cudaVersion) d.versions[0] = cudaVersion;
  if (hipVersion) d.versions[1] = hipVersion;
}
void *standInPlace(const void *p, uint64_t bytes) {
  std::lock_guard lock(driver().mutex);
  uint64_t offset;
  Memory *m = driver().find(p, offset);
  return m && reinterpret_cast<uintptr_t>(m->host) != reinterpret_cast<uintptr_t>(p) - offset ? driver().place(p, bytes)
                                                                                              : nullptr;
}
int standInDevice() {
  std::lock_guard lock(driver().mutex);
  return currentDevice(contextStack.empty() ? Hip : Cuda);
}
void standInNoDevice() {
  std::lock_guard lock(driver().mutex);
  driver().count = 0;
}
