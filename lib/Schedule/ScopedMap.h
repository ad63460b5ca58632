//===- ScopedMap.h: what is known of nodes, body by body -------------------===//
// Gives:    a map from nodes whose entries made in a body are forgotten, and those overwritten come back, at its end.
// Keeps:    time: leaving a body costs what was written in it.
#pragma once
#include "astra/IR/UOp.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace astra {

template <class T> class ScopedMap {
public:
  /// Null when there is no entry. The pointer holds until the next `set`.
  T *find(UOpRef n) {
    auto it = map.find(n);
    return it == map.end() ? nullptr : &it->second;
  }
  const T *find(UOpRef n) const { return const_cast<ScopedMap *>(this)->find(n); }
  bool count(UOpRef n) const { return map.count(n); }
  void set(UOpRef n, T value) {
    if (!marks.empty()) {
      T *old = find(n);
      log.push_back({n, old ? std::optional<T>(*old) : std::nullopt});
    }
    map[n] = std::move(value);
  }
  void erase(UOpRef n) {
    T *old = find(n);
    if (!old) return;
    if (!marks.empty()) log.push_back({n, std::move(*old)});
    map.erase(n);
  }
  /// For what holds everywhere, whichever body met it first.
  void setForGood(UOpRef n, T value) { map[n] = std::move(value); }
  void enter() { marks.push_back(log.size()); }
  void leave() {
    for (; log.size() > marks.back(); log.pop_back()) {
      auto &[n, old] = log.back();
      if (old)
        map[n] = std::move(*old);
      else
        map.erase(n);
    }
    marks.pop_back();
  }
  void clear() { map.clear(), log.clear(), marks.clear(); }

private:
  llvm::DenseMap<UOpRef, T> map;
  std::vector<std::pair<UOpRef, std::optional<T>>> log;
  std::vector<size_t> marks; // the length of the log when each body began
};

} // namespace astra
