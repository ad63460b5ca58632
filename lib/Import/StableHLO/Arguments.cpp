//===- Arguments.cpp: main's arguments -------------------------------------===//
// Takes:    arguments and flags that may be wrong in every way.
// Gives:    inputs and dims.
#include "Arguments.h"
#include "../DimHints.h"
#include "../DimText.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::stablehlo {

namespace {

constexpr int64_t mostInputs = 32768;

/// "(b, floordiv(c, 2))" at the beginning of `text`, as a list; nothing where it is none.
std::optional<std::vector<std::string>> shapeList(llvm::StringRef text) {
  if (!text.consume_front("(")) return std::nullopt;
  std::vector<std::string> list;
  unsigned depth = 0;
  std::string item;
  for (char c : text) {
    if ((c == ',' || c == ')') && depth == 0) {
      if (llvm::StringRef trimmed = llvm::StringRef(item).trim(); !trimmed.empty()) list.push_back(trimmed.str());
      item.clear();
      if (c == ')') return list;
      continue;
    }
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    item += c;
  }
  return std::nullopt;
}

/// The shapes that JAX's assertions tell of, of arguments with dynamic extents, in order.
std::vector<std::vector<std::string>> statedShapes(const Operation &main) {
  std::vector<std::vector<std::string>> shapes;
  for (const Operation &op : main.regions[0].ops) {
    const Attribute *message = op.find("error_message");
    if (!message) continue;
    llvm::StringRef text = message->string;
    size_t begin = text.find("polymorphic shapes specifications: ");
    if (begin == llvm::StringRef::npos) continue;
    text = text.drop_front(begin);
    text = text.take_front(text.find(" Obtained dimension variables"));
    for (size_t at; (at = text.find(".shape = (")) != llvm::StringRef::npos;) {
      text = text.drop_front(at + 9);
      if (auto list = shapeList(text)) shapes.push_back(std::move(*list));
    }
    return shapes;
  }
  return shapes;
}

bool isDynamic(const Type &t) { return llvm::is_contained(t.dims, dynamic); }

} // namespace

void Arguments::ask(std::string sentence, const std::string &flag) {
  sentences.push_back(std::move(sentence));
  if (!flag.empty()) flags.push_back("--dim " + shellWord(flag));
}

/// From locations; where main only checks shapes, from those of the function that it calls with all of its arguments.
void Arguments::findNames() {
  const Region &body = main.regions[0];
  auto namesOf = [&](llvm::ArrayRef<Argument> arguments) {
    llvm::StringSet<> seen;
    std::vector<std::string> found;
    for (const Argument &a : arguments) {
      std::string name = file.nameOf(a.location);
      found.push_back(!name.empty() && name != "unknown" && seen.insert(name).second ? name : "");
    }
    return found;
  };
  names = namesOf(body.arguments);
  bool none = llvm::all_of(names, [](const std::string &name) { return name.empty(); });
  for (const Operation &op : body.ops) {
    size_t count = body.arguments.size();
    const Attribute *callee = op.find("callee");
    if (!none || op.name != "func.call" || !callee || op.operands.size() < count) continue;
    bool same = true;
    for (size_t i = 0; i < count; ++i) same &= op.operands[op.operands.size() - count + i] == body.arguments[i].value;
    if (!same) continue;
    for (const Operation &f : file.module.regions[0].ops)
      if (const Attribute *name = f.find("sym_name");
          name && name->string == callee->string && f.regions.size() == 1 && f.regions[0].arguments.size() >= count)
        names = namesOf(llvm::ArrayRef(f.regions[0].arguments).take_back(count));
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty()) names[i] = "arg" + std::to_string(i);
  llvm::StringSet<> unique;
  for (size_t i = 0; i < names.size(); ++i)
    while (!unique.insert(names[i]).second) names[i] += "_";
}

