//===- Pickle.cpp: what torch.save's pickles say ----------------------------===//
// Takes:    see Pickle.h.
// Gives:    see Pickle.h: a stack machine whose values are never called.
#include "Pickle.h"
#include "Readers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include <unordered_map>

using namespace astra;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;
using Kind = PickleValue::Kind;

namespace {

/// The classes of storages: torch.FloatStorage ...
constexpr struct {
  StringRef name;
  WeightFormat format;
} storages[] = {{"FloatStorage", WeightFormat::F32},       {"DoubleStorage", WeightFormat::F64},
                {"HalfStorage", WeightFormat::F16},        {"BFloat16Storage", WeightFormat::BF16},
                {"LongStorage", WeightFormat::I64},        {"IntStorage", WeightFormat::I32},
                {"ShortStorage", WeightFormat::I16},       {"CharStorage", WeightFormat::I8},
                {"ByteStorage", WeightFormat::U8},         {"BoolStorage", WeightFormat::Bool},
                {"ComplexFloatStorage", WeightFormat::C64}};
constexpr int64_t globalDict = -1, globalTensor = -2; // others: a row of `storages`

class Machine {
public:
  explicit Machine(llvm::ArrayRef<uint8_t> code) : code(code) {}
  Error run();
  Pickle out;

private:
  llvm::ArrayRef<uint8_t> code;
  size_t at = 0;
  std::vector<uint32_t> stack;
  std::unordered_map<uint32_t, uint32_t> memo; // any number is a key
  bool cut = false;                            // something was asked for behind the end

