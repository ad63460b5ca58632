//===- TextPrint.cpp: modules and listings as .uop text --------------------===//
// Takes:    any module or graph, verified or not.
// Gives:    text that TextParse.cpp reads back as the same graph (when it verifies).
// Keeps:    values numbered in the order of their lines: independent of node ids and addresses.
#include "astra/IR/Contract.h"
#include "astra/IR/External.h"
#include "astra/IR/Fields.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ErrorHandling.h"

using namespace astra;
using Names = llvm::DenseMap<UOpRef, std::string>;

namespace {
/// Prints the statements of one body; names of parameters, states and functions come from outside.
class Body {
public:
  Body(const PrintOptions &options, const Names &outside, const Names &functions, std::string indent)
      : options(options), outside(outside), functions(functions), indent(std::move(indent)) {}
  std::string out;

  void setName(UOpRef n, std::string name) { names[n] = std::move(name); }
  std::string number() { return "%" + std::to_string(next++); }
  bool isNamed(UOpRef n) const { return names.count(n) || outside.count(n); }
  std::string name(UOpRef n) const {
    auto it = names.find(n);
    if (it == names.end()) it = outside.find(n);
    return it == outside.end() || it == names.end() ? "%?" : it->second;
  }
  /// A dim that is declared outside the statements; labels avoid its name.
  void keepDim(UOpRef d) {
    names[d] = quoted(d->str);
    dimNames.insert(d->str);
  }

