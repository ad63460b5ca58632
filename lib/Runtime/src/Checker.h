//===- Checker.h: the checks of a manifest, shared declarations -----------===//
// Takes:    a FlatBuffer that the verifier accepted.
// Gives:    the state that CheckManifest.cpp (tables) and CheckRoutine.cpp (programs) share.
// Keeps:    one sentence per broken rule.
// Does not: change anything.
#pragma once

#include "Manifest.h"

namespace astra::rt {

/// Which dims an expression may use where it stands. A value is legal if it is not above the level asked for.
enum class DimLevel : uint8_t { Constant = 0, Session = 1, Entry = 2, Internal = 3, Never = 255 };

struct Checker {
  const fmt::Manifest &m;
  const fmt::Section *sections;
  uint32_t sectionCount;
  Heap &heap;
  astra_diag *diag;
  /// Level of each dim in the scope that is being checked (an entry, or none).
  Array<DimLevel> levels;
  /// Per expression: its level, and the scope in which that was found. So each is looked at once per scope.
  Array<DimLevel> found;
  Array<uint32_t> foundIn;
  uint32_t scope = 1;

  Status manifest();

  // Tables (CheckManifest.cpp).
  Status expressions();
  Status dims();
  Status place(const fmt::Place *place, const char *what, const char *name);
  Status params();
  Status states();
  Status targets();
  Status target(const fmt::Target &target);
  Status gpuCode(const fmt::Kernel &kernel, const fmt::KernelCode &code, const fmt::Target &target);
  Status kernels();
  Status entry(const fmt::Entry &entry);
  Status tensor(const fmt::Tensor &tensor, bool isOutput);
  template <class Bind> Status bind(const fmt::Entry &entry, const Bind &bind);
  /// exprs[index] exists and uses dims up to `level` only.
  Status expression(uint32_t index, DimLevel level, const char *what);
  /// The highest level among the dims of an expression that exists.
  DimLevel uses(uint32_t index);
  /// A new scope, where the internal dims alone have a value.
  void resetLevels();

  /// Buffers, slots and programs (CheckRoutine.cpp). `entry` is null for a prepare or derive routine.
  Status routine(const fmt::Routine &routine, const fmt::Entry *entry, bool derives = false);
};

} // namespace astra::rt