  template <class T> T number() {
    if (code.size() - at < sizeof(T)) {
      cut = true;
      return T();
    }
    T v = llvm::support::endian::read<T, llvm::endianness::little>(code.data() + at);
    at += sizeof(T);
    return v;
  }
  StringRef bytes(uint64_t n) {
    if (cut || n > code.size() - at) {
      cut = true;
      return {};
    }
    at += n;
    return {reinterpret_cast<const char *>(code.data()) + at - n, size_t(n)};
  }
  StringRef line() {
    StringRef rest(reinterpret_cast<const char *>(code.data()) + at, code.size() - at);
    size_t n = rest.find('\n');
    cut |= n == rest.npos;
    return cut ? StringRef() : bytes(n + 1).drop_back();
  }
  PickleValue &push(Kind kind) {
    stack.push_back(uint32_t(out.values.size()));
    PickleValue &v = out.values.emplace_back();
    v.kind = kind;
    return v;
  }
  Error pushInteger(int64_t v, Kind kind = Kind::Integer) {
    push(kind).integer = v;
    return Error::success();
  }
  Error pushText(StringRef s) {
    push(Kind::Text).text = s.str();
    return Error::success();
  }
  static Error malformed() { return refused("its pickle is malformed"); }
  /// The values above the last mark, which goes with them.
  bool aboveMark(std::vector<uint32_t> &items);
  bool pop(uint32_t &value) {
    if (stack.empty()) return false;
    value = stack.back();
    stack.pop_back();
    return out.values[value].kind != Kind::Mark;
  }
  Error tuple(size_t n);
  Error put(uint32_t number);
  Error get(uint32_t number);
  Error global(StringRef module, StringRef name);
  Error storage();
  Error call();
  Error rebuild(llvm::ArrayRef<uint32_t> arguments);
  Error items(Kind of, bool one);
  Error step(uint8_t op);
};

bool Machine::aboveMark(std::vector<uint32_t> &items) {
  size_t mark = stack.size();
  while (mark > 0 && out.values[stack[mark - 1]].kind != Kind::Mark) --mark;
  if (mark == 0) return false;
  items.assign(stack.begin() + int64_t(mark), stack.end());
  stack.resize(mark - 1);
  return true;
}

Error Machine::tuple(size_t n) {
  std::vector<uint32_t> parts;
  if (stack.size() < n) return malformed();
  parts.assign(stack.end() - int64_t(n), stack.end());
  if (llvm::any_of(parts, [&](uint32_t v) { return out.values[v].kind == Kind::Mark; })) return malformed();
  stack.resize(stack.size() - n);
  push(Kind::List).items = std::move(parts);
  return Error::success();
}

Error Machine::put(uint32_t number) {
  if (stack.empty()) return malformed();
  memo[number] = stack.back();
  return Error::success();
}

Error Machine::get(uint32_t number) {
  auto value = memo.find(number);
  if (value == memo.end()) return malformed();
  stack.push_back(value->second);
  return Error::success();
}

Error Machine::global(StringRef module, StringRef name) {
  if (cut) return Error::success();
  if (module == "collections" && name == "OrderedDict") return pushInteger(globalDict, Kind::Global);
  if (module == "torch._utils" && name == "_rebuild_tensor_v2") return pushInteger(globalTensor, Kind::Global);
  auto row = llvm::find_if(storages, [&](auto &s) { return s.name == name; });
  if (module == "torch" && row != std::end(storages)) return pushInteger(row - storages, Kind::Global);
  return refused("its pickle needs " + shown((module + "." + name).str()) +
                 ", which is not read: only tensors, numbers, strings, lists and dicts are (save a state_dict)");
}

/// The persistent id ('storage', class, key, place, elements).
Error Machine::storage() {
  uint32_t id;
  if (!pop(id)) return malformed();
  PickleValue &v = out.values[id];
  if (v.kind != Kind::List || v.items.size() < 5) return malformed();
  auto part = [&](size_t i) -> PickleValue & { return out.values[v.items[i]]; };
  if (part(0).kind != Kind::Text || part(0).text != "storage" || part(1).kind != Kind::Global || part(1).integer < 0 ||
      part(2).kind != Kind::Text || part(4).kind != Kind::Integer || part(4).integer < 0)
    return malformed();
  std::string name = part(2).text;
  int64_t elements = part(4).integer;
  WeightFormat format = storages[part(1).integer].format;
  PickleValue &s = push(Kind::Storage);
  s.text = std::move(name), s.integer = elements, s.format = format;
  return Error::success();
}

/// _rebuild_tensor_v2(storage, offset, dims, strides, requires_grad, hooks, ...).
Error Machine::rebuild(llvm::ArrayRef<uint32_t> arguments) {
  constexpr size_t mostAxes = 16;
  if (arguments.size() < 4) return malformed();
  PickleValue t;
  t.kind = Kind::Tensor;
  const PickleValue &of = out.values[arguments[0]], &offset = out.values[arguments[1]];
  if (of.kind != Kind::Storage || offset.kind != Kind::Integer || offset.integer < 0) return malformed();
  t.storage = arguments[0], t.offset = offset.integer, t.format = of.format;
  for (auto [list, numbers] : {std::pair(arguments[2], &t.dims), std::pair(arguments[3], &t.strides)}) {
    const PickleValue &v = out.values[list];
    if (v.kind != Kind::List || v.items.size() > mostAxes) return malformed();
    for (uint32_t i : v.items) {
      if (out.values[i].kind != Kind::Integer || out.values[i].integer < 0) return malformed();
      numbers->push_back(out.values[i].integer);
    }
  }
  if (t.dims.size() != t.strides.size()) return malformed();
  push(Kind::Tensor) = std::move(t);
  return Error::success();
}

Error Machine::call() {
  uint32_t arguments, function;
  if (!pop(arguments) || !pop(function)) return malformed();
  if (out.values[arguments].kind != Kind::List || out.values[function].kind != Kind::Global) return malformed();
  if (out.values[function].integer == globalTensor) {
    std::vector<uint32_t> list = out.values[arguments].items;
    return rebuild(list);
  }
  if (out.values[function].integer != globalDict || !out.values[arguments].items.empty()) return malformed();
  push(Kind::Dict);
  return Error::success();
}

/// Puts what is above the mark, or one item, into the list or dict below.
Error Machine::items(Kind of, bool one) {
  std::vector<uint32_t> more;
  size_t n = of == Kind::Dict ? 2 : 1;
  if (one) {
    if (stack.size() < n + 1) return malformed();
    more.assign(stack.end() - int64_t(n), stack.end());
    stack.resize(stack.size() - n);
  } else if (!aboveMark(more)) {
    return malformed();
  }
  if (stack.empty() || out.values[stack.back()].kind != of || more.size() % n) return malformed();
  if (llvm::any_of(more, [&](uint32_t v) { return out.values[v].kind == Kind::Mark; })) return malformed();
  auto &all = out.values[stack.back()].items;
  all.insert(all.end(), more.begin(), more.end());
  return Error::success();
}

Error Machine::step(uint8_t op) {
  switch (op) {
  case 0x80: return number<uint8_t>() > 5 ? refused("its pickle is of a protocol that is not known") : Error::success();
  case 0x95: return number<uint64_t>(), Error::success(); // a frame, which says its length
  case '(': return push(Kind::Mark), Error::success();
  case 'N': return push(Kind::None), Error::success();
  case 0x88: return pushInteger(1, Kind::Bool);
  case 0x89: return pushInteger(0, Kind::Bool);
  case 'J': return pushInteger(number<int32_t>());
  case 'K': return pushInteger(number<uint8_t>());
  case 'M': return pushInteger(number<uint16_t>());
  case 0x8a: { // so many bytes, little-endian, of two's complement
    uint8_t n = number<uint8_t>();
    StringRef digits = bytes(n);
    if (n > 8) return refused("its pickle has an integer of more than 64 bits");
    int64_t v = n && !cut && (digits.back() & 0x80) ? -1 : 0;
    for (char c : llvm::reverse(digits)) v = int64_t(uint64_t(v) << 8 | uint8_t(c));
    return pushInteger(v);
  }
  case 'G': {
    uint64_t bits = llvm::byteswap(number<uint64_t>()); // big-endian
    push(Kind::Real).real = llvm::bit_cast<double>(bits);
    return Error::success();
  }
  case 'X':
  case 'T': return pushText(bytes(number<uint32_t>()));
  case 0x8c:
  case 'U': return pushText(bytes(number<uint8_t>()));
  case 0x8d: return pushText(bytes(number<uint64_t>()));
  case ')':
  case ']': return push(Kind::List), Error::success();
  case '}': return push(Kind::Dict), Error::success();
  case 0x85: return tuple(1);
  case 0x86: return tuple(2);
  case 0x87: return tuple(3);
  case 't': {
    std::vector<uint32_t> parts;
    if (!aboveMark(parts)) return malformed();
    push(Kind::List).items = std::move(parts);
    return Error::success();
  }
  case 'q': return put(number<uint8_t>());
  case 'r': return put(number<uint32_t>());
  case 0x94: return put(uint32_t(memo.size()));
  case 'h': return get(number<uint8_t>());
  case 'j': return get(number<uint32_t>());
  case 's': return items(Kind::Dict, true);
  case 'u': return items(Kind::Dict, false);
  case 'a': return items(Kind::List, true);
  case 'e': return items(Kind::List, false);
  case 'c': {
    StringRef module = line(), name = line();
    return global(module, name);
  }
  case 0x93: {
    uint32_t name, module;
    if (!pop(name) || !pop(module) || out.values[name].kind != Kind::Text || out.values[module].kind != Kind::Text)
      return malformed();
    return global(std::string(out.values[module].text), std::string(out.values[name].text));
  }
  case 'Q': return storage();
  case 'R': return call();
  case 'b': { // the attributes of a dict, as _metadata: versions of modules
    uint32_t state;
    return pop(state) && !stack.empty() && out.values[stack.back()].kind == Kind::Dict ? Error::success() : malformed();
  }
  default:
    return refused("its pickle has the opcode " + Twine(unsigned(op)) +
                   ", which torch.save does not write for tensors");
  }
}

Error Machine::run() {
  while (true) {
    if (at == code.size()) return refused("its pickle is truncated");
    uint8_t op = code[at++];
    if (op == '.') {
      if (stack.size() != 1 || !pop(out.root)) return malformed();
      return Error::success();
    }
    Error e = step(op);
    if (cut) {
      llvm::consumeError(std::move(e));
      return refused("its pickle is truncated");
    }
    if (e) return e;
  }
}

} // namespace

llvm::Expected<Pickle> astra::readPickle(llvm::ArrayRef<uint8_t> bytes) {
  Machine machine(bytes);
  if (Error e = machine.run()) return e;
  return std::move(machine.out);
}
