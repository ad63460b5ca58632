//===- EvalMesh.cpp: all shards of a module in one process -----------------===//
// Takes:    a module in the form PerShard, an entry, whole tensors.
// Gives:    what its shards give together, as whole tensors: the meaning of sharded modules.
// Keeps:    one shard at a time runs, until it comes to a collective; when all have come to it, it is computed for all.
// So
//           there is one order of everything. A fold is the tree `pairs` over the members of a group.
// Does not: know ranks: how shards are spread over them cannot be seen.
#include "EvalImpl.h"
#include "llvm/ADT/STLExtras.h"
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace astra;
using namespace astra::eval;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace {
/// Calls f(offset in the whole, offset in the part, bytes) for each run of bytes that lies in both one behind another.
Error eachRun(const Tensor &whole, const Mesh &mesh, const Sharding &s, int64_t shard, const Twine &what,
              llvm::function_ref<void(int64_t, int64_t, int64_t)> f) {
  if (s.axes.size() != whole.shape.size())
    return llvm::createStringError(what + " has rank " + Twine(whole.shape.size()) + ", its sharding is " +
                                   shardingText(mesh, s));
  Dims part(whole.shape.begin(), whole.shape.end()), begin(part.size());
  for (size_t i = 0; i < part.size(); ++i) {
    int64_t n = mesh.count(s.axes[i]);
    if (part[i] % n)
      return llvm::createStringError(what + ": axis " + Twine(i) + " has an extent of " + Twine(part[i]) + ", which " +
                                     Twine(n) + " shards do not divide");
    part[i] /= n;
    begin[i] = mesh.indexOf(shard, s.axes[i]) * part[i];
  }
  Dims strides = rowMajor(whole.shape), rows = part;
  int64_t first = 0, run = rows.empty() ? 1 : rows.back(), bytes = byteSize(whole.dtype), at = 0;
  for (size_t i = 0; i < part.size(); ++i) first += begin[i] * strides[i];
  if (!rows.empty()) rows.back() = 1;
  for (Odometer o(rows); !o.done() && run; o.next(), at += run)
    f((first + o.offset(strides)) * bytes, at * bytes, run * bytes);
  return Error::success();
}

/// Element i of t along axis 0.
Tensor element(const Tensor &t, int64_t i) {
  Tensor out = zeros(t.dtype, llvm::ArrayRef(t.shape).drop_front());
  std::copy_n(t.bytes.begin() + i * out.bytes.size(), out.bytes.size(), out.bytes.begin());
  return out;
}

Tensor stack(llvm::ArrayRef<Tensor> elements) {
  Tensor out{elements[0].dtype, elements[0].shape, {}};
  out.shape.insert(out.shape.begin(), elements.size());
  for (const Tensor &t : elements) llvm::append_range(out.bytes, t.bytes);
  return out;
}

/// Neighbours, what is left over stays, until one is left.
Expected<Tensor> fold(std::vector<Tensor> parts, int64_t kind) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
    for (size_t i = 0; 2 * i < parts.size(); ++i) {
      if (2 * i + 1 == parts.size()) {
        parts[i] = std::move(parts[2 * i]);
        break;
      }
      UOp node{};
      node.op = ops[kind];
      node.dtype = parts[0].dtype;
      Dims shape(parts[0].shape.begin(), parts[0].shape.end());
      auto t = evalOp({&node, {&parts[2 * i], &parts[2 * i + 1]}, {}, shape});
      if (!t) return t.takeError();
      parts[i] = std::move(*t);
      canonicalizeNaN(parts[i]);
    }
  return parts[0];
}

class Shards {
public:
  Shards(const Mesh &mesh) : mesh(mesh), all(mesh.shards()) {}

  Error run(llvm::function_ref<void(int64_t shard)> body) {
    std::vector<std::thread> threads;
    for (size_t s = 0; s < all.size(); ++s)
      threads.emplace_back([&, s] {
        std::unique_lock lock(mutex);
        turns.wait(lock, [&] { return turn == s; });
        lock.unlock();
        body(int64_t(s)); // whoever has the turn is alone
        lock.lock();
        all[s].done = true;
        passOn(s);
      });
    for (std::thread &t : threads) t.join();
    return error.empty() ? Error::success() : llvm::createStringError(error);
  }

