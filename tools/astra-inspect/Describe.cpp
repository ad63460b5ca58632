//===- Describe.cpp: a bundle as text --------------------------------------===//
// Takes:    a checked bundle.
// Gives:    the summary and the kernel list.
// Keeps:    expressions in infix form with the dims' names.
// Does not: check: the reader has.
#include "Describe.h"
#include "astra/Distribute/Distribute.h"
#include "astra/astra.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include <set>

using namespace astra;
using namespace llvm;

namespace {

const char *dtypeName(fmt::DType t) { return astra_dtype_name(int32_t(t)); }

/// How tightly an operator binds, and how it is written.
struct Infix {
  int precedence;
  const char *text;
};
Infix infix(fmt::ExprCode c) {
  using E = fmt::ExprCode;
  switch (c) {
  case E::Or: return {1, " or "};
  case E::And: return {2, " and "};
  case E::Lt: return {3, " < "};
  case E::Le: return {3, " <= "};
  case E::Eq: return {3, " == "};
  case E::Add: return {4, " + "};
  case E::Sub: return {4, " - "};
  case E::Mul: return {5, "*"};
  case E::FloorDiv: return {5, " floordiv "};
  case E::Mod: return {5, " mod "};
  case E::Min: return {6, "min"};
  case E::Max: return {6, "max"};
  default: return {7, ""};
  }
}

template <typename Typed> std::string typeOf(const fmt::ManifestT &m, const Typed &t) {
  std::string out = dtypeName(t.dtype);
  ListSeparator comma;
  if (!t.shape.empty()) out += "[";
  for (uint32_t x : t.shape) out += std::string(StringRef(comma)) + tool::exprText(m, x);
  if (!t.shape.empty()) out += "]";
  return out;
}

/// A tensor or a state.
template <typename Typed> std::string typed(const fmt::ManifestT &m, const Typed &t) {
  return t.name + " : " + typeOf(m, t);
}

/// A line for each way in which functions of the program are called.
void printFunctions(raw_ostream &out, const fmt::ManifestT &m) {
  StringSet<> said;
  for (const auto &e : m.entries)
    for (const auto &p : e->routine->programs)
      for (const fmt::InstrUnion &i : p->code)
        if (const fmt::ExternalT *call = i.AsExternal()) {
          const fmt::HostFunctionT &f = *m.functions[call->function];
          std::string line = "calls " + f.name + "(";
          for (auto [k, t] : enumerate(call->tensors))
            line += (k == call->inputs ? ") -> (" : k ? ", " : "") + typeOf(m, *t);
          line += f.deterministic ? "), deterministic" : "), not deterministic";
          line += f.effects ? ", with effects" : "";
          if (said.insert(line).second) out << line << "\n";
        }
}

std::string bytesText(uint64_t bytes) {
  if (bytes < 10000) return std::to_string(bytes) + " bytes";
  std::string out;
  raw_string_ostream s(out);
  bytes < 10000000 ? s << format("%.1f KB", double(bytes) / 1e3) : s << format("%.1f MB", double(bytes) / 1e6);
  return out;
}

/// How a kernel is launched on a GPU, and what it takes there.
std::string launchText(const fmt::GpuCodeT &g) {
  std::string out;
  raw_string_ostream s(out);
  s << ", block " << g.threads << ", threads an item " << g.group << ", shared " << g.shared;
  if (!g.registers) return out;
  s << ", registers " << g.registers;
  if (g.scalar_registers) s << " and " << g.scalar_registers << " scalar";
  s << ", stack " << g.stack << ", spills " << g.spills;
  return out;
}

const char *sourceName(fmt::DimSource s) {
  static constexpr const char *names[] = {"bound by a shape", "set by the host", "given with the session"};
  return names[uint8_t(s)];
}

/// An expression where every dim is at its upper bound.
uint64_t atBounds(const fmt::ManifestT &m, uint32_t index) {
  SmallVector<int64_t, 8> dims;
  for (const auto &d : m.dims) dims.push_back(d->hi);
  return uint64_t(std::max<int64_t>(tool::valueOf(m, index, dims), 0));
}

/// "'a', 'b' and 3 more"; "" of nothing.
std::string nodesText(const tool::Computes &c) {
  std::string out;
  ListSeparator comma;
  for (const std::string &name : c.names) out += std::string(StringRef(comma)) + "'" + name + "'";
  if (c.more) out += " and " + std::to_string(c.more) + " more";
  return out;
}

} // namespace

