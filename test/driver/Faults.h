//===- Faults.h: calls that fail because a test wants it -------------------===//
// Gives:    the error of the n-th call of a function from now on; call:n:error of a variable of the environment.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace astra::standin {

class Faults {
public:
  void add(const std::string &call, int64_t n, int error) { all.push_back({call, n, error}); }
  void addFrom(const char *variable) {
    char call[64];
    long n;
    int error;
    const char *text = getenv(variable);
    if (text && sscanf(text, "%63[^:]:%ld:%d", call, &n, &error) == 3) add(call, n, error);
  }
  /// The error that a fault wants of this call now, or 0; one of any call, "", does not want a kernel's.
  int take(const std::string &call) {
    for (size_t i = 0; i < all.size(); ++i)
      if ((all[i].call.empty() && call != "kernel") || all[i].call == call)
        if (all[i].left-- == 0) {
          int error = all[i].error;
          all.erase(all.begin() + long(i));
          return error;
        }
    return 0;
  }
  void clear() { all.clear(); }

private:
  struct Fault {
    std::string call;
    int64_t left;
    int error;
  };
  std::vector<Fault> all;
};

} // namespace astra::standin