  const std::string &type(DType t, Shape shape) {
    auto [it, fresh] = typeTexts.try_emplace({unsigned(t), shape.data()});
    return fresh ? it->second = written(t, shape) : it->second;
  }
  std::string written(DType t, llvm::ArrayRef<UOpRef> shape) const {
    std::string s = info(t).text;
    for (size_t i = 0; i < shape.size(); ++i) {
      s += i ? ", " : "[";
      index(s, shape[i]);
    }
    return shape.empty() ? s : s + ']';
  }
  void index(std::string &to, UOpRef x) const {
    printIndex(to, x, [&](UOpRef n) {
      auto it = names.find(n);
      return it == names.end() ? std::string() : it->second;
    });
  }
  /// The statements of all nodes that roots reach.
  void statements(llvm::ArrayRef<UOpRef> roots) {
    for (UOpRef n : topoSort(roots)) {
      bool arithmetic = n->isIndex() && n->op != Op::Extent && n->op != Op::Range && n->op != Op::Dim;
      if (!arithmetic && !printed.count(n) && !leaf(n)) statement(n);
    }
  }

private:
  bool leaf(UOpRef n) const {
    return isNamed(n) && (n->op == Op::Arg || n->op == Op::Param || n->op == Op::State || n->op == Op::Dim);
  }
  /// Gives a line of its own to every part of x that would be long, so that text stays linear in the graph.
  void prepare(UOpRef x) {
    constexpr unsigned longest = 32;
    llvm::SmallVector<UOpRef, 16> stack{x};
    while (!stack.empty()) {
      UOpRef n = stack.back();
      if (costs.count(n)) {
        stack.pop_back();
        continue;
      }
      unsigned cost = 1;
      bool ready = true, atom = isNamed(n) || n->isConst() || n->src.empty() || !n->src[0]->isIndex();
      if (!atom)
        for (UOpRef s : n->src) {
          auto it = costs.find(s);
          if (it == costs.end())
            stack.push_back(s), ready = false;
          else
            cost += it->second;
        }
      if (!ready) continue;
      stack.pop_back();
      if (cost > longest) {
        std::string line = number();
        out += indent + line + " = index ";
        index(out, n);
        out += '\n';
        names[n] = std::move(line);
        cost = 1;
      }
      costs[n] = cost;
    }
  }
  void list(llvm::ArrayRef<UOpRef> xs) {
    out += " [";
    for (size_t i = 0; i < xs.size(); ++i) {
      if (i) out += ", ";
      index(out, xs[i]);
    }
    out += ']';
  }
  void operands(UOpRef n) {
    for (size_t i = 0; i < n->ntensors; ++i) out += (i ? ", " : " ") + name(n->src[i]);
  }
  void statement(UOpRef n) {
    printed.insert(n);
    for (UOpRef x : n->indices()) prepare(x);
    for (UOpRef x : n->shape) prepare(x);
    if (!isNamed(n)) names[n] = number();
    out += indent + name(n) + " = " + info(n->op).mnemonic;
    for (size_t i = 0; i < n->fns.size(); ++i) {
      auto f = functions.find(n->fns[i]);
      out += (i ? ", @" : "(@") + (f == functions.end() ? "?" : f->second);
    }
    if (!n->fns.empty()) out += ')';
    if (n->op == Op::Contract)
      contract(n);
    else if (n->op == Op::Reduce)
      reduce(n);
    else if (n->op == Op::External)
      external(n);
    else if (n->op == Op::Extent)
      out += " " + name(n->src[0]) + " in " + std::to_string(n->lo) + ".." + std::to_string(n->hi);
    else
      generic(n);
    bool needed = llvm::any_of(fields(n->op), [](const Field &f) { return f.kind == FieldKind::Dtype; });
    if (n->dtype != DType::Void && n->dtype != DType::Index && (options.types || needed))
      out += " : " + type(n->dtype, n->shape);
    out += '\n';
  }
  void generic(UOpRef n) {
    operands(n);
    int groups = info(n->op).groups;
    if (groups <= 0 && !n->indices().empty()) list(n->indices());
    for (int g = 0; g < groups; ++g) {
      size_t each = n->indices().size() / groups;
      list(n->indices().slice(g * each, each));
    }
    size_t at = 0;
    for (const Field &f : fields(n->op)) field(n, f, at);
  }
  void external(UOpRef n) {
    operands(n);
    for (const auto &[i, t] : llvm::enumerate(externalOf(n).results))
      out += (i ? ", " : " -> ") + written(t.dtype, t.shape);
    size_t at = 0;
    for (const Field &f : fields(Op::External).drop_back()) field(n, f, at);
  }
  void field(UOpRef n, const Field &f, size_t &at) {
    auto literal = [&](int64_t bits) { return literalText(n->dtype, uint64_t(bits)); };
    std::string value;
    switch (f.kind) {
    case FieldKind::Dtype: return;
    case FieldKind::String: value = quoted(n->str); break;
    case FieldKind::Integer:
      if (f.absent == n->ints[at]) {
        ++at;
        return;
      }
      value = std::to_string(n->ints[at++]);
      break;
    case FieldKind::Enumeration: value = f.values[n->ints[at++]].str(); break;
    case FieldKind::Literal: value = literal(n->ints[at++]); break;
    case FieldKind::Rest:
    case FieldKind::Literals:
      if (f.absent && at == n->ints.size()) return; // a list that may be left out
      value = "[";
      for (size_t first = at; at < n->ints.size(); ++at) {
        if (at != first) value += ", ";
        value += f.kind == FieldKind::Rest ? std::to_string(n->ints[at]) : literal(n->ints[at]);
      }
      value += "]";
    }
    out += " " + (n->op == Op::Const ? "" : f.name.str() + "=") + value;
  }

