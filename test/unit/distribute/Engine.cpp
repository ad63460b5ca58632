//===- Engine.cpp: ranks that are threads -----------------------------------===//
#include "Engine.h"
#include "astra/IR/External.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/ADT/STLExtras.h"
#include <barrier>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

using namespace astra;
using namespace astra::test;
using llvm::StringRef;

namespace {
using Bytes = std::vector<uint8_t>;

template <class T> void combineAs(StringRef kind, Bytes &a, const Bytes &b) {
  for (size_t i = 0; i < a.size(); i += sizeof(T)) {
    T x, y;
    memcpy(&x, &a[i], sizeof(T));
    memcpy(&y, &b[i], sizeof(T));
    if (kind == "sum") x = T(x + y);
    if (kind == "prod") x = T(x * y);
    if (kind == "max") x = std::max(x, y);
    if (kind == "min") x = std::min(x, y);
    memcpy(&a[i], &x, sizeof(T));
  }
}
void combine(DType t, StringRef kind, Bytes &a, const Bytes &b) {
  if (t == DType::F32) return combineAs<float>(kind, a, b);
  if (t == DType::F64) return combineAs<double>(kind, a, b);
  if (t == DType::I64) return combineAs<int64_t>(kind, a, b);
  if (t == DType::I32) return combineAs<int32_t>(kind, a, b);
  if (t == DType::Bool) return combineAs<uint8_t>(kind, a, b);
  abort();
}
/// ((0 1)(2 3))((4 5) 6)
Bytes tree(DType t, StringRef kind, std::vector<Bytes> xs) {
  while (xs.size() > 1) {
    std::vector<Bytes> next;
    for (size_t i = 0; i < xs.size(); i += 2) {
      next.push_back(xs[i]);
      if (i + 1 < xs.size()) combine(t, kind, next.back(), xs[i + 1]);
    }
    xs = next;
  }
  return xs[0];
}

/// What all shards get from what all shards give: OP/MESH/AXES/KIND.
std::vector<Bytes> exchange(StringRef name, DType t, const std::vector<Bytes> &x) {
  auto [op, rest] = name.split('/');
  auto [group, word] = rest.rsplit('/');
  MeshGroup g = llvm::cantFail(parseGroup(group));
  size_t size = g.size();
  std::vector<Bytes> out;
  for (size_t s = 0; s < x.size(); ++s) {
    StringRef kind = word;
    std::vector<Bytes> of;
    for (int64_t member : g.mesh.groupOf(s, g.over)) of.push_back(x[member]);
    size_t mine = g.mesh.indexOf(s, g.over), part = of[0].size() / size;
    auto element = [&](size_t g) { return Bytes(of[g].begin() + mine * part, of[g].begin() + (mine + 1) * part); };
    auto all = [&] {
      Bytes y;
      for (const Bytes &b : of) y.insert(y.end(), b.begin(), b.end());
      return y;
    };
    if (op == "all_reduce") {
      kind.consume_back(".one");
      out.push_back(tree(t, kind, of));
    } else if (op == "reduce_scatter") {
      for (size_t g = 0; g < size; ++g) of[g] = element(g);
      out.push_back(tree(t, kind, of));
    } else if (op == "all_gather") {
      out.push_back(all());
    } else if (op == "all_to_all") {
      for (size_t g = 0; g < size; ++g) of[g] = element(g);
      out.push_back(all());
    } else if (op == "permute") {
      int64_t by = 0, from;
      bool wraps = kind.consume_back(".wrap");
      kind.consume_front("+");
      if (!(!kind.getAsInteger(10, by))) abort();
      from = int64_t(mine) - by;
      if (wraps) from = (from % int64_t(size) + size) % size;
      out.push_back(from < 0 || from >= int64_t(size) ? Bytes(x[s].size()) : of[from]);
    } else if (op == "index") {
      int64_t index = mine;
      Bytes y(8);
      memcpy(y.data(), &index, 8);
      out.push_back(y);
    } else
      abort();
  }
  return out;
}

class Ranks {
public:
  Ranks(int64_t ranks, int64_t shards) : local(shards / ranks), given(shards), arrive(ranks) {}

  /// A call of one rank.
  void call(int64_t rank, StringRef name, const Tensor &x, Tensor &y) {
    bool isOne = name.ends_with("one");
    size_t part = x.bytes.size() / local;
    for (int64_t l = 0; l < local; ++l)
      given[rank * local + l].assign(x.bytes.begin() + l * part, x.bytes.begin() + (l + 1) * part);
    arrive.arrive_and_wait();
    std::vector<Bytes> got = exchange(name, x.dtype, given);
    arrive.arrive_and_wait(); // nobody writes what another still reads
    Bytes out;
    for (int64_t l = 0; l < (isOne ? 1 : local); ++l)
      out.insert(out.end(), got[rank * local + l].begin(), got[rank * local + l].end());
    if (!(out.size() == y.bytes.size())) abort();
    y.bytes = out;
    canonicalizeNaN(y);
  }

private:
  int64_t local;
  std::vector<Bytes> given;
  std::barrier<> arrive;
};

/// The names of calls that a module makes.
void collect(llvm::ArrayRef<UOpRef> roots, std::map<std::string, ExternalFunction> &to) {
  for (UOpRef n : topoSort(roots)) {
    if (n->is(Op::External)) to[n->str.str()];
    for (UOpRef f : n->fns) collect(f->src, to);
  }
}
} // namespace

