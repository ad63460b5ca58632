//===- EmitProgram.cpp: entries as C, without a runtime --------------------===//
// Takes:    module, schedule, C source of the kernels.
// Gives:    for each entry `int PREFIX_ENTRY(...)` and `int64_t PREFIX_ENTRY_arena(dims)`, `void PREFIX_reset(...)` for
//           the states, and their header. Nothing else has a name outside of the source.
// Keeps:    instruction by instruction what the runtime's interpreter does; dims are checked before anything runs.
// Does not: optimise, or check buffers: their sizes are in the header's comments.
#include "astra/Codegen/EmitProgram.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace astra;
using namespace llvm;

namespace {

constexpr uint64_t mostWeights = 16 << 20;

constexpr const char helpers[] = R"c(
/* Programs. Division rounds down; divisors are positive. */
INLINE i64 quotient(i64 a, i64 b) { return a / b - (a % b < 0); }
INLINE i64 remainder_of(i64 a, i64 b) { return a - quotient(a, b) * b; }
INLINE i64 least(i64 a, i64 b) { return a < b ? a : b; }
INLINE i64 greatest(i64 a, i64 b) { return a > b ? a : b; }
INLINE i64 bytes_of(i64 bits) { return (bits + 7) / 8; }
INLINE i64 aligned(i64 a) { return (a + 63) / 64 * 64; }
)c";

/// Words that no name may be in a header that C and C++ read.
constexpr StringRef keywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete "
    "do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t "
    "while "
    "xor xor_eq ";

std::string identifier(StringRef name) {
  std::string out;
  for (char c : name) out += isAlnum(c) ? c : '_';
  if (out.empty() || isDigit(out[0])) out.insert(out.begin(), '_');
  if (keywords.contains(" " + out + " ")) out += '_';
  return out;
}

/// Names of arguments: none is one that the code uses beside them.
struct Arguments {
  std::set<std::string> taken;
  std::string unique(StringRef wanted) {
    std::string id = identifier(wanted);
    while (!taken.insert(id).second) id += "_";
    return id;
  }
};

const char *cType(DType t) {
  switch (t) {
  case DType::I8: return "int8_t";
  case DType::I16: return "int16_t";
  case DType::I32: return "int32_t";
  case DType::I64: return "int64_t";
  case DType::U8: return "uint8_t";
  case DType::U16: return "uint16_t";
  case DType::U32: return "uint32_t";
  case DType::U64: return "uint64_t";
  case DType::F32: return "float";
  case DType::F64: return "double";
  case DType::C64: return "float _Complex";
  case DType::C128: return "double _Complex";
  case DType::F16:
  case DType::BF16: return "uint16_t";
  default: return "unsigned char"; // bool and what is packed
  }
}

class Program {
public:
  Program(const Module &m, const Schedule &s, const CompiledTarget &code, StringRef headerName, StringRef prefix)
      : m(m), s(s), code(code), headerName(headerName), prefix(identifier(prefix.empty() ? m.name : prefix)) {
    for (auto [i, d] : enumerate(s.dims)) number[d] = i;
  }
  Expected<CProgram> run();

private:
  const Module &m;
  const Schedule &s;
  const CompiledTarget &code;
  StringRef headerName;
  std::string prefix, source, header;
  DenseMap<UOpRef, size_t> number;

  std::string expr(UOpRef x) const;
  std::string dimCheck(UOpRef dim) const {
    std::string d = "dim[" + std::to_string(number.lookup(dim)) + "]";
    return d + " < " + std::to_string(dim->lo) + " || " + d + " > " + std::to_string(dim->hi);
  }
  void bytes(const std::string &name, ArrayRef<uint8_t> data);
  Error weights();
  void entry(const ScheduledEntry &e);
  void reset();
  void instructions(const Routine &r, size_t program, unsigned depth);
  void launch(const LaunchInstr &l, unsigned depth);
  void line(unsigned depth, const Twine &text) { source += std::string(2 * depth, ' ') + text.str() + "\n"; }
};

