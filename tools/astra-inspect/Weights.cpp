//===- Weights.cpp: weight files as text and JSON ---------------------------===//
// Takes:    an open weight file, whose strings are anybody's.
// Gives:    see Weights.h.
// Keeps:    what is printed is printable: control characters and bytes that are no UTF-8 are replaced.
#include "Weights.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <map>

using namespace astra;
using namespace llvm;

namespace {

std::string utf8(StringRef s) { return json::isUTF8(s) ? s.str() : json::fixUTF8(s); }

std::string quoted(StringRef s, size_t most) {
  std::string text = "\"";
  bool cut = s.size() > most;
  for (char c : utf8(s.take_front(most)))
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += {'\\', c};
    else
      text += uint8_t(c) < 32 || c == 127 ? '?' : c;
  return text + (cut ? "\" ..." : "\"");
}

std::string plain(StringRef name) { return StringRef(quoted(name, name.size())).drop_front().drop_back().str(); }

std::string numberText(double v) {
  std::string s;
  raw_string_ostream(s) << format("%.9g", v);
  return s;
}

/// Of a GGUF key of type u64 the bits are an int64_t.
std::string integerText(const WeightValue &v, int64_t x) {
  if (StringRef(v.type) == "bool") return x ? "true" : "false";
  return StringRef(v.type) == "u64" ? std::to_string(uint64_t(x)) : std::to_string(x);
}

std::string valueText(const WeightValue &v) {
  constexpr size_t mostElements = 6, mostCharacters = 200, mostOfElement = 40;
  auto array = [&](auto &all, auto text) {
    std::string s = "[";
    for (size_t i = 0; i < std::min(all.size(), mostElements); ++i) s += (i ? ", " : "") + text(all[i]);
    return s + (all.size() > mostElements ? ", ... " + std::to_string(all.size()) + " in all]" : "]");
  };
  struct {
    const WeightValue &v;
    decltype(array) &list;
    std::string operator()(int64_t x) { return integerText(v, x); }
    std::string operator()(double x) { return numberText(x); }
    std::string operator()(const std::string &s) { return quoted(s, mostCharacters); }
    std::string operator()(const std::vector<int64_t> &a) {
      return list(a, [&](int64_t x) { return integerText(v, x); });
    }
    std::string operator()(const std::vector<double> &a) { return list(a, numberText); }
    std::string operator()(const std::vector<std::string> &a) {
      return list(a, [](const std::string &s) { return quoted(s, mostOfElement); });
    }
  } text{v, array};
  return std::visit(text, v.value);
}

std::string dimsText(ArrayRef<int64_t> dims) {
  std::string s = "[";
  for (auto [i, d] : enumerate(dims)) s += (i ? ", " : "") + std::to_string(d);
  return s + "]";
}

std::string bytesText(uint64_t n) {
  std::string s;
  raw_string_ostream os(s);
  if (n >= 1000000)
    os << format("%.1f MB", double(n) / 1e6);
  else if (n >= 1000)
    os << format("%.1f KB", double(n) / 1e3);
  else
    os << n << " bytes";
  return s;
}

struct JSONWriter {
  json::OStream &j;
  const WeightValue &v;
  void operator()(int64_t x) const {
    if (StringRef(v.type) == "bool")
      j.value(x != 0);
    else if (StringRef(v.type) == "u64")
      j.value(uint64_t(x));
    else
      j.value(x);
  }
  void operator()(double x) const { // JSON has finite numbers alone
    if (std::isfinite(x))
      j.value(x);
    else
      j.value(nullptr);
  }
  void operator()(const std::string &s) const { j.value(utf8(s)); }
  template <class T> void operator()(const std::vector<T> &a) const {
    j.array([&] {
      for (const T &x : a) (*this)(x);
    });
  }
};

struct Sum {
  size_t tensors = 0;
  uint64_t elements = 0, bytes = 0;
  void add(const WeightTensor &t) {
    const WeightFormatInfo &f = astra::info(t.format);
    ++tensors, bytes += t.bytes.size(), elements += t.bytes.size() / f.bytes * f.elements;
  }
  std::string text() const {
    return std::to_string(tensors) + (tensors == 1 ? " tensor, " : " tensors, ") + std::to_string(elements) +
           " elements, " + bytesText(bytes);
  }
};

} // namespace

void tool::printWeights(raw_ostream &out, const WeightFile &file) {
  Sum all;
  std::map<WeightFormat, Sum> byFormat;
  for (const WeightTensor &t : file.tensors()) all.add(t), byFormat[t.format].add(t);
  out << file.containerText() << ", " << all.text() << "\n";
  for (auto &[key, v] : file.metadata()) out << "key " << plain(key) << " = " << valueText(v) << "\n";
  for (const WeightTensor &t : file.tensors())
    out << "tensor " << plain(t.name) << " " << astra::info(t.format).text << " " << dimsText(t.dims) << ", "
        << bytesText(t.bytes.size()) << "\n";
  for (auto &[format, sum] : byFormat) out << "format " << astra::info(format).text << ": " << sum.text() << "\n";
}

void tool::printWeightsJSON(raw_ostream &out, const WeightFile &file) {
  json::OStream j(out, 2);
  j.object([&] {
    j.attribute("container", file.containerText());
    j.attributeArray("metadata", [&] {
      for (auto &[key, v] : file.metadata())
        j.object([&] {
          j.attribute("key", utf8(key));
          j.attribute("type", v.type);
          j.attributeBegin("value");
          std::visit(JSONWriter{j, v}, v.value);
          j.attributeEnd();
        });
    });
    j.attributeArray("tensors", [&] {
      for (const WeightTensor &t : file.tensors())
        j.object([&] {
          j.attribute("name", utf8(t.name));
          j.attribute("format", astra::info(t.format).text);
          j.attributeArray("dims", [&] {
            for (int64_t d : t.dims) j.value(d);
          });
          j.attribute("bytes", int64_t(t.bytes.size()));
        });
    });
  });
  out << "\n";
}
