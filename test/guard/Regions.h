//===- Regions.h: memory between pages that nobody may touch ---------------===//
// Takes:    sizes.
// Gives:    mappings with PROT_NONE on both sides, kept and used again; bytes placed at their end or their beginning;
//           the fault of an access outside, as an address, in place of the end of the process.
// Keeps:    bytes that lie between a buffer and its guard pages hold a pattern, and `untouched` says whether they still
//           do.
// Does not: know kernels.
#pragma once
#include <csetjmp>
#include <cstdint>
#include <map>
#include <vector>

namespace astra::guard {

inline constexpr uint64_t kPage = 4096, kGuard = 1 << 20;

enum class Side : uint8_t { End, Begin }; ///< where the guard page is that a buffer touches

class Region {
public:
  explicit Region(uint64_t pages);
  ~Region();
  Region(const Region &) = delete;
  /// So many bytes that touch the guard page of a side, as far as the alignment allows; the rest gets the pattern. No
  /// bytes touch the page behind them.
  uint8_t *place(uint64_t bytes, Side side, uint64_t alignment);
  /// The place of the first byte around what was placed that has changed, counted from its beginning (negative) or its
  /// end; 0 bytes tell nothing.
  bool untouched(int64_t &before, int64_t &behind) const;
  bool holds(const uint8_t *address) const {
    return address >= base - kGuard && address < base + pages * kPage + kGuard;
  }
  /// Lets the neighbours be written, or no more.
  void open(bool opened);
  bool isOpen() const { return opened; }

  const uint64_t pages;
  uint8_t *at = nullptr; ///< what was placed
  uint64_t bytes = 0;

private:
  uint8_t *base; ///< the first page that may be touched
  bool opened = false;
};

/// Regions by their pages, for one launch after another.
class Regions {
public:
  Regions() = default;
  ~Regions();
  Regions(const Regions &) = delete;
  Region &take(uint64_t bytes);
  void giveBack();
  /// That which an address lies in or beside; null if none.
  Region *around(const void *address) const;
  const std::vector<Region *> &used() const { return taken; }

private:
  std::multimap<uint64_t, Region *> spare;
  std::vector<Region *> taken;
};

struct Fault {
  const uint8_t *address;
  bool known;  ///< whether the system says where and how
  bool stores; ///< else it loads, or the system does not say
  int signal;
};

/// Runs a function whose faults come back: false, and `fault` says what. The function frees nothing on its way.
bool survives(void (*run)(void *), void *arg, Fault &fault);

} // namespace astra::guard
