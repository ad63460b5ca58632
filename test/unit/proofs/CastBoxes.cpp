//===- CastBoxes.cpp: conversions, gates, literals -------------------------===//
#include "Boxes.h"
#include "astra/IR/Builder.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using namespace astra::proofs;
using llvm::SmallVector;

static std::vector<DType> arithmetic() {
  std::vector<DType> all;
  for (unsigned d = 0; d < numDTypes; ++d)
    if (isArithmetic(DType(d))) all.push_back(DType(d));
  return all;
}

std::string proofs::castBox(const Rule &r) {
  Run run(r);
  for (DType from : arithmetic()) {
    bool every = bitWidth(from) <= 16 && from != DType::Bool;
    int64_t n = every ? int64_t(1) << bitWidth(from) : 3000;
    EvalInputs in;
    in.inputs = {samples(from, 0, n, every, 0)};
    Context c;
    Builder b(c);
    UOpRef x = b.arg(0, from, {b.idx(n)});
    auto on = [&](Op op, UOpRef of, llvm::ArrayRef<int64_t> ints, DType to) -> UOpRef {
      auto n = c.tryMake(op, {of}, ints, {}, to);
      if (!n) {
        llvm::consumeError(n.takeError());
        return nullptr;
      }
      run.on(c, *n, in);
      return *n;
    };
    for (DType between : arithmetic()) {
      UOpRef cast = on(Op::Cast, x, {0}, between), bits = on(Op::Bitcast, x, {}, between);
      for (DType to : arithmetic()) {
        on(Op::Cast, cast, {0}, to);
        if (bits) on(Op::Bitcast, bits, {}, to);
      }
      for (Op round : {Op::Floor, Op::Ceil, Op::Trunc, Op::RoundEven}) on(round, cast, {}, between);
    }
  }
  return run.verdict();
}

std::string proofs::iotaBox(const Rule &r) {
  Run run(r);
  Context c;
  Builder b(c);
  for (DType from : arithmetic())
    for (DType t : arithmetic()) {
      if (!isInt(from) && !isFloat(from)) continue;
      auto on = [&](UOpRef n) { run.on(c, c.make(Op::Cast, {n}, {0}, {}, t), {}); };
      for (int64_t axis : {0, 1}) on(b.iota(from, {b.idx(3), b.idx(from == DType::I64 ? 70000 : 300)}, axis));
      for (int64_t v : {0l, 1l, 255l, 256l, 2049l, 65519l, 65520l, 16777217l, (1l << 40) + 1, (1l << 53) + 1,
                        (1l << 61) + 3, -1l, -70000l})
        on(b.fromIndex(b.idx(v), from));
    }
  return run.verdict();
}

std::string proofs::literalBox(const Rule &r) {
  Run run(r);
  for (DType t : arithmetic()) {
    Context c;
    Builder b(c);
    Shape shape = c.internShape({b.idx(2)});
    SmallVector<UOpRef, 32> literals,
        flags{b.splat(b.bits(DType::Bool, 0), shape), b.splat(b.bits(DType::Bool, 1), shape)};
    for (uint64_t e : edges(t)) literals.push_back(b.splat(b.bits(t, e), shape));
    auto on = [&](Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {}, DType to = DType::Void) {
      auto n = c.tryMake(op, src, ints, {}, to);
      if (n)
        run.on(c, *n, {});
      else
        llvm::consumeError(n.takeError());
    };
    for (unsigned k = 0; k < numOps; ++k) {
      Op op = Op(k);
      if (!has(op, Elementwise) || has(op, Function)) continue;
      for (size_t i = 0; i < literals.size(); ++i) {
        UOpRef x = literals[i], y = literals[(i * 7 + 3) % literals.size()];
        if (info(op).sources == 1) on(op, {x});
        for (DType to : arithmetic())
          if (op == Op::Cast || op == Op::Bitcast)
            on(op, {x}, op == Op::Cast ? llvm::ArrayRef<int64_t>{0} : llvm::ArrayRef<int64_t>{}, to);
        if (info(op).sources == 2)
          for (UOpRef z : literals) on(op, {x, z});
        if (op == Op::Scale2)
          for (int64_t n : {-3000, -149, -1, 0, 1, 30, 3000}) on(op, {x, b.splat(b.litInt(DType::I32, n), shape)});
        if (op == Op::Fma)
          for (UOpRef z : literals) on(op, {x, y, z});
        if (op == Op::Select)
          for (UOpRef p : flags) on(op, {p, x, y});
      }
    }
  }
  return run.verdict();
}

