//===- Join.cpp: launches that a CPU computes some rows at a time ----------===//
// Takes:    the programs of the routine at hand.
// Gives:    where a contract writes rows, a kernel of rows reads them (softmax), and another contract sums over what
//           that one writes: the three launches one behind another, the first of which a CPU computes with the others
//           in its items, so that rows go through its caches and not through memory (attention; decision 0070).
// Keeps:    what each kernel computes. Buffers that they read live until the last of them; nothing between them writes
//           one.
#include "Scheduler.h"
#include "Thresholds.h"
#include "astra/IR/Contract.h"
#include "astra/Schedule/Holes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace astra;
using llvm::ArrayRef;

static constexpr size_t mostBuffers = 240, farthest = 64; // launches between them

/// The buffers that a launch writes, whichever variant runs.
static ArrayRef<uint32_t> writtenBy(const LaunchInstr &l, ArrayRef<KernelSpec> kernels) {
  const KernelSpec &k = kernels[l.variants[0].kernel];
  return k.inPlace ? ArrayRef(l.buffers).take_front() : ArrayRef(l.buffers).take_back(k.outputs.size());
}

/// Whether the element or the row of `arg` at hand is all that a row of the result reads: its nodes are elements of a
/// row or one value for each row throughout.
static bool staysInRow(const KernelSpec &spec, UOpRef arg) {
  Shape rows = arg->shape;
  llvm::DenseSet<UOpRef> reached{arg};
  for (UOpRef n : topoSort(spec.outputs[0].value)) {
    if (llvm::none_of(n->src, [&](UOpRef s) { return reached.contains(s); })) continue;
    reached.insert(n);
    UOpRef from = n->src[0];
    bool fits = n->shape == rows || isOfRows(n->shape, rows);
    if (isRowReduce(n))
      fits &= from->shape == rows;
    else if (n->op == Op::Reshape)
      fits &= keepsRows(n);
    else if (n->op == Op::Expand)
      fits &= n->shape == rows && isOfRows(from->shape, rows) && from->rank() == rows.size();
    else
      fits &= has(n->op, Elementwise) || n->op == Op::Detach;
    if (!fits) return false;
  }
  return true;
}

/// Whether a contract's kept labels from 0 on are the axes of its rows, the lanes along them.
static bool isRowMajorProduct(const KernelSpec &k) {
  Shape shape = k.outputs[0].value->shape;
  return k.rootOp && k.rootOp->op == Op::Contract && k.rootOp->shape == shape && k.outputs[0].layout.isRowMajor() &&
         k.vectorIndex + 1 == int64_t(shape.size());
}

/// Whether it is computed label by label, without holes.
static bool isPlain(const KernelSpec &k) {
  ContractSpec s = llvm::cantFail(decodeContract(k.rootOp->ints));
  return !hasHoles(s) && s.outside.empty();
}

/// Whether a contract sums over the last axis of `arg`, has a kept label for each other one, and no other use of it.
static bool sumsOverRows(const KernelSpec &k, UOpRef arg) {
  if (!k.rootOp || k.rootOp->op != Op::Contract || k.vectorIndex < 0 || k.rootOp->shape != k.outputs[0].value->shape)
    return false;
  bool first = k.rootOp->src[0] == arg;
  if (first == (k.rootOp->src[1] == arg)) return false;
  for (UOpRef n : topoSort(k.outputs[0].value))
    if (n != k.rootOp && llvm::is_contained(n->src, arg)) return false;
  ContractSpec s = llvm::cantFail(decodeContract(k.rootOp->ints));
  llvm::DenseSet<int64_t> labels{k.vectorIndex};
  for (auto [axis, f] : llvm::enumerate(first ? s.a : s.b)) {
    if (!f.isLabel()) return false;
    int64_t label = f.terms[0].first;
    bool last = axis + 1 == arg->rank();
    if (last != (label >= s.kept) || !labels.insert(label).second) return false;
    if (k.rootOp->indices()[label] != arg->shape[axis]) return false;
  }
  return true;
}