/// x over the array dim.
std::string Program::expr(UOpRef x) const {
  DenseMap<UOpRef, std::string> text;
  for (UOpRef n : topoSort(x)) {
    auto call = [&](const char *f) { return f + ("(" + text[n->src[0]] + ", " + text[n->src[1]] + ")"); };
    auto infix = [&](const char *op) { return "(" + text[n->src[0]] + op + text[n->src[1]] + ")"; };
    if (auto it = number.find(n); it != number.end()) {
      text[n] = "dim[" + std::to_string(it->second) + "]";
      continue;
    }
    switch (n->op) {
    case Op::Const: text[n] = std::to_string(n->ints[0]); break;
    case Op::Add: text[n] = infix(" + "); break;
    case Op::Mul: text[n] = infix(" * "); break;
    case Op::FloorDiv: text[n] = call("quotient"); break;
    case Op::Mod: text[n] = call("remainder_of"); break;
    case Op::Min: text[n] = call("least"); break;
    case Op::Max: text[n] = call("greatest"); break;
    default: llvm_unreachable("a size is integer arithmetic over the dim vector");
    }
  }
  return text[x];
}

void Program::bytes(const std::string &name, ArrayRef<uint8_t> data) {
  source += "static const u8 " + name + "[" + std::to_string(std::max<size_t>(data.size(), 1)) +
            "] __attribute__((aligned(64))) = {";
  for (auto [k, byte] : enumerate(data)) source += (k % 32 ? "" : "\n  ") + std::to_string(byte) + ",";
  source += "};\n";
}

/// Stored params as constants of the source.
Error Program::weights() {
  uint64_t total = 0;
  std::vector<bool> used(s.params.size()); // what only routines that run at load time read is left out
  for (const ScheduledEntry &e : s.entries)
    for (const ProgramBuffer &b : e.routine.buffers)
      if (b.kind == BufferKind::Param) used[b.index] = true;
  for (auto [i, p] : enumerate(s.params))
    if (p.data && used[i]) total += p.data->size();
  if (total > mostWeights)
    return createStringError(
        std::errc::not_supported,
        "the weights have %llu bytes, and C source holds at most %llu: compile to a bundle instead",
        static_cast<unsigned long long>(total), static_cast<unsigned long long>(mostWeights));
  for (auto [i, p] : enumerate(s.params)) {
    if (!p.data || !used[i]) continue;
    std::vector<int64_t> shape;
    for (UOpRef extent : p.param->shape) shape.push_back(*extent->constIndex());
    std::vector<uint8_t> stored = arrange(p.layout, shape, byteSize(p.param->dtype), *p.data);
    line(0, "/* " + p.param->str + " : " + typeText(p.param->dtype, p.param->shape) + ", " + text(p.layout) + " */");
    bytes("w" + std::to_string(i), stored);
  }
  return Error::success();
}

void Program::launch(const LaunchInstr &l, unsigned depth) {
  std::string arguments;
  ListSeparator comma;
  for (uint32_t b : l.buffers) arguments += std::string(StringRef(comma)) + "b[" + std::to_string(b) + "]";
  line(depth, "{");
  line(depth + 1, "void *a[] = {" + (arguments.empty() ? std::string("0") : arguments) + "};");
  for (const LaunchInstr::Variant &v : l.variants) {
    std::string guard = v.left ? "if (" + expr(v.left) + " <= " + expr(v.right) + ") " : "";
    line(depth + 1,
         guard + s.kernels[v.kernel].name + "(a, dim, scratch, 0, " + expr(code.kernels[v.kernel].items) + ");");
    if (v.left) line(depth + 1, "else");
  }
  line(depth, "}");
}