int64_t tool::valueOf(const fmt::ManifestT &m, uint32_t index, ArrayRef<int64_t> dims) {
  using E = fmt::ExprCode;
  SmallVector<int64_t, 8> stack;
  for (const fmt::ExprOp &op : m.exprs[index]->code) {
    if (op.code() == E::Const || op.code() == E::Dim) {
      stack.push_back(op.code() == E::Const ? op.value() : dims[size_t(op.value())]);
      continue;
    }
    if (op.code() == E::Not) {
      stack.back() = !stack.back();
      continue;
    }
    int64_t b = stack.pop_back_val(), a = stack.pop_back_val();
    switch (op.code()) {
    case E::Add: stack.push_back(a + b); break;
    case E::Sub: stack.push_back(a - b); break;
    case E::Mul: stack.push_back(a * b); break;
    case E::FloorDiv: stack.push_back(b > 0 ? (a - ((a % b) + b) % b) / b : 0); break;
    case E::Mod: stack.push_back(b > 0 ? ((a % b) + b) % b : a); break;
    case E::Min: stack.push_back(std::min(a, b)); break;
    case E::Max: stack.push_back(std::max(a, b)); break;
    default: stack.push_back(0); // comparisons: none in a size
    }
  }
  return stack.back();
}

const char *tool::kindName(uint32_t kind) {
  static constexpr const char *names[] = {"", "manifest", "code", "weights", "signature", "gpu code", "gpu text"};
  return names[kind]; // the reader knows no other
}

std::vector<tool::Computes> tool::computedBy(const fmt::ManifestT &m) {
  constexpr size_t most = fmt::kMaxOrigins;
  auto before = [](StringRef a, StringRef b) { return a.compare_numeric(b) < 0; };
  std::vector<std::set<uint32_t>> origins(m.kernels.size());
  std::vector<Computes> out(m.kernels.size());
  auto add = [&](const fmt::RoutineT &r) {
    for (const auto &p : r.programs)
      for (const fmt::InstrUnion &i : p->code)
        if (const fmt::LaunchT *l = i.AsLaunch())
          for (const auto &v : l->variants) {
            origins[v->kernel].insert(l->origins.begin(), l->origins.end());
            out[v->kernel].more = std::max(out[v->kernel].more, size_t(l->more_origins));
          }
  };
  for (const auto &e : m.entries) {
    add(*e->routine);
    if (e->strided) add(*e->strided->routine);
  }
  for (const auto &r : m.derives) add(*r);
  for (auto [c, numbers] : zip_equal(out, origins)) {
    for (uint32_t n : numbers) c.names.push_back(m.origins[n]);
    llvm::sort(c.names, before);
    if (c.names.size() <= most) continue;
    c.more += c.names.size() - most;
    c.names.resize(most);
  }
  return out;
}

