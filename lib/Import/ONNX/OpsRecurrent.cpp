//===- OpsRecurrent.cpp: RNN, GRU, LSTM ------------------------------------===//
// Takes:    nodes with a sequence, weights of one or two directions, initial states, lengths.
// Gives:    one `scan` per direction; the inputs' products with W and the biases are made before it, for all steps at
//           once, in one contract.
// Keeps:    f16 and bf16 in f32 throughout, states too, rounded once (N4). Past the end of a sequence the states stay
//           and the outputs are 0; a sequence of length 0 ends in its initial states.
#include "OpTable.h"
#include "ScanMaker.h"
#include "astra/Compose/Activation.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::onnx {

namespace {

AffineForm label(int64_t l) { return {{{l, 1}}, 0, 1}; }
AffineForm fixed(int64_t index) { return {{}, index, 1}; }

/// Elements begin ... begin + size - 1 of an axis.
UOpRef part(Node &n, UOpRef x, unsigned axis, int64_t begin, int64_t size) {
  if (!x) return nullptr;
  Dims at(x->rank(), n.c.index(0)), extents(x->shape.begin(), x->shape.end());
  at[axis] = n.c.index(begin);
  extents[axis] = n.c.index(size);
  return n.shrink(x, at, extents);
}

/// x[d] along the first axis.
UOpRef item(Node &n, UOpRef x, int64_t d) { return x ? n.squeeze(part(n, x, 0, d, 1), {0}) : nullptr; }

struct Function {
  const compose::Activation *activation;
  double alpha, beta;
};

/// One step of one direction, inside of the scan.
struct Cell {
  Node &n;
  int64_t hidden;
  double clip;  // of what the activations take; infinite: none
  bool variant; // GRU: linear_before_reset; LSTM: input_forget
  llvm::ArrayRef<Function> functions;
  UOpRef x = nullptr;              // [batch, gates * hidden]: the input's part of all gates, biases included
  UOpRef h = nullptr, c = nullptr; // [batch, hidden]
  // R transposed, so that neighbours are a vector's lanes: [hidden, gates * hidden]. What a GRU resets before the
  // product has columns of its own, [hidden, hidden], which `r` lacks then: the body reads whole values alone.
  UOpRef r = nullptr, rOfReset = nullptr;
  UOpRef resetBias = nullptr; // [hidden], GRU with linear_before_reset
  UOpRef peepholes = nullptr; // [3 * hidden], LSTM

