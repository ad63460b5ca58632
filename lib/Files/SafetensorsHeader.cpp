//===- SafetensorsHeader.cpp: the header of a .safetensors file ------------===//
// Takes:    untrusted text.
// Gives:    see SafetensorsHeader.h.
#include "astra/Files/SafetensorsHeader.h"
#include <algorithm>
#include <charconv>
#include <tuple>

using namespace astra;
using std::string;
using std::string_view;

namespace {

constexpr size_t mostAxes = 16;

constexpr struct {
  string_view name;
  unsigned bytes;
} types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},      {"U16", 2},     {"I16", 2},    {"U32", 4},
             {"I32", 4},  {"U64", 8}, {"I64", 8},     {"F16", 2},     {"BF16", 2},   {"F32", 4},
             {"F64", 8},  {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};

/// The header, by the grammar that the format has: nothing nests, so nothing recurses.
class HeaderReader {
public:
  explicit HeaderReader(string_view text) : rest(text) {}
  /// False and what is wrong in `error`.
  bool parse(SafetensorsHeader &out);
  bool parse(SafetensorsIndex &out);
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
  bool tensor(SafetensorsPlace &place);
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

bool HeaderReader::hexadecimal(uint32_t &out) {
  string_view digits = rest.substr(0, 4);
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  if (digits.size() != 4 || wrong != std::errc() || end != digits.data() + 4)
    return fail("a string has a malformed \\u " + where());
  rest.remove_prefix(4);
  return true;
}

bool HeaderReader::escape(string &out) {
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

bool HeaderReader::text(string &out) {
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

bool HeaderReader::integer(uint64_t &out) {
  blanks();
  auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  size_t digits = size_t(end - rest.data());
  if (wrong != std::errc() || out > INT64_MAX || (digits > 1 && rest[0] == '0'))
    return fail("expected a whole number " + where());
  rest.remove_prefix(digits);
  return true;
}

bool HeaderReader::integers(std::vector<uint64_t> &out, size_t most) {
  out.clear();
  if (!expect('[')) return false;
  if (take(']')) return true;
  do {
    if (out.size() == most) return fail("expected at most " + std::to_string(most) + " numbers " + where());
    if (!integer(out.emplace_back())) return false;
  } while (take(','));
  return expect(']');
}

template <class F> bool HeaderReader::object(F item) {
  if (!expect('{')) return false;
  if (take('}')) return true;
  string key;
  do {
    if (!text(key) || !expect(':') || !item(key)) return false;
  } while (take(','));
  return expect('}');
}

bool HeaderReader::tensor(SafetensorsPlace &place) {
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
      auto row = std::find_if(std::begin(types), std::end(types), [&](auto &t) { return t.name == name; });
      if (row == std::end(types))
        return fail("'" + place.name + "' is of the dtype '" + name + "', which is not known");
      place.type = row->name;
      return true;
    }
    if (key == "shape") {
      if (!first(1) || !integers(numbers, mostAxes)) return false;
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
  uint64_t bytes = safetensorsElementBytes(place.type);
  for (int64_t extent : place.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(extent), &bytes))
      return fail("the shape of '" + place.name + "' is too large");
  if (place.end < place.begin || place.end - place.begin != bytes)
    return fail("'" + place.name + "' needs " + std::to_string(bytes) + " bytes of data, and its data_offsets are " +
                std::to_string(place.begin) + " and " + std::to_string(place.end));
  return true;
}

bool HeaderReader::parse(SafetensorsHeader &out) {
  bool hasMetadata = false;
  bool good = object([&](const string &key) {
    if (key != "__metadata__") {
      out.tensors.emplace_back().name = key;
      return tensor(out.tensors.back());
    }
    if (hasMetadata) return fail("__metadata__ is there twice");
    hasMetadata = true;
    return object([&](const string &name) {
      string value;
      if (!text(value)) return false;
      if (!out.metadata.emplace(name, value).second) return fail("__metadata__ has '" + name + "' twice");
      return true;
    });
  });
  if (!good) return false;
  blanks();
  return rest.empty() || fail("something follows the object " + where());
}

bool HeaderReader::parse(SafetensorsIndex &out) {
  bool given[2] = {};
  bool good = object([&](const string &key) {
    bool isMap = key == "weight_map";
    if (!isMap && key != "metadata") return fail("has a key '" + key + "', which is not known");
    if (given[isMap]) return fail("'" + key + "' is there twice");
    given[isMap] = true;
    return object([&](const string &name) {
      string value;
      uint64_t number = 0;
      blanks();
      bool isNumber = !isMap && !rest.starts_with('"');
      if (isNumber ? !integer(number) : !text(value)) return false;
      if (isMap && (value.empty() || value == "." || value == ".." || value.find_first_of("/\\") != value.npos))
        return fail("'" + name + "' is in no file of the folder");
      if (isNumber) value = std::to_string(number);
      return (isMap ? out.files : out.metadata).emplace(name, value).second || fail("'" + name + "' is there twice");
    });
  });
  if (!good) return false;
  blanks();
  if (!rest.empty()) return fail("something follows the object " + where());
  return given[1] || fail("has no \"weight_map\"");
}

/// The tensors in the order of their data, which they must cover.
bool order(std::vector<SafetensorsPlace> &places, uint64_t bytes, string &error) {
  std::vector<const string *> names;
  for (const SafetensorsPlace &p : places) names.push_back(&p.name);
  std::sort(names.begin(), names.end(), [](auto *a, auto *b) { return *a < *b; });
  auto twice = std::adjacent_find(names.begin(), names.end(), [](auto *a, auto *b) { return *a == *b; });
  if (twice != names.end()) {
    error = "'" + **twice + "' is there twice";
    return false;
  }
  std::sort(places.begin(), places.end(), [](const SafetensorsPlace &a, const SafetensorsPlace &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const SafetensorsPlace &p : places) {
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

} // namespace

unsigned astra::safetensorsElementBytes(string_view type) {
  auto row = std::find_if(std::begin(types), std::end(types), [&](auto &t) { return t.name == type; });
  return row == std::end(types) ? 0 : row->bytes;
}

bool astra::readSafetensorsHeader(string_view json, uint64_t dataBytes, SafetensorsHeader &out, string &error) {
  out = {};
  HeaderReader reader(json);
  if (reader.parse(out)) return order(out.tensors, dataBytes, error);
  error = "the header of the .safetensors file: " + reader.error;
  return false;
}

bool astra::readSafetensorsIndex(string_view json, SafetensorsIndex &out, string &error) {
  out = {};
  HeaderReader reader(json);
  if (reader.parse(out)) return true;
  error = "the index of .safetensors files: " + reader.error;
  return false;
}