void Program::instructions(const Routine &r, size_t program, unsigned depth) {
  auto buffer = [](uint32_t i) { return "b[" + std::to_string(i) + "]"; };
  auto set = [&](UOpRef dim, const std::string &value) {
    line(depth, "dim[" + Twine(number.lookup(dim)) + "] = " + value + ";");
    line(depth, "if (" + dimCheck(dim) + ") return 2;");
  };
  for (const Instr &instr : r.programs[program]) {
    if (auto *i = std::get_if<LaunchInstr>(&instr)) {
      launch(*i, depth);
    } else if (auto *i = std::get_if<CopyInstr>(&instr)) {
      line(depth, "__builtin_memcpy(" + buffer(i->dst) + ", " + buffer(i->src) + ", (u64)" + expr(i->bytes) + ");");
    } else if (auto *i = std::get_if<SetDimInstr>(&instr)) {
      set(i->dim, expr(i->value));
    } else if (auto *i = std::get_if<ReadDimInstr>(&instr)) {
      set(i->dim, "*(const i64 *)" + buffer(i->buffer));
    } else if (auto *i = std::get_if<WhileInstr>(&instr)) {
      line(depth, "for (;;) {");
      instructions(r, i->cond, depth + 1);
      line(depth + 1, "if (!*(const u8 *)" + buffer(i->flag) + ") break;");
      instructions(r, i->body, depth + 1);
      line(depth, "}");
    } else if (auto *i = std::get_if<LoopInstr>(&instr)) {
      std::string counter = "dim[" + std::to_string(number.lookup(i->counter)) + "]", n = "n" + std::to_string(depth),
                  at = "i" + std::to_string(depth);
      line(depth, counter + " = 0;");
      line(depth,
           "for (i64 " + at + " = 0, " + n + " = " + expr(i->count) + "; " + at + " < " + n + "; ++" + at + ") {");
      line(depth + 1, counter + " = " + at + ";");
      instructions(r, i->body, depth + 1);
      line(depth, "}");
    } else if (auto *i = std::get_if<CondInstr>(&instr)) {
      line(depth, "if (*(const u8 *)" + buffer(i->flag) + ") {");
      instructions(r, i->then, depth + 1);
      line(depth, "} else {");
      instructions(r, i->otherwise, depth + 1);
      line(depth, "}");
    } else {
      const auto &swap = std::get<SwapInstr>(instr);
      line(depth, "{ void *t = " + buffer(swap.a) + "; " + buffer(swap.a) + " = " + buffer(swap.b) + "; " +
                      buffer(swap.b) + " = t; }");
    }
  }
}

