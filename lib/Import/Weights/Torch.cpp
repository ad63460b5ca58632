//===- Torch.cpp: tensors of a file of torch.save ---------------------------===//
// Takes:    a zip archive with NAME/data.pkl and the storages NAME/data/KEY.
// Gives:    see Readers.h: tensors by the keys that lead to them, joined by dots ("model.layer.weight"); numbers
//           and strings likewise, as metadata.
// Keeps:    a tensor is a view of its storage in the archive where it is row-major and stored; else a copy. It
//           never has more bytes than its storage. Tensors may share a storage. What contains itself is refused.
#include "Pickle.h"
#include "Readers.h"
#include "astra/Files/Zip.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <span>

using namespace astra;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using Kind = PickleValue::Kind;

namespace {

class Reader {
public:
  Reader(llvm::ArrayRef<uint8_t> file, WeightFile &out) : file(file.data(), file.size()), out(out) {}
  Error read();

private:
  std::span<const uint8_t> file;
  WeightFile &out;
  std::vector<ZipMember> members;
  llvm::StringMap<size_t> byName;
  std::string prefix;
  Pickle pickle;
  llvm::StringMap<llvm::ArrayRef<uint8_t>> storages;   // by key
  llvm::DenseSet<uint32_t> visited;                    // dicts and lists
  std::vector<std::pair<uint32_t, std::string>> stack; // values to be visited, and their names