std::string tool::exprText(const fmt::ManifestT &m, uint32_t index) {
  using E = fmt::ExprCode;
  // An expression may be as long as a file, and be used at every place of it.
  constexpr size_t longest = 4096;
  SmallVector<std::pair<std::string, int>, 8> stack; // text and precedence
  auto wrap = [](std::string &text, int own, int outer) {
    return own < outer ? "(" + std::move(text) + ")" : std::move(text);
  };
  for (const fmt::ExprOp &op : m.exprs[index]->code) {
    E code = op.code();
    if (code == E::Const) {
      stack.push_back({std::to_string(op.value()), op.value() < 0 ? 4 : 7});
    } else if (code == E::Dim) {
      stack.push_back({m.dims[op.value()]->name, 7});
    } else if (code == E::Not) {
      stack.back() = {"not " + wrap(stack.back().first, stack.back().second, 7), 6};
    } else {
      auto [right, rightIs] = stack.pop_back_val();
      auto [left, leftIs] = stack.pop_back_val();
      Infix i = infix(code);
      if (code == E::Min || code == E::Max)
        stack.push_back({i.text + ("(" + left + ", " + right + ")"), 7});
      else
        stack.push_back(
            {wrap(left, leftIs, i.precedence) + i.text + wrap(right, rightIs, i.precedence + 1), i.precedence});
    }
    if (stack.back().first.size() > longest) return "expression " + std::to_string(index);
  }
  return std::move(stack.back().first);
}

/// The mesh that a bundle is made for, and what is cut among its shards.
static void printMesh(raw_ostream &out, const BundleFile &b) {
  const auto &assets = b.manifest.assets;
  auto mesh = find_if(assets, [](const auto &a) { return a->name == meshAsset; });
  auto weights =
      find_if(b.sections(), [](const fmt::Section &s) { return s.kind == uint32_t(fmt::SectionKind::Weights); });
  if (mesh == assets.end() || weights == b.sections().end()) return;
  StringRef text(reinterpret_cast<const char *>(b.bytes(*weights).data()) + (*mesh)->place->offset,
                 (*mesh)->place->length);
  SmallVector<StringRef> lines, fields;
  text.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    fields.clear();
    line.split(fields, '\t');
    if (fields.size() < 2) continue;
    out << fields[0] << ' ';
    for (StringRef name : ArrayRef(fields).drop_front(2)) out << (name.data() == fields[2].data() ? "" : " ") << name;
    out << (fields.size() > 2 ? ": (" : "") << fields[1] << (fields.size() > 2 ? ")\n" : "\n");
  }
}

void tool::printSummary(raw_ostream &out, const BundleFile &b) {
  const fmt::ManifestT &m = b.manifest;
  out << "module " << m.module_ << ", " << m.contract << " " << m.numerics << ", format " << b.header().major << "."
      << b.header().minor << ", " << bytesText(b.header().fileBytes) << "\n"
      << "digest " << toHex(b.header().digest, true) << "\n";
  if (!b.signer().empty()) out << "signed by " << toHex(b.signer(), true) << "\n";
  if (!m.model_sha256.empty()) out << "model sha256 " << toHex(m.model_sha256, true) << "\n";
  if (!m.commit.empty()) out << "compiler commit " << m.commit << "\n";
  if (!m.options.empty()) out << "options " << llvm::join(m.options, " ") << "\n";
  for (const auto &d : m.dims) {
    if (d->source == fmt::DimSource::Internal) continue; // the program's own counters
    out << "dim " << d->name << " in " << d->lo << ".." << d->hi;
    if (d->bound != fmt::kNone) out << ", at most " << exprText(m, d->bound);
    out << ", " << sourceName(d->source) << "\n";
  }
  StringSet<> said; // an equation that several entries check is in the file for each
  for (const auto &e : m.equations)
    if (said.insert(e->text).second) out << "where " << e->text << "\n";
  for (const auto &e : m.entries) {
    out << "entry " << e->name << "(";
    ListSeparator commas;
    for (const auto &t : e->inputs) out << commas << typed(m, *t);
    out << ") -> (";
    ListSeparator others;
    for (const auto &t : e->outputs) out << others << typed(m, *t) << (t->tap ? " (tap)" : "");
    out << ")";
    ListSeparator states(", ", ", reads ");
    for (uint32_t s : e->reads) out << states << m.states[s]->name;
    ListSeparator written(", ", ", writes ");
    for (uint32_t s : e->writes) out << written << m.states[s]->name;
    uint64_t arena = 0;
    for (uint32_t slot : e->routine->slots) arena += alignTo(atBounds(m, slot), 64);
    if (arena) out << ", keeps values in " << bytesText(arena);
    ListSeparator strides(", ", ", any strides of ");
    if (e->strided)
      for (const auto &t : e->strided->tensors) out << strides << (t->output ? e->outputs : e->inputs)[t->index]->name;
    out << "\n";
  }
  for (const auto &s : m.states) out << "state " << typed(m, *s) << (s->init ? "" : ", zeros at first") << "\n";
  uint64_t total = 0, ours = 0, computed = 0;
  for (const auto &p : m.params) {
    total += p->stored_bytes;
    if (p->fixed) ours++, computed += p->stored_bytes;
  }
  out << m.params.size() << " params, " << bytesText(total);
  if (ours) out << "; " << ours << " of them computed while compiling, " << bytesText(computed);
  out << "\n";
  printMesh(out, b);
  printFunctions(out, m);
  for (const auto &asset : m.assets) out << "asset " << asset->name << ", " << bytesText(asset->place->length) << "\n";
  for (const auto &t : m.targets) {
    const fmt::Section &code = b.sections()[t->section];
    bool isText = code.kind == uint32_t(fmt::SectionKind::DeviceText);
    out << "target " << t->name << ", " << (isText ? "PTX alone, " : "code ") << bytesText(code.bytes);
    if (t->gpu && t->gpu->text != fmt::kNone) out << ", PTX " << bytesText(b.sections()[t->gpu->text].bytes);
    if (t->gpu && t->gpu->of != fmt::kNone)
      out << ", the host build of " << m.targets[t->gpu->of]->name << " "
          << toHex(t->gpu->of_sha256, true).substr(0, 16);
    if (!t->features.empty() || !t->gpu) out << ", needs";
    for (const std::string &f : t->features) out << " " << f;
    out << "\n";
  }
  out << m.kernels.size() << " kernels\n";
  for (const fmt::Section &s : b.sections())
    out << "section " << left_justify(kindName(s.kind), 9) << " at " << s.offset << ", " << s.bytes << " bytes, "
        << toHex(s.sha256, true) << "\n";
}