void Program::entry(const ScheduledEntry &e) {
  const Routine &r = e.routine;
  std::string name = prefix + "_" + identifier(e.entry->name);
  // What the function's own code calls and declares.
  Arguments own{{"arena", "dim", "b", "scratch", "at", "quotient", "remainder_of", "least", "greatest", "bytes_of",
                 "i64", "u8", "u64", "aligned"}};
  for (size_t i = 0; i < s.params.size(); ++i) own.taken.insert("w" + std::to_string(i));
  for (size_t i = 0; i < s.states.size(); ++i) own.taken.insert("s" + std::to_string(i));
  for (size_t i = 0; i < r.slots.size(); ++i) own.taken.insert("slot" + std::to_string(i));
  for (const auto &k : s.kernels) own.taken.insert(k.name);
  auto unique = [&](StringRef wanted) { return own.unique(wanted); };

  // Arguments: inputs, outputs, states, params that have no data, dims, internal dims of outputs, arena.
  std::string arguments, dimArguments, about;
  ListSeparator comma, dimComma;
  auto argument = [&](const Twine &declaration, const Twine &meaning) {
    arguments += std::string(StringRef(comma)) + declaration.str();
    about += " *   " + declaration.str() + ": " + meaning.str() + "\n";
  };
  std::vector<std::string> inputs, outputs, states, params(s.params.size());
  for (const Value &v : e.entry->inputs) {
    inputs.push_back(unique(v.name));
    argument(Twine("const ") + cType(v.value->dtype) + " *" + inputs.back(), typeText(v.value->dtype, v.value->shape));
  }
  for (auto [v, shape] : zip_equal(e.entry->outputs, e.outputBounds)) {
    outputs.push_back(unique(v.name));
    argument(Twine(cType(v.value->dtype)) + " *" + outputs.back(), "out, room for " + typeText(v.value->dtype, shape));
  }
  for (UOpRef state : s.states) {
    states.push_back(unique(state->str));
    argument(Twine(cType(state->dtype)) + " *" + states.back(), "state, " + typeText(state->dtype, state->shape));
  }
  for (auto [i, p] : enumerate(s.params)) {
    if (p.data) continue;
    UOpRef value = p.declared;
    params[i] = unique(value->str);
    argument(Twine("const ") + cType(value->dtype) + " *" + params[i],
             typeText(value->dtype, value->shape) + " stored as " + text(p.layout));
  }
  std::vector<std::pair<UOpRef, std::string>> given, results;
  for (UOpRef d : m.dimsOf(*e.entry)) {
    given.push_back({d, unique(d->str)});
    argument("int64_t " + given.back().second, Twine(d->lo) + " to " + Twine(d->hi));
    dimArguments += std::string(StringRef(dimComma)) + "int64_t " + given.back().second;
  }
  std::vector<UOpRef> extents;
  for (const std::vector<UOpRef> &shape : e.outputShapes) extents.insert(extents.end(), shape.begin(), shape.end());
  for (UOpRef d : topoSort(extents))
    if (d->is(Op::Dim) && number.lookup(d) >= s.moduleDims) {
      results.push_back({d, unique(d->str)});
      argument("int64_t *" + results.back().second, "out, the actual extent; 0 if nobody asks");
    }
  argument("void *arena", name + "_arena(...) bytes, aligned to 64");
  if (dimArguments.empty()) dimArguments = "void";

  header += "/* " + prefix + "." + e.entry->name +
            ". Gives 0; 1 where a dim is out of bounds or an equation does not hold " +
            "(nothing was written);\n * 2 where a computed size is.\n" + about + " */\nint " + name + "(" + arguments +
            ");\nint64_t " + name + "_arena(" + dimArguments + ");\n\n";

  uint64_t scratch = 64;
  for (const CompiledKernel &k : code.kernels) scratch = std::max<uint64_t>(scratch, k.scratch);
  auto begin = [&](StringRef failure) {
    line(1, "i64 dim[" + Twine(std::max<size_t>(s.dims.size(), 1)) + "] = {0};");
    for (auto &[d, id] : given) line(1, "dim[" + Twine(number.lookup(d)) + "] = " + id + ";");
    for (auto &[d, id] : given) line(1, "if (" + dimCheck(d) + ") return " + failure + ";");
  };
  source += "\nint64_t " + name + "_arena(" + dimArguments + ") {\n";
  begin("-1");
  line(1, "i64 at = " + Twine(scratch) + ";");
  for (UOpRef size : r.slots) line(1, "at += aligned(" + expr(size) + ");");
  line(1, "return at;");
  source += "}\n\nint " + name + "(" + arguments + ") {\n";
  begin("1");
  for (const EntryEquation &q : m.equationsOf(*e.entry))
    line(1, "if (" + expr(q.left) + " != " + expr(q.right) + ") return 1;");
  line(1, "u8 *scratch = arena, *at = scratch + " + Twine(scratch) + ";");
  for (auto [i, size] : enumerate(r.slots)) {
    line(1, "u8 *slot" + Twine(i) + " = at;");
    line(1, "at += aligned(" + expr(size) + ");");
  }
  std::string list;
  for (const ProgramBuffer &b : r.buffers) {
    std::string place;
    switch (b.kind) {
    case BufferKind::Input: place = inputs[b.index]; break;
    case BufferKind::Output: place = outputs[b.index]; break;
    case BufferKind::State: place = states[b.index]; break;
    case BufferKind::Slot: place = "slot" + std::to_string(b.index); break;
    case BufferKind::Param: place = params[b.index].empty() ? "w" + std::to_string(b.index) : params[b.index]; break;
    }
    list += (list.empty() ? "" : ", ") + std::string("(void *)") + place;
  }
  line(1, "void *b[] = {" + (list.empty() ? std::string("0") : list) + "};");
  line(1, "(void)scratch, (void)at, (void)b, (void)dim;");
  instructions(r, 0, 1);
  for (auto &[d, id] : results) line(1, "if (" + id + ") *" + id + " = dim[" + Twine(number.lookup(d)) + "];");
  line(1, "return 0;");
  source += "}\n";
}