  UOpRef gate(UOpRef all, int64_t i, int64_t count = 1) {
    return part(n, all, all->rank() - 1, i * hidden, count * hidden);
  }
  /// state R^T for the columns given.
  UOpRef times(UOpRef state, UOpRef r) {
    ContractSpec spec;
    spec.kept = 2;
    spec.reduced = 1;
    spec.a = {label(0), label(2)};
    spec.b = {label(2), label(1)};
    return !state || !r ? nullptr : n.contract(spec, state, r, {state->shape[0], r->shape[1], r->shape[0]});
  }
  UOpRef add(UOpRef a, UOpRef b) { return n.bin(Op::Add, a, b); }
  UOpRef mul(UOpRef a, UOpRef b) { return n.bin(Op::Mul, a, b); }
  UOpRef oneMinus(UOpRef x) { return n.bin(Op::Sub, n.literal(x, 1), x); }
  UOpRef apply(unsigned i, UOpRef v) {
    if (!std::isinf(clip)) {
      UOpRef least = n.literal(v, -clip), most = n.literal(v, clip);
      v = n.select(n.bin(Op::Lt, v, least), least, v);
      v = n.select(n.bin(Op::Lt, most, v), most, v);
    }
    const Function &f = functions[i];
    return v ? f.activation->apply(n, v, f.alpha, f.beta) : nullptr;
  }
};

/// The next states: h, and c where there is one.
using States = llvm::SmallVector<UOpRef, 2>;

States rnnStep(Cell &k) { return {k.apply(0, k.add(k.x, k.times(k.h, k.r)))}; }

/// Gates z, r, h.
States gruStep(Cell &k) {
  UOpRef product = k.times(k.h, k.r);
  if (!product) return {nullptr};
  UOpRef z = k.apply(0, k.add(k.gate(k.x, 0), k.gate(product, 0)));
  UOpRef r = k.apply(0, k.add(k.gate(k.x, 1), k.gate(product, 1)));
  UOpRef recurrent;
  if (k.variant) {
    recurrent = k.gate(product, 2);
    recurrent = k.mul(r, k.resetBias ? k.add(recurrent, k.resetBias) : recurrent);
  } else {
    recurrent = k.times(k.mul(r, k.h), k.rOfReset);
  }
  UOpRef h = k.apply(1, k.add(k.gate(k.x, 2), recurrent));
  return {k.add(k.mul(k.oneMinus(z), h), k.mul(z, k.h))};
}

/// Gates i, o, f, c; peepholes i, o, f.
States lstmStep(Cell &k) {
  UOpRef all = k.add(k.x, k.times(k.h, k.r));
  if (!all) return {nullptr, nullptr};
  auto peeped = [&](int64_t gate, UOpRef c) {
    UOpRef v = k.gate(all, gate);
    return k.peepholes ? k.add(v, k.mul(k.gate(k.peepholes, gate), c)) : v;
  };
  UOpRef i = k.apply(0, peeped(0, k.c)), f = k.variant ? k.oneMinus(i) : k.apply(0, peeped(2, k.c));
  UOpRef c = k.add(k.mul(f, k.c), k.mul(i, k.apply(1, k.gate(all, 3))));
  UOpRef o = k.apply(0, peeped(1, c));
  return {k.mul(o, k.apply(2, c)), c};
}

/// What tells the three ops apart.
struct Kind {
  int64_t gates;
  unsigned states;
  llvm::ArrayRef<const char *> functions; // those of one direction
  const char *variant;                    // the attribute for Cell::variant, if any
  States (*step)(Cell &);
};
constexpr const char *rnnFunctions[] = {"Tanh"}, *gruFunctions[] = {"Sigmoid", "Tanh"},
                     *lstmFunctions[] = {"Sigmoid", "Tanh", "Tanh"};
const Kind rnn{1, 1, rnnFunctions, nullptr, rnnStep}, gru{3, 1, gruFunctions, "linear_before_reset", gruStep},
    lstm{4, 2, lstmFunctions, "input_forget", lstmStep};

/// All directions' functions. Values of activation_alpha and activation_beta go, in order, to the functions that take
/// one; those without get the default, and values that are left over say nothing.
std::vector<Function> readFunctions(Node &n, const Kind &kind, int64_t directions) {
  std::vector<std::string> names = n.stringsAttr("activations");
  size_t count = directions * kind.functions.size();
  if (names.empty())
    for (size_t i = 0; i < count; ++i) names.push_back(kind.functions[i % kind.functions.size()]);
  auto alpha = n.floatsAttr("activation_alpha"), beta = n.floatsAttr("activation_beta");
  if (names.size() != count)
    n.fail("found " + llvm::Twine(names.size()) + " activations, expected " + llvm::Twine(count));
  std::vector<Function> functions;
  size_t alphas = 0, betas = 0;
  for (const std::string &name : names) {
    const compose::Activation *a = compose::findActivation(name);
    if (!a) {
      n.fail("activation '" + name + "' is not known: expected one of " + compose::activationNames());
      return {};
    }
    Function f{a, a->alpha, a->beta};
    if (a->takesAlpha && alphas++ < alpha.size()) f.alpha = alpha[alphas - 1];
    if (a->takesBeta && betas++ < beta.size()) f.beta = beta[betas - 1];
    functions.push_back(f);
  }
  return functions;
}

struct Sizes {
  UOpRef length, batch, inputs;
  int64_t directions, hidden;
};

/// Input number i, widened, whose shape must be the one given; null when it is absent.
UOpRef operand(Node &n, unsigned i, const char *what, llvm::ArrayRef<UOpRef> shape) {
  if (!n.has(i)) return nullptr;
  UOpRef x = n.in(i);
  if (x->dtype != n.in(0)->dtype) return n.fail(llvm::Twine(what) + " is not of the type of the sequence");
  if (x->shape == shape) return n.widen(x);
  return n.failExtents(llvm::Twine(what) + " has the shape " + dimsText(x->shape) + ", expected " + dimsText(shape),
                       x->shape, shape);
}

/// Which steps are inside of each sequence, bool [length, batch]; null: all.
UOpRef readLengths(Node &n, const Sizes &s) {
  if (!n.has(4)) return nullptr;
  UOpRef lengths = n.in(4);
  if (!isInt(lengths->dtype)) return n.fail("sequence_lens is of type " + llvm::Twine(info(lengths->dtype).text));
  if (lengths->shape != llvm::ArrayRef<UOpRef>(s.batch))
    return n.failExtents("sequence_lens has the shape " + dimsText(lengths->shape) +
                             ", expected one integer for each of " + dimsText(s.batch),
                         lengths->shape, {s.batch});
  const std::vector<UOpRef> *known = n.elements(lengths);
  if (known && llvm::all_of(*known, [&](UOpRef v) { return v == s.length; })) return nullptr;
  UOpRef step = n.iota(DType::I64, {s.length, n.c.index(1)}, 0);
  return n.bin(Op::Lt, step, n.cast(lengths, DType::I64));
}

struct Direction {
  int64_t number;
  UOpRef input;              // [length, batch, inputs], in the order of the steps
  UOpRef w;                  // of all directions
  UOpRef r, bias, peepholes; // of this one
  States initial;
  llvm::ArrayRef<Function> functions;
};

struct Results {
  UOpRef all = nullptr; // [length, batch, hidden], in the order of the steps
  States final;
};

Results run(Node &n, const Kind &kind, const Sizes &s, const Direction &d, UOpRef alive, double clip, bool variant) {
  ContractSpec spec; // labels: step, batch, row of W, input
  spec.kept = 3;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(3)};
  spec.b = {fixed(d.number), label(2), label(3)};
  UOpRef rows = n.c.index(kind.gates * s.hidden);
  UOpRef x = n.contract(spec, d.input, d.w, {s.length, s.batch, rows, s.inputs});
  bool resets = kind.step == gruStep && variant && d.bias; // its last bias is added inside of the step
  int64_t half = kind.gates * s.hidden;
  if (d.bias) {
    UOpRef recurrent = part(n, d.bias, 0, half, half);
    if (resets) {
      recurrent = part(n, recurrent, 0, 0, 2 * s.hidden);
      recurrent = n.pad(recurrent, {n.c.index(0)}, {n.c.index(s.hidden)}, 0);
    }
    x = n.bin(Op::Add, x, n.bin(Op::Add, part(n, d.bias, 0, 0, half), recurrent));
  }
  ScanMaker scan(n, s.length);
  Cell cell{n, s.hidden, clip, variant, d.functions};
  cell.h = scan.carry(d.initial[0]);
  if (kind.states > 1) cell.c = scan.carry(d.initial[1]);
  cell.x = scan.slice(x);
  UOpRef inside = alive ? n.reshape(scan.slice(alive), {s.batch, n.c.index(1)}) : nullptr;
  int64_t columns = kind.step == gruStep && !variant ? 2 * s.hidden : half;
  cell.r = scan.close(n.permute(part(n, d.r, 0, 0, columns), {1, 0}));
  if (columns < half) cell.rOfReset = scan.close(n.permute(part(n, d.r, 0, columns, s.hidden), {1, 0}));
  if (resets) cell.resetBias = scan.close(part(n, d.bias, 0, 2 * half - s.hidden, s.hidden));
  if (d.peepholes) cell.peepholes = scan.close(d.peepholes);
  if (n.failed()) return {};
  States now = {cell.h, cell.c}, next = kind.step(cell);
  UOpRef shown = next[0];
  if (inside) {
    shown = n.select(inside, next[0], n.literal(next[0], 0));
    for (unsigned i = 0; i < kind.states; ++i) next[i] = n.select(inside, next[i], now[i]);
  }
  std::vector<UOpRef> results = scan.finish(next, n.wants(0) ? llvm::ArrayRef(shown) : llvm::ArrayRef<UOpRef>());
  Results out;
  out.final.assign(results.begin(), results.begin() + kind.states);
  if (n.wants(0)) out.all = results.back();
  return out;
}

