//===- OpTable.h: which ONNX ops are understood ----------------------------===//
// Gives:    one row per op and range of opsets in which its meaning is the same, and the lookup. The rows stand beside
//           their lowerings (Ops*.cpp).
// Keeps:    no two rows of an op overlap (a unit test visits them).
#pragma once
#include "Node.h"

namespace astra::onnx {

/// A set of dtypes, a bit each.
using Types = uint32_t;
constexpr Types only(DType t) { return Types(1) << unsigned(t); }
constexpr Types boolType = only(DType::Bool);
constexpr Types signedTypes = only(DType::I8) | only(DType::I16) | only(DType::I32) | only(DType::I64);
constexpr Types unsignedTypes = only(DType::U8) | only(DType::U16) | only(DType::U32) | only(DType::U64);
constexpr Types intTypes = signedTypes | unsignedTypes;
constexpr Types floatTypes = only(DType::F16) | only(DType::BF16) | only(DType::F32) | only(DType::F64);
constexpr Types complexTypes = only(DType::C64) | only(DType::C128);
constexpr Types realTypes = intTypes | floatTypes;
constexpr Types numberTypes = realTypes | complexTypes;
constexpr Types anyType = ~Types(0);

struct Row {
  const char *op;   // of another domain than the default one: "domain::op", its opsets those of the domain
  int since, until; // opsets, inclusive
  unsigned leastInputs, mostInputs;
  void (*lower)(Node &);
  Types types = anyType;    // that the first input may have; another is refused before `lower` runs
  const char *remarks = ""; // a short sentence for docs/onnx.md: what is limited, or decided where ONNX leaves it open
  uint32_t settings = 0;    // bits of inputs whose scalars say how the op works, and which no training replaces
  bool takesLists = false;  // its inputs may be sequences
};
constexpr uint32_t input(unsigned i) { return uint32_t(1) << i; }
constexpr unsigned anyNumber = ~0u;
constexpr int latest = newestOpset;

llvm::ArrayRef<Row> elementwiseRows();
llvm::ArrayRef<Row> shapeRows();
llvm::ArrayRef<Row> indexingRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> networkRows();
llvm::ArrayRef<Row> quantizationRows();
llvm::ArrayRef<Row> lossRows();
llvm::ArrayRef<Row> resizeRows();
llvm::ArrayRef<Row> controlRows();
llvm::ArrayRef<Row> attentionRows();
llvm::ArrayRef<Row> recurrentRows();
llvm::ArrayRef<Row> sequenceRows();
llvm::ArrayRef<Row> opset1Rows();
llvm::ArrayRef<Row> opset6Rows();
llvm::ArrayRef<Row> tfIdfRows();
llvm::ArrayRef<Row> samplingRows();
llvm::ArrayRef<Row> poolRows();
llvm::ArrayRef<Row> arithmeticRows();
llvm::ArrayRef<Row> normalizationRows();
llvm::ArrayRef<Row> determinantRows();
llvm::ArrayRef<Row> orderRows();
llvm::ArrayRef<Row> randomRows();
llvm::ArrayRef<Row> einsumRows();
llvm::ArrayRef<Row> signalRows();
llvm::ArrayRef<Row> selectionRows();
llvm::ArrayRef<Row> listRows();
llvm::ArrayRef<Row> nonMaxSuppressionRows();
llvm::ArrayRef<Row> microsoftTransformerRows();
llvm::ArrayRef<Row> microsoftQuantizedRows();
llvm::ArrayRef<Row> microsoftRows();
llvm::ArrayRef<Row> mlRows();
llvm::ArrayRef<Row> treeRows();
llvm::ArrayRef<Row> trainingRows();
std::vector<Row> allRows();

/// The row of an op ("domain::op" for another domain than the default one) at an opset; null when there is none.
const Row *findRow(llvm::StringRef op, int64_t opset);

/// "f32, f64, i32": a set of dtypes, for docs and diagnostics; "any" for all.
std::string typesText(Types types);

// Lowerings that several files use.
/// The attribute, a number of ONNX's, as a dtype; Void when it is absent or 0.
DType dtypeAttr(Node &n, llvm::StringRef name);

} // namespace astra::onnx
