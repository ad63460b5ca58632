//===- EmulatedDevice.cpp: host builds of GPU kernels ----------------------===//
// Takes:    targets "emu:..." of a bundle; the emulator that the host brings (astra_device_options).
// Gives:    a device whose code is mapped as a CPU's is, and whose launches the emulator does.
// Keeps:    numerics clause N8. A fault that the emulator finds fails the call.
// Does not: emulate: that is outside of this library.
#include "Cpu.h"
#include "Device.h"

using namespace astra::rt;

namespace {

Status init(astra_device *device, const char *name, const astra_device_options &o, astra_diag *diag) {
  if (!o.emulator)
    return fail(diag, ASTRA_UNSUPPORTED,
                "the device '%.64s' is emulated, and no emulator is given: astra-run brings one (astra_device_options)",
                name);
  if (Status s = readStruct(device->emulator, o.emulator, "astra_emulator", diag)) return s;
  if (!device->emulator.launch) return fail(diag, ASTRA_INVALID_ARGUMENT, "astra_emulator has no launch; give one");
  if (o.level)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the device '%.64s' has no level; its name says what it is", name);
  astra_device_options levelled = o;
  levelled.level = name + strlen("emu:");
  return cpu::init(device, name, levelled, diag);
}

bool accepts(const fmt::Target &target) {
  return target.abi() == fmt::kHostBuildAbi && target.arch() == kHostArch &&
         strncmp(target.name()->c_str(), "emu:", 4) == 0;
}

Status launch(astra_device *device, const Launch &l, astra_diag *diag) {
  const fmt::GpuCode &gpu = *l.code->gpu();
  int64_t numbers[fmt::kMaxKernelBuffers];
  for (uint32_t i = 0; i < gpu.dims()->size(); i++) numbers[i] = l.dims[gpu.dims()->Get(i)];
  uint8_t writes[fmt::kMaxKernelBuffers];
  for (uint32_t i = 0; i < l.kernel->access()->size(); i++)
    writes[i] = static_cast<fmt::Access>(l.kernel->access()->Get(i)) != fmt::Access::Read;
  astra_emulated_launch e = ASTRA_INIT(astra_emulated_launch);
  e.kernel = l.kernel->name()->c_str(), e.code = l.entry;
  e.buffers = l.buffers, e.buffer_bytes = l.bufferBytes, e.writes = writes, e.num_buffers = l.kernel->access()->size();
  e.dims = numbers, e.num_dims = gpu.dims()->size();
  e.items = l.items, e.threads = gpu.threads(), e.group = gpu.group(), e.warp = l.target->gpu()->warp();
  e.shared_bytes = gpu.shared();
  astra_tensor_map maps[fmt::kMaxKernelMaps];
  for (; gpu.maps() && e.num_maps < gpu.maps()->size(); e.num_maps++) {
    const fmt::TensorMap &map = *gpu.maps()->Get(e.num_maps);
    maps[e.num_maps] = {map.buffer(), map.box(), map.words(), l.bufferBytes[map.buffer()] / (4 * map.words())};
  }
  e.maps = maps;
  FloatEnvironment environment;
  return device->emulator.launch(device->emulator.self, &e, diag);
}

} // namespace

const DeviceType astra::rt::emulatedDevice = {init,      cpu::destroy, cpuHasFeature, accepts,       nullptr,
                                              cpu::load, cpu::unload,  launch,        cpu::allocate, cpu::release,
                                              cpu::copy, cpu::settle,  nullptr,       nullptr,       nullptr,
                                              nullptr,   nullptr,      nullptr,       nullptr,       nullptr};
