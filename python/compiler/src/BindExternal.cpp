//===- BindExternal.cpp: calls of functions of the program ------------------===//
// Takes:    names, operands, types of results; graphs that call what astra_rt has registered.
// Gives:    nodes; functions for the evaluator, which call those of Python.
// Does not: look at arrays: astra_rt/_function.py does, as for bundles.
#include "Bind.h"
#include "astra/IR/External.h"
#include <set>

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

static constexpr int kRead = 0x100, kWrite = 0x200; // PyBUF_READ, PyBUF_WRITE, which the stable ABI names since 3.11

/// Calls `call` of the module astra_rt._function.
static llvm::Error callPython(const std::string &name, llvm::ArrayRef<Tensor> operands,
                              llvm::MutableArrayRef<Tensor> results) {
  nb::gil_scoped_acquire locked;
  auto rowOf = [](const Tensor &t, const void *data, int access) {
    nb::list shape;
    for (int64_t n : t.shape) shape.append(n);
    auto *bytes = static_cast<char *>(const_cast<void *>(t.bytes.empty() ? static_cast<const void *>("") : data));
    nb::object memory = nb::steal(PyMemoryView_FromMemory(bytes, Py_ssize_t(t.bytes.size()), access));
    return nb::make_tuple(info(t.dtype).text, nb::tuple(shape), memory);
  };
  try {
    nb::list given, wanted;
    for (const Tensor &t : operands) given.append(rowOf(t, t.bytes.data(), kRead));
    for (Tensor &t : results) wanted.append(rowOf(t, t.bytes.data(), kWrite));
    nb::module_::import_("astra_rt._function").attr("call")(name, given, wanted);
    return llvm::Error::success();
  } catch (nb::python_error &e) {
    std::string type = nb::cast<std::string>(e.type().attr("__name__")),
                text = nb::cast<std::string>(nb::str(e.value()));
    return llvm::createStringError(type + ": " + text);
  }
}

void python::addExternals(EvalOptions &options, llvm::ArrayRef<UOpRef> roots) {
  std::vector<UOpRef> open(roots.begin(), roots.end());
  std::set<UOpRef> seen(open.begin(), open.end()); // roots and functions
  nb::object isRegistered;
  while (!open.empty()) {
    UOpRef root = open.back();
    open.pop_back();
    for (UOpRef n : topoSort(root)) {
      for (UOpRef f : n->fns)
        if (seen.insert(f).second) open.push_back(f);
      std::string name = n->str.str();
      if (!n->is(Op::External) || options.externals.count(name)) continue;
      if (!isRegistered.is_valid()) isRegistered = nb::module_::import_("astra_rt._function").attr("is_registered");
      if (nb::cast<bool>(isRegistered(name)))
        options.externals[name] = [name](llvm::ArrayRef<Tensor> operands, llvm::MutableArrayRef<Tensor> results) {
          return callPython(name, operands, results);
        };
    }
  }
}

void python::bindExternal(nb::module_ &m) {
  m.def(
      "external",
      [](Graph &g, const std::string &name, const Nodes &operands,
         const std::vector<std::pair<std::string, Nodes>> &results, bool deterministic, bool effects, bool batched) {
        ExternalSpec s{deterministic, effects, batched, {}};
        for (const auto &[t, shape] : results) s.results.push_back({dtypeOf(t), {shape.begin(), shape.end()}});
        Nodes src = operands;
        llvm::append_range(src, extentsOf(s));
        return taken(g.c.tryMake(Op::External, src, encode(s), name));
      },
      inside, "A call of a function by name; behind the operands may stand the call that comes before it.");
  m.def(
      "reaches", [](Graph &, const Nodes &roots, UOpRef node) { return llvm::is_contained(topoSort(roots), node); },
      "Whether one of the roots needs the node.");
}