  Expected<Tensor> collective(int64_t s, UOpRef n, const Tensor &x) {
    auto group = llvm::cantFail(parseGroup(n->str));
    if (group.mesh.axes != mesh.axes)
      return llvm::createStringError("%s: its mesh is not the module's", info(n->op).mnemonic);
    if (n->op == Op::RankIndex) {
      Tensor t = zeros(DType::I64, {});
      Native<int64_t>::store(t.bytes.data(), 0, mesh.indexOf(s, group.over));
      return t;
    }
    std::unique_lock lock(mutex);
    all[s].at = n;
    all[s].value = x;
    canonicalizeNaN(all[s].value);
    passOn(s);
    turns.wait(lock, [&] { return turn == size_t(s); });
    if (!error.empty()) return llvm::createStringError(error);
    return std::move(all[s].value);
  }

private:
  struct Shard {
    UOpRef at = nullptr; // the collective that it waits in
    Tensor value;        // its operand, then its result
    bool done = false;
  };

  /// The turn goes to the next that can go on; if none can, what they wait for is computed.
  void passOn(size_t s) {
    auto next = [&] {
      for (size_t k = 1; k <= all.size(); ++k)
        if (size_t i = (s + k) % all.size(); !all[i].done && !all[i].at) return i;
      return all.size();
    };
    turn = next();
    if (turn == all.size() && !llvm::all_of(all, [](const Shard &x) { return x.done; })) {
      if (auto e = exchange()) error = llvm::toString(std::move(e));
      for (Shard &x : all) x.at = nullptr;
      s = all.size() - 1;
      turn = next();
    }
    turns.notify_all();
  }

  Error exchange() {
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].at != all[0].at)
        return llvm::createStringError("shards 0 and " + Twine(i) +
                                       " have not come to the same collective: one is at " +
                                       (all[0].at ? info(all[0].at->op).mnemonic : "its end") + ", the other at " +
                                       (all[i].at ? info(all[i].at->op).mnemonic : "its end"));
    UOpRef n = all[0].at;
    MeshGroup g = llvm::cantFail(parseGroup(n->str));
    std::vector<Tensor> now;
    for (size_t s = 0; s < all.size(); ++s) {
      std::vector<Tensor> members;
      int64_t mine = mesh.indexOf(int64_t(s), g.over), size = g.size();
      for (int64_t member : mesh.groupOf(int64_t(s), g.over)) members.push_back(all[member].value);
      if (n->op == Op::ReduceScatter || n->op == Op::AllToAll)
        for (Tensor &t : members) t = element(t, mine);
      if (n->op == Op::AllReduce || n->op == Op::ReduceScatter) {
        auto t = fold(std::move(members), n->ints[0]);
        if (!t) return t.takeError();
        now.push_back(std::move(*t));
      } else if (n->op == Op::Shift) {
        int64_t from = mine - n->ints[0];
        if (n->ints[1]) from = ((from % size) + size) % size;
        bool inside = from >= 0 && from < size;
        now.push_back(inside ? members[from] : zeros(members[0].dtype, members[0].shape));
      } else
        now.push_back(stack(members));
    }
    for (auto [s, t] : llvm::zip(all, now)) s.value = std::move(t);
    return Error::success();
  }

  const Mesh &mesh;
  std::vector<Shard> all;
  std::mutex mutex;
  std::condition_variable turns;
  size_t turn = 0;
  std::string error;
};
} // namespace

Expected<Tensor> astra::shardOf(const Tensor &whole, const Mesh &mesh, const Sharding &s, int64_t shard,
                                const Twine &what) {
  if (s.isReplicated()) return whole;
  if (!byteSize(whole.dtype))
    return llvm::createStringError(what + " has elements of less than a byte: they are not cut");
  Tensor part{whole.dtype, whole.shape, {}};
  if (s.axes.size() == whole.shape.size())
    for (size_t i = 0; i < part.shape.size(); ++i) part.shape[i] /= mesh.count(s.axes[i]);
  part.bytes.resize(tensorBytes(part.dtype, part.shape));
  if (auto e = eachRun(whole, mesh, s, shard, what, [&](int64_t from, int64_t to, int64_t bytes) {
        std::copy_n(whole.bytes.begin() + from, bytes, part.bytes.begin() + to);
      }))
    return std::move(e);
  return part;
}

Expected<Tensor> astra::wholeOf(llvm::ArrayRef<const Tensor *> parts, const Mesh &mesh, const Sharding &s,
                                const Twine &what) {
  if (s.isReplicated()) {
    for (size_t i = 1; i < parts.size(); ++i)
      if (*parts[i] != *parts[0])
        return llvm::createStringError(what + " is not sharded, and shards 0 and " + Twine(i) + " give other values");
    return *parts[0];
  }
  Tensor whole = *parts[0];
  for (size_t i = 0; i < std::min(whole.shape.size(), s.axes.size()); ++i) whole.shape[i] *= mesh.count(s.axes[i]);
  if (!byteSize(whole.dtype))
    return llvm::createStringError(what + " has elements of less than a byte: they are not joined");
  whole.bytes.assign(tensorBytes(whole.dtype, whole.shape), 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->shape != parts[0]->shape)
      return llvm::createStringError(what + " has another shape in shard " + Twine(i) + " than in shard 0");
    if (auto e = eachRun(whole, mesh, s, int64_t(i), what, [&](int64_t to, int64_t from, int64_t bytes) {
          std::copy_n(parts[i]->bytes.begin() + from, bytes, whole.bytes.begin() + to);
        }))
      return std::move(e);
  }
  return whole;
}