StringRef tool::boundText(fmt::CostTerm t) {
  static constexpr StringLiteral names[] = {"",      "instructions", "arithmetic",   "chains", "divisions",
                                            "loads", "stores",       "L2",           "L3",     "memory",
                                            "masks", "matrix units", "shared memory"};
  static_assert(std::size(names) == size_t(fmt::CostTerm::MAX) + 1);
  return size_t(t) < std::size(names) ? names[size_t(t)] : StringLiteral("what this version has no word for");
}

void tool::printKernels(raw_ostream &out, const BundleFile &b) {
  const fmt::ManifestT &m = b.manifest;
  static constexpr const char *accesses[] = {"read", "write", "read-write"};
  for (auto [k, computes] : zip_equal(m.kernels, computedBy(m))) {
    out << k->name << "(";
    ListSeparator comma;
    for (fmt::Access a : k->access) out << comma << accesses[uint8_t(a)];
    out << ")";
    if (k->flops != fmt::kNone) out << ", flops " << exprText(m, k->flops);
    if (k->bytes != fmt::kNone) out << ", bytes " << exprText(m, k->bytes);
    out << "\n";
    if (std::string nodes = nodesText(computes); !nodes.empty()) out << "  computes " << nodes << "\n";
    for (auto [t, code] : zip_equal(m.targets, k->code)) {
      if (code->gpu)
        out << "  " << t->name << ", items " << exprText(m, code->items) << launchText(*code->gpu) << "\n";
      else
        out << "  " << t->name << " at " << code->offset << ", items " << exprText(m, code->items) << ", scratch "
            << exprText(m, code->scratch) << "\n";
      if (!code->plan.empty()) out << "    " << code->plan << "\n";
      if (code->bound != fmt::CostTerm::Unknown)
        out << "    " << code->cycles << " cycles by " << boundText(code->bound)
            << (m.dims.empty() ? "" : ", at the upper bounds of dims") << "\n";
    }
  }
}
