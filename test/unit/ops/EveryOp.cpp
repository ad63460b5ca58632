//===- EveryOp.cpp: every operation and type beside the evaluator ----------===//
#include "Ops.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Reduction.h"
#include "astra/Numerics/Random.h"
#include "llvm/ADT/StringSwitch.h"

using namespace astra;
using namespace astra::test;
using ops::Kind;

namespace {

/// A call with its operands.
struct Case {
  const ops::Row *row;
  std::vector<Strided> operands;
  std::vector<int32_t> axes;
  Extents shape;
  uint32_t flags = 0;
  int32_t dtype = 0;
  uint32_t seed = 0, sequence = 0;

  astra_op op(std::vector<const astra_view *> &views) const {
    for (const Strided &s : operands) views.push_back(&s.view);
    astra_op o = ASTRA_INIT(astra_op);
    o.name = row->name, o.inputs = views.data(), o.num_inputs = uint32_t(views.size()), o.flags = flags;
    o.axes = axes.data(), o.num_axes = uint32_t(axes.size()), o.dtype = dtype;
    o.shape = shape.data(), o.ndim = int32_t(shape.size()), o.seed = seed, o.sequence = sequence;
    return o;
  }
};

UOpRef named(compose::Composer &b, llvm::StringRef name, llvm::ArrayRef<UOpRef> x) {
  name.consume_front("bit_");
  if (name == "relu") return compose::activations::relu.apply(b, b.widen(x[0]), 0, 0);
  if (name == "reciprocal") return compose::reciprocal(b, x[0]);
  if (name == "gt") return b.bin(Op::Lt, x[1], x[0]);
  if (name == "ge") return b.bin(Op::Le, x[1], x[0]);
  return b.make(*opNamed(name), x);
}

/// The operation as a graph over the operands' own shapes.
UOpRef graphOf(const Case &c, compose::Composer &b, llvm::ArrayRef<UOpRef> x) {
  llvm::StringRef name = c.row->name;
  auto axis = [&] { return c.axes[0] < 0 ? c.axes[0] + int64_t(x[0]->rank()) : c.axes[0]; };
  switch (c.row->kind) {
  case Kind::Unary: return b.cast(named(b, name, x[0]), name == "relu" ? x[0]->dtype : named(b, name, x[0])->dtype);
  case Kind::Cast: return b.cast(x[0], typeOf(c.dtype));
  case Kind::Copy: return x[0];
  case Kind::Matmul: return compose::product(b, x[0], x[1]);
  case Kind::Sum:
  case Kind::Prod:
  case Kind::Mean:
  case Kind::Reduce: {
    compose::Ints axes;
    for (int64_t i = 0; i < x[0]->rank(); i++) {
      bool isIn = c.axes.empty();
      for (int32_t a : c.axes) isIn |= (a < 0 ? a + int64_t(x[0]->rank()) : a) == i;
      if (isIn) axes.push_back(i);
    }
    ReduceKind kind = llvm::StringSwitch<ReduceKind>(name)
                          .Case("prod", ReduceKind::Prod)
                          .Case("amax", ReduceKind::Max)
                          .Case("amin", ReduceKind::Min)
                          .Case("any", ReduceKind::Or)
                          .Case("all", ReduceKind::And)
                          .Default(ReduceKind::Sum);
    UOpRef y = c.row->kind == Kind::Mean ? b.cast(compose::mean(b, b.widen(x[0]), axes), x[0]->dtype)
                                         : b.reduce(kind, x[0], axes);
    return c.flags & ASTRA_OPS_KEEP_AXES ? y : b.squeeze(y, axes);
  }
  case Kind::ArgReduce: {
    UOpRef y = b.make(Op::ArgReduce, {x[0]}, {name == "argmin", axis()});
    return c.flags & ASTRA_OPS_KEEP_AXES ? b.unsqueeze(y, {axis()}) : y;
  }
  case Kind::ArgSort:
  case Kind::Sort: {
    UOpRef places = b.make(Op::ArgSort, {x[0]}, {axis(), !!(c.flags & ASTRA_OPS_DESCENDING)});
    return c.row->kind == Kind::Sort ? b.make(Op::Pick, {x[0], places}, {axis()}) : places;
  }
  case Kind::Take: return b.make(Op::Gather, {x[0], b.cast(x[1], DType::I64)}, {axis()});
  case Kind::Pick: return b.make(Op::Pick, {x[0], b.cast(x[1], DType::I64)}, {axis()});
  case Kind::Scatter: {
    ScatterKind kind = llvm::StringSwitch<ScatterKind>(name)
                           .Case("scatter_add", ScatterKind::Add)
                           .Case("scatter_mul", ScatterKind::Mul)
                           .Case("scatter_max", ScatterKind::Max)
                           .Case("scatter_min", ScatterKind::Min)
                           .Default(ScatterKind::Set);
    return b.make(Op::Scatter, {x[0], b.cast(x[1], DType::I64), x[2]}, {axis(), int64_t(kind)});
  }
  case Kind::Random: {
    UOpRef seed = b.b.bits(DType::U32, c.seed), sequence = b.b.bits(DType::U32, c.sequence);
    compose::Dims dims;
    for (int64_t n : c.shape) dims.push_back(b.idx(n));
    DType t = typeOf(c.dtype), wide = t == DType::F64 ? t : DType::F32;
    return name == "random_bits" ? b.b.random(seed, sequence, dims)
           : name == "uniform"   ? b.cast(randomUniform(b.b, seed, sequence, wide, dims), t)
                                 : b.cast(randomNormal(b.b, seed, sequence, wide, dims), t);
  }
  default: {
    std::vector<llvm::ArrayRef<UOpRef>> shapes;
    for (UOpRef v : x) shapes.push_back(v->shape);
    compose::Dims dims = b.broadcastShape(shapes);
    std::vector<UOpRef> all;
    for (UOpRef v : x) all.push_back(b.broadcastTo(v, dims));
    return named(b, name, all);
  }
  }
}

/// One of the shapes that broadcast to `shape`.
Extents narrowed(Random &random, const Extents &shape) {
  Extents s = shape;
  switch (random() % 6) {
  case 0: return {};
  case 1: // a row
    for (size_t i = 0; i + 1 < s.size(); i++) s[i] = 1;
    break;
  case 2: // a column
    if (!s.empty()) s.back() = 1;
    break;
  case 3:
    for (int64_t &n : s) n = random() % 2 ? n : 1;
    break;
  case 4: s.erase(s.begin(), s.begin() + std::ptrdiff_t(random() % (s.size() + 1))); break;
  default: break;
  }
  return s;
}

Case randomCase(Random &random, const ops::Row &row, int32_t dtype) {
  Case c{&row, {}, {}, {}, 0, 0, uint32_t(random()), uint32_t(random() % 3)};
  int rank = random() % 8 == 0 ? 5 + int(random() % 4) : int(random() % 5);
  bool strided = random() % 2;
  int64_t most = rank > 4 ? 3 : 7;
  auto add = [&](int32_t t, const Extents &shape) {
    c.operands.push_back(tensorOf(random, t, shape, strided && random() % 2));
  };
  auto places = [&](Extents shape, int64_t n) {
    Strided s = tensorOf(random, ASTRA_I64, shape, false);
    auto *at = reinterpret_cast<int64_t *>(s.memory.data());
    for (size_t i = 0; i < s.memory.size() / 8; i++) at[i] = int64_t(random() % uint64_t(n + 2)) - 1;
    if (random() % 3 == 0) { // as i32
      std::vector<uint8_t> narrow(s.memory.size() / 2);
      for (size_t i = 0; i < narrow.size() / 4; i++) {
        int32_t v = int32_t(at[i]);
        memcpy(&narrow[4 * i], &v, 4);
      }
      s.memory = narrow, s.view.dtype = ASTRA_I32;
      s.view.data = s.memory.data(), s.view.data_bytes = s.memory.size();
    }
    c.operands.push_back(std::move(s));
    c.operands.back().view.data = c.operands.back().memory.data();
  };
  switch (row.kind) {
  case Kind::Unary:
  case Kind::Copy: add(dtype, randomShape(random, rank, most)); break;
  case Kind::Cast:
    add(dtype, randomShape(random, rank, most));
    do c.dtype = int32_t(1 + random() % ASTRA_C128);
    while ((dtype == ASTRA_C64 || dtype == ASTRA_C128) && c.dtype < ASTRA_C64);
    break;
  case Kind::Matmul: {
    int64_t m = 1 + int64_t(random() % 9), k = int64_t(random() % 20), n = 1 + int64_t(random() % 9);
    Extents stack = randomShape(random, int(random() % 3), 3), a = narrowed(random, stack), b = narrowed(random, stack);
    if (random() % 2) a = stack;
    if (random() % 5)
      a.push_back(m);
    else
      a.clear();
    a.push_back(k);
    b.push_back(k);
    if (random() % 5)
      b.push_back(n);
    else
      b = {k};
    add(dtype, a), add(dtype, b);
    if (random() % 3 == 0) { // the second one transposed, as it lies
      Strided &s = c.operands[1];
      Extents t = b;
      if (t.size() > 1) std::swap(t[t.size() - 1], t[t.size() - 2]);
      s = tensorOf(random, dtype, t, false);
      if (t.size() > 1) {
        std::swap(s.view.shape[t.size() - 1], s.view.shape[t.size() - 2]);
        std::swap(s.view.strides[t.size() - 1], s.view.strides[t.size() - 2]);
      }
    }
    break;
  }
  case Kind::Sum:
  case Kind::Prod:
  case Kind::Mean:
  case Kind::Reduce: {
    Extents shape = randomShape(random, rank, most);
    if (random() % 3 == 0 && rank) shape[random() % shape.size()] = 1 + int64_t(random() % 200);
    add(dtype, shape);
    for (int i = 0; i < rank; i++)
      if (random() % 2) c.axes.push_back(random() % 2 ? i : i - rank);
    std::shuffle(c.axes.begin(), c.axes.end(), random);
    if (random() % 2) c.flags = ASTRA_OPS_KEEP_AXES;
    break;
  }
  case Kind::ArgReduce:
  case Kind::ArgSort:
  case Kind::Sort:
  case Kind::Take:
  case Kind::Pick:
  case Kind::Scatter: {
    Extents shape = randomShape(random, std::max(rank, 1), most);
    size_t axis = random() % shape.size();
    if (row.kind <= Kind::Sort && random() % 2) shape[axis] = 1 + int64_t(random() % 90);
    add(dtype, shape);
    c.axes = {random() % 2 ? int32_t(axis) : int32_t(axis) - int32_t(shape.size())};
    Extents lines = shape;
    lines[axis] = int64_t(random() % 6);
    if (row.kind == Kind::Take) places(randomShape(random, int(random() % 3), 5), shape[axis]);
    if (row.kind == Kind::Pick || row.kind == Kind::Scatter) places(lines, shape[axis]);
    if (row.kind == Kind::Scatter) add(dtype, lines);
    if (row.kind == Kind::ArgReduce && random() % 2) c.flags = ASTRA_OPS_KEEP_AXES;
    if ((row.kind == Kind::Sort || row.kind == Kind::ArgSort) && random() % 2) c.flags = ASTRA_OPS_DESCENDING;
    break;
  }
  case Kind::Random: c.dtype = dtype, c.shape = randomShape(random, rank, most); break;
  default: {
    bool three = row.kind == Kind::Select || row.kind == Kind::Fma;
    Extents shape = randomShape(random, rank, most);
    size_t whole = random() % (three ? 3 : 2); // this one has the full shape, mostly
    for (size_t i = 0; i < (three ? 3u : 2u); i++)
      add(row.kind == Kind::Select && i == 0 ? int32_t(ASTRA_BOOL) : dtype,
          i == whole && random() % 8 ? shape : narrowed(random, shape));
  }
  }
  return c;
}

std::string described(const Case &c) {
  std::string text = c.row->name;
  for (const Strided &s : c.operands) {
    text += std::string(" ") + astra_dtype_name(s.view.dtype) + "[";
    for (int i = 0; i < s.view.ndim; i++)
      text += (i ? "," : "") + std::to_string(s.view.shape[i]) + ":" + std::to_string(s.view.strides[i]);
    text += "]";
  }
  for (int32_t a : c.axes) text += " axis " + std::to_string(a);
  if (c.dtype) text += std::string(" ") + astra_dtype_name(c.dtype);
  return text + " flags " + std::to_string(c.flags);
}

} // namespace

