//===- Buckets.cpp: many small transfers as few ------------------------------===//
// Takes:    a module in the form Stacked, the most bytes of a bucket.
// Gives:    calls of one collective, none of which waits for another, as one call with several tensors: a bucket.
// Keeps:    bits: each tensor is folded by itself, in the order of the mesh. What is ready first comes first.
// Does not: look into functions (bodies of loops); join what is as large as a bucket, or has an extent that is a dim.
#include "astra/Distribute/Distribute.h"
#include "astra/IR/External.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace astra;
using List = llvm::SmallVector<UOpRef, 8>;

namespace {

/// A part of a name of a collective: "astra.mesh.all_reduce/MESH/AXES/KIND".
bool isJoined(llvm::StringRef name) {
  return name.consume_front("astra.mesh.") &&
         (name.starts_with("all_reduce/") || name.starts_with("reduce_scatter/") || name.starts_with("all_gather/"));
}

/// Bytes of a shard's operand; nothing: it is not joined.
std::optional<uint64_t> bytesOf(UOpRef call) {
  if (!call->is(Op::External) || !isJoined(call->str) || call->ntensors != 1) return std::nullopt;
  UOpRef x = call->src[0];
  uint64_t bytes = byteSize(x->dtype);
  for (UOpRef extent : x->shape.drop_front()) {
    auto n = extent->constIndex();
    if (!n || *n < 0) return std::nullopt;
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, *n);
  }
  return bytes;
}

class Joining {
public:
  Joining(Module &m, uint64_t most) : m(m), c(m.ctx()), most(most) {}

  void entry(Entry &e) {
    List roots;
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    std::vector<UOpRef> order = topoSort(roots);
    if (!fill(order)) return;
    rebuild(order);
    for (Value &v : e.outputs) v.value = image.lookup(v.value);
    for (StateUpdate &u : e.updates) u.value = image.lookup(u.value);
  }

private:
  struct Bucket {
    List calls;
    uint64_t bytes = 0;
    UOpRef made = nullptr;
  };

  /// Calls are alike if none is on a way to another: then as many calls are before each, at most.
  bool fill(llvm::ArrayRef<UOpRef> order) {
    before.clear(), bucketOf.clear(), buckets.clear(), image.clear();
    struct Call {
      unsigned before, depth;
      size_t at;
      UOpRef n;
      uint64_t bytes;
    };
    std::vector<Call> calls;
    llvm::DenseMap<UOpRef, unsigned> depth;
    for (auto [at, n] : llvm::enumerate(order)) {
      unsigned calls0 = 0, deep = 0;
      for (UOpRef s : n->src) {
        calls0 = std::max(calls0, before.lookup(s) + (bytesOf(s) ? 1 : 0));
        deep = std::max(deep, depth.lookup(s) + 1);
      }
      before[n] = calls0, depth[n] = deep;
      if (auto bytes = bytesOf(n); bytes && *bytes < most) calls.push_back({calls0, deep, at, n, *bytes});
    }
    llvm::sort(calls, [](const Call &a, const Call &b) {
      return std::tie(a.before, a.depth, a.at) < std::tie(b.before, b.depth, b.at);
    });
    llvm::StringMap<size_t> open;
    bool any = false;
    unsigned level = 0;
    for (const Call &call : calls) {
      if (call.before != level) open.clear(), level = call.before;
      auto [it, isNew] = open.try_emplace(call.n->str, buckets.size());
      if (!isNew) {
        const Bucket &b = buckets[it->second];
        isNew = b.bytes + call.bytes > most || 2 * (b.calls.size() + 1) > mostOfExternal;
      }
      if (isNew) it->second = buckets.size(), buckets.emplace_back();
      Bucket &b = buckets[it->second];
      b.calls.push_back(call.n), b.bytes += call.bytes;
      any |= b.calls.size() > 1;
    }
    for (auto [i, b] : llvm::enumerate(buckets))
      if (b.calls.size() > 1)
        for (auto [k, n] : llvm::enumerate(b.calls)) bucketOf[n] = {i, k};
    return any;
  }

  List now(llvm::ArrayRef<UOpRef> xs) const {
    List out;
    for (UOpRef x : xs) out.push_back(image.lookup(x));
    return out;
  }

  /// Nodes by the number of calls before them: those of a bucket's operands come before whoever reads its results.
  void rebuild(llvm::ArrayRef<UOpRef> order) {
    std::vector<std::vector<UOpRef>> levels;
    for (UOpRef n : order) {
      levels.resize(std::max<size_t>(levels.size(), before.lookup(n) + 1));
      levels[before.lookup(n)].push_back(n);
    }
    for (const std::vector<UOpRef> &level : levels)
      for (UOpRef n : level) rebuild(n);
  }
  void rebuild(UOpRef n) {
    if (bucketOf.count(n)) return;
    auto call = n->is(Op::Proj) ? bucketOf.find(n->src[0]) : bucketOf.end();
    UOpRef made;
    if (call == bucketOf.end()) {
      made = c.withSources(n, now(n->src));
    } else {
      auto [i, k] = call->second;
      List src{callOf(buckets[i])};
      llvm::append_range(src, now(n->src.drop_front()));
      made = c.make(Op::Proj, src, {int64_t(k)}, {}, n->dtype);
    }
    if (made != n && !n->isIndex()) m.origins.inherit(made, n);
    image[n] = made;
  }

  UOpRef callOf(Bucket &b) {
    if (b.made) return b.made;
    ExternalSpec s = externalOf(b.calls[0]);
    s.results.clear();
    List src;
    for (UOpRef n : b.calls) {
      src.push_back(image.lookup(n->src[0]));
      Type t = externalOf(n).results[0];
      for (UOpRef &extent : t.shape) extent = image.lookup(extent);
      s.results.push_back(std::move(t));
    }
    llvm::append_range(src, extentsOf(s));
    b.made = c.make(Op::External, src, encode(s), b.calls[0]->str);
    for (UOpRef n : b.calls) m.origins.inherit(b.made, n);
    return b.made;
  }

  Module &m;
  Context &c;
  uint64_t most;
  llvm::DenseMap<UOpRef, unsigned> before;                    // calls on a way to it, at most
  llvm::DenseMap<UOpRef, std::pair<size_t, size_t>> bucketOf; // of a call, and its place there
  std::vector<Bucket> buckets;
  llvm::DenseMap<UOpRef, UOpRef> image;
};
} // namespace

void astra::joinCollectives(Module &m, uint64_t most) {
  if (m.mesh.form != MeshForm::Stacked || !most) return;
  Joining joining(m, most);
  for (Entry &e : m.entries) joining.entry(e);
}

std::string astra::bucketList(const Module &m) {
  std::string out;
  for (const Entry &e : m.entries) {
    List roots;
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    for (UOpRef n : topoSort(roots)) {
      if (!n->is(Op::External) || !isJoined(n->str) || n->ntensors < 2) continue;
      uint64_t bytes = 0;
      for (UOpRef x : operandsOf(n)) {
        uint64_t of = byteSize(x->dtype);
        for (UOpRef extent : x->shape.drop_front()) of *= uint64_t(extent->constIndex().value_or(0));
        bytes += of;
      }
      out += "// entry @" + e.name + ": " + std::to_string(n->ntensors) + " tensors, " + std::to_string(bytes) +
             " bytes a shard, in one " + n->str.drop_front(strlen("astra.mesh.")).str() + "\n";
    }
  }
  return out;
}
