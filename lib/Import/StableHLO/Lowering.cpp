//===- Lowering.cpp: the ops of a StableHLO program -------------------------===//
// Takes:    regions of the tree, which may be wrong in every way.
// Gives:    values, or the first failure.
#include "Lowering.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

namespace astra::stablehlo {

namespace {

constexpr unsigned deepest = 64, mostLowered = 2000000;

std::string typeOf(const Type &t) {
  std::string s = "tensor<";
  for (int64_t d : t.dims) s += (d == dynamic ? "?" : std::to_string(d)) + "x";
  return s + t.text.str() + ">";
}

} // namespace

std::string mismatch(UOpRef x, const Type &type) {
  if (type.kind == Type::Kind::Token) return "";
  bool fits = type.kind == Type::Kind::Tensor && x->dtype == type.dtype && x->rank() == type.dims.size();
  for (unsigned i = 0; fits && i < x->rank(); ++i) {
    UOpRef d = x->shape[i];
    fits = type.dims[i] == dynamic ||
           (d->constIndex() ? *d->constIndex() == type.dims[i] : d->lo <= type.dims[i] && type.dims[i] <= d->hi);
  }
  std::string said = type.kind == Type::Kind::Tensor ? typeOf(type) : type.text.str();
  return fits ? "" : "of type " + typeText(x->dtype, x->shape) + ", and the text says " + said;
}

// ---- one op

UOpRef Statement::in(unsigned i) {
  if (b.failed()) return nullptr;
  if (i >= op.operands.size()) return fail("operand " + llvm::Twine(i) + " is missing");
  UOpRef x = b.values[op.operands[i]];
  return x ? x : fail("operand " + llvm::Twine(i) + " is a tuple, expected a tensor");
}

std::vector<UOpRef> Statement::inputs(unsigned begin, unsigned count) {
  std::vector<UOpRef> list;
  for (unsigned i = 0; i < count; ++i) list.push_back(in(begin + i));
  return list;
}

Dims Statement::knownDims(unsigned i, const char *what) {
  UOpRef x = in(i);
  const std::vector<UOpRef> *elements = x ? b.elements(x) : nullptr;
  if (!elements) {
    unsupported(llvm::Twine(what) + " must follow from constants and from extents of main's arguments");
    return {};
  }
  return {elements->begin(), elements->end()};
}

Ints Statement::knownInts(unsigned i, const char *what) {
  Ints values;
  for (UOpRef d : knownDims(i, what)) {
    if (!d->constIndex()) unsupported(llvm::Twine(what) + " must be constant, found " + indexText(d));
    values.push_back(d->constIndex().value_or(0));
  }
  return values;
}

int64_t Statement::intAttr(llvm::StringRef name) {
  const Attribute *a = op.find(name);
  if (a && (a->kind == Attribute::Kind::Int || a->kind == Attribute::Kind::Bool)) return a->integer;
  fail("attribute '" + name + "' must be an integer");
  return 0;
}

bool Statement::boolAttr(llvm::StringRef name, bool otherwise) { return intAttr(name, otherwise) != 0; }

double Statement::floatAttr(llvm::StringRef name) {
  const Attribute *a = op.find(name);
  if (a && a->kind == Attribute::Kind::Float) return a->number;
  fail("attribute '" + name + "' must be a float");
  return 0;
}

std::string Statement::stringAttr(llvm::StringRef name) {
  const Attribute *a = op.find(name);
  if (a && (a->kind == Attribute::Kind::String || a->kind == Attribute::Kind::Symbol)) return a->string;
  fail("attribute '" + name + "' must be a string or a symbol");
  return "";
}

Ints Statement::intsAttr(llvm::StringRef name) {
  const Attribute *a = op.find(name);
  Ints values;
  if (a && a->kind == Attribute::Kind::List) {
    for (const Attribute &item : a->items) {
      if (item.kind != Attribute::Kind::Int && item.kind != Attribute::Kind::Bool)
        fail("attribute '" + name + "' must be a list of integers");
      values.push_back(item.integer);
    }
    return values;
  }
  if (a && a->kind == Attribute::Kind::Dense && (isInt(a->type.dtype) || a->type.dtype == DType::Bool)) {
    llvm::Expected<std::vector<uint8_t>> bytes = denseBytes(*a);
    if (!bytes) {
      fail("attribute '" + name + "': " + llvm::toString(bytes.takeError()));
      return values;
    }
    unsigned size = byteSize(a->type.dtype);
    int64_t count = elementCount(a->type).value_or(0);
    if (count > 4096) fail("attribute '" + name + "' has more than 4096 integers");
    if (!b.failed() && bytes->size() == size) // one for all
      for (int64_t i = 1; i < count; ++i)
        for (unsigned k = 0; k < size; ++k) bytes->push_back((*bytes)[k]);
    for (size_t i = 0; i < bytes->size(); i += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, &(*bytes)[i], size);
      unsigned spare = 64 - 8 * size;
      values.push_back(isSigned(a->type.dtype) ? int64_t(bits << spare) >> spare : int64_t(bits));
    }
    return values;
  }
  fail("attribute '" + name + "' must be a list of integers");
  return values;
}

