//===- EvalMode.cpp: astra-opt --eval ---------------------------------------===//
// Takes:    a module and values from the command line.
// Gives:    the reference evaluator's outputs as text or .npy files.
#include "EvalMode.h"
#include "Npy.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Fields.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/astra.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace astra;
using llvm::StringRef;

static llvm::Expected<Tensor> literals(StringRef text, DType t, Shape declared) {
  Tensor x;
  x.dtype = t;
  auto fail = [&](const llvm::Twine &what) { return llvm::createStringError(what); };
  if (text.consume_front("[")) {
    auto [extents, rest] = text.split("]:");
    llvm::SmallVector<StringRef, 6> list;
    extents.split(list, ',', -1, false);
    for (StringRef e : list)
      if (x.shape.emplace_back(); e.trim().getAsInteger(10, x.shape.back()) || x.shape.back() < 0)
        return fail("an extent is " + e.trim() + ", expected an integer");
    text = rest;
  } else
    for (UOpRef d : declared) {
      auto k = d->constIndex();
      if (!k) return fail("the shape is symbolic: write [EXTENTS]:LITERALS");
      x.shape.push_back(*k);
    }
  unsigned size = byteSize(partOf(t)); // a complex number is two literals
  if (!size) return fail(llvm::Twine("literals of ") + info(t).text + " are not supported: use a .npy file");
  llvm::SmallVector<StringRef, 16> items;
  text.split(items, ',', -1, false);
  for (StringRef item : items) {
    auto bits = literalBits(t, item.trim());
    if (!bits) return bits.takeError();
    for (unsigned b = 0; b < size; ++b) x.bytes.push_back(uint8_t(*bits >> 8 * b));
  }
  if (x.bytes.size() != tensorBytes(t, x.shape))
    return fail("found " + llvm::Twine(items.size()) + " literals, expected " +
                llvm::Twine(x.count() * (isComplex(t) ? 2 : 1)));
  return x;
}

// The C ABI numbers the same list of types, without void and index.
static_assert(numDTypes == ASTRA_F8E8M0 + 2 && int(DType::C128) == ASTRA_C128 + 1);

static llvm::Expected<Tensor> readArray(StringRef path, DType expected) {
  tool::Npy a;
  std::string error;
  if (!tool::readNpy(path.str(), a, error)) return llvm::createStringError(error);
  if (!tool::adopt(a, int32_t(expected) - 1, error)) return llvm::createStringError(path + ": " + error);
  if (a.fortranOrder && a.shape.size() > 1)
    return llvm::createStringError("%s is in Fortran order, expected C order", path.str().c_str());
  return Tensor{DType(a.dtype + 1), std::move(a.shape), std::move(a.data)};
}
static llvm::Error writeArray(StringRef path, const Tensor &t) {
  std::string error;
  if (tool::writeNpy(path.str(), {int32_t(t.dtype) - 1, t.shape, false, t.bytes}, error)) return llvm::Error::success();
  return llvm::createStringError(error);
}

static llvm::Expected<Tensor> valueOf(StringRef text, UOpRef declared) {
  return text.ends_with(".npy") ? readArray(text, declared->dtype) : literals(text, declared->dtype, declared->shape);
}

static void show(llvm::raw_ostream &out, StringRef name, const Tensor &t) {
  constexpr int64_t most = 256;
  out << name << " : " << info(t.dtype).text;
  for (size_t i = 0; i < t.shape.size(); ++i) out << (i ? ", " : "[") << t.shape[i];
  out << (t.shape.empty() ? " = " : "] = ");
  DType part = partOf(t.dtype); // a complex number is two literals
  unsigned size = byteSize(part);
  if (t.count() > most || !size) {
    out << "sha256 " << llvm::toHex(llvm::SHA256::hash(t.bytes), true) << '\n';
    return;
  }
  out << '[';
  for (size_t i = 0; i < t.bytes.size(); i += size) {
    uint64_t bits = 0;
    for (unsigned b = size; b-- > 0;) bits = bits << 8 | t.bytes[i + b];
    out << (i ? ", " : "") << literalText(part, bits);
  }
  out << "]\n";
}

llvm::Error astra::evaluate(const Module &m, const EvalRequest &r, llvm::raw_ostream &out) {
  auto fail = [](const llvm::Twine &what) { return llvm::createStringError(what); };
  const Entry *e = r.entry.empty() && m.entries.size() == 1 ? &m.entries[0] : m.entry(r.entry);
  if (!e && r.entry.empty())
    return fail("the module has " + llvm::Twine(m.entries.size()) + " entries: name one with --entry");
  if (!e) return fail("no entry is called " + r.entry);
  EvalInputs in;
  in.inputs.resize(e->inputs.size());
  std::vector<bool> given(e->inputs.size());
  for (StringRef s : r.inputs) {
    auto [name, text] = s.split('=');
    auto at = llvm::find_if(e->inputs, [n = name](const Value &v) { return v.name == n; });
    if (at == e->inputs.end()) return fail("entry " + e->name + " has no input " + name);
    auto t = valueOf(text, at->value);
    if (!t) return fail("input " + name + ": " + llvm::toString(t.takeError()));
    in.inputs[at - e->inputs.begin()] = std::move(*t);
    given[at - e->inputs.begin()] = true;
  }
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i])
      return fail("input " + e->inputs[i].name + " is missing: --input " + e->inputs[i].name + "=FILE.npy");
  for (StringRef s : r.dims) {
    auto [name, text] = s.split('=');
    int64_t v;
    if (text.getAsInteger(10, v)) return fail("dim " + name + ": " + text + " is not an integer");
    in.dims[name.str()] = v;
  }
  for (auto [list, values, isState] : {std::tuple{&r.states, &in.states, true}, {&r.params, &in.params, false}})
    for (StringRef s : *list) {
      auto [name, text] = s.split('=');
      const StateVar *state = m.state(name);
      const Param *param = m.param(name);
      UOpRef declared = isState ? (state ? state->value : nullptr) : (param ? param->value : nullptr);
      if (!declared) return fail(llvm::Twine(isState ? "no state" : "no parameter") + " is called " + name);
      auto t = valueOf(text, declared);
      if (!t) return fail(name + ": " + llvm::toString(t.takeError()));
      (*values)[name.str()] = std::move(*t);
    }
  EvalOptions options;
  options.function = evalFunction; // a graph may come from before the numerics stage
  auto result = evalEntry(m, *e, in, options);
  if (!result) return result.takeError();
  for (size_t i = 0; i < e->outputs.size(); ++i) {
    auto at = llvm::find_if(r.outputs, [&](StringRef s) { return s.split('=').first == e->outputs[i].name; });
    if (at == r.outputs.end())
      show(out, "%" + quoted(e->outputs[i].name), result->outputs[i]);
    else if (auto error = writeArray(StringRef(*at).split('=').second, result->outputs[i]))
      return error;
  }
  for (const StateUpdate &u : e->updates) {
    auto at = llvm::find_if(r.outputs, [&](StringRef s) { return s.split('=').first == "@" + u.state; });
    if (at == r.outputs.end())
      show(out, "@" + quoted(u.state), result->states[u.state]);
    else if (auto error = writeArray(StringRef(*at).split('=').second, result->states[u.state]))
      return error;
  }
  return llvm::Error::success();
}