template <const Kind &kind> void recurrent(Node &n) {
  UOpRef x = n.widen(n.in(0)), w = n.in(1), r = n.in(2);
  if (!n.requireFloat(x) || !n.requireRank(x, 3, 3) || !n.requireRank(w, 3, 3) || !n.requireRank(r, 3, 3)) return;
  std::string direction = n.stringAttr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    n.fail("attribute 'direction' is '" + direction + "', expected forward, reverse or bidirectional");
  bool batchFirst = n.opset >= 14 && n.intAttr("layout", 0) != 0;
  if (n.opset < 7) n.ignoreAttr("output_sequence"); // whether output 0 is there says the same
  bool variant = kind.variant && n.intAttr(kind.variant, 0) != 0;
  double clip = n.floatAttr("clip", INFINITY);
  if (!(clip >= 0)) n.fail("attribute 'clip' is negative");
  if (n.failed()) return;
  if (batchFirst) x = n.permute(x, {1, 0, 2});
  Sizes s{x->shape[0], x->shape[1], x->shape[2], direction == "bidirectional" ? 2 : 1,
          n.constExtent(r, 2, "the hidden size")};
  if (int64_t given = n.intAttr("hidden_size", s.hidden); given != s.hidden)
    n.fail("attribute 'hidden_size' is " + llvm::Twine(given) + ", the weights have " + llvm::Twine(s.hidden));
  if (s.hidden < 0 || s.hidden > int64_t(1) << 32) n.fail("a hidden size of " + llvm::Twine(s.hidden));
  if (n.failed()) return;

  UOpRef directions = n.c.index(s.directions), hidden = n.c.index(s.hidden);
  auto times = [&](int64_t k) { return n.c.index(k * s.hidden); };
  w = operand(n, 1, "W", {directions, times(kind.gates), s.inputs});
  r = operand(n, 2, "R", {directions, times(kind.gates), hidden});
  UOpRef bias = operand(n, 3, "B", {directions, times(2 * kind.gates)}), initial[2];
  for (unsigned i = 0; i < kind.states; ++i)
    initial[i] = operand(n, 5 + i, i ? "initial_c" : "initial_h",
                         batchFirst ? Dims{s.batch, directions, hidden} : Dims{directions, s.batch, hidden});
  UOpRef peepholes = kind.states > 1 ? operand(n, 7, "P", {directions, times(3)}) : nullptr;
  UOpRef alive = readLengths(n, s);
  std::vector<Function> functions = readFunctions(n, kind, s.directions);
  if (n.failed()) return;

  Dims state = {s.batch, hidden};
  llvm::SmallVector<UOpRef, 2> all, final[2];
  for (int64_t d = 0; d < s.directions; ++d) {
    bool backward = d == 1 || direction == "reverse";
    auto turned = [&](UOpRef v) {
      if (!backward || !v) return v;
      return alive ? reverseSequence(n, v, n.in(4), /*batch=*/1, /*time=*/0) : n.make(Op::Flip, {v}, {0});
    };
    Direction part{d,
                   turned(x),
                   w,
                   item(n, r, d),
                   item(n, bias, d),
                   item(n, peepholes, d),
                   {},
                   llvm::ArrayRef(functions).slice(d * kind.functions.size(), kind.functions.size())};
    for (unsigned i = 0; i < kind.states; ++i)
      part.initial.push_back(initial[i] ? item(n, batchFirst ? n.permute(initial[i], {1, 0, 2}) : initial[i], d)
                                        : n.broadcastTo(n.literal(x, 0), state));
    Results results = run(n, kind, s, part, alive, clip, variant);
    if (n.failed()) return;
    if (n.wants(0)) all.push_back(n.unsqueeze(turned(results.all), {1}));
    for (unsigned i = 0; i < kind.states; ++i) final[i].push_back(n.unsqueeze(results.final[i], {0}));
  }
  DType type = n.in(0)->dtype;
  if (n.wants(0)) {
    UOpRef y = n.concat(all, 1); // [length, directions, batch, hidden]
    n.give(n.cast(batchFirst ? n.permute(y, {2, 0, 1, 3}) : y, type));
  }
  for (unsigned i = 0; i < kind.states; ++i) {
    UOpRef y = n.concat(final[i], 0);
    n.give(1 + i, n.cast(batchFirst ? n.permute(y, {1, 0, 2}) : y, type));
  }
}

constexpr Row rows[] = {
    {"RNN", 1, latest, 3, 6, recurrent<rnn>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
    {"GRU", 1, latest, 3, 6, recurrent<gru>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
    {"LSTM", 1, latest, 3, 8, recurrent<lstm>, floatTypes,
     "clip bounds what every activation takes; past its end a sequence gives 0 and keeps its state"},
};

} // namespace

llvm::ArrayRef<Row> recurrentRows() { return rows; }

} // namespace astra::onnx
