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

/// The parts of the manifest are inside of it, aligned, and apart (CheckTree.cpp).
Status checkTree(const void *data, uint64_t bytes, Heap &heap, astra_diag *diag);

struct Checker {
  const fmt::Manifest &m;
  const fmt::Section *sections;
  uint32_t sectionCount;
  Heap &heap;
  astra_diag *diag;
  /// The weights section, if there is one.
  const fmt::Section *weights = nullptr;
  /// Level of each dim, and the scope (an entry, or none) in which it was found; so a scope costs what it names.
  Array<DimLevel> levels{};
  Array<uint32_t> levelIn{};
  /// The same of each expression, which is looked at once per scope.
  Array<DimLevel> found{};
  Array<uint32_t> foundIn{};
  /// Per state: the last scope that lists it as read, and as written.
  Array<uint32_t> readIn{}, writtenIn{};
  uint32_t scope = 0;
  bool hasInternal = false; ///< programs of the scope may set dims

  Status manifest();

  // Tables (CheckManifest.cpp).
  Status expressions();
  Status dims();
  Status place(const fmt::Place *place, const char *what, const char *name);
  Status params();
  Status states();
  Status assets();
  Status targets();
  Status target(const fmt::Target &target);
  Status gpuCode(const fmt::Kernel &kernel, const fmt::KernelCode &code, const fmt::Target &target);
  Status kernels();
  Status entry(const fmt::Entry &entry);
  Status tensor(const fmt::Tensor &tensor, bool isOutput);
  Status strided(const fmt::Entry &entry, const fmt::StridedTensor &tensor);
  template <class Bind> Status bind(const fmt::Entry &entry, const Bind &bind);
  /// exprs[index] exists and uses dims up to `level` only.
  Status expression(uint32_t index, DimLevel level, const char *what);
  /// The highest level among the dims of an expression that exists.
  DimLevel uses(uint32_t index);
  /// A new scope, in which no dim has a value, but for internal ones that its programs set.
  void newScope(bool mayHaveInternal) { scope++, hasInternal = mayHaveInternal; }
  void setLevel(uint32_t dim, DimLevel level) { levels[dim] = level, levelIn[dim] = scope; }
  DimLevel levelOf(uint32_t dim);

  /// Buffers, slots and programs (CheckRoutine.cpp). `entry` is null for a prepare or derive routine.
  Status routine(const fmt::Routine &routine, const fmt::Entry *entry, bool derives = false);
};

} // namespace astra::rt