void Arguments::findTexts() {
  llvm::ArrayRef<Argument> arguments = main.regions[0].arguments;
  std::vector<std::vector<std::string>> stated = statedShapes(main);
  size_t next = 0;
  bool fits = true;
  for (const Argument &a : arguments) {
    if (!isDynamic(a.type)) continue;
    fits = fits && next < stated.size() && stated[next].size() == a.type.dims.size();
    for (size_t axis = 0; fits && axis < a.type.dims.size(); ++axis)
      fits = (a.type.dims[axis] == dynamic) != llvm::all_of(stated[next][axis], llvm::isDigit);
    ++next;
  }
  fits = fits && next == stated.size();
  next = 0;
  for (auto [i, a] : llvm::enumerate(arguments)) {
    texts.emplace_back(a.type.dims.size());
    if (!isDynamic(a.type)) continue;
    for (size_t axis = 0; axis < a.type.dims.size(); ++axis)
      if (a.type.dims[axis] == dynamic)
        texts[i][axis] = fits ? stated[next][axis] : names[i] + "_" + std::to_string(axis);
    ++next;
  }
  for (const auto &shape : texts)
    for (const std::string &text : shape) {
      if (text.empty()) continue;
      Context scratch;
      UOpRef value = dimFromText(
          scratch, text, [&](llvm::StringRef name) { return scratch.make(Op::Dim, {}, {1 << 16, 1 << 20}, name); });
      if (auto x = value ? dimMultiple(value) : std::nullopt) given.insert(x->dim->str);
      if (!value) given.insert(text); // a name like any other
    }
}

const DimBound *Arguments::bound(llvm::StringRef name, bool byAny) {
  auto find = [&](llvm::StringRef wanted) {
    return llvm::find_if(options.dims, [&](const DimBound &b) { return b.name == wanted; });
  };
  auto it = find(name);
  if (it == options.dims.end() && byAny) it = find("*");
  if (it == options.dims.end()) return nullptr;
  used.insert(name);
  return &*it;
}

UOpRef Arguments::namedDim(const std::string &name, unsigned argument, unsigned axis) {
  Context &c = module.ctx();
  if (auto known = dims.find(name); known != dims.end()) return known->second;
  const DimBound *b = bound(name, /*byAny=*/true);
  if (!b) {
    ask("argument '" + names[argument] + "': dim '" + name + "' of axis " + std::to_string(axis) +
            " is dynamic and needs bounds: give --dim " + shellWord(name + "=1..64") + " or the like",
        name + "=1..64");
    return dims[name] = nullptr;
  }
  if (!b->value.empty()) {
    dims[name] = nullptr; // no dim follows from itself
    size_t before = sentences.size();
    UOpRef value = dimFromText(c, b->value, [&](llvm::StringRef other) -> UOpRef {
      return given.contains(other) || bound(other) ? namedDim(other.str(), argument, axis) : nullptr;
    });
    if (!value && sentences.size() == before)
      ask("--dim " + name + ": '" + b->value +
          "' is not an expression of other dims of main's arguments, with + - * // % ( ) and values in 0..2^40");
    return dims[name] = value;
  }
  if (b->lo == b->hi) return dims[name] = c.index(b->lo);
  llvm::Expected<UOpRef> value = c.tryMake(Op::Dim, {}, {b->lo, b->hi}, name);
  if (!value) {
    ask("--dim " + name + ": " + llvm::toString(value.takeError()));
    return dims[name] = nullptr;
  }
  module.dims.push_back(*value);
  return dims[name] = *value;
}

UOpRef Arguments::extent(unsigned argument, unsigned axis) {
  int64_t written = main.regions[0].arguments[argument].type.dims[axis];
  if (written != dynamic) return module.ctx().index(written);
  const std::string &text = texts[argument][axis];
  if (isDimName(text) || bound(text)) return namedDim(text, argument, axis);
  size_t before = sentences.size();
  UOpRef value =
      dimFromText(module.ctx(), text, [&](llvm::StringRef name) { return namedDim(name.str(), argument, axis); });
  return value || sentences.size() > before ? value : namedDim(text, argument, axis);
}

void Arguments::refuseLostDims(const Entry &entry) {
  llvm::DenseSet<UOpRef> found;
  for (const Value &input : entry.inputs)
    for (UOpRef extent : input.value->shape)
      if (auto x = dimMultiple(extent)) found.insert(x->dim);
  for (UOpRef dim : module.dims)
    if (!found.contains(dim))
      ask("--dim " + dim->str.str() +
          ": no axis of an argument gives this dim: one must be the dim times a number, plus a number");
}