/// Bytes that a tile reads beside its rows: of the operands of both contracts that other rows read too, at one point of
/// the outer axes.
static uint64_t sharedBytes(const KernelSpec &first, const KernelSpec &last) {
  static constexpr int64_t many = int64_t(1) << 30;
  auto product = [](const KernelSpec &k, auto isShared) {
    ContractSpec s = llvm::cantFail(decodeContract(k.rootOp->ints));
    uint64_t bytes = std::max(1u, byteSize(k.rootOp->dtype));
    for (int64_t label = 0; label < s.kept + s.reduced; ++label)
      if (isShared(s, label))
        bytes = llvm::SaturatingMultiply<uint64_t>(bytes, std::clamp<int64_t>(k.rootOp->indices()[label]->hi, 1, many));
    return bytes;
  };
  auto lanesAndSum = [](const KernelSpec &k) {
    return [&](const ContractSpec &s, int64_t label) { return label == k.vectorIndex || label >= s.kept; };
  };
  return llvm::SaturatingAdd(product(first, lanesAndSum(first)), product(last, lanesAndSum(last)));
}

/// Rows of a result, as many as there can be at one point of the outer axes, at the fewest of those points.
static int64_t rowsOfAll(const KernelSpec &k) {
  static constexpr int64_t large = int64_t(1) << 20;
  ArrayRef<UOpRef> shape = k.outputs[0].value->shape;
  int64_t rows = std::min(shape[shape.size() - 2]->hi, large);
  for (UOpRef e : shape.drop_back(2)) rows = std::min(rows * std::clamp<int64_t>(e->lo, 1, large), large);
  return rows;
}

void Scheduler::join() {
  std::vector<unsigned> named(routine->buffers.size()); // how often instructions of this routine name a buffer
  auto name = [&](auto... buffers) { (++named[buffers], ...); };
  for (const std::vector<Instr> &p : routine->programs)
    for (const Instr &i : p) {
      if (auto *x = std::get_if<LaunchInstr>(&i))
        for (uint32_t buffer : x->buffers) name(buffer);
      if (auto *x = std::get_if<CopyInstr>(&i)) name(x->dst, x->src);
      if (auto *x = std::get_if<ReadDimInstr>(&i)) name(x->buffer);
      if (auto *x = std::get_if<WhileInstr>(&i)) name(x->flag);
      if (auto *x = std::get_if<CondInstr>(&i)) name(x->flag);
      if (auto *x = std::get_if<SwapInstr>(&i)) name(x->a, x->b);
      if (auto *x = std::get_if<ExternalInstr>(&i))
        for (auto *list : {&x->operands, &x->results})
          for (const ExternalInstr::Tensor &t : *list) name(t.buffer);
    }
  for (std::vector<Instr> &p : routine->programs)
    for (size_t i = 0; i < p.size(); ++i) join(p, i, named);
}

