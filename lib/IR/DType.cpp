//===- DType.cpp: the rows of DType.def and the promotion lattice ----------===//
#include "astra/IR/DType.h"
#include "llvm/ADT/APFloat.h"

using namespace astra;

static constexpr DTypeInfo rows[] = {
#define DTYPE(Name, text, bits, Class, e, m) {text, bits, DTypeClass::Class, e, m},
#include "astra/IR/DType.def"
#undef DTYPE
};

const DTypeInfo &astra::info(DType t) { return rows[unsigned(t)]; }

std::optional<DType> astra::dtypeNamed(llvm::StringRef text) {
  for (unsigned i = 0; i < numDTypes; ++i)
    if (text == rows[i].text) return DType(i);
  return std::nullopt;
}

const llvm::fltSemantics &astra::semanticsOf(DType t) {
  switch (t) {
  case DType::F16: return llvm::APFloat::IEEEhalf();
  case DType::BF16: return llvm::APFloat::BFloat();
  case DType::F32: return llvm::APFloat::IEEEsingle();
  default: return llvm::APFloat::IEEEdouble();
  }
}

// The lattice as its covering edges; the join is the only common upper bound that lies below all others.
static constexpr std::pair<DType, DType> covers[] = {
    {DType::Bool, DType::U8},  {DType::Bool, DType::I8}, {DType::U8, DType::U16},   {DType::U8, DType::I16},
    {DType::I8, DType::I16},   {DType::U16, DType::U32}, {DType::U16, DType::I32},  {DType::I16, DType::I32},
    {DType::U32, DType::U64},  {DType::U32, DType::I64}, {DType::I32, DType::I64},  {DType::U64, DType::F16},
    {DType::U64, DType::BF16}, {DType::I64, DType::F16}, {DType::I64, DType::BF16}, {DType::F16, DType::F32},
    {DType::BF16, DType::F32}, {DType::F32, DType::F64}, {DType::F32, DType::C64},  {DType::F64, DType::C128},
    {DType::C64, DType::C128},
};

static uint64_t above(DType t) { // the set of types t promotes to, t included
  uint64_t set = 1ull << unsigned(t);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [from, to] : covers)
      if ((set >> unsigned(from) & 1) && !(set >> unsigned(to) & 1)) set |= 1ull << unsigned(to), changed = true;
  }
  return set;
}

std::optional<DType> astra::promote(DType a, DType b) {
  if (a == b) return a;
  // A u64 and a signed integer are below f16 and below bf16, of which neither is above the other: they have no join.
  uint64_t common = above(a) & above(b);
  for (unsigned i = 0; i < numDTypes; ++i)
    if ((common >> i & 1) && (common & ~above(DType(i))) == 0) return DType(i);
  return std::nullopt;
}
