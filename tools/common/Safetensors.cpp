//===- Safetensors.cpp: files of named tensors ------------------------------===//
// Takes:    a path.
// Gives:    see Safetensors.h.
#include "Safetensors.h"
#include "OutputFile.h"
#include "astra/astra.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <tuple>

using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

constexpr struct {
  string_view name;
  int32_t dtype;
} dtypes[] = {{"BOOL", ASTRA_BOOL},      {"U8", ASTRA_U8},         {"I8", ASTRA_I8},
              {"U16", ASTRA_U16},        {"I16", ASTRA_I16},       {"U32", ASTRA_U32},
              {"I32", ASTRA_I32},        {"U64", ASTRA_U64},       {"I64", ASTRA_I64},
              {"F16", ASTRA_F16},        {"BF16", ASTRA_BF16},     {"F32", ASTRA_F32},
              {"F64", ASTRA_F64},        {"C64", ASTRA_C64},       {"F8_E4M3", ASTRA_F8E4M3FN},
              {"F8_E5M2", ASTRA_F8E5M2}, {"F8_E8M0", ASTRA_F8E8M0}};

unsigned elementBytes(int32_t dtype) {
  switch (dtype) {
  case ASTRA_I16:
  case ASTRA_U16:
  case ASTRA_F16:
  case ASTRA_BF16: return 2;
  case ASTRA_I32:
  case ASTRA_U32:
  case ASTRA_F32: return 4;
  case ASTRA_I64:
  case ASTRA_U64:
  case ASTRA_F64:
  case ASTRA_C64: return 8;
  default: return 1;
  }
}

struct Place {
  string name;
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

/// The header, by the grammar that the format has: nothing nests, so nothing recurses.
class Header {
public:
  explicit Header(string_view text) : rest(text) {}
  /// False and what is wrong in `error`.
  bool parse(std::vector<Place> &places, Metadata &metadata);
  string error;

private:
  string_view rest;
  bool fail(const string &text) {
    if (error.empty()) error = text;
    return false;
  }
  void blanks() {
    size_t n = rest.find_first_not_of(" \t\r\n");
    rest.remove_prefix(std::min(n, rest.size()));
  }
  bool take(char c) {
    blanks();
    if (!rest.starts_with(c)) return false;
    rest.remove_prefix(1);
    return true;
  }
  bool expect(char c) {
    if (take(c)) return true;
    return fail(string("expected '") + c + "' " + where());
  }
  string where() const { return rest.empty() ? "at its end" : "before '" + string(rest.substr(0, 20)) + "'"; }
  bool text(string &out);
  bool hexadecimal(uint32_t &out);
  bool escape(string &out);
  bool integer(uint64_t &out);
  bool integers(std::vector<uint64_t> &out, size_t most);
  bool tensor(Place &place);
  /// { "key": ..., } : calls item(key) after each colon.
  template <class F> bool object(F item);
};

void appendUtf8(string &out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xc0 | c >> 6), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  }
}

bool Header::hexadecimal(uint32_t &out) {
  string_view digits = rest.substr(0, 4);
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  if (digits.size() != 4 || wrong != std::errc() || end != digits.data() + 4)
    return fail("a string has a malformed \\u " + where());
  rest.remove_prefix(4);
  return true;
}

bool Header::escape(string &out) {
  char c = rest.empty() ? 0 : rest[0];
  if (c) rest.remove_prefix(1);
  constexpr string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
  if (size_t at = letters.find(c); c && at != letters.npos) {
    out += meant[at];
    return true;
  }
  uint32_t high = 0, low = 0;
  if (c != 'u') return fail("a string has a malformed escape " + where());
  if (!hexadecimal(high)) return false;
  if (high >= 0xd800 && high < 0xdc00) { // half of a pair
    if (!rest.starts_with("\\u")) return fail("a string has half of a surrogate pair");
    rest.remove_prefix(2);
    if (!hexadecimal(low)) return false;
    if (low < 0xdc00 || low >= 0xe000) return fail("a string has half of a surrogate pair");
    high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  } else if (high >= 0xdc00 && high < 0xe000) {
    return fail("a string has half of a surrogate pair");
  }
  appendUtf8(out, high);
  return true;
}

