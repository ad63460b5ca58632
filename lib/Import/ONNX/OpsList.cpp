//===- OpsList.cpp: sequences of tensors -------------------------------------===//
// Takes:    SequenceConstruct and what else makes and takes sequences (List.h); positions that are known.
// Gives:    lists of UOps; a piece of a split tensor is a slice where somebody takes it. SequenceMap is its body once
//           for each element. Optional values, which have an element or none while the model is read.
// Does not: know sequences as inputs or outputs of a model (Elements.cpp).
#include "Lowering.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

constexpr int64_t mostElements = 4096; // of a list that is taken whole

/// The number of elements.
UOpRef lengthOf(Context &c, const List &list) {
  if (!list.pieces) return c.index(int64_t(list.elements.size()));
  const List::Pieces &p = *list.pieces;
  return p.equal ? idxCeilDiv(c, p.x->shape[p.axis], p.equal) : c.index(int64_t(p.sizes.size()));
}

/// The element at a position that is within the length.
UOpRef elementAt(compose::Composer &n, const List &list, int64_t at) {
  if (!list.pieces) return list.elements[at];
  const List::Pieces &p = *list.pieces;
  UOpRef extent = p.x->shape[p.axis], from = n.c.index(0);
  Dims begin(p.x->rank(), from), size(p.x->shape.begin(), p.x->shape.end());
  if (p.equal) {
    from = idxMul(n.c, p.equal, n.c.index(at));
    size[p.axis] = idxMin(n.c, idxSub(n.c, extent, from), p.equal);
  } else {
    for (int64_t i = 0; i < at; ++i) from = idxAdd(n.c, from, p.sizes[i]);
    size[p.axis] = p.sizes[at];
  }
  begin[p.axis] = from;
  UOpRef y = n.shrink(p.x, begin, size);
  return p.squeezed ? n.squeeze(y, {p.axis}) : y;
}

/// All elements of input i; nothing, and a failure, where their number is not known.
std::optional<std::vector<UOpRef>> allElements(Node &n, unsigned i) {
  ListRef list = n.list(i);
  return list ? elementsOf(n, *list) : std::nullopt;
}

/// Input i as a position; a negative one counts from the back. `beyond`: how many places behind the last element are
/// positions too.
std::optional<int64_t> position(Node &n, unsigned i, UOpRef length, int64_t beyond = 0) {
  Ints given = n.knownInts(i, "the position");
  if (!n.failed() && given.size() != 1) n.fail("the position (input " + llvm::Twine(i) + ") is not one number");
  if (n.failed()) return std::nullopt;
  int64_t at = given[0];
  if (at < 0 && !length->constIndex())
    n.unsupported("the position counts from the back of a sequence of " + indexText(length) +
                  " elements, a constant is needed" + fixHint(length));
  else if (at < 0)
    at += *length->constIndex();
  if (!n.failed() && (at < 0 || at >= length->hi + beyond))
    n.fail("the position is " + llvm::Twine(given[0]) + ", and the sequence has " + indexText(length) + " elements");
  if (!n.failed() && at >= length->lo + beyond)
    n.unsupported("the sequence has " + indexText(length) + " elements, and perhaps none at position " +
                  llvm::Twine(at) + boundHint(n.c, length, at + 1));
  if (n.failed()) return std::nullopt;
  return at;
}

// ---- sequences from tensors

void empty(Node &n) {
  n.intAttr("dtype", 1); // of elements, which none has
  n.give(0, listOf({}));
}

bool requireOneType(Node &n, llvm::ArrayRef<UOpRef> elements, UOpRef x) {
  if (!x || elements.empty() || elements.front()->dtype == x->dtype) return x && !n.failed();
  n.fail(llvm::Twine("an element is of type ") + info(x->dtype).text + ", the sequence of " +
         info(elements.front()->dtype).text);
  return false;
}

