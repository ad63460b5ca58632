//===- Contract.cpp: packing of contract and reduce attributes -------------===//
#include "astra/IR/Contract.h"

using namespace astra;

template <class Vec> static void put(Vec &out, const AffineForm &f) {
  out.push_back(f.terms.size());
  for (auto [label, k] : f.terms) out.push_back(label), out.push_back(k);
  out.push_back(f.constant);
  out.push_back(f.divisor);
}

namespace {
/// Reads integers that may come from untrusted text: never past the end.
struct Cursor {
  llvm::ArrayRef<int64_t> ints;
  bool ok = true;
  int64_t take(int64_t lo, int64_t hi) {
    if (ints.empty() || ints[0] < lo || ints[0] > hi) {
      ok = false;
      return lo;
    }
    int64_t v = ints[0];
    ints = ints.drop_front();
    return v;
  }
  AffineForm form(int64_t labels) {
    constexpr int64_t most = int64_t(1) << 40;
    AffineForm f;
    int64_t n = take(0, labels), last = -1;
    for (int64_t i = 0; i < n && ok; ++i) {
      int64_t label = take(last + 1, labels - 1), k = take(-most, most);
      ok = ok && k != 0;
      f.terms.push_back({label, k});
      last = label;
    }
    f.constant = take(-most, most);
    f.divisor = take(1, most);
    return f;
  }
};
} // namespace

bool astra::isGroup(const ContractSpec &s, int64_t label) {
  auto isNumber = [&](const AffineForm &f) { return f.terms.size() == 2 && hasLabel(f, label); };
  return hasLabel(s.a, label) && hasLabel(s.b, label) && hasLabel(s.a, label + 1) != hasLabel(s.b, label + 1) &&
         (llvm::any_of(s.a, isNumber) || llvm::any_of(s.b, isNumber));
}

llvm::SmallVector<int64_t, 32> astra::encode(const ContractSpec &s) {
  llvm::SmallVector<int64_t, 32> out{s.kept, s.reduced, int64_t(s.a.size()), int64_t(s.b.size()),
                                     int64_t(s.domain.size())};
  for (auto *list : {&s.a, &s.b})
    for (const AffineForm &f : *list) put(out, f);
  for (const AffineForm &f : s.domain) put(out, f);
  if (s.unit) {
    out.append({0, s.unit - matrixUnits().begin(), int64_t(s.inputs.a), int64_t(s.inputs.b)});
    return out;
  }
  if (s.outside.empty()) return out;
  out.push_back(s.outside.size());
  for (const AffineForm &f : s.outside) put(out, f);
  return out;
}

llvm::Expected<ContractSpec> astra::decodeContract(llvm::ArrayRef<int64_t> ints) {
  Cursor in{ints};
  ContractSpec s;
  s.kept = in.take(0, 64);
  s.reduced = in.take(0, 64);
  int64_t na = in.take(0, 64), nb = in.take(0, 64), nd = in.take(0, 64), labels = s.kept + s.reduced;
  for (int64_t i = 0; i < na && in.ok; ++i) s.a.push_back(in.form(labels));
  for (int64_t i = 0; i < nb && in.ok; ++i) s.b.push_back(in.form(labels));
  for (int64_t i = 0; i < nd && in.ok; ++i) s.domain.push_back(in.form(labels));
  int64_t no = in.ok && !in.ints.empty() ? in.take(in.ints.size() == 4 ? 0 : 1, 64) : 0;
  if (in.ok && no == 0 && in.ints.size() == 3) {
    s.unit = &matrixUnits()[in.take(0, matrixUnits().size() - 1)];
    for (MatrixInput *t : {&s.inputs.a, &s.inputs.b}) *t = MatrixInput(in.take(0, int64_t(MatrixInput::E5M2)));
  }
  for (int64_t i = 0; i < no && in.ok; ++i) s.outside.push_back(in.form(labels));
  if (!in.ok || !in.ints.empty()) return llvm::createStringError("contract: malformed attribute");
  return s;
}

llvm::SmallVector<int64_t, 16> astra::encode(const ReduceSpec &s) {
  llvm::SmallVector<int64_t, 16> out{int64_t(s.kind), int64_t(s.order), int64_t(s.axes.size())};
  out.append(s.axes.begin(), s.axes.end());
  if (s.domain.empty()) return out;
  out.push_back(s.domain.size());
  for (const AffineForm &f : s.domain) put(out, f);
  return out;
}

llvm::Expected<ReduceSpec> astra::decodeReduce(llvm::ArrayRef<int64_t> ints) {
  Cursor in{ints};
  ReduceSpec s;
  s.kind = ReduceKind(in.take(0, 5));
  s.order = ReduceOrder(in.take(0, 3));
  int64_t n = in.take(0, 64), last = -1;
  for (int64_t i = 0; i < n && in.ok; ++i) s.axes.push_back(last = in.take(last + 1, 63));
  if (!in.ints.empty()) {
    int64_t nd = in.take(1, 64);
    for (int64_t i = 0; i < nd && in.ok; ++i) s.domain.push_back(in.form(64));
  }
  if (!in.ok || !in.ints.empty()) return llvm::createStringError("reduce: malformed attribute (axes ascend)");
  return s;
}

bool astra::hasLabel(llvm::ArrayRef<AffineForm> forms, int64_t label) {
  return llvm::any_of(
      forms, [&](const AffineForm &f) { return llvm::any_of(f.terms, [&](auto t) { return t.first == label; }); });
}

llvm::SmallVector<int64_t, 4> astra::chain512Blocks(llvm::ArrayRef<int64_t> lengths) {
  llvm::SmallVector<int64_t, 4> b(lengths.size());
  int64_t s = 1;
  for (size_t i = lengths.size(); i-- > 0;) {
    b[i] = std::min(lengths[i], i + 1 == lengths.size() ? chainBlock : std::max<int64_t>(1, mostChainBlock / s));
    s *= std::max<int64_t>(b[i], 1);
  }
  return b;
}

