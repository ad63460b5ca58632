//===- VectorFile.h: reading test/vectors/*.vec ----------------------------===//
// Takes:    a file in the format of test/vectors/make.py.
// Gives:    its cases, one after another: an op, its inputs, the bytes expected.
// Does not: evaluate or compile them.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <fstream>

namespace astra::test {

struct VectorCase {
  std::string line; // as it stands in the file
  Op op;
  DType to; // the dtype that some ops are given; void otherwise
  std::vector<int64_t> ints, indices;
  std::vector<Tensor> inputs;
  Tensor want;

  /// The node in c, over args 0, 1, ...
  llvm::Expected<UOpRef> node(Context &c) const {
    Builder b(c);
    llvm::SmallVector<UOpRef> src;
    for (const Tensor &t : inputs) {
      llvm::SmallVector<UOpRef> shape;
      for (int64_t d : t.shape) shape.push_back(b.idx(d));
      src.push_back(b.arg(src.size(), t.dtype, shape));
    }
    for (int64_t i : indices) src.push_back(b.idx(i));
    if (op == Op::Compact) return b.compact(src[0], src[1]);
    return c.tryMake(op, src, ints, {}, to);
  }
};

class VectorFile {
public:
  explicit VectorFile(const std::string &path) : in(path) {}
  bool good() const { return in.good(); }
  /// The next case, or nothing at the end.
  std::optional<VectorCase> next() {
    std::string line;
    while (std::getline(in, line)) {
      auto w = split(line, ' ');
      if (w[0] != "case") {
        DType t = *dtypeNamed(w[2]);
        auto shape = numbers(w[3], 'x');
        tensors[w[1]] = w[0] == "tensor" ? hexadecimal(t, shape) : generated(t, shape, std::stoull(w[4]));
        continue;
      }
      VectorCase c{line, *opNamed(w[1]), *dtypeNamed(w[2]), numbers(w[3], ','), numbers(w[4], ','), {}, {}};
      for (const std::string &name : split(w[5], ',')) c.inputs.push_back(operand(name));
      c.want = packed(hexadecimal(*dtypeNamed(w[6]), numbers(w[7], 'x')));
      return c;
    }
    return std::nullopt;
  }

private:
  std::ifstream in;
  std::map<std::string, Tensor> tensors; // unpacked: a sub-byte element has a byte of its own

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
  /// An element, of a complex tensor a part of one.
  static void append(Tensor &t, uint64_t bits) {
    for (unsigned i = 0; i < bytesOf(partOf(t.dtype)); ++i) t.bytes.push_back(bits >> 8 * i);
  }
  static int64_t numbersIn(const Tensor &t) { return t.count() * (isComplex(t.dtype) ? 2 : 1); }
  static Tensor packed(const Tensor &t) {
    if (byteSize(t.dtype)) return t;
    Tensor p{t.dtype, t.shape, std::vector<uint8_t>(tensorBytes(t.dtype, t.shape))};
    int64_t row = t.shape.empty() ? 1 : t.shape.back(), perByte = 8 / bitWidth(t.dtype),
            rowBytes = (row + perByte - 1) / perByte;
    for (int64_t i = 0, n = t.count(); i < n; ++i)
      p.bytes[i / row * rowBytes + i % row / perByte] |= t.bytes[i] << i % row % perByte * bitWidth(t.dtype);
    return p;
  }

  Tensor hexadecimal(DType t, std::vector<int64_t> shape) {
    Tensor r{t, std::move(shape), {}};
    unsigned digits = std::max(1u, bitWidth(partOf(t)) / 4);
    std::string text, line;
    while (text.size() < size_t(numbersIn(r)) * digits && std::getline(in, line)) text += llvm::StringRef(line).trim();
    for (int64_t i = 0, n = numbersIn(r); i < n; ++i)
      append(r, std::stoull(text.substr(i * digits, digits), nullptr, 16));
    return r;
  }
  static Tensor generated(DType t, std::vector<int64_t> shape, uint64_t state) {
    Tensor r{t, std::move(shape), {}};
    const DTypeInfo &f = info(partOf(t));
    for (int64_t i = 0, n = numbersIn(r); i < n; ++i) {
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
        for (int64_t e = 0, w = bytesOf(t.dtype); e < each; ++e)
          r.bytes.insert(r.bytes.end(), t.bytes.begin() + i * w, t.bytes.begin() + (i + 1) * w);
    return r;
  }

public:
  static unsigned bytesOf(DType t) { return std::max(1u, byteSize(t)); }
  /// Number i of a tensor; of a complex one they are the parts.
  static uint64_t bitsAt(const Tensor &t, int64_t i) {
    unsigned w = bytesOf(partOf(t.dtype));
    uint64_t bits = 0;
    memcpy(&bits, &t.bytes[i * w], w);
    return bits;
  }
  /// The first elements that differ, for people.
  static std::string difference(const Tensor &got, const Tensor &want, const std::vector<Tensor> &inputs) {
    if (got.shape != want.shape || got.dtype != want.dtype) return "types or shapes differ";
    std::string s;
    for (int64_t i = 0, shown = 0, w = bytesOf(partOf(got.dtype)); i * w < int64_t(got.bytes.size()) && shown < 5;
         ++i) {
      uint64_t g = bitsAt(got, i), e = bitsAt(want, i);
      if (g == e) continue;
      ++shown;
      s += (isComplex(got.dtype) ? "part " : "element ") + std::to_string(i) + ": got " + llvm::utohexstr(g) +
           ", expected " + llvm::utohexstr(e);
      for (const Tensor &t : inputs)
        if (numbersIn(t) == numbersIn(want) && byteSize(t.dtype)) s += ", from " + llvm::utohexstr(bitsAt(t, i));
      s += "\n";
    }
    return s;
  }
};

} // namespace astra::test
