//===- Device.h: where a tool runs a bundle ---------------------------------===//
// Takes:    what the command line says of devices.
// Gives:    the rows of the option table, the device.
// Keeps:    what --emulate shows is the host build of a GPU's kernels; nothing calls it the GPU.
#pragma once
#include "Host.h"
#include "astra/Emulator/Machine.h"

namespace astra::tool {

struct DeviceChoice {
  std::string device = "cpu", driver, level, emulate;
  int64_t threads = 1;
  bool allowPtx = false;
  /// Whether the device's memory is the host's.
  bool onHost() const { return !emulate.empty() || device == "cpu"; }
};

std::vector<Option> deviceOptions(DeviceChoice &choice);
/// What is wrong with the options together, or "".
std::string complaint(const DeviceChoice &choice);
/// Makes h.device, of h.runtime. `machine`, on which --emulate runs, outlives it.
void openDevice(const DeviceChoice &choice, EmulatedMachine &machine, Handles &h, Checked &check);

} // namespace astra::tool
