//===- BindGraph.cpp: nodes, graphs and what is done with whole graphs ------===//
#include "Bind.h"
#include "astra/Autograd/Autograd.h"
#include "astra/Autograd/Vmap.h"
#include "astra/Compose/Scan.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/APFloat.h"

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

using Ints = std::vector<int64_t>;

/// The extents of a value: an int, or None where it is symbolic.
static nb::tuple extentsOf(UOpRef x) {
  nb::list out;
  for (UOpRef d : x->shape) {
    std::optional<int64_t> n = d->constIndex();
    if (n)
      out.append(nb::int_(*n));
    else
      out.append(nb::none());
  }
  return nb::tuple(out);
}

static Op opOf(const std::string &mnemonic) {
  std::optional<Op> op = opNamed(mnemonic);
  if (!op) throw std::invalid_argument("there is no op '" + mnemonic + "'");
  return *op;
}

/// Arithmetic on symbolic integers by name.
static UOpRef indexArithmetic(Graph &g, const std::string &name, UOpRef x, UOpRef y) {
  Context &c = g.c;
  g.c.takeOverflow();
  UOpRef out = name == "add"        ? idxAdd(c, x, y)
               : name == "sub"      ? idxSub(c, x, y)
               : name == "mul"      ? idxMul(c, x, y)
               : name == "floordiv" ? idxDiv(c, x, y)
               : name == "mod"      ? idxMod(c, x, y)
               : name == "min"      ? idxMin(c, x, y)
               : name == "max"      ? idxMax(c, x, y)
                                    : nullptr;
  if (!out) throw std::invalid_argument("there is no arithmetic '" + name + "' of dims");
  if (g.c.takeOverflow()) throw std::invalid_argument("a size leaves the range of 63 bits");
  return out;
}

