//===- CpuDevice.cpp: the CPU as a device ---------------------------------===//
// Takes:    code sections, launches.
// Gives:    mapped code that is never writable and executable at once; launches split over workers.
// Keeps:    numerics clause N8; any split of a launch gives the same bits, so none is promised.
// Does not: queue (Stream.cpp).
#include "Cpu.h"
#include "Device.h"
#include "Numa.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace astra::rt;

namespace {

using Kernel = void (*)(void *const *buffers, const int64_t *dims, void *scratch, int64_t first, int64_t last);

/// Launches that cost less (bytes or operations) are not split: handing a part to a thread that is awake takes about
/// 2 us, half of what so much takes at 100 a nanosecond.
constexpr int64_t kInlineCost = 400000;
/// What a range of items costs at least, where items are smaller: to take and to begin one takes some 0.1 us, a tenth.
constexpr int64_t kGrainCost = 100000;

} // namespace

Status astra::rt::cpu::init(astra_device *device, const char *name, const astra_device_options &o, astra_diag *diag) {
  bool onNode = o.flags & ASTRA_DEVICE_ON_NODE;
  if (o.driver || o.flags & ~uint32_t(ASTRA_DEVICE_ON_NODE))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the device '%.64s' has no driver and none of these flags; GPUs have",
                name);
  if (onNode && (o.executor || o.num_threads <= 1))
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "ASTRA_DEVICE_ON_NODE is for threads of the device; give num_threads above 1 and no executor");
  if (o.level) {
    if (strlen(o.level) >= sizeof(device->level))
      return fail(diag, ASTRA_UNKNOWN_NAME, "the level '%.64s' is too long a name; give one such as x86-64-v3",
                  o.level);
    strcpy(device->level, o.level);
  }
  if (o.executor) {
    if (Status s = readStruct(device->executor, o.executor, "astra_executor", diag)) return s;
    if (!device->executor.parallel_for || device->executor.num_workers == 0)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "astra_executor has no parallel_for or no worker; give both");
    return ASTRA_OK;
  }
  device->executor.num_workers = 1;
  if (o.num_threads <= 1) return ASTRA_OK;
  if (o.num_threads > 4096)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%u threads; at most 4096 are allowed", o.num_threads);
  cpu_set_t cpus;
  if (onNode)
    if (Status s = cpusOfNode(o.sysfs, o.node, cpus, diag)) return s;
  Status status;
  device->threads = makeThreads(device->runtime->heap, o.num_threads, o.spin_ns, onNode ? &cpus : nullptr, status);
  if (!device->threads)
    return fail(diag, status,
                status == ASTRA_THREADS ? "the system refuses to make %u threads; ask for fewer"
                                        : "no memory for %u threads",
                o.num_threads);
  device->executor = executorOf(device->threads);
  return ASTRA_OK;
}

void astra::rt::cpu::destroy(astra_device *device) {
  if (device->threads) destroyThreads(device->runtime->heap, device->threads);
}

namespace {

bool accepts(const fmt::Target &target) {
  return target.abi() == fmt::kCpuKernelAbi && target.arch() == kHostArch &&
         strncmp(target.name()->c_str(), "cpu:", 4) == 0;
}

/// Makes freshly written code visible to instruction fetch. libgcc's own keeps a writable global.
void synchronizeInstructions([[maybe_unused]] void *base, [[maybe_unused]] uint64_t bytes) {
#if defined(__aarch64__)
  uint64_t types, begin = reinterpret_cast<uint64_t>(base), end = begin + bytes;
  __asm__ volatile("mrs %0, ctr_el0" : "=r"(types));
  uint64_t dataLine = 4ull << (types >> 16 & 15), codeLine = 4ull << (types & 15);
  for (uint64_t at = begin & ~(dataLine - 1); at < end; at += dataLine)
    __asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
  __asm__ volatile("dsb ish" : : : "memory");
  for (uint64_t at = begin & ~(codeLine - 1); at < end; at += codeLine)
    __asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
  __asm__ volatile("dsb ish\n\tisb" : : : "memory");
#endif
}

/// Code that cannot be mapped from the file is copied to a sealed file in memory, or to anonymous memory that stops
/// being writable before it becomes executable.
void *copyCode(const void *source, uint64_t bytes) {
  void *base = MAP_FAILED;
  int memory = memfd_create("astra-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory >= 0) {
    uint64_t written = 0;
    while (written < bytes) {
      ssize_t n = write(memory, static_cast<const char *>(source) + written, bytes - written);
      if (n <= 0) break;
      written += uint64_t(n);
    }
    if (written == bytes && fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
      base = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory, 0);
    close(memory);
  }
  if (base != MAP_FAILED) return base;
  base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  memcpy(base, source, bytes);
  if (mprotect(base, bytes, PROT_READ | PROT_EXEC) == 0) return base;
  munmap(base, bytes);
  return nullptr;
}

} // namespace