Expected<EvalResult> eval::evalShards(const Module &m, const Entry &e, const EvalInputs &in,
                                      const EvalOptions &options) {
  const Mesh &mesh = m.mesh;
  if (in.inputs.size() != e.inputs.size())
    return llvm::createStringError("entry @%s takes %zu inputs, %zu are given", e.name.c_str(), e.inputs.size(),
                                   in.inputs.size());
  std::vector<EvalInputs> given(mesh.shards(), EvalInputs{{}, in.dims, {}, {}});
  auto stored = [&](UOpRef value, const Sharding &s, const Bytes &data, const std::map<std::string, Tensor> &over,
                    std::map<std::string, Tensor> EvalInputs::*to) -> Error {
    std::string name = value->str.str();
    Tensor whole{value->dtype, {}, {}};
    if (auto it = over.find(name); it != over.end())
      whole = it->second;
    else if (!data || s.isReplicated())
      return Error::success(); // zeros, or the module's own
    else {
      for (size_t i = 0; i < value->rank(); ++i)
        whole.shape.push_back(value->shape[i]->constIndex().value_or(0) * mesh.count(s.axes[i]));
      whole.bytes = *data;
    }
    if (auto error = checkBytes(whole, "@" + name)) return error;
    for (size_t shard = 0; shard < given.size(); ++shard) {
      auto part = shardOf(whole, mesh, s, int64_t(shard), "@" + name);
      if (!part) return part.takeError();
      (given[shard].*to)[name] = std::move(*part);
    }
    return Error::success();
  };
  for (const Param &p : m.params)
    if (auto error = stored(p.value, p.sharding, p.data, in.params, &EvalInputs::params)) return std::move(error);
  for (const StateVar &s : m.states)
    if (auto error = stored(s.value, s.sharding, s.initial, in.states, &EvalInputs::states)) return std::move(error);
  for (auto [v, whole] : llvm::zip(e.inputs, in.inputs)) {
    if (auto error = checkBytes(whole, "input %" + v.name)) return std::move(error);
    for (size_t shard = 0; shard < given.size(); ++shard) {
      auto part = shardOf(whole, mesh, v.sharding, int64_t(shard), "input %" + v.name);
      if (!part) return part.takeError();
      given[shard].inputs.push_back(std::move(*part));
    }
  }

  std::vector<EvalResult> results(given.size());
  std::vector<std::string> errors(given.size());
  Shards shards(mesh);
  Error failed = shards.run([&](int64_t s) {
    EvalOptions mine = options;
    mine.collective = [&shards, s](UOpRef n, const Tensor &x) { return shards.collective(s, n, x); };
    auto r = evalEntry(m, e, given[s], mine);
    if (r)
      results[s] = std::move(*r);
    else
      errors[s] = llvm::toString(r.takeError());
  });
  for (size_t s = 0; s < errors.size(); ++s)
    if (std::string why = errors[s]; !why.empty()) {
      std::string together = failed ? llvm::toString(std::move(failed)) : "";
      // Those that waited for the one that failed say less than it does.
      for (const std::string &other : errors)
        if (!other.empty() && other != together) why = other;
      return llvm::createStringError(why);
    }
  if (failed) return std::move(failed);

  EvalResult out;
  std::vector<const Tensor *> parts(given.size());
  for (size_t i = 0; i < e.outputs.size(); ++i) {
    for (size_t s = 0; s < parts.size(); ++s) parts[s] = &results[s].outputs[i];
    auto whole = wholeOf(parts, mesh, e.outputs[i].sharding, "output %" + e.outputs[i].name);
    if (!whole) return whole.takeError();
    out.outputs.push_back(std::move(*whole));
  }
  for (const StateVar &v : m.states) {
    std::string name = v.value->str.str();
    for (size_t s = 0; s < parts.size(); ++s) parts[s] = &results[s].states[name];
    auto whole = wholeOf(parts, mesh, v.sharding, "state @" + name);
    if (!whole) return whole.takeError();
    out.states[name] = std::move(*whole);
  }
  return out;
}