llvm::Expected<EvalResult> test::runRanks(const Module &m, const Entry &e, const EvalInputs &in, int64_t ranks) {
  const Mesh &mesh = m.mesh;
  int64_t local = mesh.shards() / ranks;
  auto rows = [&](const Tensor &t, const Sharding &s, int64_t rank) -> llvm::Expected<Tensor> {
    if (s.isReplicated()) return t;
    Tensor out{t.dtype, {local}, {}};
    for (int64_t l = 0; l < local; ++l) {
      auto part = shardOf(t, mesh, s, rank * local + l, "a tensor");
      if (!part) return part.takeError();
      if (!l) llvm::append_range(out.shape, part->shape);
      llvm::append_range(out.bytes, part->bytes);
    }
    return out;
  };
  Ranks all(ranks, mesh.shards());
  std::map<std::string, ExternalFunction> names;
  collect(m.roots(), names);
  std::vector<EvalResult> results(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      EvalOptions options;
      options.function = [](UOpRef n, llvm::ArrayRef<Tensor> x) {
        static std::mutex one; // contexts belong to one thread
        std::scoped_lock lock(one);
        return evalFunction(n, x);
      };
      for (const auto &[name, unused] : names)
        options.externals[name] = [&all, r, name = name](llvm::ArrayRef<Tensor> x, llvm::MutableArrayRef<Tensor> y) {
          for (auto [from, to] : llvm::zip_equal(x, y))
            all.call(r, StringRef(name).drop_front(strlen("astra.mesh.")), from, to);
          return llvm::Error::success();
        };
      EvalInputs mine{{}, in.dims, in.params, {}};
      mine.dims["shards"] = local;
      auto run = [&](const Entry &entry) {
        auto out = evalEntry(m, entry, mine, options);
        if (out) return results[r] = std::move(*out), true;
        errors[r] = llvm::toString(out.takeError());
        return false;
      };
      if (const Entry *begin = m.entry("shards_init")) {
        if (!run(*begin)) return;
        mine.states = results[r].states;
      }
      for (const StateVar &s : m.states)
        if (auto it = in.states.find(s.value->str.str()); it != in.states.end())
          mine.states[it->first] = llvm::cantFail(rows(it->second, s.sharding, r));
      for (auto [v, t] : llvm::zip(e.inputs, in.inputs)) mine.inputs.push_back(llvm::cantFail(rows(t, v.sharding, r)));
      run(e);
    });
  for (std::thread &t : threads) t.join();
  for (const std::string &why : errors)
    if (!why.empty()) return llvm::createStringError(why);

  // The parts of all ranks, as wholes.
  auto joined = [&](llvm::function_ref<const Tensor &(const EvalResult &)> of, const Sharding &s,
                    const llvm::Twine &what) -> llvm::Expected<Tensor> {
    std::vector<Tensor> parts;
    for (const EvalResult &result : results) {
      const Tensor &t = of(result);
      if (s.isReplicated()) {
        parts.push_back(t);
        continue;
      }
      for (int64_t l = 0; l < local; ++l) {
        size_t size = t.bytes.size() / local;
        parts.push_back({t.dtype, {t.shape.begin() + 1, t.shape.end()}, {}});
        parts.back().bytes.assign(t.bytes.begin() + l * size, t.bytes.begin() + (l + 1) * size);
      }
    }
    std::vector<const Tensor *> pointers;
    for (const Tensor &t : parts) pointers.push_back(&t);
    return wholeOf(pointers, mesh, s, what);
  };
  EvalResult out;
  for (size_t i = 0; i < e.outputs.size(); ++i) {
    auto t = joined([&](const EvalResult &r) -> const Tensor & { return r.outputs[i]; }, e.outputs[i].sharding,
                    e.outputs[i].name);
    if (!t) return t.takeError();
    out.outputs.push_back(std::move(*t));
  }
  for (const StateVar &s : m.states) {
    std::string name = s.value->str.str();
    auto t = joined([&](const EvalResult &r) -> const Tensor & { return r.states.at(name); }, s.sharding, name);
    if (!t) return t.takeError();
    out.states[name] = std::move(*t);
  }
  return out;
}