void Scheduler::join(std::vector<Instr> &program, size_t last, ArrayRef<unsigned> named) {
  auto launchAt = [&](size_t i) -> const LaunchInstr * {
    auto *l = std::get_if<LaunchInstr>(&program[i]);
    if (!l || l->variants.size() != 1) return nullptr;
    const KernelSpec &k = out.kernels[l->variants[0].kernel];
    return k.followers.empty() && !k.follows ? l : nullptr; // joined to one alone
  };
  auto specOf = [&](const LaunchInstr &l) -> const KernelSpec & { return out.kernels[l.variants[0].kernel]; };
  /// The launch that writes a slot which only the reader at hand reads.
  auto writerOf = [&](uint32_t buffer, size_t before) -> std::optional<size_t> {
    if (routine->buffers[buffer].kind != BufferKind::Slot || named[buffer] != 2) return std::nullopt;
    for (size_t steps = 0; steps < farthest && before-- > 0; ++steps) {
      auto *l = std::get_if<LaunchInstr>(&program[before]);
      if (l && llvm::is_contained(l->buffers, buffer))
        return launchAt(before) && !specOf(*l).inPlace && l->buffers.back() == buffer ? std::optional(before)
                                                                                      : std::nullopt;
      if (!l && !std::get_if<CopyInstr>(&program[before]) && !std::get_if<ReadDimInstr>(&program[before])) break;
    }
    return std::nullopt;
  };
  /// Where the rows that a kernel reads come from, if it can go through them some at a time.
  auto rowsOf = [&](size_t reader, auto canRead) -> std::optional<size_t> {
    const LaunchInstr *l = launchAt(reader);
    if (!l || specOf(*l).inPlace) return std::nullopt;
    for (auto [number, p] : llvm::enumerate(specOf(*l).inputs)) {
      UOpRef rows = p.value;
      if (rows->rank() < 2 || !p.layout.isRowMajor() || rows->shape.back()->hi > threshold::joinRow ||
          rows->shape[rows->rank() - 2]->hi < threshold::joinRows || !canRead(specOf(*l), rows))
        continue;
      auto writer = writerOf(l->buffers[number], reader);
      if (writer && specOf(*launchAt(*writer)).outputs[0].value->shape == rows->shape) return writer;
    }
    return std::nullopt;
  };
  auto middle = rowsOf(last, sumsOverRows);
  if (!middle || !isPlain(specOf(*launchAt(last)))) return;
  auto first = rowsOf(*middle, [](const KernelSpec &k, UOpRef rows) {
    const Placed &to = k.outputs[0];
    return k.rootOp && isRowReduce(k.rootOp) && k.rootOp->src[0]->shape == rows->shape && to.layout.isRowMajor() &&
           to.value->shape == rows->shape && staysInRow(k, rows);
  });
  if (!first || !isRowMajorProduct(specOf(*launchAt(*first))) || !isPlain(specOf(*launchAt(*first)))) return;

  // Each tile reads keys and values anew: they must lie near, or tiles must have many rows.
  uint64_t shared = sharedBytes(specOf(*launchAt(*first)), specOf(*launchAt(last)));
  if (shared > threshold::joinSharedByMany ||
      (shared > threshold::joinShared && rowsOfAll(specOf(*launchAt(*first))) < threshold::joinManyRows))
    return;

  // The kernel at the head has the buffers of all.
  std::vector<LaunchInstr> launches{*launchAt(*first), *launchAt(*middle), *launchAt(last)};
  KernelSpec head = specOf(launches[0]);
  std::vector<uint32_t> buffers(ArrayRef(launches[0].buffers).drop_back());
  for (size_t k : {1, 2})
    for (auto [p, buffer] : llvm::zip(specOf(launches[k]).inputs, launches[k].buffers))
      if (buffer != launches[k - 1].buffers.back() && !llvm::is_contained(buffers, buffer)) {
        head.inputs.push_back({b.arg(buffers.size(), p.value->dtype, p.value->shape), p.layout, p.allocated});
        buffers.push_back(buffer);
      }
  for (const LaunchInstr &l : launches) {
    if (llvm::is_contained(buffers, l.buffers.back())) return; // a result that lies where an operand does
    buffers.push_back(l.buffers.back());
  }
  if (buffers.size() > mostBuffers) return;
  for (size_t i = *first + 1; i < last; ++i) { // nothing that comes behind one of them now came before
    ArrayRef<uint32_t> writes;
    if (auto *l = std::get_if<LaunchInstr>(&program[i])) writes = writtenBy(*l, out.kernels);
    if (auto *x = std::get_if<CopyInstr>(&program[i])) writes = x->dst;
    auto names = [&](size_t k) {
      return llvm::any_of(writes, [&](uint32_t w) { return llvm::is_contained(launches[k].buffers, w); });
    };
    if (i != *middle && (names(0) || (i > *middle && names(1)))) return;
  }
  for (size_t k : {1, 2}) {
    KernelSpec follower = specOf(launches[k]);
    follower.follows = true;
    launches[k].variants[0].kernel = kernelNumber(std::move(follower));
    Follower f{specOf(launches[k]), {}};
    for (uint32_t buffer : launches[k].buffers) f.buffers.push_back(llvm::find(buffers, buffer) - buffers.begin());
    head.outputs.push_back(f.spec.outputs[0]);
    head.followers.push_back(std::move(f));
  }
  if (!o.gpus)
    for (size_t k : {0, 1}) routine->buffers[launches[k].buffers.back()].bytes = c.index(0);
  launches[0].variants[0].kernel = kernelNumber(std::move(head));
  launches[0].buffers = buffers;
  launches[0].origins = joined({&launches[0].origins, &launches[1].origins, &launches[2].origins});
  uint32_t now = lives[launches[1].buffers.back()].last; // the last one's time
  for (uint32_t x : buffers) {
    lives[x].last = std::max(lives[x].last, now);
    if (auto it = partner.find(x); it != partner.end()) lives[it->second].last = std::max(lives[it->second].last, now);
  }
  auto at = [&](size_t i) { return program.begin() + i; };
  std::rotate(at(*middle), at(*middle + 1), at(last));
  std::rotate(at(*first), at(*first + 1), at(last - 1));
  std::move(launches.begin(), launches.end(), at(last - 2));
}
