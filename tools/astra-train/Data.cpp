//===- Data.cpp: rows to train on ----------------------------------------------===//
// Takes:    files.
// Gives:    see Data.h.
#include "Data.h"
#include "Arrays.h"
#include "Csv.h"
#include "Integers.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

using namespace astra::tool;
using std::string;

namespace {

constexpr int64_t kMostRows = UINT32_MAX; // a row's number is a 32-bit word of the shuffle

string extents(const astra_tensor_info &t) {
  string out = string(astra_dtype_name(t.dtype)) + "[";
  for (int32_t i = 0; i < t.ndim; ++i) {
    out += (i ? ", " : "") + std::to_string(t.lower[i]);
    if (t.upper[i] != t.lower[i]) out += ".." + std::to_string(t.upper[i]);
  }
  return out + "]";
}

/// An element of an integer type; above 2^63 as what `big` says.
int64_t integerAt(const uint8_t *p, int32_t dtype, bool &big) {
  uint64_t v = 0;
  unsigned bytes = astra_dtype_bits(dtype) / 8, shift = 64 - 8 * bytes;
  std::memcpy(&v, p, bytes);
  big = dtype == ASTRA_U64 && v >> 63;
  return isSigned(dtype) ? int64_t(v << shift) >> shift : int64_t(v);
}

/// Integers of another width: all of them, or a sentence about the first that does not fit.
string convert(Npy &a, int32_t wanted) {
  unsigned from = astra_dtype_bits(a.dtype) / 8, to = astra_dtype_bits(wanted) / 8;
  uint64_t count = a.data.size() / from;
  std::vector<uint8_t> out(count * to);
  for (uint64_t i = 0; i < count; ++i) {
    bool big;
    int64_t v = integerAt(a.data.data() + i * from, a.dtype, big);
    if (!fits(v, big, wanted))
      return "element " + std::to_string(i) + " is " + (big ? std::to_string(uint64_t(v)) : std::to_string(v)) +
             ", which " + astra_dtype_name(wanted) + " does not hold";
    std::memcpy(out.data() + i * to, &v, to);
  }
  a.data = std::move(out);
  a.dtype = wanted;
  return "";
}

/// Floats of another width, each rounded once: all of them, or a sentence about the first that is beyond the type.
template <class From, class To> string convertFloats(Npy &a, int32_t wanted) {
  uint64_t count = a.data.size() / sizeof(From);
  std::vector<uint8_t> out(count * sizeof(To));
  for (uint64_t i = 0; i < count; ++i) {
    From v;
    std::memcpy(&v, a.data.data() + i * sizeof v, sizeof v);
    To w = To(v);
    if (std::isinf(w) && !std::isinf(v)) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", double(v));
      return "element " + std::to_string(i) + " is " + text + ", which is beyond " + astra_dtype_name(wanted);
    }
    std::memcpy(out.data() + i * sizeof w, &w, sizeof w);
  }
  a.data = std::move(out);
  a.dtype = wanted;
  return "";
}

/// The rows of a table that are as long as the input's rows have elements.
void fold(Npy &a, const astra_tensor_info &wanted) {
  int64_t elements = 1;
  std::vector<int64_t> shape{a.shape[0]};
  for (int32_t i = 1; i < wanted.ndim; ++i) {
    if (wanted.lower[i] != wanted.upper[i] || __builtin_mul_overflow(elements, wanted.lower[i], &elements)) return;
    shape.push_back(wanted.lower[i]);
  }
  if (elements == a.shape[1]) a.shape = shape;
}

/// Rows that differ from the input's in axes of extent 1 alone: [n] for [n, 1], [n, 1] for [n].
void alignOnes(Npy &a, const astra_tensor_info &wanted) {
  int64_t more = int64_t(wanted.ndim) - int64_t(a.shape.size()), ones = 0;
  if (a.shape.empty() || more == 0) return;
  if (more < 0) {
    for (size_t i = 1; i < a.shape.size(); ++i) ones += a.shape[i] == 1;
    if (ones == -more) a.shape.erase(std::remove(a.shape.begin() + 1, a.shape.end(), 1), a.shape.end());
    return;
  }
  auto isOne = [&](int32_t i) { return wanted.lower[i] == 1 && wanted.upper[i] == 1; };
  for (int32_t i = 1; i < wanted.ndim; ++i) ones += isOne(i);
  for (int32_t i = 1; ones == more && i < wanted.ndim; ++i)
    if (isOne(i)) a.shape.insert(a.shape.begin() + i, 1);
}