void construct(Node &n) {
  std::vector<UOpRef> elements;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!requireOneType(n, elements, n.in(i))) return;
    elements.push_back(n.in(i));
  }
  n.give(0, listOf(std::move(elements)));
}

void split(Node &n) {
  UOpRef x = n.in(0);
  List::Pieces p;
  int64_t keep = n.intAttr("keepdims", 1);
  p.x = x;
  p.axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0);
  Dims sizes;
  if (n.has(1)) sizes = n.knownDims(1, "the sizes");
  if (n.failed()) return;
  if (n.has(1) && n.in(1)->rank() == 1) {
    UOpRef sum = n.c.index(0);
    for (UOpRef size : sizes) {
      if (!n.requireLeast(size, 0, "the size", "negative")) return;
      sum = idxAdd(n.c, sum, size);
    }
    if (!n.requireEqual(sum, x->shape[p.axis], "all pieces and of what is split")) return;
    p.sizes = sizes;
  } else if (n.has(1) && sizes.size() != 1) {
    n.fail("the size of the pieces is not one number, nor a list of sizes");
    return;
  } else {
    p.equal = n.has(1) ? sizes[0] : n.c.index(1);
    p.squeezed = !n.has(1) && !keep;
    if (!n.requireLeast(p.equal, 1, "the size of a piece", "not positive")) return;
  }
  n.give(0, std::make_shared<const List>(List{{}, p}));
}

// ---- sequences from sequences

void insert(Node &n) {
  std::optional<std::vector<UOpRef>> elements = allElements(n, 0);
  UOpRef x = n.in(1);
  if (!elements || !requireOneType(n, *elements, x)) return;
  int64_t size = int64_t(elements->size());
  std::optional<int64_t> at = n.has(2) ? position(n, 2, n.c.index(size), 1) : size;
  if (!at) return;
  elements->insert(elements->begin() + *at, x);
  n.give(0, listOf(std::move(*elements)));
}

void erase(Node &n) {
  std::optional<std::vector<UOpRef>> elements = allElements(n, 0);
  if (!elements) return;
  if (elements->empty()) return void(n.fail("the sequence has no element to erase"));
  int64_t size = int64_t(elements->size());
  std::optional<int64_t> at = n.has(1) ? position(n, 1, n.c.index(size)) : size - 1;
  if (!at) return;
  elements->erase(elements->begin() + *at);
  n.give(0, listOf(std::move(*elements)));
}

/// The body once for each element; further sequences go along, tensors are the same for all.
void map(Node &n) {
  const proto::Graph *body = n.graphAttr("body");
  std::optional<std::vector<UOpRef>> first = allElements(n, 0);
  if (!first || !body) return;
  std::vector<std::vector<UOpRef>> columns;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    std::optional<std::vector<UOpRef>> column =
        n.isList(i) ? allElements(n, i) : std::vector<UOpRef>(first->size(), n.in(i));
    if (!column) return;
    if (column->size() != first->size())
      return void(n.fail("the sequences have " + llvm::Twine(first->size()) + " and " + llvm::Twine(column->size()) +
                         " elements"));
    columns.push_back(std::move(*column));
  }
  if (n.failed()) return;
  std::vector<std::vector<UOpRef>> results(n.numOutputs());
  for (size_t k = 0; k < first->size(); ++k) {
    std::vector<UOpRef> inputs;
    for (const auto &column : columns) inputs.push_back(column[k]);
    auto values = n.lowering.body(*body, inputs, n.scope, n.title() + ", body for element " + llvm::Twine(k));
    if (!values) return n.failReported();
    if (values->size() != results.size())
      return void(n.fail("the body gives " + llvm::Twine(values->size()) + " values, the node " +
                         llvm::Twine(results.size()) + " sequences"));
    for (auto [result, value] : llvm::zip(results, *values)) {
      if (!requireOneType(n, result, value)) return;
      result.push_back(value);
    }
  }
  for (auto [i, result] : llvm::enumerate(results)) n.give(i, listOf(std::move(result)));
}