  // ---- contract and reduce
  std::string labelName(int64_t label, int64_t kept) const {
    std::string s = label < kept ? "i" + std::to_string(label) : "k" + std::to_string(label - kept);
    while (dimNames.contains(s)) s += '_';
    return s;
  }
  void affine(const AffineForm &f, int64_t kept, bool constant) {
    if (f.divisor != 1) out += '(';
    bool first = true;
    auto term = [&](int64_t k, const std::string &label) {
      out += first ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
      uint64_t m = k < 0 ? -uint64_t(k) : uint64_t(k);
      out += label;
      if (label.empty() || m != 1) out += (label.empty() ? "" : "*") + std::to_string(m);
      first = false;
    };
    for (auto [label, k] : f.terms) term(k, labelName(label, kept));
    if (constant && (f.constant || f.terms.empty())) term(f.constant, "");
    if (f.divisor != 1) out += ")/" + std::to_string(f.divisor);
  }
  void domain(llvm::ArrayRef<AffineForm> forms, llvm::ArrayRef<UOpRef> bounds, int64_t kept) {
    for (size_t i = 0; i < forms.size(); ++i) {
      out += i ? ", " : " where ";
      affine(forms[i], kept, false);
      bool alone = forms[i].terms.empty();
      auto k = bounds[i]->constIndex();
      std::string rest;
      index(rest, bounds[i]);
      if (alone)
        out += rest;
      else if (k && *k)
        out += (*k < 0 ? " - " : " + ") + std::to_string(*k < 0 ? -*k : *k);
      else if (!k)
        out += " + " + (rest.find_first_of(" -") == std::string::npos ? rest : "(" + rest + ")");
      out += " >= 0";
    }
  }
  void contract(UOpRef n) {
    ContractSpec s = llvm::cantFail(decodeContract(n->ints));
    int64_t labels = s.kept + s.reduced;
    uint64_t seen[2] = {0, 0}; // labels whose extent an operand shows
    const llvm::SmallVector<AffineForm, 4> *lists[] = {&s.a, &s.b, &s.outside};
    for (auto [forms, x] : llvm::zip(lists, n->tensors())) {
      out += (forms == &s.a ? " " : ", ") + name(x) + "[";
      for (size_t i = 0; i < forms->size(); ++i) {
        const AffineForm &f = (*forms)[i];
        if (i) out += ", ";
        affine(f, s.kept, true);
        if (f.isLabel() && forms != &s.outside) seen[f.terms[0].first / 64] |= 1ull << f.terms[0].first % 64;
      }
      out += ']';
    }
    auto labelList = [&](int64_t from, int64_t to) {
      for (int64_t l = from; l < to; ++l) {
        out += (l > from ? ", " : "") + labelName(l, s.kept);
        if (seen[l / 64] >> l % 64 & 1) continue;
        out += ": ";
        index(out, n->indices()[l]);
      }
      out += ']';
    };
    out += " -> [";
    labelList(0, s.kept);
    if (s.reduced) {
      out += " sum [";
      labelList(s.kept, labels);
    }
    domain(s.domain, n->indices().drop_front(labels), s.kept);
    if (s.unit) out += std::string(" order=\"") + s.unit->text + " " + textOf(s.inputs) + "\"";
  }
  void reduce(UOpRef n) {
    ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
    operands(n);
    size_t at = 0;
    field(n, fields(Op::Reduce)[0], at);
    field(n, fields(Op::Reduce)[1], at);
    out += " axes=[";
    for (size_t i = 0; i < s.axes.size(); ++i) out += (i ? ", " : "") + std::to_string(s.axes[i]);
    out += ']';
    domain(s.domain, n->indices(), 64);
  }