bool Header::text(string &out) {
  out.clear();
  if (!expect('"')) return false;
  while (true) {
    if (rest.empty()) return fail("a string does not end");
    char c = rest[0];
    rest.remove_prefix(1);
    if (c == '"') return true;
    if (uint8_t(c) < 32) return fail("a string has a control character");
    if (c != '\\')
      out += c;
    else if (!escape(out))
      return false;
  }
}

bool Header::integer(uint64_t &out) {
  blanks();
  auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  size_t digits = size_t(end - rest.data());
  if (wrong != std::errc() || out > INT64_MAX || (digits > 1 && rest[0] == '0'))
    return fail("expected a whole number " + where());
  rest.remove_prefix(digits);
  return true;
}

bool Header::integers(std::vector<uint64_t> &out, size_t most) {
  out.clear();
  if (!expect('[')) return false;
  if (take(']')) return true;
  do {
    if (out.size() == most) return fail("expected at most " + std::to_string(most) + " numbers " + where());
    if (!integer(out.emplace_back())) return false;
  } while (take(','));
  return expect(']');
}

template <class F> bool Header::object(F item) {
  if (!expect('{')) return false;
  if (take('}')) return true;
  string key;
  do {
    if (!text(key) || !expect(':') || !item(key)) return false;
  } while (take(','));
  return expect('}');
}

bool Header::tensor(Place &place) {
  bool given[3] = {};
  std::vector<uint64_t> numbers;
  auto first = [&](int which) {
    if (given[which]) return fail("'" + place.name + "' says something twice");
    return given[which] = true;
  };
  bool good = object([&](const string &key) {
    if (key == "dtype") {
      string name;
      if (!first(0) || !text(name)) return false;
      auto row = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto &r) { return r.name == name; });
      if (row == std::end(dtypes))
        return fail("'" + place.name + "' is of the dtype '" + name + "', which is not known");
      place.dtype = row->dtype;
      return true;
    }
    if (key == "shape") {
      if (!first(1) || !integers(numbers, ASTRA_MAX_RANK)) return false;
      place.shape.assign(numbers.begin(), numbers.end());
      return true;
    }
    if (key == "data_offsets") {
      if (!first(2) || !integers(numbers, 2)) return false;
      if (numbers.size() != 2) return fail("'" + place.name + "' has no two data_offsets");
      place.begin = numbers[0], place.end = numbers[1];
      return true;
    }
    return fail("'" + place.name + "' has a key '" + key + "', which is not known");
  });
  if (!good) return false;
  if (!given[0] || !given[1] || !given[2]) return fail("'" + place.name + "' lacks dtype, shape or data_offsets");
  uint64_t bytes = elementBytes(place.dtype);
  for (int64_t extent : place.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
      return fail("the shape of '" + place.name + "' is too large");
  if (place.end < place.begin || place.end - place.begin != bytes)
    return fail("'" + place.name + "' needs " + std::to_string(bytes) + " bytes of data, and its data_offsets are " +
                std::to_string(place.begin) + " and " + std::to_string(place.end));
  return true;
}

bool Header::parse(std::vector<Place> &places, Metadata &metadata) {
  bool hasMetadata = false;
  bool good = object([&](const string &key) {
    if (key != "__metadata__") {
      places.emplace_back().name = key;
      return tensor(places.back());
    }
    if (hasMetadata) return fail("__metadata__ is there twice");
    hasMetadata = true;
    return object([&](const string &name) {
      string value;
      if (!text(value)) return false;
      if (!metadata.emplace(name, value).second) return fail("__metadata__ has '" + name + "' twice");
      return true;
    });
  });
  if (!good) return false;
  blanks();
  return rest.empty() || fail("something follows the object " + where());
}