Ints Statement::intsAttr(llvm::StringRef name, size_t count, int64_t otherwise) {
  if (!has(name)) return Ints(count, otherwise);
  Ints values = intsAttr(name);
  if (!b.failed() && values.size() != count)
    fail("attribute '" + name + "' has " + llvm::Twine(values.size()) + " integers, expected " + llvm::Twine(count));
  values.resize(count, otherwise);
  return values;
}

Fields Statement::fields(llvm::StringRef name) {
  const Attribute *a = op.find(name);
  std::optional<Fields> f;
  if (a && a->kind == Attribute::Kind::Dialect) f = parseFields(a->text);
  if (!f) fail("attribute '" + name + "' must be one of the dialect, as #stablehlo.dot<...>");
  return f.value_or(Fields());
}

std::string Statement::word(llvm::StringRef name, llvm::StringRef otherwise) {
  if (!has(name) && !otherwise.empty()) return otherwise.str();
  const Attribute *a = op.find(name);
  return a && a->kind == Attribute::Kind::String ? a->string : fields(name).words;
}

DType Statement::resultDType(unsigned i) {
  if (i >= op.resultTypes.size() || op.resultTypes[i].kind != Type::Kind::Tensor) {
    fail("result " + llvm::Twine(i) + " must be a tensor");
    return DType::F32;
  }
  if (op.resultTypes[i].dtype == DType::Void)
    unsupported("element type '" + op.resultTypes[i].text + "' is not supported");
  return b.failed() ? DType::F32 : op.resultTypes[i].dtype;
}

Dims Statement::resultDims(unsigned i) {
  Dims dims;
  resultDType(i);
  if (b.failed()) return dims;
  for (int64_t d : op.resultTypes[i].dims) {
    if (d == dynamic) fail("the result has a dynamic extent, which the op does not say");
    dims.push_back(b.idx(std::max<int64_t>(d, 0)));
  }
  return dims;
}

void Statement::give(unsigned i, UOpRef x) {
  if (i >= outputs.size()) {
    fail("the op has " + llvm::Twine(outputs.size()) + " results, expected more");
    return;
  }
  if (!x && !b.failed()) b.fail("a value is missing");
  outputs[i] = x;
}

void Statement::give(llvm::ArrayRef<UOpRef> xs) {
  if (xs.size() != outputs.size() && !b.failed())
    fail("the op has " + llvm::Twine(outputs.size()) + " results, expected " + llvm::Twine(xs.size()));
  for (unsigned i = 0; i < xs.size() && !b.failed(); ++i) give(i, xs[i]);
}

const Region &Statement::region(unsigned i) {
  static const Region none;
  if (i < op.regions.size()) return op.regions[i];
  if (const Attribute *called = op.find("called_computations"); called && i < called->items.size())
    if (const Operation *f = b.function(called->items[i].string); f && f->regions.size() == 1) return f->regions[0];
  fail("region " + llvm::Twine(i) + " is missing");
  return none;
}

std::vector<UOpRef> Statement::body(unsigned i, llvm::ArrayRef<UOpRef> arguments) {
  const Region &r = region(i);
  return b.failed() ? std::vector<UOpRef>() : b.block(r, arguments);
}

std::vector<UOpRef> Statement::lifted(unsigned i, llvm::ArrayRef<UOpRef> arguments) {
  const Region &r = region(i);
  return b.failed() ? std::vector<UOpRef>() : b.block(r, arguments, true);
}

std::vector<UOpRef> Statement::probe(unsigned i, std::vector<UOpRef> &scalars) {
  const Region &r = region(i);
  for (unsigned k = 0; k < r.arguments.size() && !b.failed(); ++k) {
    const Type &t = r.arguments[k].type;
    if (t.kind != Type::Kind::Tensor || !t.dims.empty() || t.dtype == DType::Void)
      fail("the arguments of the region must be scalars");
    else
      scalars.push_back(b.probe(k, t.dtype));
  }
  return b.failed() ? std::vector<UOpRef>() : b.block(r, scalars);
}

UOpRef Statement::fail(const llvm::Twine &sentence) { return b.fail(sentence); }
UOpRef Statement::unsupported(const llvm::Twine &sentence) { return b.unsupported(sentence); }

// ---- the table

std::vector<const Row *> allRows() {
  std::vector<const Row *> rows;
  for (llvm::ArrayRef<Row> list : {elementwiseRows(), shapeRows(), indexingRows(), reductionRows(), productRows(),
                                   controlRows(), matrixRows(), otherRows()})
    for (const Row &row : list) rows.push_back(&row);
  return rows;
}

const Row *findRow(llvm::StringRef op) {
  static const llvm::StringMap<const Row *> table = [] {
    llvm::StringMap<const Row *> rows;
    for (const Row *row : allRows()) rows[row->op] = row;
    return rows;
  }();
  return table.lookup(op);
}

// ---- blocks