/// Column-major as row-major.
void makeRowMajor(Npy &a) {
  size_t rank = a.shape.size(), bytes = astra_dtype_bits(a.dtype) / 8;
  uint64_t count = a.data.size() / bytes;
  std::vector<uint8_t> out(a.data.size());
  std::vector<int64_t> at(rank);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t from = 0;
    for (size_t axis = rank; axis--;) from = from * uint64_t(a.shape[axis]) + uint64_t(at[axis]);
    std::memcpy(out.data() + i * bytes, a.data.data() + from * bytes, bytes);
    for (size_t axis = rank; axis-- && ++at[axis] == a.shape[axis];) at[axis] = 0;
  }
  a.data = std::move(out);
  a.fortranOrder = false;
}

/// The array as the input wants it, or what is wrong with it. `notes`: what was done to it.
string adapt(Npy &a, bool isTable, const astra_tensor_info &wanted, std::vector<string> &notes) {
  string error, input = "input " + string(wanted.name);
  if (astra_dtype_bits(wanted.dtype) < 8)
    return input + " is of less than a byte an element, which rows are not gathered of";
  if (!adopt(a, wanted.dtype, error)) return error;
  if (a.fortranOrder) makeRowMajor(a);
  const string found = typeText(a.dtype, a.shape);
  if (a.dtype != wanted.dtype && isInteger(a.dtype) && isInteger(wanted.dtype)) error = convert(a, wanted.dtype);
  if (a.dtype == ASTRA_F64 && wanted.dtype == ASTRA_F32) {
    error = convertFloats<double, float>(a, wanted.dtype);
    notes.push_back("f64, rounded to f32, which " + input + " is");
  } else if (a.dtype == ASTRA_F32 && wanted.dtype == ASTRA_F64) {
    error = convertFloats<float, double>(a, wanted.dtype);
    notes.push_back("f32, as f64, which " + input + " is");
  }
  if (!error.empty()) return error;
  const std::vector<int64_t> shape = a.shape;
  if (isTable) fold(a, wanted);
  alignOnes(a, wanted);
  bool good = a.dtype == wanted.dtype && int32_t(a.shape.size()) == wanted.ndim;
  for (int32_t i = 1; good && i < wanted.ndim; ++i)
    good = a.shape[i] >= wanted.lower[i] && a.shape[i] <= wanted.upper[i];
  if (!good)
    return "is " + found + "; a batch of " + input + " is " + extents(wanted) + ", and a file has any number of rows";
  if (a.shape != shape)
    notes.push_back(typeText(a.dtype, shape) + ", taken as " + typeText(a.dtype, a.shape) + " for " + input);
  if (uint64_t at = firstNaN(a.data.data(), a.data.size(), a.dtype); at < a.data.size())
    return "row " + std::to_string(at / (a.data.size() / uint64_t(a.shape[0]))) +
           " (from 0) has a NaN: nothing is learned from one";
  return "";
}

} // namespace

uint64_t astra::tool::firstNaN(const uint8_t *data, uint64_t bytes, int32_t dtype, bool orInfinite) {
  struct Format {
    int32_t dtype;
    unsigned bytes, mantissa;
  };
  static constexpr Format formats[] = {{ASTRA_F16, 2, 10}, {ASTRA_BF16, 2, 7}, {ASTRA_F32, 4, 23},
                                       {ASTRA_F64, 8, 52}, {ASTRA_C64, 4, 23}, {ASTRA_C128, 8, 52}};
  auto f = std::find_if(std::begin(formats), std::end(formats), [&](auto &x) { return x.dtype == dtype; });
  if (f == std::end(formats)) return bytes;
  uint64_t sign = uint64_t(1) << (8 * f->bytes - 1), infinity = sign - (uint64_t(1) << f->mantissa);
  for (uint64_t i = 0; i < bytes; i += f->bytes) {
    uint64_t v = 0;
    std::memcpy(&v, data + i, f->bytes);
    if ((v & (sign - 1)) >= infinity + !orInfinite) return i;
  }
  return bytes;
}

