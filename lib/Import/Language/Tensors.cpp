//===- Tensors.cpp: the weights of a language model as operands -------------===//
// Takes:    files whose tensors may be missing or of other shapes.
// Gives:    what Tensors.h says, or a sentence.
#include "Tensors.h"
#include "astra/Compose/Product.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::language;
using compose::label;
using llvm::StringRef;

namespace {
struct Names {
  StringRef gguf, json;
};
} // namespace
static const Names roleNames[] = {
#define TENSOR(Role, gguf, names) {gguf, names},
#include "Tensors.def"
};

/// The name with numbers in the place of % and #.
static std::string numbered(StringRef name, int64_t layer, int64_t expert) {
  std::string out;
  for (char c : name)
    if (c == '%')
      out += std::to_string(layer);
    else if (c == '#')
      out += std::to_string(expert);
    else
      out += c;
  return out;
}

/// The tensor's name in the file; where it is not there, the one that it is expected to have.
std::string Tensors::nameOf(Role role, int64_t layer, const char *suffix, int64_t expert) {
  const Names &names = roleNames[int(role)];
  if (file.container() == WeightContainer::GGUF) return numbered(names.gguf, layer, expert) + "." + suffix;
  std::string expected;
  for (StringRef rest = names.json; !rest.empty();) {
    auto [first, more] = rest.split('|');
    for (const char *prefix : {"model.", "transformer.", ""}) {
      std::string name = prefix + numbered(first, layer, expert) + "." + suffix;
      if (file.find(name)) return name;
      if (expected.empty()) expected = name;
    }
    rest = more;
  }
  return expected;
}

bool Tensors::has(Role role, int64_t layer, const char *suffix) {
  return file.find(nameOf(role, layer, suffix)) != nullptr;
}

bool Tensors::isCopy(Role second, Role first) {
  std::string name = nameOf(second, 0, "weight");
  const WeightTensor *x = file.find(name), *y = file.find(nameOf(first, 0, "weight"));
  bool same = x && y && x->format == y->format && x->dims == y->dims && x->bytes == y->bytes;
  if (same) used.insert(name);
  return same;
}

static std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return "[" + llvm::join(llvm::map_range(shape, [](int64_t d) { return std::to_string(d); }), ", ") + "]";
}

const WeightTensor *Tensors::checked(const std::string &name, llvm::ArrayRef<int64_t> dims) {
  if (b.failed()) return nullptr;
  const WeightTensor *t = file.find(name);
  if (!t)
    b.fail("the tensor '" + name + "' is missing");
  else if (llvm::ArrayRef(t->dims) != dims)
    b.fail("the tensor '" + name + "' is " + shapeText(t->dims) + ", expected " + shapeText(dims));
  else if (const WeightFormatInfo &format = info(t->format); !format.isBlocked() && !isFloat(format.dtype))
    b.unsupported("the tensor '" + name + "' is of the type " + format.text + ", which no weight here is");
  if (b.failed()) return nullptr;
  used.insert(name);
  return t;
}

const compose::StoredWeight *Tensors::find(const std::string &name, llvm::ArrayRef<int64_t> dims) {
  const WeightTensor *t = checked(name, dims);
  if (!t) return nullptr;
  auto [it, isNew] = stored.try_emplace(name);
  if (isNew) it->second = compose::storeWeight(b, name, t->format, t->dims, t->bytes);
  return b.failed() ? nullptr : &it->second;
}

UOpRef Tensors::values(const std::string &name, llvm::ArrayRef<int64_t> dims) {
  const compose::StoredWeight *w = find(name, dims);
  return w ? b.cast(compose::weightValues(b, *w), DType::F32) : nullptr;
}

UOpRef Tensors::vector(Role role, int64_t layer, int64_t extent, const char *suffix) {
  return values(nameOf(role, layer, suffix), {extent});
}

int64_t Tensors::rowsOf(Role role, int64_t layer, bool columns) {
  const WeightTensor *t = file.find(nameOf(role, layer, "weight"));
  return t && t->dims.size() == 2 ? t->dims[columns] : 0;
}

UOpRef Tensors::product(UOpRef x, Role role, int64_t layer, int64_t out, bool columns) {
  if (!b.requireRank(x, 2, 2)) return nullptr;
  int64_t in = b.constExtent(x, 1, "the width");
  std::string name = nameOf(role, layer, "weight");
  UOpRef y = nullptr;
  if (columns) {
    y = compose::product(b, x, values(name, {in, out}));
  } else {
    const WeightTensor *t = file.find(name);
    bool flat = out == 1 && t && t->dims.size() == 1; // a row that a GGUF file has without its axis
    if (flat)
      y = compose::product(b, x, b.unsqueeze(values(name, {in}), {1}));
    else if (const compose::StoredWeight *w = find(name, {out, in}))
      y = compose::weightProduct(b, x, *w);
  }
  return has(role, layer, "bias") ? b.bin(Op::Add, y, vector(role, layer, out, "bias")) : y;
}

UOpRef Tensors::expertProduct(UOpRef x, Role role, int64_t layer, int64_t expert, int64_t out) {
  if (!b.requireRank(x, 2, 2)) return nullptr;
  int64_t in = b.constExtent(x, 1, "the width");
  std::string name = nameOf(role, layer, "weight", expert);
  if (file.container() != WeightContainer::GGUF) {
    const compose::StoredWeight *w = find(name, {out, in});
    return w ? compose::weightProduct(b, x, *w) : nullptr;
  }
  // One tensor of all experts: each one's part is a weight of its own.
  const WeightTensor *t = checked(name, {c.experts, out, in});
  if (!t) return nullptr;
  size_t size = t->bytes.size() / size_t(c.experts);
  std::string part = name + "." + std::to_string(expert);
  auto [it, isNew] = stored.try_emplace(part);
  if (isNew)
    it->second = compose::storeWeight(b, part, t->format, {out, in}, t->bytes.slice(size_t(expert) * size, size));
  return compose::weightProduct(b, x, it->second);
}

UOpRef Tensors::rows(Role role, UOpRef numbers, int64_t count, int64_t width) {
  const compose::StoredWeight *w = find(nameOf(role, 0, "weight"), {count, width});
  return w ? b.cast(compose::weightRows(b, numbers, *w), DType::F32) : nullptr;
}

void Tensors::checkAllUsed() {
  static const StringRef ofNoUse[] = {"rotary_emb.inv_freq",      ".attn.bias",
                                      ".attn.masked_bias",        "rope_freqs.weight",
                                      "rope_factors_long.weight", "rope_factors_short.weight"};
  for (const WeightTensor &t : file.tensors())
    if (!used.count(t.name) &&
        llvm::none_of(ofNoUse, [&](StringRef end) { return StringRef(t.name).ends_with(end); })) {
      b.unsupported("the tensor '" + t.name + "' is none that the architecture has");
      return;
    }
}
