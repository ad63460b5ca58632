//===- PtxCalls.h: instructions of PTX that are calls until the back end ---===//
// Takes:    a module whose kernels call functions `ptx.NAME`, which are declared and nowhere defined.
// Gives:    for a GPU: inline PTX in their place. The emulator has its own form of each (Retarget.cpp).
#pragma once
#include "llvm/IR/Module.h"

namespace astra::gpu {

/// The same names, for who writes the calls.
namespace ptxName {
inline constexpr char barrierInit[] = "ptx.barrier.init";     // (barrier, arrivals of a phase)
inline constexpr char barrierFence[] = "ptx.barrier.fence";   // () barriers that were made are seen by copies
inline constexpr char barrierExpect[] = "ptx.barrier.expect"; // (barrier, bytes) arrives; so many bytes are to come
inline constexpr char barrierArrive[] = "ptx.barrier.arrive"; // (barrier)
inline constexpr char barrierWait[] = "ptx.barrier.wait";     // (barrier, parity of the phase that has to be over)
inline constexpr char copyBox[] = "ptx.copy.box";             // (to, map, word, line, barrier)
inline constexpr char proxyFence[] = "ptx.proxy.fence";       // () what was stored is seen by copies and by wgmma
inline constexpr char descriptor[] = "ptx.wgmma.descriptor";  // (first line) -> i64
inline constexpr char fence[] =
    "ptx.wgmma.fence."; // COUNT (sums) -> sums: registers that were written are the instruction's
inline constexpr char commit[] = "ptx.wgmma.commit";           // () what was begun is a group
inline constexpr char wait[] = "ptx.wgmma.wait.";              // LEFT.COUNT (sums) -> sums, of all but so many groups
inline constexpr char multiply[] = "ptx.wgmma.mma.";           // TYPE.COUNT (rows, columns, sums) -> sums
inline constexpr char giveRegisters[] = "ptx.registers.give."; // COUNT ()
inline constexpr char takeRegisters[] = "ptx.registers.take."; // COUNT ()
} // namespace ptxName

/// What comes before the address in the descriptor of lines of 128 bytes: the layout of that swizzle, 1024 bytes from 8
/// lines to the next 8.
inline constexpr uint64_t lineDescriptor = uint64_t(1) << 62 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 16;
/// Of 32 bytes of a line, which are a step, how far the descriptor of the next ones is.
inline constexpr uint64_t nextStep = 32 >> 4;

void writePtxCalls(llvm::Module &m);

} // namespace astra::gpu