/// A function that gives every state its first value. Dims of their shapes are arguments.
void Program::reset() {
  if (s.states.empty()) return;
  std::string arguments, body;
  ListSeparator comma;
  std::vector<UOpRef> extents;
  for (UOpRef state : s.states) extents.insert(extents.end(), state->shape.begin(), state->shape.end());
  std::vector<UOpRef> used = topoSort(extents);
  Arguments own{{"dim", "quotient", "remainder_of", "least", "greatest", "bytes_of", "i64", "u8", "u64"}};
  for (size_t i = 0; i < s.states.size(); ++i) own.taken.insert("s" + std::to_string(i));
  for (auto [i, state] : enumerate(s.states)) {
    std::string name = "s" + std::to_string(i), elements = expr(idxProduct(*m.context, state->shape));
    std::string argument = own.unique(state->str);
    arguments += std::string(StringRef(comma)) + cType(state->dtype) + " *" + argument;
    std::string size = "(u64)bytes_of(" + elements + " * " + std::to_string(bitWidth(state->dtype)) + ")";
    const Bytes &first = m.states[i].initial; // the schedule has the module's
    if (!first) {
      body += "  __builtin_memset(" + argument + ", 0, " + size + ");\n";
      continue;
    }
    bytes(name, *first);
    body += "  __builtin_memcpy(" + argument + ", " + name + ", " + size + ");\n";
  }
  std::string dims = "  i64 dim[" + std::to_string(std::max<size_t>(s.dims.size(), 1)) + "] = {0};\n  (void)dim;\n";
  for (UOpRef d : ArrayRef(s.dims).take_front(s.moduleDims))
    if (is_contained(used, d)) {
      std::string argument = own.unique(d->str);
      arguments += std::string(StringRef(comma)) + "int64_t " + argument;
      dims += "  dim[" + std::to_string(number.lookup(d)) + "] = " + argument + ";\n";
    }
  std::string head = "void " + prefix + "_reset(" + arguments + ")";
  header += "/* Gives every state its first value. */\n" + head + ";\n\n";
  source += "\n" + head + " {\n" + dims + body + "}\n";
}

Expected<CProgram> Program::run() {
  std::string guard = StringRef(prefix).upper() + "_H";
  header =
      "/* Made by Astra from the module " + m.name + " for " + code.target->name + ". Compile the source with\n *  ";
  for (StringRef flag : code.target->clangFlags)
    if (!flag.starts_with("--target")) header += " " + flag.str();
  header += " -O2 -ffp-contract=off -fno-math-errno -fno-strict-aliasing\n * and call from a thread with the usual "
            "floating-point "
            "environment: round to "
            "nearest, no flush "
            "to zero. */\n#ifndef " +
            guard + "\n#define " + guard + "\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  source = "#include \"" + headerName.str() + "\"\n";
  for (const char *warning : {"variable", "parameter"})
    source += "#pragma GCC diagnostic ignored \"-Wunused-" + std::string(warning) + "\"\n";
  // Kernels are called from here alone.
  StringRef rest = code.source;
  while (!rest.empty()) {
    auto [text, next] = rest.split('\n');
    source += (text.starts_with("void k") ? "static __attribute__((unused)) " : "") + text.str() + "\n";
    rest = next;
  }
  source += helpers;
  if (Error e = weights()) return std::move(e);
  for (const ScheduledEntry &e : s.entries)
    for (const std::vector<Instr> &program : e.routine.programs)
      for (const Instr &instr : program)
        if (auto *call = std::get_if<ExternalInstr>(&instr))
          return createStringError(std::errc::not_supported,
                                   "entry %s calls the function '%s' of the program, which C source has no way to "
                                   "register: compile to a bundle instead",
                                   e.entry->name.c_str(), call->function.c_str());
  reset();
  for (const ScheduledEntry &e : s.entries) entry(e);
  header += "#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return CProgram{std::move(source), std::move(header)};
}

} // namespace

Expected<CProgram> astra::emitProgram(const Module &module, const Schedule &schedule, const CompiledTarget &code,
                                      StringRef headerName, StringRef prefix) {
  return Program(module, schedule, code, headerName, prefix).run();
}