void python::bindGraph(nb::module_ &m) {
  nb::class_<UOp>(m, "Node", "A node of a graph: it lives as long as its graph.")
      .def_prop_ro("dtype", [](const UOp &x) { return info(x.dtype).text; })
      .def_prop_ro("op", [](const UOp &x) { return info(x.op).mnemonic; })
      .def_prop_ro("rank", [](const UOp &x) { return x.rank(); })
      .def_prop_ro("extents", [](const UOp &x) { return extentsOf(&x); })
      .def_prop_ro(
          "dims", [](const UOp &x) { return Nodes(x.shape.begin(), x.shape.end()); }, nb::rv_policy::reference)
      .def_prop_ro(
          "sources", [](const UOp &x) { return Nodes(x.src.begin(), x.src.end()); }, nb::rv_policy::reference)
      .def_prop_ro("name", [](const UOp &x) { return x.str.str(); })
      .def_prop_ro("ints", [](const UOp &x) { return Ints(x.ints.begin(), x.ints.end()); })
      .def_ro("id", &UOp::id)
      .def_ro("lo", &UOp::lo)
      .def_ro("hi", &UOp::hi)
      .def_prop_ro("constant", [](const UOp &x) { return x.constIndex(); })
      .def("type_text", [](const UOp &x) { return typeText(x.dtype, x.shape); })
      .def("index_text", [](const UOp &x) { return indexText(&x); })
      .def("__hash__", [](const UOp &x) { return reinterpret_cast<intptr_t>(&x) >> 4; })
      .def("__eq__", [](const UOp &x, nb::handle y) {
        UOpRef other;
        return nb::try_cast(y, other) && other == &x;
      });

  nb::class_<Graph> graph(m, "Graph");
  graph.def(nb::init<>())
      .def_rw("gradients", &Graph::gradients)
      .def_prop_ro("size", [](Graph &g) { return g.c.size(); })
      .def(
          "leaf",
          [](Graph &g, const std::string &t, const Nodes &shape) {
            UOpRef x = g.leaf(dtypeOf(t), shape);
            return check(g), x;
          },
          nb::rv_policy::reference)
      .def(
          "dim", [](Graph &g, const std::string &name, int64_t lo, int64_t hi) { return taken(g.dim(name, lo, hi)); },
          nb::rv_policy::reference)
      .def(
          "index", [](Graph &g, int64_t value) { return g.idx(value); }, nb::rv_policy::reference)
      .def(
          "equation", [](Graph &g, UOpRef left, UOpRef right) { g.c.equations.push_back({left, right}); },
          "Says that two symbolic integers are equal in every call, which is refused otherwise.")
      .def("index_op", indexArithmetic, nb::rv_policy::reference)
      .def(
          "literal", [](Graph &g, const std::string &t, double value) { return g.b.lit(dtypeOf(t), value); },
          nb::rv_policy::reference)
      .def(
          "literal_int", [](Graph &g, const std::string &t, int64_t value) { return g.b.litInt(dtypeOf(t), value); },
          nb::rv_policy::reference)
      .def(
          "literal_bits", [](Graph &g, const std::string &t, uint64_t bits) { return g.b.bits(dtypeOf(t), bits); },
          nb::rv_policy::reference)
      .def(
          "scalar",
          [](Graph &g, UOpRef index, const std::string &t) {
            UOpRef x = g.scalar(index, dtypeOf(t));
            return check(g), x;
          },
          nb::rv_policy::reference)
      .def(
          "make",
          [](Graph &g, const std::string &op, const Nodes &src, const Ints &ints, const std::string &t) {
            UOpRef x = g.make(opOf(op), src, ints, t.empty() ? DType::Void : dtypeOf(t));
            return check(g), x;
          },
          "op"_a, "sources"_a, "ints"_a = Ints(), "dtype"_a = "", nb::rv_policy::reference,
          "A node of an op by its mnemonic, checked by the op's type rule.")
      .def(
          "named",
          [](Graph &g, const std::string &op, UOpRef x, const std::string &name) {
            return taken(g.c.tryMake(opOf(op), {x}, {}, name));
          },
          nb::rv_policy::reference, "A node whose attribute is a name: tap.")
      .def(
          "leaves_of", [](Graph &g, const Nodes &roots) { return g.leavesOf(roots); }, nb::rv_policy::reference)
      .def("depths_of", [](Graph &g, const Nodes &roots) { return g.depthsOf(roots); })
      .def("work_of", [](Graph &g, const Nodes &roots) { return g.workOf(roots); })
      .def(
          "constant",
          [](Graph &g, const std::string &t, const Ints &dims, nb::bytes data) {
            compose::Payload p{dtypeOf(t), dims, {}};
            auto *bytes = reinterpret_cast<const uint8_t *>(data.c_str());
            p.bytes.assign(bytes, bytes + data.size());
            UOpRef x = g.constant(std::move(p));
            return check(g), x;
          },
          nb::rv_policy::reference)
      .def(
          "place", [](Graph &g, const char *file, int64_t line) { g.place(file, line); },
          "Says that what was made since the last call came from this line.")
      .def("origins_of",
           [](Graph &g, UOpRef x) {
             const Origin *o = g.origins().find(x);
             return o ? o->names : std::vector<std::string>();
           })
      .def("text", [](Graph &, const Nodes &roots) { return print(llvm::ArrayRef<UOpRef>(roots)); })
      .def(
          "substitute",
          [](Graph &g, const Nodes &roots, const Nodes &from, const Nodes &to) {
            Replacement with;
            for (size_t i = 0; i < from.size(); ++i) with[from[i]] = to.at(i);
            Origins &lines = g.origins();
            return taken(rebuild(g.c, roots, with, {&lines, &lines}));
          },
          nb::rv_policy::reference)
      .def(
          "vjp",
          [](Graph &g, const Nodes &outputs, const Nodes &cotangents, const Nodes &wrt, const Nodes &beside,
             unsigned segments) {
            Derivatives d = taken(vjp(g.c, outputs, cotangents, wrt, &g.origins(), beside, segments));
            return std::pair(d.values, d.derivatives);
          },
          "outputs"_a, "cotangents"_a, "wrt"_a, "beside"_a = Nodes(), "segments"_a = 1, nb::rv_policy::reference)
      .def(
          "jvp",
          [](Graph &g, const Nodes &outputs, const Nodes &wrt, const Nodes &tangents, const Nodes &beside) {
            Derivatives d = taken(jvp(g.c, outputs, wrt, tangents, &g.origins(), beside));
            return std::pair(d.values, d.derivatives);
          },
          "outputs"_a, "wrt"_a, "tangents"_a, "beside"_a = Nodes(), nb::rv_policy::reference)
      .def(
          "vmap",
          [](Graph &g, const Nodes &roots, const Nodes &leaves, const Nodes &batched, UOpRef size) {
            return taken(vmap(g.c, roots, leaves, batched, size, &g.origins()));
          },
          nb::rv_policy::reference)
      .def(
          "close",
          [](Graph &g, const Nodes &results, const Nodes &placeholders, uint32_t mark, bool hoist, const Nodes &also) {
            Graph::Closed closed = g.close(results, placeholders, mark, hoist, also);
            check(g);
            return std::pair(closed.function, closed.captured);
          },
          nb::rv_policy::reference)
      .def(
          "control",
          [](Graph &g, const std::string &op, const Nodes &src, const Ints &ints, const std::string &names,
             const Nodes &functions) {
            UOpRef x = compose::control(g, opOf(op), src, ints, names, functions);
            return check(g), x;
          },
          nb::rv_policy::reference)
      .def(
          "result",
          [](Graph &g, UOpRef control, int64_t i, const std::string &t, const Nodes &shape) {
            UOpRef x = compose::result(g, control, i, dtypeOf(t), shape);
            return check(g), x;
          },
          nb::rv_policy::reference)
      .def(
          "with_gradient",
          [](Graph &g, const Nodes &src, UOpRef function) {
            return taken(g.c.tryMake(Op::WithGradient, src, {}, "", DType::Void, {function}));
          },
          nb::rv_policy::reference);

  m.def("promote", [](const std::string &x, const std::string &y) -> std::optional<std::string> {
    std::optional<DType> t = promote(dtypeOf(x), dtypeOf(y));
    return t ? std::optional<std::string>(info(*t).text) : std::nullopt;
  });
  m.def("same_dim", [](UOpRef x, UOpRef y) { return x == y; });
}