Status astra::rt::cpu::load(astra_device *device, const astra_bundle &bundle, uint32_t target, Code &out,
                            astra_diag *diag) {
  uint32_t number = bundle.manifest().targets()->Get(target)->section();
  const fmt::Section &section = bundle.file.sections[number];
  out = {};
  if (Status s = checkHash(bundle.file, number, diag)) return s;
  if (section.bytes == 0) return ASTRA_OK;
  void *base = MAP_FAILED;
  if (bundle.descriptor >= 0) {
    base = mmap(nullptr, section.bytes, PROT_READ, MAP_PRIVATE, bundle.descriptor, off_t(section.offset));
    if (base != MAP_FAILED && mprotect(base, section.bytes, PROT_READ | PROT_EXEC) != 0) {
      munmap(base, section.bytes);
      base = MAP_FAILED;
      device->runtime->log(ASTRA_LOG_WARNING,
                           "the bundle's file system forbids execution; its code is copied to memory");
    }
  }
  if (base == MAP_FAILED) base = copyCode(bundle.file.data + section.offset, section.bytes);
  if (!base)
    return fail(diag, ASTRA_IO,
                "the system refuses executable memory; allow it for this process (noexec, SELinux, seccomp)");
  synchronizeInstructions(base, section.bytes);
  out = {base, section.bytes, nullptr};
  return ASTRA_OK;
}

void astra::rt::cpu::unload(astra_device *, Code &code) {
  if (code.base) munmap(code.base, code.bytes);
  code = {};
}

namespace {

/// A launch that is being split: a part for each worker. The same items are the same worker's from launch to launch if
/// the numbers of workers stay with threads, so it reads what it wrote itself.
struct Split {
  static constexpr int64_t kMostParts = 64; // workers beyond that begin as helpers
  struct alignas(64) Part {
    std::atomic<int64_t> next;
    int64_t end;
  };

  Split(const Launch &l, int64_t workers)
      : launch(l), parts(workers < kMostParts ? workers : kMostParts),
        grain(l.cost > 0 ? int64_t(double(l.items) * kGrainCost / double(l.cost)) : 0) {
    for (int64_t p = 0, at = 0; p < parts; p++) {
      part[p].next.store(at, std::memory_order_relaxed);
      part[p].end = at += (l.items - at) / (parts - p);
    }
  }

  const Launch &launch;
  const int64_t parts, grain;
  Part part[kMostParts];
};

void runRange(const Launch &l, uint64_t worker, int64_t first, int64_t last) {
  reinterpret_cast<Kernel>(const_cast<void *>(l.entry))(l.buffers, l.dims, l.scratch + worker * l.scratchStride, first,
                                                        last);
}

void work(void *arg, size_t worker) {
  Split &split = *static_cast<Split *>(arg);
  FloatEnvironment environment;
  // Its own part first, then the others'. Half of what is left at a time: few calls, and nobody waits long at the end.
  for (int64_t p = 0; p < split.parts; p++) {
    Split::Part &part = split.part[(int64_t(worker) + p) % split.parts];
    int64_t first = part.next.load(std::memory_order_relaxed);
    while (first < part.end) {
      int64_t left = part.end - first, least = split.grain > 1 ? split.grain : 1;
      int64_t range = left / 2 > least ? left / 2 : least, last = range < left ? first + range : part.end;
      if (!part.next.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
      runRange(split.launch, worker, first, last);
      first = part.next.load(std::memory_order_relaxed);
    }
  }
}

Status launch(astra_device *device, const Launch &l, astra_diag *) {
  const astra_executor &e = device->executor;
  if (!e.parallel_for || e.num_workers == 1 || l.items == 1 || (l.cost >= 0 && l.cost < kInlineCost)) {
    FloatEnvironment environment;
    runRange(l, 0, 0, l.items);
    return ASTRA_OK;
  }
  int64_t workers = e.num_workers < l.items ? e.num_workers : l.items;
  Split split{l, workers};
  e.parallel_for(e.self, size_t(workers), work, &split);
  return ASTRA_OK;
}

} // namespace

Status astra::rt::cpu::allocate(astra_device *device, uint64_t bytes, bool zero, void *&out, astra_diag *diag) {
  out = device->runtime->heap.allocate(bytes, fmt::kAlign, zero);
  return out ? ASTRA_OK
             : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for %llu bytes", static_cast<unsigned long long>(bytes));
}

void astra::rt::cpu::release(astra_device *device, void *memory, uint64_t bytes) {
  device->runtime->heap.release(memory, bytes, fmt::kAlign);
}

Status astra::rt::cpu::copy(astra_device *, void *, Way, void *to, const void *from, uint64_t bytes, astra_diag *) {
  if (bytes) memcpy(to, from, bytes);
  return ASTRA_OK;
}

Status astra::rt::cpu::settle(astra_device *, void *, astra_diag *) { return ASTRA_OK; }

const DeviceType astra::rt::cpuDevice = {cpu::init, cpu::destroy, cpuHasFeature, accepts,       nullptr,
                                         cpu::load, cpu::unload,  launch,        cpu::allocate, cpu::release,
                                         cpu::copy, cpu::settle,  nullptr,       nullptr,       nullptr,
                                         nullptr,   nullptr,      nullptr,       nullptr,       nullptr};
