//===- Tuning.cpp: plans by what a kernel computes -------------------------===//
// Takes:    see Tuning.h.
// Gives:    SHA-256 over a kernel's nodes, sources first; the reader and writer of the file.
// Keeps:    the hash free of addresses, node ids and names. What is kept in the order of structural hashes, which are
//           of names too (the terms of polynomials, sources of commuting ops), is put in the order of the hashes here.
#include "astra/Codegen/Tuning.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace astra;
using llvm::StringRef;

static constexpr StringRef header = "astra-tuning 1";
static constexpr size_t hashBytes = 16, longest = 1000; // characters of a line

namespace {

/// What is hashed: numbers and hashes, one after another.
class Record {
public:
  Record &add(int64_t v) {
    for (int i = 0; i < 8; ++i) bytes += char(uint64_t(v) >> 8 * i);
    return *this;
  }
  Record &add(StringRef text) {
    add(int64_t(text.size())).bytes += text;
    return *this;
  }
  std::string hash() const {
    auto sum = llvm::SHA256::hash(llvm::arrayRefFromStringRef(StringRef(bytes)));
    return std::string(sum.begin(), sum.begin() + hashBytes);
  }

private:
  std::string bytes;
};

class Hasher {
public:
  explicit Hasher(const KernelSpec &spec) {
    for (const Placed &p : spec.inputs) meet(p.value->shape);
    for (const Placed &p : spec.outputs) meet(p.value->shape);
  }
  std::string of(UOpRef root) {
    if (auto it = known.find(root); it != known.end()) return it->second;
    for (UOpRef n : topoSort(root))
      if (!known.contains(n)) known[n] = node(n);
    return known[root];
  }

private:
  llvm::DenseMap<UOpRef, std::string> known;
  llvm::DenseMap<UOpRef, int64_t> dims; // their numbers, as they first occur

  int64_t number(UOpRef dim) { return dims.try_emplace(dim, dims.size()).first->second; }
  void meet(Shape shape) {
    for (UOpRef extent : shape)
      if (extent->is(Op::Dim)) number(extent);
  }
  static Record &addSorted(Record &r, std::vector<std::string> hashes) {
    llvm::sort(hashes);
    for (const std::string &h : hashes) r.add(h);
    return r;
  }
  std::string node(UOpRef n) {
    Record r;
    if (n->isIndex() && (n->is(Op::Add) || n->is(Op::Mul))) {
      std::vector<std::string> sum;
      for (const IndexTerm &t : terms(n)) {
        Record term;
        std::vector<std::string> atoms;
        for (UOpRef a : t.atoms) atoms.push_back(of(a));
        sum.push_back(addSorted(term.add(t.coefficient), atoms).hash());
      }
      return addSorted(r.add(int64_t(Op::Add)).add(int64_t(n->dtype)), sum).hash();
    }
    r.add(info(n->op).name).add(info(n->dtype).text).add(n->ntensors);
    for (int64_t v : n->ints) r.add(v);
    if (n->is(Op::Dim))
      r.add(number(n));
    else
      r.add(n->str);
    std::vector<std::string> sources;
    for (UOpRef s : n->src) sources.push_back(of(s));
    if (has(n->op, Commutes)) llvm::sort(sources);
    for (const std::string &s : sources) r.add(s);
    for (UOpRef f : n->fns) r.add(int64_t(f->hash));
    return r.hash();
  }
};

} // namespace

std::string astra::contentHash(const KernelSpec &spec) {
  Hasher hasher(spec);
  Record r;
  auto place = [&](llvm::ArrayRef<Placed> list) {
    r.add(list.size());
    for (const Placed &p : list) {
      r.add(hasher.of(p.value)).add(p.layout.dims.size());
      for (const MemoryDim &d : p.layout.dims) r.add(d.axis).add(d.div).add(d.modulus);
      for (UOpRef stride : p.layout.strides) r.add(hasher.of(stride));
      for (UOpRef extent : p.allocated) r.add(hasher.of(extent));
      for (UOpRef first : p.begin) r.add(hasher.of(first));
    }
  };
  place(spec.inputs);
  place(spec.outputs);
  r.add(spec.rootOp ? hasher.of(spec.rootOp) : "").add(spec.vectorIndex).add(spec.mostRows).add(spec.inPlace);
  if (spec.follows) r.add("follows"); // fewer plans are possible
  return llvm::toHex(r.hash(), true);
}

llvm::Error astra::readTuning(StringRef text, StringRef fileName, Tuning &out) {
  Tuning read;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [i, line] : llvm::enumerate(lines)) {
    std::string origin = (fileName + ":" + llvm::Twine(i + 1)).str();
    auto bad = [&](const llvm::Twine &why) { return llvm::createStringError(origin + ": " + why); };
    line = line.trim();
    if (i == 0) {
      if (line == header) continue;
      return bad("found '" + line.take_front(40) + "', expected '" + header + "'");
    }
    if (line.empty()) continue;
    if (line.size() > longest)
      return bad("a line of " + llvm::Twine(line.size()) + " characters; expected at most " + llvm::Twine(longest));
    auto [hash, rest] = line.split(' ');
    auto [target, planText] = rest.split(' ');
    auto isDigit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (hash.size() != 2 * hashBytes || !llvm::all_of(hash, isDigit))
      return bad("found '" + hash.take_front(40) + "', expected the " + llvm::Twine(2 * hashBytes) +
                 " hexadecimal digits of a kernel");
    if (!target.contains(':') || target.ends_with(":"))
      return bad("found '" + target.take_front(40) + "', expected the name of a target");
    llvm::Expected<Plan> plan = parsePlan(planText.trim());
    if (!plan) return bad(llvm::toString(plan.takeError()));
    auto [place, fresh] = read.try_emplace({hash.str(), target.str()}, TunedPlan{std::move(*plan), origin});
    if (!fresh) return bad("a plan of this kernel for " + target + " is at " + place->second.origin + " already");
  }
  for (auto &[key, tuned] : read) out[key] = std::move(tuned);
  return llvm::Error::success();
}

std::string astra::text(const Tuning &tuning) {
  std::string out = (header + "\n").str();
  for (const auto &[key, tuned] : tuning) out += key.first + " " + key.second + " " + text(tuned.plan) + "\n";
  return out;
}

llvm::Expected<Plans> astra::tunedPlans(llvm::ArrayRef<KernelSpec> kernels, StringRef target, const Tuning &tuning,
                                        llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check) {
  Plans out;
  if (tuning.empty()) return out;
  for (const KernelSpec &k : kernels) {
    auto found = tuning.find({contentHash(k), target.str()});
    if (found == tuning.end()) continue;
    const auto &[plan, origin] = found->second;
    if (llvm::Error e = check(k, plan))
      return llvm::createStringError((origin.empty() ? "" : origin + ": ") + llvm::toString(std::move(e)));
    out[k.name] = plan;
  }
  return out;
}