string astra::tool::typeText(int32_t dtype, const std::vector<int64_t> &shape) {
  string out = string(astra_dtype_name(dtype)) + "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

void Data::load(const std::vector<string> &places, const string &option, const astra_entry *entry, Ranks &ranks) {
  Checked check;
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  check(astra_entry_get_info(entry, &info));
  std::vector<astra_tensor_info> inputs(info.num_inputs, ASTRA_INIT(astra_tensor_info));
  std::map<string, string> files; // of each input
  string takes;
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    check(astra_entry_get_input(entry, i, &inputs[i]));
    inputs[i] = ranks.logical(ASTRA_MESH_INPUT, info.name, inputs[i]);
    takes += (i ? ", " : "") + string(inputs[i].name) + " : " + extents(inputs[i]);
    files[inputs[i].name] = "";
  }
  takes = string(info.name) + " takes " + takes;
  string several;
  for (const string &place : places) {
    size_t eq = place.find('=');
    if (eq == place.npos) {
      if (!holdsSeveral(place))
        throw Refusal{Usage,
                      option + ": '" + place + "' is not INPUT=FILE, and no .npz or .safetensors file; " + takes};
      if (!several.empty())
        throw Refusal{Usage, option + ": '" + several + "' and '" + place + "' are both given for all inputs"};
      several = place;
      continue;
    }
    auto file = files.find(place.substr(0, eq));
    if (file == files.end())
      throw Refusal{Usage, option + ": there is no input '" + place.substr(0, eq) + "'; " + takes};
    if (!file->second.empty()) throw Refusal{Usage, option + ": '" + file->first + "' is given twice"};
    file->second = place.substr(eq + 1);
  }
  for (const astra_tensor_info &wanted : inputs) {
    string place = files[wanted.name], error;
    if (place.empty()) place = several;
    if (place.empty())
      throw Refusal{Usage, option + ": nothing is given for input '" + wanted.name + "': add " + wanted.name +
                               "=FILE; " + takes};
    if (wanted.ndim == 0)
      throw Refusal{Unsupported, "input '" + string(wanted.name) + "' of " + info.name +
                                     " is a scalar: it has no axis that counts rows"};
    Npy a;
    string header;
    std::vector<string> done;
    bool isTable = isCsv(place);
    if (!(isTable ? readCsv(place, wanted.dtype, a, header, error) : readArray(place, wanted.name, a, error)))
      throw Refusal{Failure, error};
    if (!header.empty()) done.push_back("its first line, '" + header.substr(0, 60) + "', is a header");
    if (error = adapt(a, isTable, wanted, done); !error.empty()) throw Refusal{Failure, place + ": " + error};
    for (const string &text : done) said.push_back(place + ": " + text);
    if (!list.empty() && a.shape[0] != count)
      throw Refusal{Failure, place + " has " + std::to_string(a.shape[0]) + " rows for " + wanted.name + ", and " +
                                 list[0].place + " has " + std::to_string(count) + " for " + list[0].name +
                                 ": they must be as many"};
    count = a.shape[0];
    if (count == 0) throw Refusal{Failure, place + ": has no rows"};
    if (count > kMostRows) throw Refusal{Unsupported, place + ": has more than 2^32 - 1 rows, which is not supported"};
    Column &c = list.emplace_back();
    c.name = wanted.name, c.place = place, c.dtype = a.dtype;
    c.row.assign(a.shape.begin() + 1, a.shape.end());
    c.bytes = std::move(a.data);
    c.rowBytes = c.bytes.size() / uint64_t(count);
  }
}

const Column *Data::find(const string &name) const {
  for (const Column &c : list)
    if (c.name == name) return &c;
  return nullptr;
}

string Data::text() const {
  string out;
  for (const Column &c : list) {
    std::vector<int64_t> shape{count};
    shape.insert(shape.end(), c.row.begin(), c.row.end());
    out += (out.empty() ? "" : ", ") + c.name + " " + typeText(c.dtype, shape);
  }
  return out;
}

string Data::sum() const {
  uint64_t h = checksum("", 0);
  for (const Column &c : list) h = checksum(c.bytes.data(), c.bytes.size(), h);
  return hexadecimal(h);
}

void Data::gather(const Column &c, const uint32_t *order, int64_t n, uint8_t *to) const {
  for (int64_t i = 0; i < n; ++i, to += c.rowBytes) std::memcpy(to, c.bytes.data() + order[i] * c.rowBytes, c.rowBytes);
}
