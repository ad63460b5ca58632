//===- Csv.cpp: a table of numbers as text --------------------------------------===//
// Takes:    a path and a type.
// Gives:    see Csv.h.
#include "Csv.h"
#include "Integers.h"
#include "OutputFile.h"
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

string_view trimmed(string_view text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Takes the first cell off a line, without its quotes.
string_view nextCell(string_view &line, bool &more) {
  string_view rest = line;
  while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
  size_t from = 0;
  if (!rest.empty() && rest[0] == '"')
    for (from = 1; from < rest.size(); ++from) {
      if (rest[from] != '"') continue;
      if (from + 1 == rest.size() || rest[from + 1] != '"') break;
      ++from; // "" is a quotation mark
    }
  size_t comma = rest.find(',', std::min(from, rest.size()));
  string_view cell = trimmed(rest.substr(0, comma));
  more = comma != rest.npos;
  line = more ? rest.substr(comma + 1) : "";
  if (cell.size() > 1 && cell.front() == '"' && cell.back() == '"') cell = trimmed(cell.substr(1, cell.size() - 2));
  return cell;
}

/// Of all of `text`, rounded once; not where it is no number or beyond the type.
template <class T> std::optional<T> real(string_view text) {
  if (text.starts_with("+")) text.remove_prefix(1);
  T v;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (end != text.data() + text.size() || text.empty()) return {};
  if (wrong == std::errc::result_out_of_range) { // too large, or too small and then as near as the type comes
    string copy(text);
    v = sizeof(T) == 4 ? T(std::strtof(copy.c_str(), nullptr)) : T(std::strtod(copy.c_str(), nullptr));
    if (std::isinf(v)) return {};
  } else if (wrong != std::errc())
    return {};
  return v;
}

/// The bits of a cell in the low bytes.
std::optional<uint64_t> bitsOf(string_view cell, int32_t dtype) {
  uint64_t bits = 0;
  if (dtype == ASTRA_F32) {
    auto v = real<float>(cell);
    if (v) std::memcpy(&bits, &*v, sizeof *v);
    return v ? std::optional(bits) : std::nullopt;
  }
  if (dtype == ASTRA_F64) {
    auto v = real<double>(cell);
    if (v) std::memcpy(&bits, &*v, sizeof *v);
    return v ? std::optional(bits) : std::nullopt;
  }
  if (dtype == ASTRA_BOOL) {
    if (cell == "1" || cell == "true" || cell == "True") return 1;
    return cell == "0" || cell == "false" || cell == "False" ? std::optional<uint64_t>(0) : std::nullopt;
  }
  if (cell.starts_with("+")) cell.remove_prefix(1);
  const char *end = cell.data() + cell.size();
  int64_t v;
  uint64_t large;
  if (auto r = std::from_chars(cell.data(), end, v); r.ptr == end && r.ec == std::errc())
    return fits(v, false, dtype) ? std::optional(uint64_t(v)) : std::nullopt;
  if (auto r = std::from_chars(cell.data(), end, large); r.ptr == end && r.ec == std::errc())
    return fits(int64_t(large), true, dtype) ? std::optional(large) : std::nullopt;
  auto d = real<double>(cell);               // "3.000e+00"
  constexpr double whole = 9007199254740992; // up to 2^53 each is one integer
  if (!d || std::fabs(*d) > whole || *d != std::trunc(*d)) return {};
  return fits(int64_t(*d), false, dtype) ? std::optional(uint64_t(int64_t(*d))) : std::nullopt;
}

bool hasNumber(string_view line) {
  for (bool more = true; more;)
    if (real<double>(nextCell(line, more))) return true;
  return false;
}

} // namespace

bool astra::tool::isCsv(const string &path) { return path.ends_with(".csv"); }

bool astra::tool::readCsv(const string &path, int32_t dtype, Npy &out, string &header, string &error) {
  std::vector<uint8_t> file;
  if (!readWhole(path, file, error)) return false;
  auto fail = [&](const string &text) {
    error = path + ": " + text;
    return false;
  };
  if (!isInteger(dtype) && dtype != ASTRA_F32 && dtype != ASTRA_F64 && dtype != ASTRA_BOOL)
    return fail("text is read as f32, f64, integers or bool, and " + string(astra_dtype_name(dtype)) +
                " is wanted: save the array as .npy");
  string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3); // a byte order mark
  size_t size = astra_dtype_bits(dtype) / 8;
  int64_t lines = 0, cells = 0;
  header.clear();
  out = Npy();
  for (uint64_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    string_view line = trimmed(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + 1);
    if (line.empty()) continue;
    if (!lines && header.empty() && !hasNumber(line)) {
      header = line;
      continue;
    }
    int64_t here = 0;
    for (bool more = true; more; ++here) {
      string_view cell = nextCell(line, more);
      auto bits = bitsOf(cell, dtype);
      if (!bits)
        return fail("line " + std::to_string(number) + ", cell " + std::to_string(here + 1) + ": '" +
                    string(cell.substr(0, 40)) + "' is no number that " + astra_dtype_name(dtype) +
                    " holds; cells stand between commas");
      const auto *bytes = reinterpret_cast<const uint8_t *>(&*bits); // little-endian, as are all targets
      out.data.insert(out.data.end(), bytes, bytes + size);
    }
    if (lines && here != cells)
      return fail("line " + std::to_string(number) + " has " + std::to_string(here) + " cells, those before have " +
                  std::to_string(cells));
    cells = here;
    ++lines;
  }
  out.dtype = dtype;
  out.shape = {lines, cells};
  return true;
}
