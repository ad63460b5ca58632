//===- Regions.cpp: memory between pages that nobody may touch -------------===//
// Keeps:    handlers of SIGSEGV, SIGBUS and SIGFPE are installed while `survives` runs, those of before are there again
//           behind it.
#include "Regions.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

using namespace astra::guard;

static constexpr uint8_t kPattern = 0xa7;

Region::Region(uint64_t pages) : pages(pages) {
  void *all = mmap(nullptr, pages * kPage + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  base = static_cast<uint8_t *>(all) + kGuard;
  if (all == MAP_FAILED || mprotect(base, pages * kPage, PROT_READ | PROT_WRITE) != 0) {
    perror("guard pages");
    abort();
  }
}

Region::~Region() { munmap(base - kGuard, pages * kPage + 2 * kGuard); }

void Region::open(bool wanted) {
  if (opened == wanted) return;
  opened = wanted;
  int access = opened ? PROT_READ | PROT_WRITE : PROT_NONE;
  mprotect(base - kGuard, kGuard, access);
  mprotect(base + pages * kPage, kGuard, access);
}

uint8_t *Region::place(uint64_t count, Side side, uint64_t alignment) {
  bytes = count;
  uint64_t last = pages * kPage - bytes;
  at = base + (side == Side::End || bytes == 0 ? last - last % alignment : 0);
  memset(base, kPattern, uint64_t(at - base));
  memset(at + bytes, kPattern, uint64_t(base + pages * kPage - (at + bytes)));
  return at;
}

bool Region::untouched(int64_t &before, int64_t &behind) const {
  before = behind = 0;
  for (const uint8_t *p = at; p-- > base && before == 0;)
    if (*p != kPattern) before = at - p;
  for (const uint8_t *p = at + bytes, *end = base + pages * kPage; p < end && behind == 0; p++)
    if (*p != kPattern) behind = p - (at + bytes) + 1;
  return before == 0 && behind == 0;
}

Regions::~Regions() {
  giveBack();
  for (auto &[pages, region] : spare) delete region;
}

Region &Regions::take(uint64_t bytes) {
  uint64_t pages = bytes == 0 ? 1 : (bytes + kPage - 1) / kPage;
  auto it = spare.find(pages);
  Region *region = it == spare.end() ? new Region(pages) : it->second;
  if (it != spare.end()) spare.erase(it);
  taken.push_back(region);
  return *region;
}

void Regions::giveBack() {
  for (Region *region : taken) {
    // Few launches have buffers of one size that is large.
    if (spare.count(region->pages) < (region->pages > 256 ? 1 : 8))
      spare.emplace(region->pages, region);
    else
      delete region;
  }
  taken.clear();
  while (spare.size() > 64) {
    delete spare.begin()->second;
    spare.erase(spare.begin());
  }
}

Region *Regions::around(const void *address) const {
  for (Region *region : taken)
    if (region->holds(static_cast<const uint8_t *>(address))) return region;
  return nullptr;
}

//===- Faults -------------------------------------------------------------===//

static sigjmp_buf landing;
static Fault found;

static void onFault(int signal, siginfo_t *info, [[maybe_unused]] void *context) {
  found = {static_cast<const uint8_t *>(info->si_addr), info->si_code > 0 && info->si_code < SI_KERNEL, false, signal};
#if defined(__x86_64__)
  found.stores = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#endif
  siglongjmp(landing, 1);
}

bool astra::guard::survives(void (*run)(void *), void *arg, Fault &fault) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction mine{}, before[3];
  mine.sa_sigaction = onFault;
  mine.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int i = 0; i < 3; i++) sigaction(signals[i], &mine, &before[i]);
  bool done = sigsetjmp(landing, 0) == 0;
  if (done)
    run(arg);
  else
    fault = found;
  for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], nullptr);
  return done;
}
