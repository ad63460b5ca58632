//===- Runtime.cpp: the runtime handle, devices ---------------------------===//
// Takes:    the host's hooks.
// Gives:    astra_runtime_*, functions of the host among them, astra_device_*, the checks that every call begins with.
// Keeps:    a forked child is refused before anything is touched.
// Does not: start a thread unless num_threads asks for it.
#include "Stream.h"

#include <cstdarg>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

using namespace astra::rt;

Birthplace::Birthplace() : mark(nullptr), process(int32_t(getpid())) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  void *memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  if (madvise(memory, page, MADV_WIPEONFORK)) { // of qemu-user it succeeds and does nothing: there forks go unseen
    munmap(memory, page);
    return;
  }
  mark = static_cast<int32_t *>(memory);
  *mark = 1;
}

Birthplace::~Birthplace() {
  if (mark) munmap(mark, size_t(sysconf(_SC_PAGESIZE)));
}

bool Birthplace::isHere() const {
  return mark ? __atomic_load_n(mark, __ATOMIC_RELAXED) == 1 : process == int32_t(getpid());
}

Status astra::rt::checkHandle(const Handle *handle, const char *what, astra_diag *diag) {
  if (!handle) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s is NULL; give one", what);
  if (!handle->runtime->birthplace.isHere())
    return fail(diag, ASTRA_FORKED, "%s was made before a fork; make a runtime of its own in the child", what);
  return ASTRA_OK;
}

Status astra::rt::checkFree(const Handle *handle, const char *what) {
  if (Status s = checkHandle(handle, what, nullptr)) return s;
  return handle->users.load(std::memory_order_acquire) ? ASTRA_IN_USE : ASTRA_OK;
}

void astra_runtime::log(int32_t level, const char *format, ...) const {
  if (!logger.log) return;
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  logger.log(logger.self, level, text);
}

astra_status astra_runtime_init(astra_runtime **out, const astra_runtime_options *options, astra_diag *diag) {
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  astra_runtime_options o;
  astra_allocator allocator;
  astra_logger logger;
  if (Status s = readOptions(o, options, "astra_runtime_options", diag)) return s;
  if (Status s = readOptions(allocator, o.allocator, "astra_allocator", diag)) return s;
  if (Status s = readOptions(logger, o.logger, "astra_logger", diag)) return s;
  if (!allocator.allocate != !allocator.release)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "astra_allocator has one of allocate and release; give both or none");
  Heap heap(allocator);
  astra_runtime *runtime = heap.make<astra_runtime>(allocator, logger, o.verify);
  if (!runtime) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a runtime");
  *out = runtime;
  return ASTRA_OK;
}

astra_status astra_runtime_free(astra_runtime **runtime) {
  if (!runtime || !*runtime) return ASTRA_OK;
  if (Status s = checkFree(*runtime, "the runtime")) return s;
  freeSpares(*runtime);
  while (RegisteredFunction *f = (*runtime)->functions) {
    (*runtime)->functions = f->next;
    (*runtime)->heap.release(f, f->bytes, alignof(RegisteredFunction));
  }
  Heap heap((*runtime)->heap.allocator());
  heap.destroy(*runtime);
  *runtime = nullptr;
  return ASTRA_OK;
}

HostFunction astra_runtime::functionOf(const char *name) {
  Lock lock(registry);
  for (RegisteredFunction *f = functions; f; f = f->next)
    if (strcmp(f->name(), name) == 0) return *f;
  return {};
}