Lowering::Lowering(Module &module, const File &file, const compose::Hints &hints)
    : Composer(module.ctx(), &hints), module(module), file(file), values(file.values) {
  if (!file.module.regions.empty())
    for (const Operation &op : file.module.regions[0].ops)
      if (const Attribute *name = op.find("sym_name"); name && op.name == "func.func") functions[name->string] = &op;
}

UOpRef Lowering::probe(unsigned i, DType t) {
  UOpRef &x = probes[{i, unsigned(t)}];
  if (!x)
    if (std::optional<int64_t> number = placeholder()) x = make(Op::Arg, {}, {*number}, t);
  return x ? x : unsupported("the program has too many regions");
}

void Lowering::locate(const Operation &op) {
  if (!failed() || located) return;
  located = true;
  std::string source = file.source(op.location);
  state.error =
      file.place(op.at) + ": error: " + op.name + (source.empty() ? "" : " (" + source + ")") + ": " + *state.error;
}

bool Lowering::check(const Operation &op, const Row &row) {
  if (op.operands.size() < row.least || op.operands.size() > row.most) {
    fail("the op has " + llvm::Twine(op.operands.size()) + " operands, expected " + llvm::Twine(row.least) +
         (row.most == row.least ? ""
          : row.most == ~0u     ? " or more"
                                : " to " + std::to_string(row.most)));
    return false;
  }
  for (unsigned i = 0; i < op.operands.size(); ++i) {
    UOpRef x = values[op.operands[i]];
    if (!x && !tuples.count(op.operands[i])) {
      fail("operand " + llvm::Twine(i) + " is not defined");
      return false;
    }
    std::string wrong = x && !isLifted ? mismatch(x, op.operandTypes[i]) : "";
    if (!wrong.empty()) {
      fail("operand " + llvm::Twine(i) + " is " + wrong);
      return false;
    }
  }
  return true;
}

void Lowering::statement(const Operation &op) {
  if (++lowered > mostLowered) {
    unsupported("the program has more than 2,000,000 ops where its functions are inlined");
    return;
  }
  const Row *row = findRow(op.name);
  if (!row || !row->lower) {
    unsupported(row ? row->remarks : "the op is not supported");
    return;
  }
  if (!check(op, *row)) return;
  if (isLifted && !row->each) {
    unsupported("the op is not element by element, which is not supported in this region");
    return;
  }
  size_t before = c.size();
  Statement s(*this, op);
  row->lower(s);
  if (failed()) return;
  for (unsigned i = 0; i < op.results.size(); ++i) {
    UOpRef x = s.outputs[i];
    values[op.results[i]] = x;
    if (!x && tuples.count(op.results[i])) continue;
    if (!x) {
      fail("the op has " + llvm::Twine(op.results.size()) + " results, expected " + llvm::Twine(i));
      return;
    }
    std::string wrong = isLifted ? "" : mismatch(x, op.resultTypes[i]);
    if (!wrong.empty()) {
      fail("result " + llvm::Twine(i) + " is " + wrong);
      return;
    }
    if (x->id >= before) {
      std::string source = file.source(op.location);
      module.origins.add(x, source.empty() ? op.name : source);
    }
  }
}

std::vector<UOpRef> Lowering::block(const Region &region, llvm::ArrayRef<UOpRef> arguments, bool lifted) {
  std::vector<UOpRef> results;
  if (failed()) return results;
  if (region.arguments.size() != arguments.size()) {
    fail("a region has " + llvm::Twine(region.arguments.size()) + " arguments, expected " +
         llvm::Twine(arguments.size()));
    return results;
  }
  if (depth >= deepest) {
    unsupported("calls and regions nest deeper than 64");
    return results;
  }
  ++depth;
  bool outer = std::exchange(isLifted, isLifted || lifted);
  for (unsigned i = 0; i < arguments.size() && !failed(); ++i) {
    values[region.arguments[i].value] = arguments[i];
    std::string wrong = isLifted || !arguments[i] ? "" : mismatch(arguments[i], region.arguments[i].type);
    if (!wrong.empty()) fail("argument " + llvm::Twine(i) + " of a region is " + wrong);
  }
  bool returned = false;
  for (const Operation &op : region.ops) {
    if (failed()) break;
    if (op.name == "stablehlo.return" || op.name == "func.return" || op.name == "mhlo.return") {
      for (unsigned operand : op.operands) results.push_back(values[operand]);
      returned = true;
      if (llvm::is_contained(results, nullptr)) fail("a tuple is returned, which is not supported");
      locate(op);
      break;
    }
    statement(op);
    locate(op);
  }
  if (!failed() && !returned) fail("a region has no return");
  isLifted = outer;
  --depth;
  if (failed()) results.clear();
  return results;
}

std::vector<UOpRef> Lowering::call(const Operation &function, llvm::ArrayRef<UOpRef> arguments) {
  if (function.regions.size() != 1) {
    fail("the function has no body");
    return {};
  }
  return block(function.regions[0], arguments);
}

} // namespace astra::stablehlo
