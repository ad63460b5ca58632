//===- GuardedDevice.h: a CPU device that launches kernels between guard pages =//
// Takes:    launches, as the runtime gives them to its CPU device.
// Gives:    each launch with every buffer, the scratch memory and the dims in mappings of their own, each at the end of
//           its mapping or at the beginning, with PROT_NONE behind or before it; what a kernel does outside of its
//           buffers, as sentences.
// Keeps:    a kernel that leaves its buffers does not end the process: its launch is done again with room around that
//           buffer, and the call goes on.
// Does not: see a load or store that leaves a buffer by more than 1 MiB for certain, nor one that leaves a buffer for
//           another one that overlaps it: such buffers share a mapping.
#pragma once
#include "Regions.h"
#include "src/Device.h"

#include <memory>
#include <string>

namespace astra::guard {

/// Ordinary: as the runtime's own CPU device launches.
enum class Mode : uint8_t { Ordinary, End, Begin };

/// One way in which a kernel leaves a buffer.
struct Finding {
  std::string sentence; ///< of the first call
  uint64_t calls;
};

struct GuardedDevice : astra_device {
  explicit GuardedDevice(astra_runtime *runtime);
  ~GuardedDevice();

  Mode mode = Mode::Ordinary;
  const astra_session *session = nullptr;  ///< whose buffers have names
  uint64_t launches = 0;                   ///< between guard pages
  uint64_t leftInCall = 0;                 ///< launches until a call is refused
  std::map<std::string, Finding> findings; ///< by kernel, buffer and side

  /// The plan's text form is of the code that runs.
  void report(const rt::Launch &launch, const std::string &buffer, const std::string &what);
  Regions regions;
};

} // namespace astra::guard