class EveryOp : public test::Ops {
protected:
  void run(int rounds, uint64_t seed) {
    for (const ops::Row &row : ops::kRows) {
      if (row.isInner) continue;
      for (int32_t dtype = ASTRA_BOOL; dtype <= ASTRA_C128; dtype++) {
        if (astra_ops_takes(row.name, dtype) != 1) continue;
        Random random(seed + uint64_t(&row - ops::kRows) * 64 + uint64_t(dtype));
        for (int round = 0; round < rounds; round++) {
          Case c = randomCase(random, row, dtype);
          std::vector<Tensor> inputs;
          for (const Strided &s : c.operands) inputs.push_back(denseOf(s.view));
          Tensor want =
              expected(inputs, [&](compose::Composer &b, llvm::ArrayRef<UOpRef> x) { return graphOf(c, b, x); });
          std::vector<const astra_view *> views;
          astra_op op = c.op(views);
          Strided into;
          bool isGiven = random() % 3 == 0;
          int32_t type = 0;
          for (int32_t d = ASTRA_BOOL; d <= ASTRA_C128; d++)
            if (typeOf(d) == want.dtype) type = d;
          if (isGiven) into = tensorOf(random, type, want.shape, random() % 2);
          Tensor got = call(op, isGiven ? &into : nullptr);
          ASSERT_EQ(got.dtype, want.dtype) << described(c);
          ASSERT_EQ(got.shape, want.shape) << described(c);
          ASSERT_EQ(got.bytes, want.bytes) << described(c) << " round " << round;
          count++;
        }
      }
    }
  }
  int count = 0;
};

TEST_F(EveryOp, GivesTheBitsOfTheEvaluator) {
  run(getenv("ASTRA_NIGHTLY") ? 200 : 8, 1);
  EXPECT_GT(count, 3000);
}
