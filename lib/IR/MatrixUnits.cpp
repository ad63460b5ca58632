//===- MatrixUnits.cpp: one step of a matrix unit --------------------------===//
// Takes:    a row of MatrixUnits.def, an addend and the operands of a block.
// Gives:    the bits that the unit gives.
// Keeps:    one function for all rows: two ways to add, which read the row's numbers.
#include "astra/IR/MatrixUnits.h"
#include "EvalNumber.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace astra;

const MatrixInputInfo &astra::info(MatrixInput t) {
  static constexpr MatrixInputInfo rows[] = {
#define MATRIX_INPUT(Name, text, mantissaBits, minExponent) {text, mantissaBits, minExponent},
#include "astra/IR/MatrixUnits.def"
  };
  return rows[unsigned(t)];
}

namespace {
enum : unsigned {
  None = 0,
#define MATRIX_INPUT(Name, text, mantissaBits, minExponent) Name = 1u << unsigned(MatrixInput::Name),
#include "astra/IR/MatrixUnits.def"
};
constexpr bool TowardZero = false, Nearest = true, X86 = true, AMD = false;

std::optional<MatrixInput> only(unsigned bit) {
  return bit ? std::optional(MatrixInput(llvm::countr_zero(bit))) : std::nullopt;
}
} // namespace

llvm::ArrayRef<MatrixUnit> astra::matrixUnits() {
  static const MatrixUnit rows[] = {
#define ALIGNED_UNIT(Name, text, inputs, plain, block, bits, joint, result, rounding, nan)                             \
  {text, inputs, only(plain), block, bits, joint, result, rounding, 0, 0, false, nan},
#define CHAINED_UNIT(Name, text, inputs, plain, block, groups, chains, flush, nan)                                     \
  {text, inputs, only(plain), block, 0, 0, 23, true, groups, chains, flush, nan},
#include "astra/IR/MatrixUnits.def"
  };
  return rows;
}

const MatrixUnit *astra::matrixUnitNamed(llvm::StringRef text) {
  for (const MatrixUnit &u : matrixUnits())
    if (text == u.text) return &u;
  return nullptr;
}

std::string astra::matrixUnitNames() {
  return llvm::join(llvm::map_range(matrixUnits(), [](const MatrixUnit &u) { return std::string(u.text); }), ", ");
}

static constexpr MatrixInput allInputs[] = {
#define MATRIX_INPUT(Name, text, mantissaBits, minExponent) MatrixInput::Name,
#include "astra/IR/MatrixUnits.def"
};

std::optional<MatrixInput> astra::matrixInputNamed(llvm::StringRef text) {
  for (MatrixInput t : allInputs)
    if (text == info(t).text) return t;
  return std::nullopt;
}

std::optional<MatrixInput> astra::matrixInputOf(DType t) { return matrixInputNamed(info(t).text); }

std::string astra::textOf(MatrixInputs t, char between) {
  std::string first = info(t.a).text;
  return t.a == t.b ? first : first + between + info(t.b).text;
}

std::optional<MatrixInputs> astra::matrixInputsNamed(llvm::StringRef text, char between) {
  auto [first, second] = text.split(between);
  auto a = matrixInputNamed(first), b = text.contains(between) ? matrixInputNamed(second) : a;
  return a && b ? std::optional(MatrixInputs{*a, *b}) : std::nullopt;
}

bool MatrixUnit::takes(MatrixInputs t) const {
  bool areBytes = matrixInputsInWord(t.a) == 4 && matrixInputsInWord(t.b) == 4;
  return takes(t.a) && takes(t.b) && (t.a == t.b || areBytes);
}

float astra::matrixInput(MatrixInput t, float v) {
  if (std::isnan(v)) return llvm::bit_cast<float>(uint32_t(eval::canonicalNaN(DType::F32)));
  if (t == MatrixInput::TF32) return llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(v) & 0xffffe000u);
  DType type = *dtypeNamed(info(t).text);
  return float(eval::widen(type, eval::narrow(type, v)));
}

