//===- VectorTest.cpp: the committed vectors, byte for byte ----------------===//
// Takes:    test/vectors/*.vec (its format: test/vectors/make.py).
// Gives:    one test per file: the evaluator gives the expected bytes, NaNs compared in canonical form (N6); and a test
// that every op
//           of the table and every dtype of every elementwise op has a vector.
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <fstream>
#include <set>

using namespace astra;

namespace {
struct File {
  std::map<std::string, Tensor> tensors; // unpacked: a sub-byte element has a byte of its own
  std::set<std::string> &seen;
  int cases = 0;

  static std::vector<std::string> split(llvm::StringRef text, char at) {
    std::vector<std::string> parts;
    if (text == "-") return parts;
    llvm::SmallVector<llvm::StringRef> refs;
    text.split(refs, at);
    for (llvm::StringRef r : refs) parts.push_back(r.str());
    return parts;
  }
  static std::vector<int64_t> numbers(llvm::StringRef text, char at) {
    std::vector<int64_t> v;
    for (const std::string &s : split(text, at)) v.push_back(std::stoll(s));
    return v;
  }
  static unsigned bytesOf(DType t) { return std::max(1u, byteSize(t)); }
  static void append(Tensor &t, uint64_t bits) {
    for (unsigned i = 0; i < bytesOf(t.dtype); ++i) t.bytes.push_back(bits >> 8 * i);
  }
  static uint64_t bitsAt(const Tensor &t, int64_t i) {
    uint64_t bits = 0;
    memcpy(&bits, &t.bytes[i * bytesOf(t.dtype)], bytesOf(t.dtype));
    return bits;
  }
  static Tensor packed(const Tensor &t) {
    if (byteSize(t.dtype)) return t;
    Tensor p{t.dtype, t.shape, std::vector<uint8_t>(tensorBytes(t.dtype, t.shape))};
    int64_t row = t.shape.empty() ? 1 : t.shape.back(), perByte = 8 / bitWidth(t.dtype),
            rowBytes = (row + perByte - 1) / perByte;
    for (int64_t i = 0, n = t.count(); i < n; ++i)
      p.bytes[i / row * rowBytes + i % row / perByte] |= t.bytes[i] << i % row % perByte * bitWidth(t.dtype);
    return p;
  }

  static Tensor hexadecimal(std::ifstream &in, DType t, std::vector<int64_t> shape) {
    Tensor r{t, std::move(shape), {}};
    unsigned digits = std::max(1u, bitWidth(t) / 4);
    std::string text, line;
    while (text.size() < size_t(r.count()) * digits && std::getline(in, line)) text += llvm::StringRef(line).trim();
    for (int64_t i = 0, n = r.count(); i < n; ++i) append(r, std::stoull(text.substr(i * digits, digits), nullptr, 16));
    return r;
  }
  static Tensor generated(DType t, std::vector<int64_t> shape, uint64_t state) {
    Tensor r{t, std::move(shape), {}};
    const DTypeInfo &f = info(t);
    for (int64_t i = 0, n = r.count(); i < n; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      uint64_t low = state >> 8, width = f.bits;
      if (f.exponentBits) {
        uint64_t exponent = (1ull << (f.exponentBits - 1)) - 1 - 6 + (state >> 56) % 12;
        append(r,
               (state >> 20 & 1) << (width - 1) | exponent << f.mantissaBits | (low & ((1ull << f.mantissaBits) - 1)));
      } else
        append(r, t == DType::Bool ? state >> 20 & 1 : width == 64 ? low : low & ((1ull << width) - 1));
    }
    return r;
  }
  /// NAME or NAME:each:tile.
  Tensor operand(const std::string &text) {
    auto parts = split(text, ':');
    const Tensor &t = tensors.at(parts[0]);
    if (parts.size() == 1) return packed(t);
    int64_t each = std::stoll(parts[1]), tile = std::stoll(parts[2]);
    Tensor r{t.dtype, {t.count() * each * tile}, {}};
    for (int64_t k = 0; k < tile; ++k)
      for (int64_t i = 0; i < t.count(); ++i)
        for (int64_t e = 0; e < each; ++e) append(r, bitsAt(t, i));
    return r;
  }

