//===- ModelFile.cpp: read and check an ONNX file --------------------------===//
// Takes:    bytes of unknown origin.
// Gives:    a parsed message and checked tensors.
// Keeps:    no pointer into the file; every size is checked before it is used.
// Does not: interpret the graph.
#include "ModelFile.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <cstring>

namespace astra::onnx {

namespace {

struct ElementRow {
  int32_t code;
  const char *name;
  std::optional<DType> dtype;
};
constexpr ElementRow elementRows[] = {
    {1, "float", DType::F32},
    {2, "uint8", DType::U8},
    {3, "int8", DType::I8},
    {4, "uint16", DType::U16},
    {5, "int16", DType::I16},
    {6, "int32", DType::I32},
    {7, "int64", DType::I64},
    {8, "string", {}},
    {9, "bool", DType::Bool},
    {10, "float16", DType::F16},
    {11, "double", DType::F64},
    {12, "uint32", DType::U32},
    {13, "uint64", DType::U64},
    {14, "complex64", DType::C64},
    {15, "complex128", DType::C128},
    {16, "bfloat16", DType::BF16},
    {17, "float8e4m3fn", DType::F8E4M3FN},
    {18, "float8e4m3fnuz", DType::F8E4M3FNUZ},
    {19, "float8e5m2", DType::F8E5M2},
    {20, "float8e5m2fnuz", DType::F8E5M2FNUZ},
    {21, "uint4", DType::U4},
    {22, "int4", DType::I4},
    {23, "float4e2m1", DType::F4E2M1},
    {24, "float8e8m0", DType::F8E8M0},
    {25, "uint2", DType::U2},
    {26, "int2", DType::I2},
    {27, "float6e2m3", {}},
    {28, "float6e3m2", {}},
};

llvm::Error failure(const llvm::Twine &text) { return sentence(text); }
llvm::Error unsupported(const llvm::Twine &text) { return sentence(text, std::errc::not_supported); }

/// Each value of a typed field as `width` little-endian bytes (the host is little-endian: the targets of Astra all
/// are).
template <class Field> std::vector<uint8_t> narrowed(const Field &values, unsigned width) {
  std::vector<uint8_t> bytes(size_t(values.size()) * width);
  for (int i = 0; i < values.size(); ++i) {
    auto value = values.Get(i);
    std::memcpy(bytes.data() + size_t(i) * width, &value, width);
  }
  return bytes;
}

/// The bytes of the typed field that ONNX prescribes for the dtype; complex numbers are pairs of floats.
std::vector<uint8_t> typedBytes(const proto::Tensor &t, DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::C64: return narrowed(t.float_data(), 4);
  case DType::F64:
  case DType::C128: return narrowed(t.double_data(), 8);
  case DType::I64: return narrowed(t.int64_data(), 8);
  case DType::U64: return narrowed(t.uint64_data(), 8);
  case DType::U32: return narrowed(t.uint64_data(), 4);
  default: return narrowed(t.int32_data(), std::max(byteSize(dtype), 1u)); // sub-byte elements are packed by bytes
  }
}

/// ONNX packs sub-byte elements without gaps, low bits first; Astra begins every row (the last axis) at a byte.
std::vector<uint8_t> rowsPadded(const Payload &p) {
  uint64_t width = bitWidth(p.dtype), row = p.dims.empty() ? 1 : p.dims.back(), rowBytes = (row * width + 7) / 8;
  if (row == 0) return {};
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < p.dims.size(); ++i) rows *= p.dims[i];
  std::vector<uint8_t> bytes(rows * rowBytes);
  for (uint64_t i = 0; i < rows * row; ++i) {
    uint64_t from = i * width, to = i / row * rowBytes * 8 + i % row * width;
    uint8_t element = p.bytes[from / 8] >> from % 8 & ((1u << width) - 1);
    bytes[to / 8] |= element << to % 8;
  }
  return bytes;
}

const char *nameOf(const proto::Tensor &t) { return t.name().empty() ? "(unnamed)" : t.name().c_str(); }

/// The default domain of every set of opsets is one that the importer knows; there is some domain.
llvm::Error checkOpsets(const proto::Model &model) {
  auto check = [&](const auto &sets) -> llvm::Error {
    llvm::StringMap<int64_t> versions;
    for (const proto::OperatorSet &set : sets) {
      auto [known, fresh] = versions.try_emplace(set.domain(), set.version());
      if (!fresh && known->second != set.version())
        return failure("imports the domain '" + set.domain() + "' at opsets " + llvm::Twine(known->second) + " and " +
                       llvm::Twine(set.version()));
      if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
      if (set.version() < oldestOpset || set.version() > newestOpset)
        return unsupported("uses opset " + llvm::Twine(set.version()) + " of the default domain, this importer knows " +
                           llvm::Twine(oldestOpset) + " to " + llvm::Twine(newestOpset));
    }
    return llvm::Error::success();
  };
  if (llvm::Error e = check(model.opset_import())) return e;
  for (const proto::Function &function : model.functions())
    if (llvm::Error e = check(function.opset_import())) return e;
  return model.opset_import_size() ? llvm::Error::success() : failure("imports no set of operators");
}

} // namespace

