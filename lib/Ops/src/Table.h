//===- Table.h: the rows of ops.def, their forms and their entries ---------===//
// Gives:    what the bundle of operations has, in order: for each row of ops.def, each type that it is compiled for and
//           each form of its kind an entry. The program that writes the module and the library that calls it both read
//           it here.
// Keeps:    an entry's number is its place; its name says row, type and form ("add.f32.row").
// Does not: compute.
//
// A form is a shape that operands of any shape are brought to: "pq,q>pq" takes two operands, one of them a row that all
// rows of the other are combined with. Each letter is a dim, whose greatest extent is a power of two (mostOf): a tensor
// of a graph, and a product's points, may be 2^48 at the dims'
// greatest extents, and a complex one has two parts.
#pragma once
#include "astra/astra.h"

namespace astra::ops {

/// Sets of types, a bit for each.
using Types = uint32_t;
constexpr Types only(int32_t dtype) { return Types(1) << dtype; }
inline constexpr Types kBool = only(ASTRA_BOOL), kU32 = only(ASTRA_U32), kI64 = only(ASTRA_I64), kU64 = only(ASTRA_U64),
                       kSigned = only(ASTRA_I8) | only(ASTRA_I16) | only(ASTRA_I32) | kI64,
                       kUnsigned = only(ASTRA_U8) | only(ASTRA_U16) | kU32 | kU64, kInts = kSigned | kUnsigned,
                       kWords = only(ASTRA_I32) | kI64, ///< of what takes bits as they are: a sum
    kOrdered = kWords | kU64,                           ///< of what asks for the sign: a comparison
    kHalves = only(ASTRA_F16) | only(ASTRA_BF16), kFloats = only(ASTRA_F32) | only(ASTRA_F64),
                       kAllFloats = kHalves | kFloats, kComplex = only(ASTRA_C64) | only(ASTRA_C128),
                       kReals = kInts | kAllFloats, kNumbers = kReals | kComplex, kAll = kBool | kNumbers,
                       kMoved = kUnsigned | kAllFloats | kComplex, kWide = kU32 | kU64 | kFloats;

enum class Kind : uint8_t {
  Unary,
  Cast,
  Commuting,
  Binary,
  PlainCommuting, ///< without forms for rows
  Plain,
  Long,      ///< of one shape alone: code that is long
  Swapped,   ///< the row before the last one, with its operands exchanged
  Negated,   ///< not the row before
  Remainder, ///< what the row before, a quotient, leaves
  Select,
  Fma,
  Sum,
  Prod,
  Mean,
  Reduce,
  ArgReduce,
  ArgSort,
  Sort,
  Matmul,
  Copy,
  Take,
  Pick,
  Scatter,
  Random,
  Transpose,
  Swap,
  Order,
  Merge
};

enum class Result : uint8_t { Same, Bool, Part, Whole, Index, Given };

struct Row {
  const char *name;
  Kind kind;
  Types types, native;
  Result result;
  bool isInner;
};

inline constexpr Row kRows[] = {
#define ASTRA_OP(name, kind, types, native, result, meaning) {#name, Kind::kind, types, native, Result::result, false},
#define ASTRA_OP_INNER(name, kind, types, native, result, meaning)                                                     \
  {#name, Kind::kind, types, native, Result::result, true},
#include "astra/ops.def"
#undef ASTRA_OP
#undef ASTRA_OP_INNER
};
inline constexpr uint32_t kNumRows = sizeof(kRows) / sizeof(kRows[0]);

void noSuchRow(); ///< not defined: a call of it is no constant
/// The number of the row of a name; one that there is not is a compile error.
consteval uint32_t rowOf(const char *name) {
  for (uint32_t i = 0; i < kNumRows; i++) {
    const char *a = kRows[i].name, *b = name;
    while (*a && *a == *b) a++, b++;
    if (*a == *b) return i;
  }
  noSuchRow();
  return kNumRows;
}

struct Form {
  const char *suffix; ///< of the entry's name
  const char *shapes; ///< "pq,q>pq": of the operands, and of the result
};

struct Forms {
  const Form *list;
  uint32_t count;
};

/// Those of a kind.
Forms formsOf(Kind kind);

/// Whether a form is compiled for a type. A sum one after another is where order counts. What is not compiled is
/// brought to a form that is.
constexpr bool isCompiled(Kind kind, int32_t dtype, uint32_t form) {
  bool isBinary = kind == Kind::Commuting || kind == Kind::Binary || kind == Kind::PlainCommuting ||
                  kind == Kind::Plain || kind == Kind::Select;
  if (isBinary && form > 0 && (only(dtype) & (kComplex | kU64))) return false;
  if (kind == Kind::PlainCommuting) return form != 2;
  if (kind == Kind::Plain) return form != 2 && form != 4;
  if (kind == Kind::Sum) return form < 2 || !(only(dtype) & kInts);
  if (kind == Kind::Prod) return form == 0 || (form == 2 && !(only(dtype) & kInts));
  if (kind == Kind::Matmul) return form == 0 || !(only(dtype) & kInts);
  return true;
}

/// The greatest extent of a dim.
constexpr int64_t mostOf(char letter) {
  constexpr struct {
    char letter;
    uint8_t bits;
  } limits[] = {{'n', 40}, {'N', 40}, {'r', 31}, {'k', 31}, {'d', 27}, {'p', 23}, {'q', 23}, {'y', 20},
                {'w', 20}, {'c', 20}, {'f', 18}, {'g', 18}, {'o', 16}, {'j', 16}, {'x', 13}, {'z', 14},
                {'u', 14}, {'t', 14}, {'e', 11}, {'s', 10}, {'h', 9},  {'A', 4},  {'B', 5},  {'C', 8},
                {'D', 10}, {'E', 10}, {'F', 10}, {'1', 6},  {'2', 7}};
  for (auto limit : limits)
    if (limit.letter == letter) return int64_t(1) << limit.bits;
  return 0;
}

/// Forms of kinds with several, by name.
namespace form {
inline constexpr uint32_t Flat = 0;
inline constexpr uint32_t RightColumn = 1; ///< the second operand is a column
inline constexpr uint32_t RightRow = 2;
inline constexpr uint32_t LeftColumn = 3;
inline constexpr uint32_t LeftRow = 4;
inline constexpr uint32_t SelectRight = 1; ///< the third operand of select is a column
inline constexpr uint32_t SelectLeft = 2;
inline constexpr uint32_t Last = 0; ///< the axis is the last one
inline constexpr uint32_t Middle = 1;
inline constexpr uint32_t Chain = 2; ///< one after another
inline constexpr uint32_t Copy2 = 0;
inline constexpr uint32_t Copy6 = 1;
inline constexpr uint32_t TakeRows = 0;
inline constexpr uint32_t TakeMiddle = 1;
inline constexpr uint32_t Turned = 1; ///< of matmul: the second operand lies transposed
inline constexpr uint32_t Stacked = 2;
} // namespace form

/// Types that a cast from a native type is compiled to.
Types castTargets(int32_t from);

/// Calls fn(row, from, to, form, number) for every entry, in order. `from` is the native type; `to` is of a cast.
template <typename Fn> void forEachEntry(Fn fn) {
  uint32_t number = 0;
  for (uint32_t row = 0; row < kNumRows; row++)
    for (int32_t t = ASTRA_BOOL; t <= ASTRA_C128; t++) {
      if (!(kRows[row].native & only(t))) continue;
      if (kRows[row].kind == Kind::Cast) {
        for (int32_t to = ASTRA_BOOL; to <= ASTRA_C128; to++)
          if (castTargets(t) & only(to)) fn(row, t, to, 0u, number++);
        continue;
      }
      Forms forms = formsOf(kRows[row].kind);
      for (uint32_t f = 0; f < forms.count; f++)
        if (isCompiled(kRows[row].kind, t, f)) fn(row, t, 0, f, number++);
    }
}

/// The entry's name into `out`, of 64 bytes.
void entryName(char *out, uint32_t row, int32_t from, int32_t to, uint32_t form);

/// The type of a row's result for operands of a type.
int32_t resultType(const Row &row, int32_t operand);

} // namespace astra::ops