  const PrintOptions &options;
  const Names &outside, &functions;
  Names names;
  std::string indent;
  unsigned next = 0;
  llvm::DenseSet<UOpRef> printed;
  llvm::DenseMap<UOpRef, unsigned> costs;
  llvm::DenseMap<std::pair<unsigned, const UOpRef *>, std::string> typeTexts;
  llvm::StringSet<> dimNames;
};

std::string dimDeclaration(UOpRef d) {
  return quoted(d->str) + " in " + std::to_string(d->lo) + ".." + std::to_string(d->hi);
}

const char *paramKindWord(ParamKind kind) {
  switch (kind) {
  case ParamKind::Weight: return "";
  case ParamKind::Fixed: return "fixed ";
  case ParamKind::Constant: return "constant ";
  }
  llvm_unreachable("a kind of parameter");
}

class ModulePrinter {
public:
  ModulePrinter(const Module &m, const PrintOptions &options) : m(m), options(options) {}
  std::string print() {
    out = "module @" + quoted(m.name) + (m.stage == Stage::Graph ? " {\n" : " after numerics {\n");
    if (!m.mesh.isEmpty()) {
      out += "  mesh @" + quoted(m.mesh.name) + " { ";
      for (size_t i = 0; i < m.mesh.axes.size(); ++i)
        out += (i ? ", " : "") + m.mesh.axes[i].name + " " + std::to_string(m.mesh.axes[i].size);
      static constexpr const char *forms[] = {" }\n", " } per_shard\n", " } stacked\n"};
      out += forms[unsigned(m.mesh.form)];
    }
    for (UOpRef d : m.dims) {
      out += "  dim " + dimDeclaration(d) + "\n";
      moduleDims.insert(d);
    }
    Body header(options, outside, functions, "");
    for (const Equation &e : m.equations) {
      out += "  require ";
      header.index(out, e.left);
      out += " == ";
      header.index(out, e.right);
      out += '\n';
    }
    for (const Param &p : m.params) {
      outside[p.value] = "@" + quoted(p.value->str);
      out += std::string("  param ") + paramKindWord(p.kind) + outside[p.value] + " : " +
             header.type(p.value->dtype, p.value->shape) + sharding(p.sharding);
      if (!p.file.empty())
        out += " = file(" + string(p.file) + ", " + string(p.tensor) + ")";
      else if (p.data)
        data(p.value->dtype, *p.data);
      out += '\n';
    }
    for (const StateVar &s : m.states) {
      outside[s.value] = "@" + quoted(s.value->str);
      out += "  state " + outside[s.value] + " : " + header.type(s.value->dtype, s.value->shape) + sharding(s.sharding);
      if (s.initial) data(s.value->dtype, *s.initial);
      out += '\n';
    }
    collectFunctions();
    for (UOpRef f : order) function(f);
    for (const Entry &e : m.entries) entry(e);
    for (const Directive &d : m.directives) directive(d, header);
    return std::move(out) + "}\n";
  }

private:
  std::string sharding(const Sharding &s) const { return s.isDeclared() ? " shard " + shardingText(m.mesh, s) : ""; }
  static std::string string(llvm::StringRef s) {
    std::string q = quoted(s);
    return q[0] == '"' ? q : '"' + q + '"';
  }
  void data(DType t, const std::vector<uint8_t> &bytes) {
    constexpr size_t shortList = 16;
    t = partOf(t); // a complex number is two literals
    unsigned size = byteSize(t);
    bool zeros = llvm::all_of(bytes, [](uint8_t b) { return b == 0; });
    if (zeros && !bytes.empty())
      out += " = zeros";
    else if (!options.data)
      out += " // " + std::to_string(bytes.size()) + " bytes not printed";
    else if (size && size <= 8 && bytes.size() % size == 0 && bytes.size() / size <= shortList) {
      out += " = [";
      for (size_t i = 0; i < bytes.size(); i += size) {
        uint64_t bits = 0;
        for (unsigned b = size; b-- > 0;) bits = bits << 8 | bytes[i + b];
        out += (i ? ", " : "") + literalText(t, bits);
      }
      out += "]";
    } else
      out += " = hex \"" + llvm::toHex(bytes, /*LowerCase=*/true) + "\"";
  }
  /// Functions that entries reach, callees first.
  void collectFunctions() {
    struct Frame {
      UOpRef f;
      std::vector<UOpRef> callees;
      size_t next = 0;
    };
    auto callees = [](llvm::ArrayRef<UOpRef> roots) {
      std::vector<UOpRef> fs;
      for (UOpRef n : topoSort(roots)) fs.insert(fs.end(), n->fns.begin(), n->fns.end());
      return fs;
    };
    llvm::DenseSet<UOpRef> seen;
    std::vector<Frame> stack;
    stack.push_back({nullptr, callees(m.roots())});
    while (!stack.empty()) {
      Frame &top = stack.back();
      if (top.next < top.callees.size()) {
        UOpRef f = top.callees[top.next++];
        if (seen.insert(f).second) stack.push_back({f, callees(f->src)});
        continue;
      }
      if (top.f) {
        functions[top.f] = "f" + std::to_string(order.size());
        order.push_back(top.f);
      }
      stack.pop_back();
    }
  }
  void function(UOpRef f) {
    Body body(options, outside, functions, "    ");
    std::vector<UOpRef> args(f->ints[0]), dims;
    for (UOpRef d : m.dims) body.keepDim(d);
    for (UOpRef n : topoSort(f->src)) {
      if (n->op == Op::Arg && size_t(n->ints[0]) < args.size()) args[n->ints[0]] = n;
      if (n->op == Op::Dim) body.keepDim(n);
      if (n->op == Op::Dim && !moduleDims.count(n)) dims.push_back(n);
    }
    out += "  func @" + functions[f];
    for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "[") + dimDeclaration(dims[i]);
    out += dims.empty() ? "(" : "](";
    for (size_t i = 0; i < args.size(); ++i) {
      std::string name = body.number();
      out += i ? ", " : "";
      if (!args[i]) {
        out += "_";
        continue;
      }
      out += name + " : " + body.type(args[i]->dtype, args[i]->shape);
      body.setName(args[i], name);
    }
    out += ") {\n";
    body.statements(f->src);
    out += body.out + "    return";
    for (size_t i = 0; i < f->src.size(); ++i) out += (i ? ", " : " ") + body.name(f->src[i]);
    out += "\n  }\n";
  }
  void entry(const Entry &e) {
    Body body(options, outside, functions, "    ");
    llvm::StringSet<> used;
    std::vector<UOpRef> roots;
    for (UOpRef d : m.dims) body.keepDim(d);
    for (const Value &v : e.outputs) roots.push_back(v.value);
    for (const StateUpdate &u : e.updates) roots.push_back(u.value);
    for (UOpRef n : topoSort(roots))
      if (n->op == Op::Dim) body.keepDim(n);
    out += "  entry @" + quoted(e.name) + "(";
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      const Value &v = e.inputs[i];
      body.setName(v.value, "%" + quoted(v.name));
      used.insert(v.name);
      out +=
          (i ? ", %" : "%") + quoted(v.name) + " : " + body.type(v.value->dtype, v.value->shape) + sharding(v.sharding);
    }
    for (const Value &v : e.outputs)
      if (!body.isNamed(v.value) && used.insert(v.name).second) body.setName(v.value, "%" + quoted(v.name));
    body.statements(roots);
    for (const Value &v : e.outputs) // one value under several names
      if (std::string name = "%" + quoted(v.name); body.name(v.value) != name)
        body.out += "    " + name + " = " + body.name(v.value) + "\n";
    for (const StateUpdate &u : e.updates)
      body.out += "    set @" + quoted(u.state) + " = " + body.name(u.value) + "\n";
    out += ") -> (";
    for (size_t i = 0; i < e.outputs.size(); ++i) {
      const Value &v = e.outputs[i];
      out +=
          (i ? ", %" : "%") + quoted(v.name) + " : " + body.type(v.value->dtype, v.value->shape) + sharding(v.sharding);
    }
    out += ") {\n" + body.out + "  }\n";
  }

  void directive(const Directive &d, const Body &header) {
    out += std::string("  ") + transformName(d.transform) + " @" + quoted(d.name) + " = @" + quoted(d.of);
    const char *separator = " wrt ";
    for (const Directive::Name &n : d.wrt) {
      out += separator + std::string(n.global ? "@" : "%") + quoted(n.text);
      separator = ", ";
    }
    if (d.size) header.index(out += " over ", d.size);
    places(" in ", d.in);
    places(" out ", d.out);
    out += '\n';
  }

  void places(const char *separator, const std::vector<Directive::Place> &list) {
    for (const Directive::Place &p : list) {
      out += separator + ("%" + quoted(p.name)) + " " + std::to_string(p.axis);
      separator = ", ";
    }
  }

  const Module &m;
  const PrintOptions &options;
  std::string out;
  Names outside, functions;
  std::vector<UOpRef> order;
  llvm::DenseSet<UOpRef> moduleDims;
};
} // namespace

std::string astra::print(const Module &m, const PrintOptions &options) { return ModulePrinter(m, options).print(); }

std::string astra::print(llvm::ArrayRef<UOpRef> roots, const PrintOptions &options) {
  Names none;
  Body body(options, none, none, "");
  std::string dims;
  for (UOpRef n : topoSort(roots))
    if (n->op == Op::Dim) {
      body.keepDim(n);
      dims += "dim " + dimDeclaration(n) + "\n";
    }
  body.statements(roots);
  return dims + body.out;
}
