//===- OpsModule.cpp: the module that libastra_ops.astra is compiled from --===//
// Takes:    the table (lib/Ops/src/Table.h).
// Gives:    on standard output a module in the text form with an entry for each of its operations, types and forms.
// Keeps:    each graph is one op, or one function of lib/Compose: what a model would have there.
// Does not: compile; astra-compile does (CMakeLists.txt beside this).
#include "../src/Table.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Random.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Numerics/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstdio>

using namespace astra;
using namespace astra::compose;
using ops::Kind;

namespace {

DType typeOf(int32_t dtype) {
  for (int t = 0; t <= int(DType::C128); t++)
    if (llvm::StringRef(info(DType(t)).text) == astra_dtype_name(dtype)) return DType(t);
  return DType::Void;
}

class Writer {
public:
  Writer() : b(m.ctx()) { m.name = "libastra_ops"; }
  void entry(uint32_t row, int32_t from, int32_t to, uint32_t form);

  Module m;
  Composer b;

private:
  UOpRef graph(const ops::Row &row, DType to, llvm::ArrayRef<UOpRef> x, llvm::StringRef shapes, uint32_t form);
  UOpRef primitive(llvm::StringRef name, llvm::ArrayRef<UOpRef> x);
  UOpRef dim(char letter) {
    UOpRef d = b.b.dim(std::string(1, letter), 0, ops::mostOf(letter));
    if (!llvm::is_contained(m.dims, d)) m.dims.push_back(d);
    return d;
  }
  Dims dimsOf(llvm::StringRef letters) {
    Dims dims;
    for (char letter : letters) dims.push_back(dim(letter));
    return dims;
  }
};

/// The type of operand `i`.
DType operandType(Kind kind, unsigned i, DType t) {
  bool isMask = kind == Kind::Select && i == 0;
  bool isPlace = (kind == Kind::Take || kind == Kind::Pick || kind == Kind::Scatter) && i == 1;
  return isMask ? DType::Bool : isPlace ? DType::I64 : t;
}

UOpRef Writer::primitive(llvm::StringRef name, llvm::ArrayRef<UOpRef> x) {
  name.consume_front("bit_");
  return b.make(*opNamed(name), x);
}

UOpRef Writer::graph(const ops::Row &row, DType to, llvm::ArrayRef<UOpRef> x, llvm::StringRef shapes, uint32_t form) {
  auto [operands, result] = shapes.split('>');
  Dims whole = dimsOf(result);
  auto repeated = [&](unsigned i, llvm::StringRef letters) {
    // A column [p] is [p, 1] beside [p, q]; a row [q] is aligned as it is.
    return b.broadcastTo(
        letters.size() == 1 && result.size() == 2 && letters[0] == result[0] ? b.unsqueeze(x[i], {1}) : x[i], whole);
  };
  llvm::StringRef name = row.name;
  switch (row.kind) {
  case Kind::Unary:
    if (name == "relu") return activations::relu.apply(b, x[0], 0, 0);
    if (name == "reciprocal") return reciprocal(b, x[0]);
    if (name == "sort_key") return sortKey(b, x[0]);
    return primitive(name, x[0]);
  case Kind::Cast: return b.cast(x[0], to);
  case Kind::Commuting:
  case Kind::Binary:
  case Kind::PlainCommuting:
  case Kind::Plain:
  case Kind::Long:
  case Kind::Select:
  case Kind::Fma: {
    llvm::SmallVector<llvm::StringRef, 3> letters;
    operands.split(letters, ',');
    llvm::SmallVector<UOpRef, 3> all;
    for (unsigned i = 0; i < x.size(); i++) all.push_back(repeated(i, letters[i]));
    return primitive(name, all);
  }
  case Kind::Sum:
  case Kind::Prod:
  case Kind::Reduce: {
    int64_t axis = form == ops::form::Chain ? 0 : 1;
    ReduceKind kind = llvm::StringSwitch<ReduceKind>(name)
                          .Case("sum", ReduceKind::Sum)
                          .Case("prod", ReduceKind::Prod)
                          .Case("amax", ReduceKind::Max)
                          .Case("amin", ReduceKind::Min)
                          .Case("any", ReduceKind::Or)
                          .Case("all", ReduceKind::And);
    return b.squeeze(b.reduce(kind, x[0], {axis}, form == ops::form::Chain), {axis});
  }
  case Kind::ArgReduce: return b.make(Op::ArgReduce, {x[0]}, {name == "argmin", 1});
  case Kind::Order: return b.make(Op::ArgSort, {x[0]}, {1, 0});
  case Kind::Merge: return merged(b, x[0]);
  case Kind::Matmul: {
    AffineProductOptions options;
    options.transposeY = form == ops::form::Turned;
    return affineProduct(b, x[0], x[1], nullptr, options);
  }
  case Kind::Copy: return x[0];
  case Kind::Take: return b.make(Op::Gather, x, {form == ops::form::TakeMiddle ? 1 : 0});
  case Kind::Pick: return b.make(Op::Pick, x, {1});
  case Kind::Scatter: {
    ScatterKind kind = llvm::StringSwitch<ScatterKind>(name)
                           .Case("scatter", ScatterKind::Set)
                           .Case("scatter_add", ScatterKind::Add)
                           .Case("scatter_mul", ScatterKind::Mul)
                           .Case("scatter_max", ScatterKind::Max)
                           .Case("scatter_min", ScatterKind::Min);
    return b.make(Op::Scatter, x, {1, int64_t(kind)});
  }
  case Kind::Random: {
    Generator g = {x[0], x[1]};
    return name == "uniform"  ? randomUniform(b.b, g.seed, g.stream, to, whole)
           : name == "normal" ? randomNormal(b.b, g.seed, g.stream, to, whole)
                              : b.b.random(g.seed, g.stream, whole);
  }
  case Kind::Transpose: return b.permute(x[0], {0, 2, 1});
  case Kind::Swap: return b.permute(x[0], {0, 2, 1, 3});
  case Kind::Swapped:
  case Kind::Negated:
  case Kind::Remainder:
  case Kind::Mean:
  case Kind::ArgSort:
  case Kind::Sort: break; // made of others
  }
  return nullptr;
}

void Writer::entry(uint32_t number, int32_t from, int32_t to, uint32_t form) {
  const ops::Row &row = ops::kRows[number];
  llvm::StringRef shapes = ops::formsOf(row.kind).list[form].shapes;
  DType t = typeOf(from);
  char name[64];
  ops::entryName(name, number, from, to, form);
  Entry e;
  e.name = name;
  llvm::SmallVector<UOpRef, 3> x;
  auto operand = [&](DType type, const Dims &dims) {
    x.push_back(b.b.arg(x.size(), type, dims));
    e.inputs.push_back({std::string(1, char('a' + x.size() - 1)), x.back()});
  };
  if (row.kind == Kind::Random) {
    operand(DType::U32, {}), operand(DType::U32, {});
  } else {
    llvm::SmallVector<llvm::StringRef, 3> operands;
    shapes.split('>').first.split(operands, ',');
    bool isMerge = row.kind == Kind::Merge;
    UOpRef two = b.idx(2);
    for (llvm::StringRef letters : operands)
      isMerge ? operand(t, {two, dim(letters[0]), two, dim(letters[1])})
              : operand(operandType(row.kind, x.size(), t), dimsOf(letters));
  }
  e.outputs.push_back({"y", graph(row, row.kind == Kind::Random ? t : typeOf(to), x, shapes, form)});
  m.entries.push_back(std::move(e));
}

int refuse(const llvm::Twine &why) {
  std::fprintf(stderr, "ops-module: %s\n", why.str().c_str());
  return 1;
}

} // namespace

int main() {
  Writer w;
  std::string wrong;
  ops::forEachEntry([&](uint32_t row, int32_t from, int32_t to, uint32_t form, uint32_t) {
    if (!wrong.empty()) return;
    w.entry(row, from, to, form);
    if (w.b.failed()) wrong = w.m.entries.back().name + ": " + w.b.failure();
  });
  if (!wrong.empty()) return refuse(wrong);
  if (llvm::Error e = verify(w.m, Stage::Graph)) return refuse(llvm::toString(std::move(e)));
  std::string text = print(w.m);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