uint64_t astra::reduceIdentity(ReduceKind kind, DType t) {
  unsigned w = bitWidth(t);
  uint64_t ones = w == 64 ? ~0ull : (1ull << w) - 1, sign = 1ull << (w - 1);
  if (isFloat(t)) {
    uint64_t e = info(t).exponentBits, m = info(t).mantissaBits, inf = ((1ull << e) - 1) << m;
    switch (kind) {
    case ReduceKind::Sum: return sign;
    case ReduceKind::Prod: return ((1ull << (e - 1)) - 1) << m;
    case ReduceKind::Max: return sign | inf;
    default: return inf;
    }
  }
  if (t == DType::Bool) return kind == ReduceKind::And || kind == ReduceKind::Min || kind == ReduceKind::Prod;
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Or: return 0;
  case ReduceKind::Prod: return 1;
  case ReduceKind::And: return ones;
  case ReduceKind::Max: return isSigned(t) ? sign : 0;
  case ReduceKind::Min: return isSigned(t) ? ones >> 1 : ones;
  }
  return 0;
}

int astra::operandOf(const ContractSpec &s, const AffineForm &inequality) {
  auto all = [&](llvm::ArrayRef<AffineForm> forms) {
    return llvm::all_of(inequality.terms, [&](auto t) { return hasLabel(forms, t.first); });
  };
  return !all(s.a) && all(s.b);
}

std::string astra::checkUnit(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, UOpRef a, UOpRef b) {
  std::string unit = std::string("matrix unit ") + s.unit->text;
  if (!s.unit->takes(s.inputs)) return unit + " does not take operands of " + textOf(s.inputs);
  if (isOfWords(s, a)) {
    int64_t words = s.unit->block / matrixInputsInWord(s.inputs);
    if (!s.reduced || extents[s.kept + s.reduced - 1]->constIndex() != words)
      return "the last label that is summed has the words of a step of " + unit + ", which are " +
             std::to_string(words);
    auto isLabel = [](const AffineForm &f) { return f.isLabel(); };
    if (!s.domain.empty() || !llvm::all_of(s.a, isLabel) || !llvm::all_of(s.b, isLabel))
      return "words of " + unit + " are indexed by labels alone, without a domain";
    return "";
  }
  for (auto [x, t] : {std::pair(a, s.inputs.a), std::pair(b, s.inputs.b)})
    if (x->dtype != DType::F32 && matrixInputOf(x->dtype) != t)
      return std::string("an operand of ") + info(x->dtype).text + " for " + unit + ", expected " + info(t).text +
             ", or f32 that is rounded to it";
  return "";
}

std::string astra::checkOutside(const ContractSpec &s, llvm::ArrayRef<UOpRef> extents, UOpRef a, UOpRef b,
                                UOpRef outside) {
  auto isDivided = [](const AffineForm &f) { return f.divisor != 1; };
  DType t = a->dtype;
  if (b->dtype != t || outside->dtype != t || !isFloat(t) || byteSize(t) < 4)
    return std::string("the third operand is of ") + info(outside->dtype).text +
           "; with one all three are of f32 or of f64";
  if (s.reduced < 2 || !s.domain.empty() || llvm::any_of(s.a, isDivided) || llvm::any_of(s.b, isDivided))
    return "with a third operand two labels or more are summed, without a domain or quotients";
  size_t taps = s.reduced - 1;
  if (outside->rank() != s.outside.size() || outside->rank() <= taps)
    return "the third operand has an axis for each summed label and an index for each axis";
  llvm::SmallVector<int64_t, 6> all;
  for (size_t j = 0; j <= taps; ++j) {
    const AffineForm &f = s.outside[j];
    int64_t label = s.kept + int64_t(j);
    auto length = extents[label]->constIndex(), size = outside->shape[j]->constIndex();
    if (!length || !size) return "with a third operand the extents of summed labels are constants";
    bool own = f.terms.size() == 1 && f.terms[0].first == label && f.terms[0].second == 1;
    bool isTap = own && f.divisor == 1 && f.constant >= 0 && *length <= *size && f.constant <= *size - *length;
    bool isBlock =
        own && f.divisor == chainBlock && f.constant == 0 && *length >= 1 && *size == (*length - 1) / chainBlock + 1;
    if (j < taps ? !isTap : !isBlock)
      return "axis " + std::to_string(j) + " of the third operand is not of all taps, or blocks, of summed label " +
             std::to_string(j);
    all.push_back(j < taps ? *size : *length);
  }
  auto blocks = chain512Blocks(all);
  for (size_t j = 0; j < taps; ++j)
    if (blocks[j] != all[j]) return "the taps of summed label " + std::to_string(j) + " are more than one block";
  for (size_t axis = taps + 1; axis < outside->rank(); ++axis) {
    const AffineForm &f = s.outside[axis];
    UOpRef size = outside->shape[axis];
    bool isKept = f.divisor == 1 && llvm::all_of(f.terms, [&](auto t) { return t.first < s.kept; });
    bool isInside = isKept && f.isLabel() && extents[f.terms[0].first] == size;
    if (isKept && !isInside && size->isConst()) {
      __int128 least = f.constant, most = f.constant;
      for (auto [label, k] : f.terms)
        (k < 0 ? least : most) += __int128(k) * (std::max<int64_t>(extents[label]->hi, 1) - 1);
      isInside = least >= 0 && most < *size->constIndex();
    }
    if (!isInside)
      return "axis " + std::to_string(axis) + " of the third operand is not indexed by kept labels, inside";
  }
  return "";
}
