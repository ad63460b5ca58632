//===- StandIn.h: what tests tell the stand-in driver ------------------------===//
// The stand-in is a library with the functions that the runtime calls of NVIDIA's and AMD's drivers. It has no GPU: its
// kernels are host builds ("emu:..." in a bundle), run by the emulator. What it shows is how the runtime uses a driver.
#pragma once
#include <cstdint>

extern "C" {
/// Forgets faults, holds, delays, bundles, counts and what was not given back, and makes lost devices work again.
/// Nothing may be in use.
void standInReset();
/// Bundles whose GPU code is accepted: a module is found by its bytes, its host build by the hash of those. Copied.
/// isDirect: the host builds are kernels of CPUs, called once for all items (a block is an item, all dims are given).
void standInBundle(const void *data, uint64_t bytes, bool isDirect);
/// The n-th call from now on (0 is the next) of a function, or of any if `call` is "", gives `error`; one of a lost
/// context loses the device. Work that is queued fails when it is run: call "kernel".
void standInFail(const char *call, int64_t n, int error);
/// Streams do nothing more until standInGo: the one that was made as number `stream` since the reset, or all if -1
/// (also that of the device, 0, for which some functions wait).
void standInHold(int64_t stream);
void standInGo();
/// Everything queued begins so much later.
void standInDelay(unsigned microseconds);
/// Calls of a function since the reset; of all if "".
int64_t standInCalls(const char *call);
/// Memory, streams, events, modules and contexts that were not given back.
int64_t standInLive();
/// Which devices there are; 0 or null leaves what is. Begins with 2 devices, sm_90, gfx942, drivers 13000 and 60300000.
void standInMachine(int devices, int sm, const char *gfx, int cudaVersion, int hipVersion);
/// Where bytes of a device's memory are on the host; null if they are none, or leave what was allocated.
void *standInPlace(const void *p, uint64_t bytes);
/// The device that is current on this thread: 0 to 3 of CUDA, 4 to 7 of HIP, -1 if none is.
int standInDevice();
/// No device at all.
void standInNoDevice();
}