// ---- optional values: what has an element is that element

void optionalValue(Node &n) {
  n.ignoreAttr("type"); // of the element, which has its own
  n.give(0, n.held(0));
}

void hasElement(Node &n) { n.give(n.b.lit(DType::Bool, !n.held(0).isNothing())); }

void getElement(Node &n) {
  n.held(0).isNothing() ? void(n.fail("the optional value has no element")) : n.give(0, n.held(0));
}

// ---- tensors from sequences

void at(Node &n) {
  ListRef list = n.list(0);
  if (!list) return;
  if (std::optional<int64_t> k = position(n, 1, lengthOf(n.c, *list))) n.give(elementAt(n, *list, *k));
}

void length(Node &n) {
  if (ListRef list = n.list(0)) n.give(n.fromIndex(lengthOf(n.c, *list), DType::I64));
}

void concat(Node &n) {
  std::optional<std::vector<UOpRef>> elements = allElements(n, 0);
  bool stacked = n.intAttr("new_axis", 0) != 0;
  if (!n.hasAttr("axis")) n.fail("attribute 'axis' is missing");
  int64_t given = n.intAttr("axis", 0);
  if (!elements || n.failed()) return;
  if (elements->empty()) return void(n.fail("the sequence has no element to join"));
  int64_t axis = n.axis(given, int64_t(elements->front()->rank()) + stacked);
  if (n.failed()) return;
  if (stacked)
    for (UOpRef &x : *elements) x = int64_t(x->rank()) < axis ? nullptr : n.unsqueeze(x, {axis});
  n.give(n.concat(*elements, axis));
}

constexpr bool takesLists = true;
constexpr Row rows[] = {
    {"SequenceEmpty", 11, latest, 0, 0, empty},
    {"SequenceConstruct", 11, latest, 1, anyNumber, construct},
    {"SplitToSequence", 11, latest, 1, 2, split, anyType,
     "of a number of pieces that is dynamic, an element at a position that is always there can be taken"},
    {"SequenceInsert", 11, latest, 2, 3, insert, anyType, "a constant position", 0, takesLists},
    {"SequenceErase", 11, latest, 1, 2, erase, anyType, "a constant position", 0, takesLists},
    {"SequenceMap", 17, latest, 1, anyNumber, map, anyType, "the body once for each element", 0, takesLists},
    {"SequenceAt", 11, latest, 2, 2, at, anyType, "a constant position", 0, takesLists},
    {"SequenceLength", 11, latest, 1, 1, length, anyType, "", 0, takesLists},
    {"ConcatFromSequence", 11, latest, 1, 1, concat, anyType, "", 0, takesLists},
    {"Optional", 15, latest, 0, 1, optionalValue, anyType, "", 0, takesLists},
    {"OptionalHasElement", 15, latest, 0, 1, hasElement, anyType, "known while compiling", 0, takesLists},
    {"OptionalGetElement", 15, latest, 1, 1, getElement, anyType, "", 0, takesLists},
};

} // namespace

ListRef listOf(std::vector<UOpRef> elements) {
  return std::make_shared<const List>(List{std::move(elements), std::nullopt});
}

std::optional<std::vector<UOpRef>> elementsOf(compose::Composer &b, const List &list) {
  UOpRef length = lengthOf(b.c, list);
  if (!length->constIndex())
    b.unsupported("the sequence has " + indexText(length) + " elements, a constant is needed" + b.hints.fix({length}));
  else if (*length->constIndex() > mostElements)
    b.unsupported("the sequence has " + indexText(length) + " elements, at most " + llvm::Twine(mostElements) +
                  " are supported");
  std::vector<UOpRef> elements;
  for (int64_t k = 0; !b.failed() && k < *length->constIndex(); ++k) elements.push_back(elementAt(b, list, k));
  if (b.failed()) return std::nullopt;
  return elements;
}

llvm::ArrayRef<Row> listRows() { return rows; }

} // namespace astra::onnx
