//===- Driver.cpp: a GPU's driver, opened by name -------------------------===//
// Takes:    see Driver.h.
// Gives:    the table, or a sentence for a library or a function that is not there.
// Keeps:    a program that is linked statically has no loader: built for it (ASTRA_RT_LOADER off), no driver can be
//           opened.
// Does not: call the driver.
#include "Driver.h"

#if defined(ASTRA_RT_NO_LOADER)
static void *dlopen(const char *, int) { return nullptr; }
static void *dlsym(void *, const char *) { return nullptr; }
static const char *dlerror() { return "this library was built for programs without a loader"; }
enum { RTLD_NOW, RTLD_LOCAL, RTLD_NODELETE };
#else
#include <dlfcn.h>
#endif

using namespace astra::rt;

const DriverKind astra::rt::driverKinds[2] = {
    {"cuda:", "NVIDIA", "libcuda.so.1", 11000, "11.0", fmt::Arch::NVIDIA, true},
    {"hip:", "AMD", "libamdhip64.so", 60000000, "6.0", fmt::Arch::AMD, false},
};

bool astra::rt::isLoss(int error) {
  // Deinitialized, unavailable, an error of the memory; a fault or a time-out of a kernel; what nobody knows.
  constexpr int lost[] = {4, 46, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999};
  for (int e : lost)
    if (e == error) return true;
  return false;
}

Status astra::rt::openDriver(DriverCalls &out, const DriverKind &kind, const char *path, astra_diag *diag) {
  struct Row {
    void *place;
    const char *names[2];
  };
  const Row rows[] = {
#define CALL(field, parameters, cuda, hip) {&out.field, {cuda, hip}},
      ASTRA_DRIVER_CALLS(CALL)
#undef CALL
  };
  const char *file = path ? path : kind.library;
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *why = dlerror();
    return fail(diag, ASTRA_UNSUPPORTED,
                "the driver of %s GPUs cannot be opened (%.300s); install it, or name its file", kind.maker,
                why ? why : file);
  }
  for (const Row &row : rows) {
    const char *name = row.names[kind.isCuda ? 0 : 1];
    bool isOptional = *name == '?';
    name += isOptional;
    void *symbol = *name ? dlsym(library, name) : nullptr;
    memcpy(row.place, &symbol, sizeof(symbol));
    if (*name && !symbol && !isOptional)
      return fail(diag, ASTRA_UNSUPPORTED, "the driver %.200s has no function %s; version %s or newer is needed", file,
                  name, kind.leastName);
  }
  return ASTRA_OK;
}
