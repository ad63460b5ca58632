//===- Measure.cpp: errors and hashes of the function programs -------------===//
// Takes:    --full (all 2^32 f32 arguments; an hour of one core) or nothing (2^24 of them); --only=NAME; a number of
//           threads; --check=FILE, lines of an earlier run.
// Gives:    one line per function and format on stdout: name, format, largest error in ulps, argument(s), hash, number
//           of arguments. Exits with 1 if an error is above clause N5's limit or a hash is not FILE's.
// Keeps:    the lines do not depend on the number of threads or on the machine.
// Does not: make the table of docs/functions.md; kernels-gen/functions_table.py does.
#include "../Reference.h"
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace astra::numerics;

static bool full = false;
static unsigned threads = 1;
static bool failed = false;
static std::vector<std::string> expected; // lines of --check's file

static void fail(const std::string &what) {
  std::fprintf(stderr, "measure-functions: %s\n", what.c_str());
  failed = true;
}

/// The sum of `part(begin, end)` over 0 ... count - 1, cut in pieces that threads take.
template <class Part> static Measurement inParallel(uint64_t count, Part part) {
  constexpr uint64_t piece = 1 << 20;
  Measurement total;
  std::mutex lock;
  uint64_t next = 0;
  auto work = [&] {
    for (;;) {
      std::unique_lock hold(lock);
      uint64_t begin = next, end = begin + piece < count ? begin + piece : count;
      if (begin >= count) return;
      next = end;
      hold.unlock();
      Measurement m = part(begin, end);
      hold.lock();
      if (m.error == total.error && m.error && std::fabs(m.argument) < std::fabs(total.argument)) total.error = 0;
      total.add(m);
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread &t : pool) t.join();
  return total;
}

/// The last two fields of a line: hash and number of arguments.
static std::string hashOf(const std::string &line) {
  std::istringstream in(line);
  std::string field, fields[7];
  for (std::string &f : fields) in >> f;
  return fields[5] + " " + fields[6];
}

static void report(const char *name, const char *format, double limit, uint64_t count, const Measurement &m) {
  char line[256];
  std::snprintf(line, sizeof line, "%s %s %.4f %a %a %016" PRIx64 " %" PRIu64, name, format, m.error, m.argument,
                m.second, m.hash, count);
  std::puts(line);
  std::fflush(stdout);
  std::string key = std::string(name) + " " + format + " ";
  if (!(m.error <= limit)) fail(key + "errs by more than " + std::to_string(limit) + " ulp: " + line);
  if (expected.empty()) return;
  for (const std::string &e : expected)
    if (e.compare(0, key.size(), key) == 0) {
      if (hashOf(e) != hashOf(line)) fail(key + "has hash " + hashOf(line) + ", expected " + hashOf(e));
      return;
    }
  fail(key + "is not in the file of expected hashes");
}

template <unsigned arguments, class Program32, class Program64, class Exact>
static void row(const char *name, double limit32, double limit64, Program32 p32, Program64 p64, Exact exact) {
  const uint64_t sample = full ? uint64_t(1) << 26 : uint64_t(1) << 22;
  if constexpr (arguments == 1) {
    const uint64_t all = full ? uint64_t(1) << 32 : uint64_t(1) << 24;
    report(name, "f32", limit32, all, inParallel(all, [&](uint64_t begin, uint64_t end) {
             Measurement m;
             auto every = [](uint64_t i) { return std::bit_cast<float>(uint32_t(i)); };
             auto some = [](uint64_t i) { return sampleOf32(uint32_t(i)); };
             if (full)
               measure<float>(m, p32, exact, every, begin, end);
             else
               measure<float>(m, p32, exact, some, begin, end);
             return m;
           }));
    report(name, "f64", limit64, sample, inParallel(sample, [&](uint64_t begin, uint64_t end) {
             Measurement m;
             measure<double>(m, p64, exact, sampleArgument<double>, begin, end);
             return m;
           }));
  } else {
    auto both = [&]<class T>(const char *format, double limit, auto program, T) {
      report(name, format, limit, sample, inParallel(sample, [&](uint64_t begin, uint64_t end) {
               Measurement m;
               for (uint64_t i = begin; i < end; ++i) {
                 auto [x, y] = powArguments<T>(i);
                 measure<T>(m, program, exact, x, y);
               }
               return m;
             }));
    };
    both("f32", limit32, p32, 0.0f);
    both("f64", limit64, p64, 0.0);
  }
}

int main(int argc, char **argv) {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return std::fprintf(stderr, "measure-functions: needs a CPU with AVX2 and FMA\n"), 77;
#endif
  const char *only = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--full"))
      full = true;
    else if (!std::strncmp(argv[i], "--only=", 7))
      only = argv[i] + 7;
    else if (!std::strncmp(argv[i], "--check=", 8)) {
      std::ifstream in(argv[i] + 8);
      for (std::string line; std::getline(in, line);) expected.push_back(line);
      if (expected.empty()) return std::fprintf(stderr, "measure-functions: %s is empty or missing\n", argv[i] + 8), 2;
    } else if (std::atoi(argv[i]) > 0)
      threads = unsigned(std::atoi(argv[i]));
    else
      return std::fprintf(stderr, "usage: measure-functions [--full] [--only=NAME] [--check=FILE] [THREADS]\n"), 2;
  }
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  if (!only || !std::strcmp(only, #program))                                                                           \
    row<arguments>(                                                                                                    \
        #program, ulp32, ulp64, [](auto... x) { return program<float, Host>(x...); },                                  \
        [](auto... x) { return program<double, Host>(x...); }, [](auto... x) { return wide::program(x...); });
#include "astra/Numerics/Functions.def"
#undef FUNCTION
  return failed;
}
