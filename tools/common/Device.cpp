//===- Device.cpp: where a tool runs a bundle -------------------------------===//
#include "Device.h"
#include "astra/ranks.h"

// Tools that are no ranks do not have it.
#pragma weak astra_ranks_local_rank

using namespace astra;
using namespace astra::tool;

std::vector<Option> tool::deviceOptions(DeviceChoice &c) {
  return {
      {"device", "NAME",
       "the device: cpu, or a GPU as cuda:0 or hip:0; cuda and hip are the GPU whose number is that of this process "
       "among those that a launcher has started on the machine; cpu if not given",
       text(c.device)},
      {"driver", "FILE", "the library of the GPU's driver; libcuda.so.1 or libamdhip64.so if not given",
       text(c.driver)},
      {"allow-ptx", "",
       "lets the GPU's driver compile PTX where the bundle has no code for that GPU; no test has seen what it makes",
       flag(c.allowPtx)},
      {"level", "LEVEL", "forces a CPU level, e.g. x86-64-v3; the best that the CPU has if not given", text(c.level)},
      {"threads", "N", "worker threads; 1 if not given. The bits do not depend on it", number(c.threads, 1, 1024)},
      {"emulate", "GPU",
       "runs the host build of the kernels of a GPU, as cuda:sm_90, thread by thread; no GPU is used. An access "
       "outside, a race or a barrier that not all threads reach fails the call",
       text(c.emulate)},
  };
}

std::string tool::complaint(const DeviceChoice &c) {
  bool more = !c.level.empty() || c.device != "cpu";
  return !c.emulate.empty() && more ? "--emulate says what runs: it goes with no --level and no --device" : "";
}

/// "cuda" and "hip" with the number of this rank's GPU.
static std::string numbered(const std::string &device) {
  if (device != "cuda" && device != "hip") return device;
  int32_t local = astra_ranks_local_rank ? astra_ranks_local_rank() : 0;
  if (local < 0)
    throw Refusal{Failure, "the launcher does not say which number this process has on its machine: give --device=" +
                               device + ":NUMBER"};
  return device + ":" + std::to_string(local);
}

void tool::openDevice(const DeviceChoice &c, EmulatedMachine &machine, Handles &h, Checked &check) {
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = uint32_t(c.threads);
  options.level = c.level.empty() ? nullptr : c.level.c_str();
  astra_emulator emulator = machine.hooks();
  if (!c.emulate.empty()) options.emulator = &emulator;
  options.driver = c.driver.empty() ? nullptr : c.driver.c_str();
  options.flags = c.allowPtx ? ASTRA_DEVICE_ALLOW_PTX : 0;
  std::string name = c.emulate.empty() ? numbered(c.device) : "emu:" + c.emulate;
  check(astra_device_init(&h.device, h.runtime, name.c_str(), &options, check));
}
