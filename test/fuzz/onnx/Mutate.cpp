//===- Mutate.cpp: a table of alterations ----------------------------------===//
// Takes:    a parsed model.
// Gives:    the same, altered by rows of the table at the end.
// Keeps:    graphs of control flow are altered like the main one; the model stays small.
// Does not: keep it right: the importer must say what is wrong.
#include "Mutate.h"
#include "astra/Import/ONNX.h"
#include "onnx.pb.h"
#include <random>

namespace astra::fuzz {

using namespace onnx;

namespace {

constexpr int64_t numbers[] = {
    0,         1,         -1,           2,   3,     4,         7,         8,         16,        63,        64,
    65,        -2,        99,           100, 65536, INT32_MAX, 1ll << 31, INT32_MIN, 1ll << 32, 1ll << 40, 1ll << 62,
    INT64_MAX, INT64_MIN, INT64_MIN + 1};
constexpr float floats[] = {
    0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1e-45f, 3.4e38f, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")};
constexpr const char *strings[] = {
    "",        "SAME_UPPER", "SAME_LOWER",    "VALID", "NOTSET",   "constant",   "reflect",    "edge", "wrap",
    "linear",  "cubic",      "nearest",       "mean",  "sum",      "none",       "max",        "mul",  "add",
    "forward", "reverse",    "bidirectional", "i,i->", "...ij,jk", "half_pixel", "asymmetric", "tanh", "Relu"};
constexpr int mostNodes = 64;

class Mutator {
public:
  Mutator(proto::Model &model, const proto::Model *donor, uint32_t seed) : model(model), random(seed) {
    graphs = graphsOf(*model.mutable_graph());
    if (donor) donors = graphsOf(const_cast<proto::Graph &>(donor->graph()));
  }
  void run();

private:
  using Alteration = void (Mutator::*)();
  static const Alteration alterations[];

  proto::Model &model;
  std::mt19937 random;
  std::vector<proto::Graph *> graphs, donors;

  static std::vector<proto::Graph *> graphsOf(proto::Graph &graph) {
    std::vector<proto::Graph *> list{&graph};
    for (size_t i = 0; i < list.size(); ++i)
      for (proto::Node &node : *list[i]->mutable_node())
        for (proto::Attribute &attribute : *node.mutable_attribute())
          if (attribute.has_g()) list.push_back(attribute.mutable_g());
    return list;
  }

  size_t below(size_t n) { return random() % n; }
  bool chance(unsigned in) { return below(in) == 0; }
  template <class T, size_t N> T pick(const T (&list)[N]) { return list[below(N)]; }
  template <class List> auto *any(List *list) {
    return list->empty() ? nullptr : list->Mutable(int(below(list->size())));
  }
  proto::Graph &graph() { return *graphs[below(graphs.size())]; }
  proto::Graph *donorGraph() { return donors.empty() ? nullptr : donors[below(donors.size())]; }
  proto::Node *node() { return any(graph().mutable_node()); }
  proto::Attribute *attribute() {
    proto::Node *n = node();
    return n ? any(n->mutable_attribute()) : nullptr;
  }
  proto::Tensor *tensor() {
    if (proto::Attribute *a = chance(3) ? attribute() : nullptr; a && a->has_t()) return a->mutable_t();
    return any(graph().mutable_initializer());
  }
  int64_t number() { return chance(3) ? int64_t(random() % 7) - 2 : pick(numbers); }

  /// A name of any value of the graph, or none.
  std::string valueName(proto::Graph &g) {
    switch (below(4)) {
    case 0:
      if (auto *v = any(g.mutable_input())) return v->name();
      break;
    case 1:
      if (auto *t = any(g.mutable_initializer())) return t->name();
      break;
    case 2:
      if (chance(4)) return "";
      [[fallthrough]];
    default:
      if (auto *n = any(g.mutable_node()); n && n->output_size()) return n->output(int(below(n->output_size())));
    }
    return "";
  }

  // ---- the rows
  void changeOp() {
    static const std::vector<ONNXRow> rows = onnxRows();
    if (proto::Node *n = node()) n->set_op_type(rows[below(rows.size())].op);
  }
  void changeOpset() {
    if (auto *set = any(model.mutable_opset_import())) set->set_version(chance(4) ? number() : int64_t(7 + below(22)));
  }
  void rewire() {
    proto::Graph &g = graph();
    proto::Node *n = any(g.mutable_node());
    if (!n) return;
    if (n->input_size() == 0 || chance(6))
      n->add_input(valueName(g));
    else if (chance(6))
      n->mutable_input()->RemoveLast();
    else
      n->set_input(int(below(n->input_size())), valueName(g));
  }
  void changeOutputs() {
    proto::Graph &g = graph();
    proto::Node *n = any(g.mutable_node());
    if (!n) return;
    if (chance(2))
      n->add_output(chance(4) ? valueName(g) : "made" + std::to_string(random() % 100));
    else if (n->output_size() && chance(2))
      n->mutable_output()->RemoveLast();
    else if (n->output_size())
      g.add_output()->set_name(n->output(0));
  }
  void changeAttribute() {
    proto::Attribute *a = attribute();
    if (!a) return;
    if (a->has_i() && !chance(8))
      a->set_i(number());
    else if (a->has_f() && !chance(8))
      a->set_f(pick(floats));
    else if (a->has_s() && !chance(8))
      a->set_s(pick(strings));
    else if (a->ints_size() && !chance(8))
      changeList(*a->mutable_ints());
    else if (a->floats_size() && chance(2))
      a->set_floats(int(below(a->floats_size())), pick(floats));
    else if (chance(4))
      a->set_type(proto::Attribute::Type(below(15)));
    else if (chance(3))
      a->clear_i();
    else if (chance(2))
      a->set_i(number());
    else
      a->add_ints(number());
  }
  template <class List> void changeList(List &list) {
    if (chance(5))
      list.Add(number());
    else if (chance(6))
      list.RemoveLast();
    else
      list.Set(int(below(list.size())), number());
  }
  void dropAttribute() {
    if (proto::Node *n = node(); n && n->attribute_size()) {
      n->mutable_attribute()->SwapElements(int(below(n->attribute_size())), n->attribute_size() - 1);
      n->mutable_attribute()->RemoveLast();
    }
  }
  void moveAttribute() {
    proto::Attribute *a = attribute();
    proto::Node *n = node();
    if (a && n && a->ByteSizeLong() < 4096) {
      proto::Attribute copy = *a;
      if (chance(2)) copy.set_name(n->attribute_size() ? n->attribute(0).name() : "axis");
      *n->add_attribute() = copy;
      graphs = graphsOf(*model.mutable_graph());
    }
  }
  void changeInputType() {
    proto::Value *v = any(graph().mutable_input());
    if (!v) return;
    proto::Type::TensorType &type = *v->mutable_type()->mutable_tensor();
    auto *dims = type.mutable_shape()->mutable_dim();
    switch (below(6)) {
    case 0: type.set_element(int32_t(below(30))); break;
    case 1: dims->Add()->set_value(number()); break;
    case 2:
      if (!dims->empty()) dims->RemoveLast();
      break;
    case 3:
      if (auto *d = any(dims)) d->set_name(chance(2) ? "n" : "m");
      break;
    case 4:
      if (chance(6)) type.clear_shape();
      break;
    default:
      if (auto *d = any(dims)) d->set_value(number());
    }
  }
  /// Dims and bytes that agree or do not.
  void changeTensor() {
    proto::Tensor *t = tensor();
    if (!t) return;
    switch (below(7)) {
    case 0: t->set_data_type(int32_t(below(30))); break;
    case 1:
      if (t->dims_size()) t->set_dims(int(below(t->dims_size())), number());
      break;
    case 2: t->add_dims(1); break;
    case 3:
      if (t->dims_size()) t->mutable_dims()->RemoveLast();
      break;
    case 4:
      if (t->int64_data_size()) t->set_int64_data(int(below(t->int64_data_size())), number());
      break;
    case 5: setRaw(*t); break;
    default:
      if (std::string *raw = t->mutable_raw_data();
          raw->size() < 4096 && t->dims_size() == 1 && t->dims(0) > 0 && t->dims(0) < 4096) {
        size_t each = raw->size() / size_t(t->dims(0));
        if (chance(2))
          raw->append(raw->substr(0, each)), t->set_dims(0, t->dims(0) + 1);
        else
          raw->resize(raw->size() - each), t->set_dims(0, t->dims(0) - 1);
      }
    }
  }
  /// One element of int64 or int32 bytes.
  void setRaw(proto::Tensor &t) {
    size_t width = t.data_type() == 7 ? 8 : 4;
    std::string &raw = *t.mutable_raw_data();
    if (raw.size() < width) return;
    int64_t value = number();
    raw.replace(below(raw.size() / width) * width, width, reinterpret_cast<const char *>(&value), width);
  }
  void duplicateNode() {
    proto::Graph &g = graph();
    if (g.node_size() == 0 || g.node_size() >= mostNodes) return;
    proto::Node copy = g.node(int(below(g.node_size())));
    for (std::string &name : *copy.mutable_output()) name += "_" + std::to_string(random() % 100);
    if (copy.input_size() && chance(2)) copy.set_input(0, valueName(g));
    *g.add_node() = std::move(copy);
    graphs = graphsOf(*model.mutable_graph());
  }
  void removeNode() {
    proto::Graph &g = graph();
    if (g.node_size() < 2) return;
    if (chance(2))
      g.mutable_node()->SwapElements(int(below(g.node_size())), int(below(g.node_size())));
    else
      g.mutable_node()->DeleteSubrange(int(below(g.node_size())), 1);
    graphs = graphsOf(*model.mutable_graph());
  }
  /// An input becomes an initializer, or the other way round.
  void changeKind() {
    proto::Graph &g = graph();
    if (auto *t = any(g.mutable_initializer()); t && chance(2)) {
      proto::Value &v = *g.add_input();
      v.set_name(t->name());
      v.mutable_type()->mutable_tensor()->set_element(t->data_type());
      for (int64_t d : t->dims()) v.mutable_type()->mutable_tensor()->mutable_shape()->add_dim()->set_value(d);
      *t = g.initializer(g.initializer_size() - 1);
      g.mutable_initializer()->RemoveLast();
    } else if (proto::Value *v = any(g.mutable_input())) {
      proto::Tensor &made = *g.add_initializer();
      made.set_name(v->name());
      made.set_data_type(7);
      int64_t count = int64_t(below(5));
      made.add_dims(count);
      for (int64_t i = 0; i < count; ++i) made.add_int64_data(number());
      if (chance(2)) g.mutable_input()->RemoveLast();
    }
  }
  // ---- with a donor
  void takeNode() {
    proto::Graph *from = donorGraph();
    proto::Node *n = from ? any(from->mutable_node()) : nullptr;
    proto::Graph &g = graph();
    if (!n || g.node_size() >= mostNodes || n->ByteSizeLong() > 4096) return;
    proto::Node copy = *n;
    for (std::string &name : *copy.mutable_input())
      if (!name.empty() && !takeInitializer(*from, name, g)) name = valueName(g);
    *g.add_node() = std::move(copy);
    graphs = graphsOf(*model.mutable_graph());
  }
  bool takeInitializer(const proto::Graph &from, const std::string &name, proto::Graph &to) {
    for (const proto::Tensor &t : from.initializer())
      if (t.name() == name && t.ByteSizeLong() < 4096) return *to.add_initializer() = t, true;
    return false;
  }
  void takeAttributes() {
    proto::Graph *from = donorGraph();
    proto::Node *theirs = from ? any(from->mutable_node()) : nullptr, *ours = node();
    if (!theirs || !ours || theirs->ByteSizeLong() > 4096) return;
    ours->set_op_type(theirs->op_type());
    *ours->mutable_attribute() = theirs->attribute();
    graphs = graphsOf(*model.mutable_graph());
  }
  void takeInput() {
    proto::Graph *from = donorGraph();
    proto::Value *theirs = from ? any(from->mutable_input()) : nullptr, *ours = any(graph().mutable_input());
    if (theirs && ours) *ours->mutable_type() = theirs->type();
  }
};

const Mutator::Alteration Mutator::alterations[] = {
    &Mutator::changeOp,      &Mutator::changeOpset,     &Mutator::rewire,          &Mutator::rewire,
    &Mutator::changeOutputs, &Mutator::changeAttribute, &Mutator::changeAttribute, &Mutator::changeAttribute,
    &Mutator::dropAttribute, &Mutator::moveAttribute,   &Mutator::changeInputType, &Mutator::changeInputType,
    &Mutator::changeTensor,  &Mutator::changeTensor,    &Mutator::duplicateNode,   &Mutator::removeNode,
    &Mutator::changeKind,    &Mutator::takeNode,        &Mutator::takeNode,        &Mutator::takeAttributes,
    &Mutator::takeInput};

void Mutator::run() {
  for (size_t rounds = 1 + below(4); rounds--;) (this->*pick(alterations))();
}

} // namespace

void mutate(proto::Model &model, const proto::Model *donor, uint32_t seed) { Mutator(model, donor, seed).run(); }

} // namespace astra::fuzz