astra_status astra_runtime_register(astra_runtime *runtime, const char *name, astra_function_fn fn, void *self,
                                    uint32_t flags, astra_diag *diag) {
  if (Status s = checkHandle(runtime, "the runtime", diag)) return s;
  if (!name || !*name)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "a function has no name; give the one that bundles call it by");
  if (flags & ~uint32_t(ASTRA_FUNCTION_DETERMINISTIC | ASTRA_FUNCTION_EFFECTS))
    return fail(diag, ASTRA_NEWER_CLIENT, "the flags %#x are not known to this library; use a newer one", flags);
  Lock lock(runtime->registry);
  RegisteredFunction *f = runtime->functions;
  while (f && strcmp(f->name(), name) != 0) f = f->next;
  if (!f) {
    uint64_t length = strlen(name) + 1, bytes = sizeof(*f) + length;
    f = static_cast<RegisteredFunction *>(runtime->heap.allocate(bytes, alignof(RegisteredFunction), true));
    if (!f) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to register the function '%.64s'", name);
    f->bytes = bytes, f->next = runtime->functions;
    memcpy(f->name(), name, length);
    runtime->functions = f;
  }
  static_cast<HostFunction &>(*f) = {fn, self, flags, nullptr, nullptr, nullptr};
  return ASTRA_OK;
}

astra_status astra_runtime_register_gpu(astra_runtime *runtime, const char *name, astra_gpu_function_fn fn,
                                        astra_gpu_settle_fn settle, void *settle_self, astra_diag *diag) {
  if (Status s = checkHandle(runtime, "the runtime", diag)) return s;
  Lock lock(runtime->registry);
  for (RegisteredFunction *f = runtime->functions; f; f = f->next)
    if (name && f->fn && strcmp(f->name(), name) == 0) {
      f->gpu = fn, f->settle = settle, f->settleSelf = settle_self;
      return ASTRA_OK;
    }
  return fail(diag, ASTRA_UNKNOWN_NAME, "no function '%.64s' is registered; register the one of the host first",
              name ? name : "");
}

astra_status astra_device_init(astra_device **out, astra_runtime *runtime, const char *name,
                               const astra_device_options *options, astra_diag *diag) {
  if (Status s = checkHandle(runtime, "the runtime", diag)) return s;
  if (!out || !name) return fail(diag, ASTRA_INVALID_ARGUMENT, "out or name is NULL; give both");
  astra_device_options o;
  if (Status s = readOptions(o, options, "astra_device_options", diag)) return s;
  const DeviceType *type = strcmp(name, "cpu") == 0                                          ? &cpuDevice
                           : strncmp(name, "emu:", 4) == 0                                   ? &emulatedDevice
                           : strncmp(name, "cuda:", 5) == 0 || strncmp(name, "hip:", 4) == 0 ? &gpuDevice
                                                                                             : nullptr;
  if (!type)
    return fail(diag, ASTRA_UNSUPPORTED,
                "no device is named '%.64s'; this library has: cpu, cuda:0, hip:0 and so on, emu:cuda:sm_90", name);
  astra_device *device = runtime->heap.make<astra_device>(runtime, *type);
  if (!device) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a device");
  if (Status s = type->init(device, name, o, diag)) {
    runtime->heap.destroy(device);
    return s;
  }
  runtime->users++;
  *out = device;
  return ASTRA_OK;
}

astra_status astra_device_free(astra_device **device) {
  if (!device || !*device) return ASTRA_OK;
  if (Status s = checkFree(*device, "the device")) return s;
  astra_runtime *runtime = (*device)->runtime;
  (*device)->type.destroy(*device);
  runtime->heap.destroy(*device);
  runtime->users--;
  *device = nullptr;
  return ASTRA_OK;
}

Status DeviceMemory::reserve(astra_device *on, uint64_t wanted, astra_diag *diag) {
  if (wanted <= bytes) return ASTRA_OK;
  void *made = nullptr;
  if (Status s = on->type.allocate(on, wanted, true, made, diag)) return s;
  clear();
  device = on, memory = made, bytes = wanted;
  return ASTRA_OK;
}

void DeviceMemory::clear() {
  if (memory) device->type.release(device, memory, bytes);
  memory = nullptr, bytes = 0;
}

int32_t astra_device_has_feature(const astra_device *device, const char *feature) {
  return device && feature ? device->type.hasFeature(feature) : -1;
}