namespace {
/// significand * 2^(exponent - the bits of its mantissa), signed.
struct Term {
  int64_t significand;
  int exponent;
};

Term termOf(float v, int mantissaBits, int minExponent) {
  if (v == 0) return {0, -126};
  int exponent = std::max(std::ilogb(v), minExponent);
  return {int64_t(std::ldexp(double(v), mantissaBits - exponent)), exponent};
}

/// v * 2^n: toward zero, or down.
int64_t cut(int64_t v, int n) {
  if (n >= 0) return v << n;
  int64_t magnitude = n < -63 ? 0 : std::abs(v) >> -n;
  return v < 0 ? -magnitude : magnitude;
}
int64_t down(int64_t v, int n) { return n >= 0 ? v << n : v >> std::min(-n, 63); }

/// v * 2^n as f32 with `bits` of mantissa.
float rounded(int64_t v, int n, int bits, bool nearest) {
  if (v == 0) return 0.0f;
  uint64_t magnitude = std::abs(v);
  int exponent = std::max(63 - llvm::countl_zero(magnitude) + n, -126), drop = exponent - bits - n;
  if (drop > 0) {
    uint64_t kept = drop > 63 ? 0 : magnitude >> drop, rest = drop > 63 ? magnitude : magnitude - (kept << drop);
    uint64_t half = drop > 63 ? ~0ull : 1ull << (drop - 1);
    magnitude = kept + (nearest && (rest > half || (rest == half && (kept & 1))));
    n += drop;
  }
  double exact = std::ldexp(double(magnitude), n); // 24 bits
  float result = exact >= 0x1p128 ? INFINITY : float(exact);
  return v < 0 && (result != 0 || nearest) ? -result : result;
}

/// What is no finite number decides alone: the sum of the products that are none, and of the addend.
std::optional<float> special(const MatrixUnit &u, float addend, llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  float sum = std::isfinite(addend) ? 0.0f : addend;
  for (auto [x, y] : llvm::zip(a, b)) {
    double product = double(x) * double(y);
    // Where the addend comes later, a product beyond f32 is an infinity.
    if (!std::isfinite(product) || (u.joint && std::abs(product) >= 0x1p128)) sum += float(product);
  }
  return std::isfinite(sum) ? std::nullopt : std::optional(sum);
}

float aligned(const MatrixUnit &u, MatrixInputs t, float addend, llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  if (auto s = special(u, addend, a, b)) return *s;
  const MatrixInputInfo &ofA = info(t.a), &ofB = info(t.b);
  llvm::SmallVector<Term, 32> products;
  int most = -252; // of zeros alone
  for (auto [x, y] : llvm::zip(a, b)) {
    Term p = termOf(x, ofA.mantissaBits, ofA.minExponent), q = termOf(y, ofB.mantissaBits, ofB.minExponent);
    products.push_back({p.significand * q.significand, p.exponent + q.exponent});
    most = std::max(most, products.back().exponent);
  }
  Term c = termOf(addend, 23, -126);
  int joint = std::max(most, c.exponent);
  if (!u.joint) most = joint;
  int64_t sum = 0;
  int mantissas = ofA.mantissaBits + ofB.mantissaBits;
  for (Term p : products) sum += cut(p.significand, u.bits - mantissas + p.exponent - most);
  if (!u.joint) {
    sum += cut(c.significand, u.bits - 23 + c.exponent - most);
    return rounded(sum, most - u.bits, u.result, u.nearest);
  }
  sum = down(sum, u.joint - u.bits + most - joint) +
        (down(c.significand, u.bits - 23 + c.exponent - joint) << (u.joint - u.bits));
  return rounded(sum, joint - u.joint, u.result, u.nearest);
}

float flushed(float v, float least = 0x1p-126f) { return std::abs(v) < least ? std::copysign(0.0f, v) : v; }

/// x * y + z, rounded once. Of a result that has become 2^-126 by rounding, a multiple tells whether it was tiny.
float flushedFma(const MatrixUnit &u, float x, float y, float z) {
  float r = std::fma(x, y, z);
  bool tiny = std::abs(r) < 0x1p-126f;
  if (u.likeX86) tiny = std::abs(std::fma(x * 0x1p32f, y * 0x1p32f, z * 0x1p64f)) < 0x1p-62f;
  return tiny ? std::copysign(0.0f, r) : r;
}

float chained(const MatrixUnit &u, MatrixInputs t, float addend, llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  float c = flushed(addend), least = std::ldexp(1.0f, info(t.a).minExponent); // of b likewise
  if (!u.likeX86 && c == 0) c = 0.0f;
  auto at = [&](llvm::ArrayRef<float> v, int k) { return size_t(k) < v.size() ? flushed(v[k], least) : 0.0f; };
  const int size = u.block / u.groups;
  for (int begin = 0; begin < u.block; begin += size) {
    if (!u.chains) {
      for (int k = begin + size; k-- > begin;) c = flushedFma(u, at(a, k), at(b, k), c);
      continue;
    }
    llvm::SmallVector<float, 4> sums(u.chains, 0.0f);
    for (int k = 0; k < size; ++k) {
      float &sum = sums[k % u.chains];
      sum = flushedFma(u, at(a, begin + k), at(b, begin + k), sum);
    }
    for (; sums.size() > 1; sums.truncate(sums.size() / 2))
      for (size_t i = 0; i < sums.size() / 2; ++i) sums[i] = flushedFma(u, sums[2 * i], 1.0f, sums[2 * i + 1]);
    c = flushedFma(u, sums[0], 1.0f, c);
  }
  return c;
}
} // namespace