namespace {
/// What kernels without ranges do: memory by slot, scalars as vectors of one lane.
struct Machine {
  std::map<int64_t, std::vector<uint64_t>> memory;

  std::vector<uint64_t> value(UOpRef n) {
    if (n->isConst()) return {uint64_t(n->ints[0])};
    if (n->op == Op::Splat) return std::vector<uint64_t>(n->ints[0], uint64_t(n->src[0]->ints[0]));
    if (n->op == Op::Select) {
      auto p = value(n->src[0]), x = value(n->src[1]), y = value(n->src[2]);
      for (size_t i = 0; i < p.size(); ++i)
        if (!p[i]) x[i] = y[i];
      return x;
    }
    std::vector<uint64_t> lanes(n->ints[0]), gate(n->ints[0], 1); // a load
    if (n->ntensors == 2) gate = value(n->src[1]);
    for (size_t i = 0; i < lanes.size(); ++i)
      if (gate[i]) lanes[i] = memory[n->src[0]->ints[0]].at(*n->indices()[0]->constIndex() + i);
    return lanes;
  }
  void store(UOpRef n) {
    auto v = value(n->src[1]);
    std::vector<uint64_t> gate(v.size(), 1);
    if (n->ntensors == 3) gate = value(n->src[2]);
    for (size_t i = 0; i < v.size(); ++i)
      if (gate[i]) memory[n->src[0]->ints[0]].at(*n->indices()[0]->constIndex() + i) = v[i];
  }
};
} // namespace

std::string proofs::gateBox(const Rule &r) {
  unsigned fired = 0;
  for (int64_t lanes : {1, 4}) {
    Context c;
    Builder b(c);
    auto wide = [&](UOpRef l) { return lanes == 1 ? l : c.make(Op::Splat, {l}, {lanes}); };
    UOpRef from = c.make(Op::Buffer, {b.idx(16)}, {0}, {}, DType::I32),
           to = c.make(Op::Buffer, {b.idx(16)}, {1}, {}, DType::I32), at = b.idx(5);
    UOpRef truths[] = {wide(b.bits(DType::Bool, 0)), wide(b.bits(DType::Bool, 1))};
    std::vector<UOpRef> nodes, stores;
    for (UOpRef gate : truths) {
      UOpRef load = c.make(Op::Load, {from, gate, at}, {lanes}), plain = c.make(Op::Load, {from, at}, {lanes});
      UOpRef gated = c.make(Op::Store, {to, plain, gate, at}, {lanes});
      stores.push_back(gated);
      nodes.insert(nodes.end(), {load, gated});
      for (UOpRef p : truths)
        for (int64_t zero : {0, 1}) nodes.push_back(c.make(Op::Select, {p, load, wide(b.litInt(DType::I32, zero))}));
    }
    nodes.push_back(c.make(Op::Sink, stores));
    for (UOpRef n : nodes) {
      if (!llvm::is_contained(llvm::ArrayRef(r.roots).take_front(r.numRoots), n->op)) continue;
      UOpRef made = r.procedure({c, Level::Kernel}, n);
      if (!made) continue;
      ++fired;
      Machine before, after;
      for (Machine *m : {&before, &after})
        for (uint64_t i = 0; i < 16; ++i) m->memory[0].push_back(100 + i), m->memory[1].push_back(200 + i);
      auto run = [](Machine &m, UOpRef x) {
        if (x->op == Op::Sink)
          for (UOpRef s : x->src) m.store(s);
        else if (x->op == Op::Store)
          m.store(x);
        else
          return m.value(x);
        return std::vector<uint64_t>{};
      };
      if (run(before, n) != run(after, made) || before.memory != after.memory)
        return std::string(info(n->op).mnemonic) + ": the result differs";
    }
  }
  return fired ? "" : "the rule fired nowhere in its box";
}
