//===- Random.cpp: a function that glibc has from 2.36 on ---------------------===//
// Gives:    arc4random, which LLVM's archives use to name temporary files, where the system's C library is older.
// Keeps:    the symbol inside of the module (exports.map).
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t word;
  if (getrandom(&word, sizeof word, 0) != sizeof word) abort(); // four bytes are never cut short (getrandom(2))
  return word;
}
