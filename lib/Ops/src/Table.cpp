//===- Table.cpp: forms of kinds, types of casts and of results -----------===//
// Takes:    rows of ops.def.
// Gives:    what Table.h says. Nothing here allocates.
#include "Table.h"
#include <stdio.h>

namespace astra::ops {

static constexpr Form unary[] = {{"", "n>n"}};
static constexpr Form binary[] = {
    {"", "n,n>n"}, {".col", "pq,p>pq"}, {".row", "pq,q>pq"}, {".col1", "p,pq>pq"}, {".row1", "q,pq>pq"}};
static constexpr Form select[] = {{"", "n,n,n>n"}, {".col", "pq,pq,p>pq"}, {".col1", "pq,p,pq>pq"}};
static constexpr Form fma[] = {{"", "n,n,n>n"}};
static constexpr Form reduce[] = {{".last", "or>o"}, {".mid", "xyz>xz"}, {".chain", "cd>d"}};
static constexpr Form matmul[] = {{".nn", "xy,yt>xt"}, {".nt", "xy,ty>xt"}, {".bnn", "eso,eoh>esh"}};
static constexpr Form copy[] = {{".2", "pq>pq"}, {".6", "ABCDEF>ABCDEF"}};
static constexpr Form take[] = {{".rows", "rj,k>kj"}, {".mid", "xyz,w>xwz"}};
static constexpr Form pick[] = {{"", "xyz,xwz>xwz"}};
static constexpr Form scatter[] = {{"", "xyz,xwz,xwz>xyz"}};
static constexpr Form random[] = {{"", ">N"}};
static constexpr Form transpose[] = {{"", "efg>egf"}};
static constexpr Form swap[] = {{"", "stuh>suth"}};
static constexpr Form order[] = {{".64", "q1>q1"}, {".128", "q2>q2"}};
// [2, p, 2, q]: keys and places, pairs of halves.
static constexpr Form merge[] = {{"", "pq>pq"}};

Forms formsOf(Kind kind) {
  switch (kind) {
  case Kind::Unary:
  case Kind::Cast: return {unary, 1};
  case Kind::Commuting:
  case Kind::PlainCommuting: return {binary, 3};
  case Kind::Binary:
  case Kind::Plain: return {binary, 5};
  case Kind::Long: return {binary, 1};
  case Kind::Select: return {select, 3};
  case Kind::Fma: return {fma, 1};
  case Kind::Sum:
  case Kind::Prod: return {reduce, 3};
  case Kind::Reduce: return {reduce, 2};
  case Kind::ArgReduce: return {reduce, 1};
  case Kind::Matmul: return {matmul, 3};
  case Kind::Copy: return {copy, 2};
  case Kind::Take: return {take, 2};
  case Kind::Pick: return {pick, 1};
  case Kind::Scatter: return {scatter, 1};
  case Kind::Random: return {random, 1};
  case Kind::Transpose: return {transpose, 1};
  case Kind::Swap: return {swap, 1};
  case Kind::Order: return {order, 2};
  case Kind::Merge: return {merge, 1};
  case Kind::Swapped:
  case Kind::Negated:
  case Kind::Remainder:
  case Kind::Mean:
  case Kind::ArgSort:
  case Kind::Sort: break;
  }
  return {nullptr, 0};
}

Types castTargets(int32_t from) {
  constexpr Types integers = kInts;
  switch (from) {
  case ASTRA_I8:
  case ASTRA_U8:
  case ASTRA_I16:
  case ASTRA_U16: return only(ASTRA_I32);
  case ASTRA_I32: return kBool | only(ASTRA_I8) | only(ASTRA_I16) | kI64 | kFloats;
  case ASTRA_U32: return kI64;
  case ASTRA_I64: return kBool | only(ASTRA_I32) | only(ASTRA_BF16) | kFloats;
  case ASTRA_U64: return only(ASTRA_BF16) | kFloats;
  case ASTRA_F16:
  case ASTRA_BF16: return only(ASTRA_F32);
  case ASTRA_F32: return kBool | integers | kHalves | only(ASTRA_F64) | only(ASTRA_C64);
  case ASTRA_F64: return kBool | integers | kHalves | only(ASTRA_F32) | only(ASTRA_C128);
  case ASTRA_C64: return only(ASTRA_C128);
  case ASTRA_C128: return only(ASTRA_C64);
  default: return 0;
  }
}

void entryName(char *out, uint32_t row, int32_t from, int32_t to, uint32_t form) {
  if (to)
    snprintf(out, 64, "%s.%s.%s", kRows[row].name, astra_dtype_name(from), astra_dtype_name(to));
  else
    snprintf(out, 64, "%s.%s%s", kRows[row].name, astra_dtype_name(from), formsOf(kRows[row].kind).list[form].suffix);
}

int32_t resultType(const Row &row, int32_t t) {
  switch (row.result) {
  case Result::Same:
  case Result::Given: return t;
  case Result::Bool: return ASTRA_BOOL;
  case Result::Index: return ASTRA_I64;
  case Result::Part: return t == ASTRA_C64 ? ASTRA_F32 : t == ASTRA_C128 ? ASTRA_F64 : t;
  case Result::Whole: return t == ASTRA_F32 ? ASTRA_C64 : ASTRA_C128;
  }
  return t;
}

} // namespace astra::ops