uint32_t astra::matrixStep(const MatrixUnit &u, MatrixInputs t, uint32_t addend, llvm::ArrayRef<uint32_t> a,
                           llvm::ArrayRef<uint32_t> b) {
  auto floats = [](llvm::ArrayRef<uint32_t> bits) {
    return llvm::SmallVector<float, 32>(llvm::map_range(bits, [](uint32_t v) { return llvm::bit_cast<float>(v); }));
  };
  auto x = floats(a), y = floats(b);
  float c = llvm::bit_cast<float>(addend), r = u.isAligned() ? aligned(u, t, c, x, y) : chained(u, t, c, x, y);
  return std::isnan(r) ? u.nan : llvm::bit_cast<uint32_t>(r);
}

unsigned astra::matrixInputsInWord(MatrixInput t) {
  return t == MatrixInput::TF32 ? 1 : 4 / byteSize(*dtypeNamed(info(t).text));
}

llvm::ArrayRef<UnitStep> astra::unitSteps() {
  static const auto rows = [] {
    std::vector<UnitStep> v;
    for (const MatrixUnit &u : matrixUnits())
      for (MatrixInput a : allInputs)
        for (MatrixInput b : allInputs)
          if (u.takes({a, b})) v.push_back({&u, {a, b}, unsigned(u.block) / matrixInputsInWord(a)});
    return v;
  }();
  return rows;
}

Combine astra::unitCombine(const MatrixUnit &u, MatrixInputs t) {
  const UnitStep *row = llvm::find_if(unitSteps(), [&](const UnitStep &s) { return s.unit == &u && s.inputs == t; });
  return Combine(int64_t(Combine::Unit) + (row - unitSteps().begin()));
}

const UnitStep *astra::unitStepOf(Combine c) {
  uint64_t i = uint64_t(c) - uint64_t(Combine::Unit); // beyond all where c is of no unit
  return i < unitSteps().size() ? &unitSteps()[i] : nullptr;
}

unsigned astra::valuesOf(Combine c) {
  if (const UnitStep *s = unitStepOf(c)) return 2 * s->words;
  return c == Combine::Fma || c == Combine::Dot4 ? 2 : 1;
}

uint32_t astra::matrixStep(const UnitStep &s, uint32_t addend, llvm::ArrayRef<uint32_t> words) {
  unsigned each = matrixInputsInWord(s.inputs), bits = 32 / each;
  llvm::SmallVector<uint32_t, 64> values;
  auto append = [&](llvm::ArrayRef<uint32_t> of, MatrixInput t) {
    for (uint32_t w : of)
      for (unsigned i = 0; i < each; ++i) {
        uint32_t v = each == 1 ? w : w >> (i * bits) & ((1u << bits) - 1);
        if (each > 1) v = llvm::bit_cast<uint32_t>(float(eval::widen(*dtypeNamed(info(t).text), v)));
        values.push_back(v);
      }
  };
  append(words.take_front(s.words), s.inputs.a);
  append(words.drop_front(s.words), s.inputs.b);
  llvm::ArrayRef<uint32_t> all(values);
  return matrixStep(*s.unit, s.inputs, addend, all.take_front(all.size() / 2), all.drop_front(all.size() / 2));
}