  Expected<llvm::ArrayRef<uint8_t>> member(StringRef name);
  Expected<llvm::ArrayRef<uint8_t>> storage(const PickleValue &s);
  Expected<llvm::ArrayRef<uint8_t>> elements(const PickleValue &t, StringRef name);
  Error tensor(const PickleValue &t, const std::string &name);
  Error enter(uint32_t number, const std::string &name);
  Error visit(uint32_t number, const std::string &name);
};

/// The bytes of a member: of the file, or inflated.
Expected<llvm::ArrayRef<uint8_t>> Reader::member(StringRef name) {
  auto at = byName.find(prefix + name.str());
  if (at == byName.end()) return refused("has no " + shown(prefix + name.str()));
  const ZipMember &m = members[at->second];
  std::string error;
  if (m.method == 0) {
    std::span<const uint8_t> bytes;
    if (!stored(file, m, bytes, error)) return refused(error);
    return llvm::ArrayRef(bytes.data(), bytes.size());
  }
  auto inflated = std::make_shared<std::vector<uint8_t>>();
  if (!unzip(file, m, *inflated, error)) return refused(error);
  out.owners.push_back(inflated);
  return llvm::ArrayRef(*inflated);
}

Expected<llvm::ArrayRef<uint8_t>> Reader::storage(const PickleValue &s) {
  auto known = storages.find(s.text);
  if (known == storages.end()) {
    Expected<llvm::ArrayRef<uint8_t>> bytes = member("data/" + s.text);
    if (!bytes) return bytes.takeError();
    known = storages.try_emplace(s.text, *bytes).first;
  }
  auto needed = weightBytes(s.format, {s.integer});
  if (!needed || *needed > known->second.size())
    return refused("the storage " + shown(s.text) + " has " + Twine(known->second.size()) + " bytes, fewer than " +
                   Twine(s.integer) + " elements of " + info(s.format).text + " take");
  return known->second.take_front(*needed);
}

Expected<llvm::ArrayRef<uint8_t>> Reader::elements(const PickleValue &t, StringRef name) {
  Expected<llvm::ArrayRef<uint8_t>> all = storage(pickle.values[t.storage]);
  if (!all) return all.takeError();
  unsigned size = info(t.format).bytes;
  auto bytes = weightBytes(t.format, t.dims);
  int64_t count = pickle.values[t.storage].integer, last = t.offset, row = 1;
  bool outside = !bytes || *bytes > all->size(), rowMajor = true;
  bool empty = bytes && *bytes == 0;
  for (size_t d = t.dims.size(); d-- > 0 && !outside && !empty;) {
    int64_t reach;
    outside = llvm::MulOverflow(t.dims[d] - 1, t.strides[d], reach) || llvm::AddOverflow(last, reach, last);
    rowMajor &= t.dims[d] == 1 || t.strides[d] == row;
    row *= t.dims[d];
  }
  if (empty) return llvm::ArrayRef<uint8_t>();
  if (outside || last >= count) return refused(shown(name) + " leaves its storage");
  if (rowMajor) return all->slice(uint64_t(t.offset) * size, *bytes);
  auto copy = std::make_shared<std::vector<uint8_t>>(*bytes);
  std::vector<int64_t> index(t.dims.size());
  for (uint64_t to = 0, from = uint64_t(t.offset); to < *bytes; to += size) {
    std::copy_n(all->data() + from * size, size, copy->data() + to);
    for (size_t d = t.dims.size(); d-- > 0;) {
      from += uint64_t(t.strides[d]);
      if (++index[d] < t.dims[d]) break;
      from -= uint64_t(t.strides[d]) * uint64_t(t.dims[d]), index[d] = 0;
    }
  }
  out.owners.push_back(copy);
  return llvm::ArrayRef(*copy);
}

Error Reader::tensor(const PickleValue &t, const std::string &name) {
  Expected<llvm::ArrayRef<uint8_t>> bytes = elements(t, name);
  if (!bytes) return bytes.takeError();
  return addTensor(out, {name, t.format, t.dims, *bytes});
}

/// Puts what a dict or list has on the stack, the first on top.
Error Reader::enter(uint32_t number, const std::string &name) {
  constexpr size_t longestName = 4096;
  const PickleValue &v = pickle.values[number];
  if (!v.items.empty() && !visited.insert(number).second)
    return refused(shown(name) + " is a dict or list that is there twice, or contains itself");
  size_t each = v.kind == Kind::Dict ? 2 : 1;
  for (size_t i = v.items.size() / each; i-- > 0;) {
    std::string key = std::to_string(i);
    if (each == 2) {
      const PickleValue &k = pickle.values[v.items[2 * i]];
      if (k.kind != Kind::Text && k.kind != Kind::Integer)
        return refused("a key of the dict " + shown(name) + " is neither a string nor an integer");
      key = k.kind == Kind::Text ? k.text : std::to_string(k.integer);
    }
    std::string whole = name.empty() ? key : name + "." + key;
    if (whole.size() > longestName) return refused("a name is longer than " + Twine(longestName) + " bytes");
    stack.push_back({v.items[each * i + each - 1], std::move(whole)});
  }
  return Error::success();
}

Error Reader::visit(uint32_t number, const std::string &name) {
  const PickleValue &v = pickle.values[number];
  switch (v.kind) {
  case Kind::Tensor: return tensor(v, name);
  case Kind::Text: return addValue(out, name, {"string", v.text});
  case Kind::Integer: return addValue(out, name, {"i64", v.integer});
  case Kind::Bool: return addValue(out, name, {"bool", v.integer});
  case Kind::Real: return addValue(out, name, {"f64", v.real});
  case Kind::None: return Error::success();
  case Kind::List:
  case Kind::Dict: return enter(number, name);
  default: return refused(shown(name) + " is neither a tensor nor a number, a string, a list or a dict");
  }
}

Error Reader::read() {
  std::string error;
  if (!zipMembers(file, members, error)) return refused(error);
  for (auto [i, m] : llvm::enumerate(members)) {
    byName[m.name] = i;
    StringRef name = m.name;
    if (name.consume_back("/data.pkl") && !name.contains('/')) prefix = (name + "/").str();
  }
  if (prefix.empty()) return refused("is a zip archive without data.pkl: torch.save has not written it");
  out.kind = WeightContainer::PyTorch;
  out.kindText = "PyTorch";
  if (byName.count(prefix + "byteorder")) {
    Expected<llvm::ArrayRef<uint8_t>> order = member("byteorder");
    if (!order) return order.takeError();
    if (llvm::toStringRef(*order) != "little") return refused("is of a big-endian machine, which is not supported");
  }
  Expected<llvm::ArrayRef<uint8_t>> code = member("data.pkl");
  if (!code) return code.takeError();
  Expected<Pickle> read = readPickle(*code);
  if (!read) return read.takeError();
  pickle = std::move(*read);
  stack.push_back({pickle.root, ""});
  while (!stack.empty()) {
    auto [number, name] = std::move(stack.back());
    stack.pop_back();
    if (Error e = visit(number, name)) return e;
  }
  return Error::success();
}

} // namespace

Error astra::readTorch(llvm::ArrayRef<uint8_t> file, WeightFile &out) { return Reader(file, out).read(); }