/// The tensors in the order of their data, which they must cover.
bool order(std::vector<Place> &places, uint64_t bytes, string &error) {
  std::vector<const string *> names;
  for (const Place &p : places) names.push_back(&p.name);
  std::sort(names.begin(), names.end(), [](auto *a, auto *b) { return *a < *b; });
  auto twice = std::adjacent_find(names.begin(), names.end(), [](auto *a, auto *b) { return *a == *b; });
  if (twice != names.end()) {
    error = "'" + **twice + "' is there twice";
    return false;
  }
  std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const Place &p : places) {
    if (p.begin != at) {
      error = "the data of '" + p.name + "' begins at " + std::to_string(p.begin) + ", and what is before it ends at " +
              std::to_string(at);
      return false;
    }
    at = p.end;
  }
  if (at != bytes) error = "holds " + std::to_string(bytes) + " bytes of data; its tensors need " + std::to_string(at);
  return at == bytes;
}

string quoted(string_view s) {
  constexpr char digits[] = "0123456789abcdef";
  string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (uint8_t(c) < 32)
      out += {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    else
      out += c;
  }
  return out + '"';
}

} // namespace

const Npy *Safetensors::find(const string &name) const {
  auto at = index.find(name);
  return at == index.end() ? nullptr : &tensors[at->second].second;
}

bool astra::tool::readSafetensors(const string &path, Safetensors &out, string &error) {
  auto fail = [&](const string &text) {
    error = path + ": " + text;
    return false;
  };
  std::vector<uint8_t> file;
  if (!readWhole(path, file, error)) return false;
  uint64_t length = 0;
  if (file.size() < 8) return fail("is not a .safetensors file: it has no header");
  for (int i = 0; i < 8; ++i) length |= uint64_t(file[i]) << (8 * i);
  if (length > file.size() - 8) return fail("is not a .safetensors file, or is truncated: its header leaves the file");
  Header header({reinterpret_cast<const char *>(file.data()) + 8, size_t(length)});
  std::vector<Place> places;
  out = {};
  if (!header.parse(places, out.metadata)) return fail("the header of the .safetensors file: " + header.error);
  string wrong;
  if (!order(places, file.size() - 8 - length, wrong)) return fail(wrong);
  const uint8_t *data = file.data() + 8 + length;
  for (Place &p : places) {
    out.index[p.name] = out.tensors.size();
    out.tensors.push_back({p.name, {p.dtype, std::move(p.shape), false, {data + p.begin, data + p.end}}});
  }
  return true;
}

bool astra::tool::writeSafetensors(const string &path, const std::vector<NamedTensor> &tensors,
                                   const Metadata &metadata, string &error) {
  std::vector<const NamedTensor *> order;
  for (unsigned bytes : {8, 4, 2, 1})
    for (const NamedTensor &t : tensors)
      if (elementBytes(t.dtype) == bytes) order.push_back(&t);
  string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (auto &[key, value] : metadata) header += (header.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
    header += "}";
  }
  std::vector<uint64_t> sizes;
  uint64_t at = 0;
  for (const NamedTensor *t : order) {
    auto row = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto &r) { return r.dtype == t->dtype; });
    if (row == std::end(dtypes)) {
      error = path + ": '" + t->name + "' is of a dtype that .safetensors files do not have";
      return false;
    }
    uint64_t bytes = elementBytes(t->dtype);
    header +=
        (header.size() == 1 ? "" : ",") + quoted(t->name) + ":{\"dtype\":\"" + string(row->name) + "\",\"shape\":[";
    for (size_t i = 0; i < t->shape.size(); ++i) {
      header += (i ? "," : "") + std::to_string(t->shape[i]);
      bytes *= uint64_t(t->shape[i]);
    }
    header += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
    sizes.push_back(bytes);
    at += bytes;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  string length;
  for (int i = 0; i < 8; ++i) length += char(uint64_t(header.size()) >> (8 * i));
  OutputFile file;
  if (!file.open(path, error) || !file.write(length.data(), 8, error) ||
      !file.write(header.data(), header.size(), error))
    return false;
  for (size_t i = 0; i < order.size(); ++i)
    if (!file.write(order[i]->data, sizes[i], error)) return false;
  return file.keep(error, true);
}
