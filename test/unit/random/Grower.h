//===- Grower.h: a module that grows op by op ------------------------------===//
// Takes:    a seed, an entry of a module.
// Gives:    what RandomGraph.cpp and RandomKernel.cpp add to it.
#pragma once
#include "RandomGraph.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::test {
using llvm::ArrayRef;
using Index = llvm::SmallVector<UOpRef, 4>;

constexpr int64_t mostElements = 6000;

class Grower {
public:
  Grower(Module &m, EvalInputs &given, llvm::StringRef name, uint64_t seed, const RandomOptions &options)
      : m(m), given(given), name(name.str()), c(m.ctx()), b(c), options(options), state(seed) {
    state = next() ^ seed << 32; // streams of neighbouring seeds do not overlap
  }
  void run();

private:
  UOpRef dimOf(const std::string &of);
  uint64_t next() { // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t upTo(int64_t n) { return int64_t(next() % uint64_t(n)); } // 0 ... n - 1
  bool chance(int percent) { return upTo(100) < percent; }
  /// A number that takes nothing from the stream: what is drawn after it is what it was.
  uint64_t aside() const {
    uint64_t z = (state ^ 0xd1b54a32d192ed03u) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  template <class T, size_t N> T oneOf(const T (&list)[N]) { return list[upTo(N)]; }
  Op oneOf(const std::vector<Op> &list) { return list[upTo(list.size())]; }
  UOpRef oneOf(ArrayRef<UOpRef> list) { return list.empty() ? nullptr : list[upTo(list.size())]; }

  DType dtype();
  UOpRef extent();
  int64_t valueOf(UOpRef index) {
    auto v = idxEvaluate(index, [&](UOpRef d) -> std::optional<int64_t> {
      auto it = dimValues.find(d);
      return it == dimValues.end() ? std::nullopt : std::optional(it->second);
    });
    return v.value_or(-1); // a data dim: not known here
  }
  int64_t elements(Shape s) {
    int64_t n = 1;
    for (UOpRef d : s) n *= std::max<int64_t>(1, d->hi);
    return n;
  }
  UOpRef input(DType t, ArrayRef<UOpRef> shape);
  Tensor values(DType t, ArrayRef<UOpRef> shape);
  UOpRef indices(UOpRef like, int64_t most, DType t);

  UOpRef add(Op op, ArrayRef<UOpRef> src, ArrayRef<int64_t> ints = {}, DType t = DType::Void,
             ArrayRef<UOpRef> fns = {});
  UOpRef any() {
    return pool[pool.size() - 1 - std::min<size_t>(upTo(pool.size()), upTo(pool.size()))];
  } // rather a late one
  UOpRef anyOf(llvm::function_ref<bool(UOpRef)> ok) {
    std::vector<UOpRef> fit;
    for (UOpRef n : pool)
      if (ok(n)) fit.push_back(n);
    return oneOf(fit);
  }
  /// A tensor of this type and shape: one that exists, a repeated scalar, or a new input.
  UOpRef like(DType t, Shape shape);
  UOpRef like(UOpRef x) { return like(x->dtype, x->shape); }

  void elementwise();
  void convert();
  void move();
  void fold();
  void contract();
  void addByUnit(ContractSpec &s, DType t);
  void product();
  void join();
  void index();
  void control();
  void kernel();
  UOpRef bodyOf(UOpRef x, UOpRef y);

  Entry &entry() { return m.entries.back(); }
  /// A name of the module's: entries beside `main` keep theirs apart.
  std::string named(llvm::StringRef n) const { return name == "main" ? n.str() : name + "." + n.str(); }

  Module &m;
  EvalInputs &given;
  std::string name; // the entry's
  Context &c;
  Builder b;
  const RandomOptions &options;
  uint64_t state;
  std::vector<UOpRef> pool, dims;
  llvm::DenseMap<UOpRef, int64_t> dimValues;
};

} // namespace astra::test