llvm::Error sentence(const llvm::Twine &text, std::errc code) {
  return llvm::createStringError(std::make_error_code(code), text);
}

llvm::Error prefixed(const llvm::Twine &words, llvm::Error e) {
  std::string text = words.str();
  return llvm::handleErrors(std::move(e), [&](const llvm::StringError &inner) {
    return llvm::createStringError(inner.convertToErrorCode(), llvm::Twine(text) + inner.getMessage());
  });
}

llvm::Expected<DType> elementType(int32_t code) {
  for (const ElementRow &row : elementRows)
    if (row.code == code) {
      if (row.dtype) return *row.dtype;
      return unsupported("element type " + llvm::Twine(row.name) + " is not supported");
    }
  return failure("element type number " + llvm::Twine(code) + " is not one of ONNX's");
}

llvm::Expected<DType> elementType(llvm::StringRef name) {
  for (const ElementRow &row : elementRows)
    if (name.equals_insensitive(row.name)) return elementType(row.code);
  return failure("element type '" + name + "' is not one of ONNX's");
}

ModelFile::ModelFile(ModelFile &&) = default;
ModelFile::~ModelFile() = default;

llvm::Expected<ModelFile> ModelFile::open(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return failure("cannot read '" + path + "': " + buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  if (bytes.size() > INT_MAX)
    return failure("'" + path +
                   "' is larger than 2 GiB, protobuf's limit: save the model with its weights as external data");

  ModelFile file;
  file.message = std::make_unique<proto::Model>();
  file.folder = llvm::sys::path::parent_path(path).str();
  if (file.folder.empty()) file.folder = ".";
  if (!file.message->ParseFromArray(bytes.data(), int(bytes.size())))
    return failure("'" + path +
                   "' is not an ONNX model: the protobuf message is malformed or truncated, or its graphs nest deeper "
                   "than protobuf reads (about 30)");
  const proto::Model &model = *file.message;
  if (!model.has_graph() || !model.has_ir_version())
    return failure("'" + path + "' is not an ONNX model: it has no graph or no IR version");
  if (model.ir_version() < 1 || model.ir_version() > newestIRVersion)
    return unsupported("'" + path + "' is of ONNX IR version " + llvm::Twine(model.ir_version()) +
                       ", this importer knows 1 to " + llvm::Twine(newestIRVersion));
  if (llvm::Error e = checkOpsets(model)) return prefixed("'" + path + "' ", std::move(e));
  return file;
}

llvm::Expected<Payload> ModelFile::payload(const proto::Tensor &tensor) const {
  llvm::Expected<DType> dtype = elementType(tensor.data_type());
  if (!dtype) return prefixed("tensor '" + llvm::Twine(nameOf(tensor)) + "': ", dtype.takeError());

  Payload result{*dtype, {tensor.dims().begin(), tensor.dims().end()}, {}};
  std::optional<uint64_t> count = 1;
  for (int64_t dim : result.dims) {
    if (dim < 0)
      return failure("tensor '" + llvm::Twine(nameOf(tensor)) + "' has the negative dim " + llvm::Twine(dim));
    count = count ? llvm::checkedMulUnsigned(*count, uint64_t(dim)) : count;
  }
  std::optional<uint64_t> bits = count ? llvm::checkedMulUnsigned(*count, uint64_t(bitWidth(*dtype))) : count;
  if (!bits || *bits > uint64_t(INT64_MAX))
    return failure("tensor '" + llvm::Twine(nameOf(tensor)) + "' has dims whose product overflows");
  uint64_t size = *bits / 8 + (*bits % 8 != 0);

  bool typed = tensor.float_data_size() || tensor.double_data_size() || tensor.int32_data_size() ||
               tensor.int64_data_size() || tensor.uint64_data_size();
  if (typed && tensor.has_raw_data())
    return failure("tensor '" + llvm::Twine(nameOf(tensor)) + "' holds its values twice, raw and typed");
  if (tensor.data_location() == proto::Tensor::EXTERNAL) {
    auto bytes = externalBytes(tensor, size);
    if (!bytes) return bytes.takeError();
    result.bytes = std::move(*bytes);
  } else if (tensor.has_raw_data()) {
    result.bytes.assign(tensor.raw_data().begin(), tensor.raw_data().end());
  } else {
    result.bytes = typedBytes(tensor, *dtype);
  }
  if (result.bytes.size() != size)
    return failure("tensor '" + llvm::Twine(nameOf(tensor)) + "' holds " + llvm::Twine(result.bytes.size()) +
                   " bytes, its dims and element type need " + llvm::Twine(size));
  if (byteSize(*dtype) == 0) result.bytes = rowsPadded(result);
  if (*dtype == DType::Bool)
    for (uint8_t &byte : result.bytes) byte = byte != 0;
  return result;
}

llvm::Expected<Payload> ModelFile::payload(const proto::SparseTensor &tensor) const {
  std::string name = "sparse tensor '" + tensor.values().name() + "': ";
  llvm::Expected<Payload> values = payload(tensor.values());
  if (!values) return prefixed(name, values.takeError());
  llvm::Expected<Payload> indices = payload(tensor.indices());
  if (!indices) return prefixed(name, indices.takeError());
  unsigned width = byteSize(values->dtype), rank = tensor.dims_size();
  if (width == 0) return unsupported(name + "values narrower than a byte are not supported");
  constexpr uint64_t most = uint64_t(1) << 28; // bytes, so that a small file does not grow into a huge bundle
  std::optional<uint64_t> count = 1;
  for (int64_t dim : tensor.dims())
    count = count && dim >= 0 ? llvm::checkedMulUnsigned(*count, uint64_t(dim)) : std::nullopt;
  if (!count || *count > most / width)
    return failure(name + "its dims are negative or need more than 256 MiB: save the tensor dense");
  uint64_t given = values->bytes.size() / width;
  bool linear = indices->dims.size() == 1;
  if (values->dims.size() != 1 || indices->dtype != DType::I64 || indices->dims.empty() || indices->dims.size() > 2 ||
      uint64_t(indices->dims[0]) != given || (!linear && uint64_t(indices->dims[1]) != rank))
    return failure(name + "needs n values and int64 indices of dims [n] or [n, " + llvm::Twine(rank) + "]");
  Payload dense{values->dtype, {tensor.dims().begin(), tensor.dims().end()}, std::vector<uint8_t>(*count * width)};
  uint64_t last = 0;
  for (uint64_t i = 0; i < given; ++i) {
    uint64_t at = 0;
    bool inside = true;
    auto index = [&](uint64_t k) {
      int64_t v;
      std::memcpy(&v, indices->bytes.data() + k * 8, 8);
      return v;
    };
    if (linear) {
      inside = index(i) >= 0 && uint64_t(index(i)) < *count;
      at = inside ? uint64_t(index(i)) : 0;
    }
    for (unsigned axis = 0; !linear && axis < rank; ++axis) {
      int64_t v = index(i * rank + axis);
      inside &= v >= 0 && v < tensor.dims(axis);
      at = at * uint64_t(tensor.dims(axis)) + (inside ? uint64_t(v) : 0);
    }
    if (!inside || (i && at <= last))
      return failure(name + "index " + llvm::Twine(i) + " is out of range or out of order");
    last = at;
    std::memcpy(dense.bytes.data() + at * width, values->bytes.data() + i * width, width);
  }
  return dense;
}

llvm::Expected<std::vector<uint8_t>> ModelFile::externalBytes(const proto::Tensor &tensor, uint64_t size) const {
  std::string name = "tensor '" + tensor.name() + "': ", location;
  uint64_t offset = 0, length = size;
  for (const proto::Entry &entry : tensor.external_data()) {
    llvm::StringRef value = entry.value();
    bool wrong = false;
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") wrong = value.getAsInteger(10, offset);
    if (entry.key() == "length") wrong = value.getAsInteger(10, length);
    if (wrong)
      return failure(name + "external data has the " + entry.key() + " '" + value + "', which is not a count of bytes");
  }
  if (length != size)
    return failure(name + "external data is " + llvm::Twine(length) + " bytes long, the dims and element type need " +
                   llvm::Twine(size));

  // Links are resolved before the test, so no name leads out of the folder.
  llvm::SmallString<256> path, root, file;
  llvm::sys::path::append(path, folder, location);
  if (location.empty() || location.find('\0') != std::string::npos || llvm::sys::path::is_absolute(location))
    return failure(name + "external data must be named by a path relative to the model's folder, not '" + location +
                   "'");
  if (std::error_code code = llvm::sys::fs::real_path(folder, root))
    return failure("cannot open '" + folder + "': " + code.message());
  if (std::error_code code = llvm::sys::fs::real_path(path, file))
    return failure(name + "cannot open the external data '" + location + "': " + code.message());
  if (!llvm::StringRef(file).starts_with((root + "/").str()) && root != "/")
    return failure(name + "the external data '" + location + "' is outside the model's folder");

  uint64_t available = 0;
  if (std::error_code code = llvm::sys::fs::file_size(file, available))
    return failure("cannot open '" + file + "': " + code.message());
  if (!llvm::sys::fs::is_regular_file(file) || offset > available || length > available - offset)
    return failure(name + "the external data '" + location + "' has " + llvm::Twine(available) +
                   " bytes, the tensor needs " + llvm::Twine(length) + " from byte " + llvm::Twine(offset));
  auto slice = llvm::MemoryBuffer::getFileSlice(file, length, offset);
  if (!slice) return failure("cannot read '" + file + "': " + slice.getError().message());
  return std::vector<uint8_t>((*slice)->getBufferStart(), (*slice)->getBufferEnd());
}

} // namespace astra::onnx
