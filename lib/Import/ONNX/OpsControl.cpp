//===- OpsControl.cpp: Scan, and the rows of control flow ------------------===//
// Takes:    nodes with graphs inside.
// Gives:    `scan`; what If (OpsIf.cpp), Loop (OpsLoop.cpp) and Scan share.
// Keeps:    graphs inside are lowered once, in place, and closed over (Closure.h).
#include "Control.h"
#include "Lowering.h"
#include "astra/Compose/Scan.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

UOpRef controlScalar(Node &n, UOpRef x, DType t, const char *what) {
  if (!x) return nullptr;
  bool one = llvm::all_of(x->shape, [](UOpRef d) { return d->constIndex() == 1; });
  if (x->dtype == t && one) return n.reshape(x, {});
  return n.fail(llvm::Twine(what) + " is " + typeText(x->dtype, x->shape) + ", expected one element of type " +
                info(t).text);
}

namespace {

/// What a Scan node says of its inputs and outputs.
struct ScanParts {
  const proto::Graph *body = nullptr;
  std::vector<UOpRef> states, slices; // slices: the scanned axis first, in the order of the steps
  Ints outputAxes, outputDirections;
};

/// Step i of length - 1 - i.
UOpRef reversed(Node &n, UOpRef x) { return n.make(Op::Flip, {x}, {0}); }

UOpRef axisFirst(Node &n, UOpRef x, int64_t axis) {
  Ints perm = {axis};
  for (int64_t i = 0; i < int64_t(x->rank()); ++i)
    if (i != axis) perm.push_back(i);
  return n.permute(x, perm);
}

UOpRef axisTo(Node &n, UOpRef x, int64_t axis) {
  Ints perm;
  for (int64_t i = 1; i < int64_t(x->rank()); ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  return n.permute(x, perm);
}

/// The final states, then the stacked outputs with the scanned axis first.
std::vector<UOpRef> scanOnce(Node &n, const ScanParts &parts) {
  Closure closure(n);
  llvm::SmallVector<UOpRef, 8> inputs, src(parts.states.begin(), parts.states.end());
  for (UOpRef s : parts.states) inputs.push_back(closure.own(s->dtype, s->shape));
  for (UOpRef s : parts.slices) inputs.push_back(closure.own(s->dtype, s->shape.drop_front()));
  if (n.failed()) return {};
  auto results = n.lowering.body(*parts.body, inputs, n.scope, n.title() + ", body");
  if (!results) return n.failReported(), std::vector<UOpRef>();
  size_t states = parts.states.size();
  if (results->size() < states) {
    n.fail("the body gives " + llvm::Twine(results->size()) + " values, there are " + llvm::Twine(states) + " states");
    return {};
  }
  for (size_t i = 0; i < states; ++i)
    if (UOpRef a = parts.states[i], b = (*results)[i]; a->dtype != b->dtype || a->shape != b->shape) {
      n.unsupported("state " + llvm::Twine(i) + " begins as " + typeText(a->dtype, a->shape) + " and goes on as " +
                    typeText(b->dtype, b->shape) + ": a state of a Scan keeps its shape");
      return {};
    }
  if (!closure.capture(*results)) return {};
  UOpRef length = parts.slices[0]->shape[0];
  src.append(parts.slices.begin(), parts.slices.end());
  src.append(closure.captured().begin(), closure.captured().end());
  src.push_back(length);
  UOpRef scan =
      control(n, Op::Scan, src, {int64_t(states), int64_t(parts.slices.size())}, "", {closure.func(*results)});
  std::vector<UOpRef> values;
  for (auto [i, r] : llvm::enumerate(*results)) {
    Dims shape(r->shape.begin(), r->shape.end());
    if (i >= states) shape.insert(shape.begin(), length);
    values.push_back(scan ? result(n, scan, i, r->dtype, shape) : nullptr);
  }
  return values;
}

/// The parts of a Scan whose inputs begin at number `first`; batch: axes are counted without the leading one.
std::optional<ScanParts> readScan(Node &n, unsigned first, bool batch) {
  ScanParts parts;
  parts.body = n.graphAttr("body");
  int64_t slices = n.intAttr("num_scan_inputs", 0), given = int64_t(n.numInputs()) - first;
  if (slices < 1 || slices > given)
    n.fail("attribute 'num_scan_inputs' is " + llvm::Twine(slices) + " of " + llvm::Twine(given) + " inputs");
  if (n.failed()) return std::nullopt;
  int64_t states = given - slices;
  for (int64_t i = 0; i < states; ++i) parts.states.push_back(n.in(first + i));
  Ints directions = n.intsAttr(batch ? "directions" : "scan_input_directions", Ints(slices, 0));
  Ints axes = batch ? Ints(slices, 1) : n.intsAttr("scan_input_axes", Ints(slices, 0));
  if (int64_t(directions.size()) != slices || int64_t(axes.size()) != slices)
    n.fail("attributes of the scanned inputs do not fit " + llvm::Twine(slices) + " of them");
  for (int64_t i = 0; i < slices && !n.failed(); ++i) {
    UOpRef x = n.in(first + states + i);
    if (!n.requireRank(x, batch ? 2 : 1)) break;
    if (!batch) x = axisFirst(n, x, n.axis(axes[i], x->rank()));
    if (x && directions[i]) x = n.make(Op::Flip, {x}, {batch});
    parts.slices.push_back(x);
    if (x && x->shape[batch] != parts.slices[0]->shape[batch])
      n.fail("scanned inputs of length " + dimsText(parts.slices[0]->shape[batch]) + " and " +
             dimsText(x->shape[batch]));
  }
  if (n.failed()) return std::nullopt;
  size_t outputs = std::max<int64_t>(0, int64_t(parts.body->output_size()) - states);
  parts.outputAxes = batch ? Ints(outputs, 0) : n.intsAttr("scan_output_axes", Ints(outputs, 0));
  parts.outputDirections = batch ? Ints(outputs, 0) : n.intsAttr("scan_output_directions", Ints(outputs, 0));
  if (!batch && (parts.outputAxes.size() != outputs || parts.outputDirections.size() != outputs))
    n.fail("attributes of the stacked outputs do not fit " + llvm::Twine(outputs) + " of them");
  if (n.failed()) return std::nullopt;
  return parts;
}

void scan(Node &n) {
  std::optional<ScanParts> parts = readScan(n, 0, false);
  if (!parts) return;
  std::vector<UOpRef> values = scanOnce(n, *parts);
  size_t states = parts->states.size();
  for (size_t i = 0; i < values.size() && !n.failed(); ++i) {
    UOpRef x = values[i];
    if (x && i >= states) {
      if (parts->outputDirections[i - states]) x = reversed(n, x);
      x = axisTo(n, x, n.axis(parts->outputAxes[i - states], x->rank()));
    }
    n.give(i, x);
  }
}

/// Opset 8: a batch of scans along axis 1, whose bodies see one element of the batch.
void scanBatch(Node &n) {
  if (n.has(0)) n.unsupported("sequence_lens (input 0) is not supported: save the model with opset 9 or later");
  std::optional<ScanParts> parts = readScan(n, 1, true);
  if (!parts) return;
  int64_t batch = n.constExtent(parts->slices[0], 0, "the batch of a Scan of opset 8");
  constexpr int64_t most = 64;
  if (batch < 1 || batch > most)
    n.unsupported("a batch of " + llvm::Twine(batch) + " is not supported: save the model with opset 9 or later");
  std::vector<llvm::SmallVector<UOpRef, 4>> columns;
  for (int64_t i = 0; i < batch && !n.failed(); ++i) {
    auto element = [&](UOpRef x) -> UOpRef {
      if (!n.requireRank(x, 1)) return nullptr;
      Dims begin(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end());
      begin[0] = n.c.index(i), size[0] = n.c.index(1);
      return n.squeeze(n.shrink(x, begin, size), {0});
    };
    ScanParts one = *parts;
    for (std::vector<UOpRef> *list : {&one.states, &one.slices})
      for (UOpRef &x : *list)
        if (!(x = element(x))) return;
    std::vector<UOpRef> values = scanOnce(n, one);
    columns.resize(values.size());
    for (size_t k = 0; k < values.size() && !n.failed(); ++k) columns[k].push_back(n.unsqueeze(values[k], {0}));
  }
  for (size_t k = 0; k < columns.size() && !n.failed(); ++k) n.give(k, n.concat(columns[k], 0));
}

constexpr Row rows[] = {
    {"If", 1, latest, 1, 1, conditional, boolType,
     "one branch where the condition is known; else both branches must give equal types and ranks, and an extent that "
     "differs is a dim whose value the run reports; a branch whose shapes fit no dims is refused when a call takes it"},
    {"Loop", 1, latest, 2, anyNumber, loop, anyType,
     "a `scan` where limit, constants and counters that the condition compares give the number of trips, else a "
     "`while`, or the body once for each of up to 64 trips; a value that grows has a dim with bounds (--dim)",
     0, /*takesLists=*/true},
    {"Scan", 8, 8, 2, anyNumber, scanBatch, anyType, "without sequence_lens; a constant batch up to 64"},
    {"Scan", 9, latest, 1, anyNumber, scan},
};

} // namespace

llvm::ArrayRef<Row> controlRows() { return rows; }

} // namespace astra::onnx
