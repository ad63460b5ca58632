//===- Safetensors.cpp: files of named tensors ------------------------------===//
// Takes:    a path.
// Gives:    see Safetensors.h.
#include "Safetensors.h"
#include "Checksum.h"
#include "astra/Files/SafetensorsHeader.h"
#include "astra/astra.h"
#include <algorithm>
#include <string_view>

using namespace astra;
using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

constexpr struct {
  string_view name; // as SafetensorsHeader.cpp has them
  int32_t dtype;
} dtypes[] = {{"BOOL", ASTRA_BOOL},      {"U8", ASTRA_U8},         {"I8", ASTRA_I8},
              {"U16", ASTRA_U16},        {"I16", ASTRA_I16},       {"U32", ASTRA_U32},
              {"I32", ASTRA_I32},        {"U64", ASTRA_U64},       {"I64", ASTRA_I64},
              {"F16", ASTRA_F16},        {"BF16", ASTRA_BF16},     {"F32", ASTRA_F32},
              {"F64", ASTRA_F64},        {"C64", ASTRA_C64},       {"F8_E4M3", ASTRA_F8E4M3FN},
              {"F8_E5M2", ASTRA_F8E5M2}, {"F8_E8M0", ASTRA_F8E8M0}};

string_view nameOf(int32_t dtype) {
  auto row = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto &r) { return r.dtype == dtype; });
  return row == std::end(dtypes) ? string_view() : row->name;
}

} // namespace

string astra::tool::jsonText(string_view s) {
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
  SafetensorsHeader header;
  string wrong;
  out = {};
  if (!readSafetensorsHeader({reinterpret_cast<const char *>(file.data()) + 8, size_t(length)},
                             file.size() - 8 - length, header, wrong))
    return fail(wrong);
  out.metadata = std::move(header.metadata);
  const uint8_t *data = file.data() + 8 + length;
  for (SafetensorsPlace &p : header.tensors) {
    int32_t dtype = safetensorsDtype(p.type);
    if (!dtype) return fail("'" + p.name + "' is of the dtype '" + string(p.type) + "', which is not known");
    out.index[p.name] = out.tensors.size();
    out.tensors.push_back({p.name, {dtype, std::move(p.shape), false, {data + p.begin, data + p.end}}});
  }
  return true;
}

int32_t astra::tool::safetensorsDtype(string_view name) {
  auto row = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto &r) { return r.name == name; });
  return row == std::end(dtypes) ? 0 : row->dtype;
}

uint64_t astra::tool::safetensorsBytes(const TensorType &tensor) {
  uint64_t bytes = safetensorsElementBytes(nameOf(tensor.dtype));
  for (int64_t extent : tensor.shape) bytes *= uint64_t(extent);
  return bytes;
}

std::vector<size_t> astra::tool::safetensorsOrder(const std::vector<TensorType> &tensors) {
  std::vector<size_t> order;
  for (unsigned bytes : {8, 4, 2, 1, 0})
    for (size_t i = 0; i < tensors.size(); ++i)
      if (safetensorsElementBytes(nameOf(tensors[i].dtype)) == bytes) order.push_back(i);
  return order;
}

bool SafetensorsWriter::open(const string &path, const std::vector<TensorType> &tensors, const Metadata &metadata,
                             string &error) {
  string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (auto &[key, value] : metadata)
      header += (header.back() == '{' ? "" : ",") + jsonText(key) + ":" + jsonText(value);
    header += "}";
  }
  uint64_t at = 0;
  for (const TensorType &t : tensors) {
    if (nameOf(t.dtype).empty()) {
      error = path + ": '" + t.name + "' is of a dtype that .safetensors files do not have";
      return false;
    }
    header += (header.size() == 1 ? "" : ",") + jsonText(t.name) + ":{\"dtype\":\"" + string(nameOf(t.dtype)) +
              "\",\"shape\":[";
    for (size_t i = 0; i < t.shape.size(); ++i) header += (i ? "," : "") + std::to_string(t.shape[i]);
    sizes.push_back(safetensorsBytes(t));
    header += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + sizes.back()) + "]}";
    at += sizes.back();
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  string length;
  for (int i = 0; i < 8; ++i) length += char(uint64_t(header.size()) >> (8 * i));
  hash = checksum("", 0);
  return file.open(path, error) && write(length.data(), length.size(), error) &&
         write(header.data(), header.size(), error);
}

bool SafetensorsWriter::write(const void *data, size_t bytes, string &error) {
  hash = checksum(data, bytes, hash);
  return file.write(data, bytes, error);
}

bool SafetensorsWriter::add(const void *data, string &error) {
  size_t bytes = sizes[next++];
  return write(data, bytes, error);
}

bool astra::tool::writeSafetensors(const string &path, const std::vector<NamedTensor> &tensors,
                                   const Metadata &metadata, string &error) {
  std::vector<TensorType> types, inOrder;
  for (const NamedTensor &t : tensors) types.push_back({t.name, t.dtype, t.shape});
  std::vector<size_t> order = safetensorsOrder(types);
  for (size_t i : order) inOrder.push_back(types[i]);
  SafetensorsWriter writer;
  if (!writer.open(path, inOrder, metadata, error)) return false;
  for (size_t i : order)
    if (!writer.add(tensors[i].data, error)) return false;
  return writer.keep(error);
}