void Arguments::refuseUnusedBounds() {
  for (const DimBound &b : options.dims)
    if (b.name != "*" && !used.count(b.name)) {
      std::vector<llvm::StringRef> known(dims.keys().begin(), dims.keys().end());
      llvm::sort(known);
      ask("--dim " + b.name + ": the program has no dynamic dim of this name" +
          (known.empty() ? "" : "; it has " + llvm::join(known, ", ")));
    }
}

/// What NumPy has no type for comes as unsigned integers.
UOpRef Arguments::constant(const ConstantInput &k, const Type &type, std::vector<Param> &params) {
  bool carried = isUnsigned(k.dtype) && bitWidth(k.dtype) == bitWidth(type.dtype) &&
                 (type.dtype == DType::BF16 || info(type.dtype).cls == DTypeClass::Storage);
  bool fits = (k.dtype == type.dtype || carried) && k.shape.size() == type.dims.size();
  Dims shape;
  for (size_t i = 0; fits && i < k.shape.size(); ++i) {
    fits = type.dims[i] == dynamic || type.dims[i] == k.shape[i];
    shape.push_back(module.ctx().index(k.shape[i]));
  }
  if (!fits) {
    ask("--constant " + k.name + ": the file holds another type or shape than the argument has");
    return nullptr;
  }
  llvm::Expected<UOpRef> value = module.ctx().tryMake(Op::Param, shape, {}, k.name, type.dtype);
  if (!value) {
    ask("--constant " + k.name + ": " + llvm::toString(value.takeError()));
    return nullptr;
  }
  params.emplace_back();
  params.back().value = *value;
  params.back().data = std::make_shared<const std::vector<uint8_t>>(k.bytes);
  params.back().kind = ParamKind::Fixed;
  return *value;
}

llvm::Expected<std::vector<UOpRef>> Arguments::declare(Entry &entry, std::vector<Param> &params) {
  llvm::ArrayRef<Argument> arguments = main.regions[0].arguments;
  findNames();
  findTexts();
  std::vector<UOpRef> values;
  if (int64_t(arguments.size()) > mostInputs) ask("main has more than 32768 arguments, which is not supported");
  for (unsigned i = 0; i < arguments.size() && sentences.size() < 20; ++i) {
    const Type &type = arguments[i].type;
    if (type.kind != Type::Kind::Tensor || type.dtype == DType::Void || type.encoded) {
      ask("argument '" + names[i] + "' is of type " +
          (type.kind == Type::Kind::Tensor ? "tensor<..." + type.text.str() + ">" : type.text.str()) +
          ", which is not supported");
      continue;
    }
    auto k = llvm::find_if(options.constants, [&](const ConstantInput &c) { return c.name == names[i]; });
    if (k != options.constants.end()) {
      values.push_back(constant(*k, type, params));
      continue;
    }
    Dims shape;
    for (unsigned axis = 0; axis < type.dims.size(); ++axis) shape.push_back(extent(i, axis));
    if (llvm::is_contained(shape, nullptr)) continue;
    llvm::Expected<UOpRef> value = module.ctx().tryMake(Op::Arg, shape, {int64_t(entry.inputs.size())}, {}, type.dtype);
    if (!value) {
      ask("argument '" + names[i] + "': " + llvm::toString(value.takeError()));
      continue;
    }
    entry.inputs.push_back({names[i], *value});
    values.push_back(*value);
  }
  for (const ConstantInput &k : options.constants)
    if (!llvm::is_contained(names, k.name)) ask("--constant " + k.name + ": main has no argument of this name");
  if (sentences.empty()) refuseLostDims(entry);
  if (sentences.empty() || !flags.empty()) refuseUnusedBounds();
  if (sentences.empty()) return values;
  if (flags.size() > 1) sentences.push_back("flags for all of them: " + llvm::join(flags, " "));
  return llvm::createStringError(std::errc::invalid_argument, "%s: error: %s", file.place(main.at).c_str(),
                                 llvm::join(sentences, "\n").c_str());
}

} // namespace astra::stablehlo
