//===- Thread.h: what a host form of a kernel and the emulator agree on ----===//
// A kernel is a function `void *k(Thread *, void **arguments)`. It returns null when the thread has ended without
// waiting; else the frame of a coroutine, suspended where the thread waits. Argument i points to the value of argument
// i. Everything that the code needs it finds in its Thread, so it has no imports.
#pragma once
#include <cstdint>

namespace astra::emulator {

enum class Wait : uint32_t { None, Barrier, Exchange, Phase };
enum class Access : uint32_t { GlobalRead, GlobalWrite, SharedRead, SharedWrite };

/// A step of a matrix unit: eight words of each operand, the sum.
using Step = float (*)(const uint32_t *rows, const uint32_t *columns, float sum);

struct Thread {
  uint32_t number, block; // in its block; the block's
  Wait wait;              // why it is suspended
  uint32_t site;          // where: the number of the call in the kernel
  uint32_t from;          // of an exchange: the number of the lane that is read
  uint32_t word[2];       // what it gives, by parity, so that one lane may run ahead to the next exchange
  uint32_t parity;
  uint8_t *shared; // the block's
  void *self;      // the launch
  /// The place to access instead of `place`: itself, or where it does no harm after a fault was noted.
  uint8_t *(*access)(Thread *, uint8_t *place, uint64_t bytes, Access kind);
  void *(*allocate)(Thread *, uint64_t bytes); // for the coroutine's frame
  uint32_t (*received)(Thread *);              // the word of lane `from`
  /// An asynchronous copy from global to shared memory begins: `taken` bytes, zeros behind them.
  void (*copy)(Thread *, uint8_t *to, uint8_t *from, uint32_t bytes, uint32_t taken);
  void (*closeCopies)(Thread *);                // those since the last call are a group
  void (*awaitCopies)(Thread *, uint32_t left); // all groups but the last so many arrive
  // Of an instruction that a warp does together: what each lane gives, by parity, and word i of another one.
  uint32_t fragment[2][8];
  uint32_t (*fragmentOf)(Thread *, uint32_t lane, uint32_t i);
  // Of warp groups (astra/Codegen/PtxCalls.h). A thread that waits for a phase says which: it is over when the
  // barrier's parity is another one.
  uint8_t *awaited;
  uint32_t phaseParity;
  void (*barrierInit)(Thread *, uint8_t *barrier, uint32_t count);
  void (*barrierFence)(Thread *);
  void (*barrierArrive)(Thread *, uint8_t *barrier, uint32_t bytes);
  void (*copyBox)(Thread *, uint8_t *to, const void *map, int32_t word, int32_t line, uint8_t *barrier);
  void (*proxyFence)(Thread *);
  uint64_t (*placeOf)(Thread *, uint8_t *line); // its offset in shared memory
  void (*groupFence)(Thread *);
  void (*commit)(Thread *);
  /// A step of `count` sums of the thread, by the function that is the step of one sum.
  void (*multiply)(Thread *, uint32_t count, uint64_t rows, uint64_t columns, Step step);
  void (*awaitGroups)(Thread *, uint32_t count, uint32_t left);
  uint32_t sums[256]; // which these two read, and write
  /// Of ldmatrix: where the thread's word is of a row of 16 bytes that begins `row` bytes behind the begin of shared
  /// memory.
  uint8_t *(*matrixRow)(Thread *, uint32_t row);
};

} // namespace astra::emulator
