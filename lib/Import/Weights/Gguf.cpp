//===- Gguf.cpp: tensors and keys of a GGUF file ----------------------------===//
// Takes:    a file of version 2 or 3 (github.com/ggml-org/ggml, docs/gguf.md): the magic, counts, keys with values,
//           tensor infos, and the data, which begins at a multiple of general.alignment.
// Gives:    see Readers.h; tensors in the order of their data, dims outermost first.
// Keeps:    a file is input from outside: every length is compared with what is left, sizes are computed with
//           checks, tensors lie aligned, inside of the file, and do not overlap.
// Does not: read version 1, files of big-endian machines, arrays of arrays: they are refused.
#include "Readers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include <tuple>

using namespace astra;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Types of values, by their numbers. `bytes` is 0 of what has no size of its own.
constexpr struct {
  const char *text;
  unsigned bytes;
} valueTypes[] = {{"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
                  {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};
constexpr uint32_t typeF32 = 6, typeBool = 7, typeString = 8, typeArray = 9, typeF64 = 12;

/// ggml's types that are known by name alone.
constexpr struct {
  uint32_t number;
  const char *text;
} otherTypes[] = {{9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
                  {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {29, "IQ1_M"},
                  {34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"}};

constexpr unsigned mostAxes = 8;

class Reader {
public:
  Reader(llvm::ArrayRef<uint8_t> file, WeightFile &out) : file(file), out(out) {}
  Error read();

private:
  llvm::ArrayRef<uint8_t> file;
  WeightFile &out;
  size_t at = 0;
  bool short_ = false; // something was asked for behind the end
  std::vector<std::string> unsupported;

  struct Place {
    WeightTensor tensor;
    uint64_t begin, bytes;
  };

  size_t left() const { return file.size() - at; }
  template <class T> T number() {
    if (left() < sizeof(T)) {
      short_ = true;
      return T();
    }
    T v = llvm::support::endian::read<T, llvm::endianness::little>(file.data() + at);
    at += sizeof(T);
    return v;
  }
  StringRef text() {
    uint64_t length = number<uint64_t>();
    if (short_ || length > left()) {
      short_ = true;
      return {};
    }
    StringRef s(reinterpret_cast<const char *>(file.data()) + at, length);
    at += length;
    return s;
  }
  int64_t integer(uint32_t type);
  double real(uint32_t type);
  Error value(WeightValue &v);
  Error array(WeightValue &v);
  Error key();
  Error tensor(std::vector<Place> &places);
  Error place(std::vector<Place> &places, uint64_t alignment);
};

bool isReal(uint32_t type) { return type == typeF32 || type == typeF64; }

int64_t Reader::integer(uint32_t type) {
  switch (type) {
  case 0:
  case typeBool: return number<uint8_t>();
  case 1: return number<int8_t>();
  case 2: return number<uint16_t>();
  case 3: return number<int16_t>();
  case 4: return number<uint32_t>();
  case 5: return number<int32_t>();
  default: return number<int64_t>();
  }
}

double Reader::real(uint32_t type) {
  if (type == typeF32) return llvm::bit_cast<float>(number<uint32_t>());
  return llvm::bit_cast<double>(number<uint64_t>());
}

Error Reader::array(WeightValue &v) {
  uint32_t type = number<uint32_t>();
  uint64_t count = number<uint64_t>();
  if (short_) return Error::success();
  if (type >= std::size(valueTypes)) return refused("an array is of type " + Twine(type) + ", which is not known");
  if (type == typeArray) return refused("an array of arrays is not supported");
  uint64_t least = type == typeString ? 8 : valueTypes[type].bytes; // bytes of an element
  if (count > left() / least) return refused("an array of " + Twine(count) + " elements leaves the file");
  v.type = valueTypes[type].text;
  if (type == typeString) {
    auto &all = v.value.emplace<std::vector<std::string>>();
    all.reserve(count);
    for (uint64_t i = 0; i < count && !short_; ++i) all.push_back(text().str());
  } else if (isReal(type)) {
    auto &all = v.value.emplace<std::vector<double>>();
    all.reserve(count);
    for (uint64_t i = 0; i < count; ++i) all.push_back(real(type));
  } else {
    auto &all = v.value.emplace<std::vector<int64_t>>();
    all.reserve(count);
    for (uint64_t i = 0; i < count; ++i) all.push_back(integer(type));
  }
  return Error::success();
}

Error Reader::value(WeightValue &v) {
  uint32_t type = number<uint32_t>();
  if (short_) return Error::success();
  if (type >= std::size(valueTypes)) return refused("is of type " + Twine(type) + ", which is not known");
  if (type == typeArray) return array(v);
  v.type = valueTypes[type].text;
  if (type == typeString)
    v.value = text().str();
  else if (isReal(type))
    v.value = real(type);
  else
    v.value = integer(type);
  return Error::success();
}

Error Reader::key() {
  StringRef name = text();
  WeightValue v;
  if (short_) return Error::success();
  if (Error e = value(v)) return refused("the value of " + shown(name) + ": " + llvm::toString(std::move(e)));
  return short_ ? Error::success() : addValue(out, name.str(), std::move(v));
}

Error Reader::tensor(std::vector<Place> &places) {
  Place p{};
  p.tensor.name = text().str();
  uint32_t axes = number<uint32_t>();
  if (short_) return Error::success();
  std::string name = shown(p.tensor.name);
  if (axes > mostAxes)
    return refused(name + " has " + Twine(axes) + " axes, at most " + Twine(mostAxes) + " are known");
  for (uint32_t i = 0; i < axes; ++i) {
    uint64_t extent = number<uint64_t>();
    if (extent > INT64_MAX) return refused("an extent of " + name + " is too large");
    p.tensor.dims.insert(p.tensor.dims.begin(), int64_t(extent));
  }
  uint32_t type = number<uint32_t>();
  p.begin = number<uint64_t>();
  if (short_) return Error::success();
  auto format = weightFormatOfGgml(type);
  if (!format) {
    auto row = llvm::find_if(otherTypes, [&](auto &t) { return t.number == type; });
    std::string text = row == std::end(otherTypes) ? "number " + std::to_string(type) : row->text;
    if (!llvm::is_contained(unsupported, text)) unsupported.push_back(text);
    return Error::success();
  }
  p.tensor.format = *format;
  auto bytes = weightBytes(*format, p.tensor.dims);
  if (!bytes && !p.tensor.dims.empty() && p.tensor.dims.back() % info(*format).elements)
    return refused(name + " is of type " + info(*format).text + ", whose blocks have " + Twine(info(*format).elements) +
                   " elements, and its rows have " + Twine(p.tensor.dims.back()));
  if (!bytes) return refused("the shape of " + name + " does not fit its type, or is too large");
  p.bytes = *bytes;
  places.push_back(std::move(p));
  return Error::success();
}

Error Reader::place(std::vector<Place> &places, uint64_t alignment) {
  uint64_t begin = llvm::alignTo(at, alignment), end = 0;
  if (begin > file.size()) begin = file.size(); // a file without tensors may end before
  llvm::ArrayRef<uint8_t> data = file.drop_front(begin);
  llvm::sort(places, [](const Place &a, const Place &b) {
    return std::tie(a.begin, a.tensor.name) < std::tie(b.begin, b.tensor.name);
  });
  for (Place &p : places) {
    std::string name = shown(p.tensor.name);
    if (p.begin % alignment)
      return refused(name + " begins at " + Twine(p.begin) + ", which is no multiple of the alignment " +
                     Twine(alignment));
    if (p.begin > data.size() || p.bytes > data.size() - p.begin)
      return refused(name + " leaves the file, which is truncated or malformed: it needs " + Twine(p.bytes) +
                     " bytes at " + Twine(p.begin) + " of " + Twine(data.size()));
    if (p.bytes && p.begin < end) return refused(name + " overlaps the tensor before it");
    if (p.bytes) end = p.begin + p.bytes;
    p.tensor.bytes = data.slice(p.begin, p.bytes);
    if (Error e = addTensor(out, std::move(p.tensor))) return e;
  }
  return Error::success();
}

Error Reader::read() {
  auto truncated = [&] { return refused("is truncated: its header leaves the file"); };
  at = 4;
  uint32_t version = number<uint32_t>();
  if (short_) return truncated();
  if (version == 0x02000000 || version == 0x03000000)
    return refused("is a GGUF file of a big-endian machine, which is not supported");
  if (version != 2 && version != 3)
    return refused("is a GGUF file of version " + Twine(version) + ", supported are 2 and 3");
  out.kind = WeightContainer::GGUF;
  out.kindText = "GGUF version " + std::to_string(version);
  uint64_t tensors = number<uint64_t>(), keys = number<uint64_t>();
  for (uint64_t i = 0; i < keys && !short_; ++i)
    if (Error e = key()) return e;
  std::vector<Place> places;
  for (uint64_t i = 0; i < tensors && !short_; ++i)
    if (Error e = tensor(places)) return e;
  if (short_) return truncated();
  if (!unsupported.empty())
    return refused("has tensors of types that are not supported: " + llvm::join(unsupported, ", "));
  int64_t alignment = 32;
  if (out.value("general.alignment")) {
    alignment = out.integer("general.alignment").value_or(0);
    if (alignment < 1 || alignment > 1 << 20 || !llvm::isPowerOf2_64(uint64_t(alignment)))
      return refused("general.alignment is no power of two of at most 2^20");
  }
  return place(places, uint64_t(alignment));
}

} // namespace

Error astra::readGguf(llvm::ArrayRef<uint8_t> file, WeightFile &out) { return Reader(file, out).read(); }