  void run(std::ifstream &in) {
    std::string line;
    while (std::getline(in, line)) {
      auto w = split(line, ' ');
      if (w[0] == "case") {
        test(in, w, line);
        continue;
      }
      DType t = *dtypeNamed(w[2]);
      auto shape = numbers(w[3], 'x');
      tensors[w[1]] = w[0] == "tensor" ? hexadecimal(in, t, shape) : generated(t, shape, std::stoull(w[4]));
    }
  }
  void test(std::ifstream &in, const std::vector<std::string> &w, const std::string &line) {
    Tensor want = packed(hexadecimal(in, *dtypeNamed(w[6]), numbers(w[7], 'x')));
    Context c;
    Builder b(c);
    EvalInputs inputs;
    llvm::SmallVector<UOpRef> src;
    for (const std::string &name : split(w[5], ',')) {
      Tensor t = operand(name);
      llvm::SmallVector<UOpRef> shape;
      for (int64_t d : t.shape) shape.push_back(b.idx(d));
      src.push_back(b.arg(inputs.inputs.size(), t.dtype, shape));
      inputs.inputs.push_back(std::move(t));
    }
    for (int64_t i : numbers(w[4], ',')) src.push_back(b.idx(i));
    Op op = *opNamed(w[1]);
    auto node = op == Op::Compact ? llvm::Expected<UOpRef>(b.compact(src[0], src[1]))
                                  : c.tryMake(op, src, numbers(w[3], ','), {}, *dtypeNamed(w[2]));
    ASSERT_TRUE(bool(node)) << line << "\n" << llvm::toString(node.takeError());
    auto got = evalNodes({*node}, inputs);
    ASSERT_TRUE(bool(got)) << line << "\n" << llvm::toString(got.takeError());
    ++cases;
    DType source = inputs.inputs.empty() ? want.dtype : inputs.inputs.back().dtype;
    seen.insert(w[1]);
    seen.insert(w[1] + " " + info(source).text);
    seen.insert(w[1] + " " + info(source).text + " " + info(want.dtype).text);
    if (op != Op::Bitcast) canonicalizeNaN((*got)[0]);
    if ((*got)[0] == want) return;
    ADD_FAILURE() << line << "\n" << difference((*got)[0], want, inputs);
  }
  static std::string difference(const Tensor &got, const Tensor &want, const EvalInputs &in) {
    if (got.shape != want.shape || got.dtype != want.dtype) return "types or shapes differ";
    std::string s;
    for (int64_t i = 0, shown = 0, w = bytesOf(got.dtype); i * w < int64_t(got.bytes.size()) && shown < 5; ++i) {
      uint64_t g = bitsAt(got, i), e = bitsAt(want, i);
      if (g == e) continue;
      ++shown;
      s += "element " + std::to_string(i) + ": got " + llvm::utohexstr(g) + ", expected " + llvm::utohexstr(e);
      for (const Tensor &t : in.inputs)
        if (t.count() == want.count() && byteSize(t.dtype)) s += ", from " + llvm::utohexstr(bitsAt(t, i));
      s += "\n";
    }
    return s;
  }
};

class Vectors : public testing::TestWithParam<const char *> {};

TEST_P(Vectors, AreGivenByteForByte) {
  std::ifstream in(std::string(ASTRA_VECTORS "/") + GetParam() + ".vec");
  ASSERT_TRUE(in.good());
  std::set<std::string> seen;
  File f{{}, seen};
  f.run(in);
  EXPECT_GT(f.cases, 10);
}
INSTANTIATE_TEST_SUITE_P(Files, Vectors,
                         testing::Values("floats", "integers", "conversions", "leaves", "movement", "reductions",
                                         "cumulations", "contractions", "indexing", "random"),
                         [](const auto &i) { return std::string(i.param); });

TEST(VectorsCover, EveryOpAndEveryDtypeOfElementwiseOps) {
  std::set<std::string> seen;
  for (const char *name : {"floats", "integers", "conversions", "leaves", "movement", "reductions", "cumulations",
                           "contractions", "indexing", "random"}) {
    std::ifstream in(std::string(ASTRA_VECTORS "/") + name + ".vec");
    File f{{}, seen};
    f.run(in);
  }
  const std::set<Op> elsewhere = {Op::Arg, Op::Param, Op::State, Op::Dim, Op::Extent, Op::Tap}; // EvalTest.cpp
  for (unsigned i = 0; i < numOps; ++i) {
    Op op = Op(i);
    if (has(op, Function) || has(op, Control) || has(op, KernelLevel) || elsewhere.count(op)) continue;
    EXPECT_TRUE(seen.count(info(op).mnemonic)) << info(op).mnemonic << " has no vector";
    if (!has(op, Elementwise)) continue;
    for (unsigned s = 0; s < numDTypes; ++s)
      for (unsigned r = 0; r < numDTypes; ++r) {
        Context c;
        Builder b(c);
        if (info(DType(s)).cls == DTypeClass::Complex) continue; // pairs of floats after the numerics stage
        if (DType(s) == DType::Void || DType(s) == DType::Index || DType(r) == DType::Void || s == r) continue;
        UOpRef x = b.arg(0, DType(s), {});
        llvm::SmallVector<UOpRef> src(info(op).sources, x);
        llvm::SmallVector<int64_t> ints;
        if (op == Op::Select) src[0] = b.arg(1, DType::Bool, {});
        if (op == Op::Scale2) src[1] = b.arg(1, DType::I32, {});
        if (op == Op::Cast) ints.push_back(0);
        if (op == Op::Lookup16) ints.assign(16, 0);
        auto node = c.tryMake(op, src, ints, {}, DType(r));
        if (!node) {
          llvm::consumeError(node.takeError());
          continue;
        }
        bool converts = op == Op::Cast || op == Op::Bitcast || op == Op::Lookup16;
        std::string key = std::string(info(op).mnemonic) + " " + info(op == Op::Scale2 ? DType::I32 : DType(s)).text;
        if (op == Op::Scale2) key += std::string(" ") + info(DType(s)).text;
        if (converts) key += std::string(" ") + info(DType(r)).text;
        EXPECT_TRUE(seen.count(key)) << key << " has no vector";
      }
  }
}
} // namespace
