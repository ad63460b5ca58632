/*===- musl.h: what Debian's libstdc++ expects of glibc -------------------===
 * Takes:    nothing; it is included before every C++ file of the runtime that is built with musl.
 * Gives:    names that libstdc++'s headers, which Debian configures for glibc, use and musl does not have.
 * Keeps:    the runtime uses libstdc++ for headers only, so nothing here is ever called.
 * Does not: stand in for a libstdc++ that was built for musl, as Alpine's is.
 */
#pragma once
#include <features.h>
#include <pthread.h>
#include <time.h>

#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
enum {
  _ISupper = 1,
  _ISlower = 2,
  _ISalpha = 4,
  _ISdigit = 8,
  _ISxdigit = 16,
  _ISspace = 32,
  _ISprint = 64,
  _ISgraph = 128,
  _ISblank = 256,
  _IScntrl = 512,
  _ISpunct = 1024,
  _ISalnum = 2048
};
extern "C" int pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
extern "C" int pthread_mutex_clocklock(pthread_mutex_t *, clockid_t, const struct timespec *);
