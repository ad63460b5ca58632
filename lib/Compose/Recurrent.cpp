//===- Recurrent.cpp: RNN, GRU, LSTM -------------------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    one `scan` per direction.
#include "astra/Compose/Recurrent.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Quantization.h"
#include "astra/Compose/Scan.h"
#include "astra/Compose/Sequence.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::compose {

namespace {

AffineForm fixed(int64_t index) { return {{}, index, 1}; }

/// x[d] along the first axis.
UOpRef item(Composer &b, UOpRef x, int64_t d) { return x ? b.element(x, 0, d) : nullptr; }

struct Function {
  const Activation *activation;
  double alpha, beta;
};

/// What a quantization to u8 by the range of x leaves of it.
UOpRef roundedByRange(Composer &b, UOpRef x) {
  DynamicallyQuantized q = quantizeByRange(b, x);
  return dequantize(b, q.value, q.scale, q.zero, {});
}

/// One step of one direction, inside of the scan.
struct Cell {
  Composer &b;
  int64_t hidden;
  double clip;  // of what the activations take; infinite: none
  bool variant; // GRU: linear_before_reset; LSTM: input_forget
  bool rounds;  // states before the products
  llvm::ArrayRef<Function> functions;
  UOpRef x = nullptr;              // [batch, gates * hidden]: the input's part of all gates, biases included
  UOpRef h = nullptr, c = nullptr; // [batch, hidden]
  // R transposed, so that neighbours are a vector's lanes: [hidden, gates * hidden]. What a GRU resets before the
  // product has columns of its own, [hidden, hidden], which `r` lacks then: the body reads whole values alone.
  UOpRef r = nullptr, rOfReset = nullptr;
  UOpRef resetBias = nullptr; // [hidden], GRU with linear_before_reset
  UOpRef peepholes = nullptr; // [3 * hidden], LSTM

  UOpRef gate(UOpRef all, int64_t i, int64_t count = 1) {
    return b.part(all, all->rank() - 1, i * hidden, count * hidden);
  }
  /// state R^T for the columns given.
  UOpRef times(UOpRef state, UOpRef r) {
    if (rounds) state = roundedByRange(b, state);
    ContractSpec spec;
    spec.kept = 2;
    spec.reduced = 1;
    spec.a = {label(0), label(2)};
    spec.b = {label(2), label(1)};
    return !state || !r ? nullptr : b.contract(spec, state, r, {state->shape[0], r->shape[1], r->shape[0]});
  }
  UOpRef add(UOpRef x, UOpRef y) { return b.bin(Op::Add, x, y); }
  UOpRef mul(UOpRef x, UOpRef y) { return b.bin(Op::Mul, x, y); }
  UOpRef oneMinus(UOpRef x) { return b.bin(Op::Sub, b.literal(x, 1), x); }
  UOpRef apply(unsigned i, UOpRef v) {
    if (!std::isinf(clip)) {
      UOpRef least = b.literal(v, -clip), most = b.literal(v, clip);
      v = b.select(b.bin(Op::Lt, v, least), least, v);
      v = b.select(b.bin(Op::Lt, most, v), most, v);
    }
    const Function &f = functions[i];
    return v ? f.activation->apply(b, v, f.alpha, f.beta) : nullptr;
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

/// What tells the three cells apart.
struct Kind {
  int64_t gates;
  unsigned states;
  llvm::ArrayRef<const char *> functions; // those of one direction
  States (*step)(Cell &);
};
constexpr const char *rnnFunctions[] = {"Tanh"}, *gruFunctions[] = {"Sigmoid", "Tanh"},
                     *lstmFunctions[] = {"Sigmoid", "Tanh", "Tanh"};
/// By RecurrentCell.
const Kind kinds[] = {{1, 1, rnnFunctions, rnnStep}, {3, 1, gruFunctions, gruStep}, {4, 2, lstmFunctions, lstmStep}};

/// All directions' functions. Alphas and betas go, in order, to the functions that take
/// one; those without get the default, and values that are left over say nothing.
std::vector<Function> readFunctions(Composer &b, const Kind &kind, const RecurrentOptions &options,
                                    int64_t directions) {
  std::vector<std::string> names = options.activations;
  size_t count = directions * kind.functions.size();
  if (names.empty())
    for (size_t i = 0; i < count; ++i) names.push_back(kind.functions[i % kind.functions.size()]);
  llvm::ArrayRef<float> alpha = options.alphas, beta = options.betas;
  if (names.size() != count)
    b.fail("found " + llvm::Twine(names.size()) + " activations, expected " + llvm::Twine(count));
  std::vector<Function> functions;
  size_t alphas = 0, betas = 0;
  for (const std::string &name : names) {
    const Activation *a = findActivation(name);
    if (!a) {
      b.fail("activation '" + name + "' is not known: expected one of " + activationNames());
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

/// An operand, widened, whose shape must be the one given; null when it is absent.
UOpRef operand(Composer &b, UOpRef x, DType type, const char *what, llvm::ArrayRef<UOpRef> shape) {
  if (!x) return nullptr;
  if (x->dtype != type) return b.fail(llvm::Twine(what) + " is not of the type of the sequence");
  if (x->shape == shape) return b.widen(x);
  return b.failExtents(llvm::Twine(what) + " has the shape " + dimsText(x->shape) + ", expected " + dimsText(shape),
                       x->shape, shape);
}

/// Which steps are inside of each sequence, bool [length, batch]; null: all.
UOpRef readLengths(Composer &b, UOpRef lengths, const Sizes &s) {
  if (!lengths) return nullptr;
  if (!isInt(lengths->dtype)) return b.fail("sequence_lens is of type " + llvm::Twine(info(lengths->dtype).text));
  if (lengths->shape != llvm::ArrayRef<UOpRef>(s.batch))
    return b.failExtents("sequence_lens has the shape " + dimsText(lengths->shape) +
                             ", expected one integer for each of " + dimsText(s.batch),
                         lengths->shape, {s.batch});
  const std::vector<UOpRef> *known = b.elements(lengths);
  if (known && llvm::all_of(*known, [&](UOpRef v) { return v == s.length; })) return nullptr;
  UOpRef step = b.iota(DType::I64, {s.length, b.idx(1)}, 0);
  return b.bin(Op::Lt, step, b.cast(lengths, DType::I64));
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

Results run(Composer &b, const Kind &kind, const Sizes &s, const Direction &d, UOpRef alive,
            const RecurrentOptions &options) {
  ContractSpec spec; // labels: step, batch, row of W, input
  spec.kept = 3;
  spec.reduced = 1;
  spec.a = {label(0), label(1), label(3)};
  spec.b = {fixed(d.number), label(2), label(3)};
  bool variant = kind.step == gruStep ? options.linearBeforeReset : options.inputForget;
  UOpRef rows = b.idx(kind.gates * s.hidden);
  UOpRef x = b.contract(spec, d.input, d.w, {s.length, s.batch, rows, s.inputs});
  bool resets = kind.step == gruStep && variant && d.bias; // its last bias is added inside of the step
  int64_t half = kind.gates * s.hidden;
  if (d.bias) {
    UOpRef recurrent = b.part(d.bias, 0, half, half);
    if (resets) {
      recurrent = b.part(recurrent, 0, 0, 2 * s.hidden);
      recurrent = b.pad(recurrent, {b.idx(0)}, {b.idx(s.hidden)}, 0);
    }
    x = b.bin(Op::Add, x, b.bin(Op::Add, b.part(d.bias, 0, 0, half), recurrent));
  }
  ScanMaker scan(b, s.length);
  Cell cell{b, s.hidden, options.clip, variant, options.roundsByRange, d.functions};
  cell.h = scan.carry(d.initial[0]);
  if (kind.states > 1) cell.c = scan.carry(d.initial[1]);
  cell.x = scan.slice(x);
  UOpRef inside = alive ? b.reshape(scan.slice(alive), {s.batch, b.idx(1)}) : nullptr;
  int64_t columns = kind.step == gruStep && !variant ? 2 * s.hidden : half;
  cell.r = scan.close(b.permute(b.part(d.r, 0, 0, columns), {1, 0}));
  if (columns < half) cell.rOfReset = scan.close(b.permute(b.part(d.r, 0, columns, s.hidden), {1, 0}));
  if (resets) cell.resetBias = scan.close(b.part(d.bias, 0, 2 * half - s.hidden, s.hidden));
  if (d.peepholes) cell.peepholes = scan.close(d.peepholes);
  if (b.failed()) return {};
  States now = {cell.h, cell.c}, next = kind.step(cell);
  UOpRef shown = next[0];
  if (inside) {
    shown = b.select(inside, next[0], b.literal(next[0], 0));
    for (unsigned i = 0; i < kind.states; ++i) next[i] = b.select(inside, next[i], now[i]);
  }
  std::vector<UOpRef> results = scan.finish(next, options.allSteps ? llvm::ArrayRef(shown) : llvm::ArrayRef<UOpRef>());
  Results out;
  out.final.assign(results.begin(), results.begin() + kind.states);
  if (options.allSteps) out.all = results.back();
  return out;
}

} // namespace

RecurrentResult recurrent(Composer &b, RecurrentCell cell, const RecurrentOperands &operands,
                          const RecurrentOptions &options) {
  using Way = RecurrentOptions::Direction;
  const Kind &kind = kinds[unsigned(cell)];
  UOpRef x = b.widen(operands.x), w = operands.w, r = operands.r;
  if (!b.requireFloat(x) || !b.requireRank(x, 3, 3) || !b.requireRank(w, 3, 3) || !b.requireRank(r, 3, 3)) return {};
  bool batchFirst = options.batchFirst;
  if (!(options.clip >= 0)) b.fail(b.hints.option("clip") + " is negative");
  if (b.failed()) return {};
  if (options.roundsByRange) x = roundedByRange(b, x);
  if (batchFirst) x = b.permute(x, {1, 0, 2});
  Sizes s{x->shape[0], x->shape[1], x->shape[2], options.direction == Way::Bidirectional ? 2 : 1,
          b.constExtent(r, 2, "the hidden size")};
  if (int64_t given = options.hiddenSize.value_or(s.hidden); given != s.hidden)
    b.fail(b.hints.option("hidden_size") + " is " + llvm::Twine(given) + ", the weights have " + llvm::Twine(s.hidden));
  if (s.hidden < 0 || s.hidden > int64_t(1) << 32) b.fail("a hidden size of " + llvm::Twine(s.hidden));
  if (b.failed()) return {};

  DType type = operands.x->dtype;
  UOpRef directions = b.idx(s.directions), hidden = b.idx(s.hidden);
  auto times = [&](int64_t k) { return b.idx(k * s.hidden); };
  w = operand(b, w, type, "W", {directions, times(kind.gates), s.inputs});
  r = operand(b, r, type, "R", {directions, times(kind.gates), hidden});
  UOpRef bias = operand(b, operands.bias, type, "B", {directions, times(2 * kind.gates)}), initial[2];
  for (unsigned i = 0; i < kind.states; ++i)
    initial[i] = operand(b, i ? operands.cell : operands.hidden, type, i ? "initial_c" : "initial_h",
                         batchFirst ? Dims{s.batch, directions, hidden} : Dims{directions, s.batch, hidden});
  UOpRef peepholes = kind.states > 1 ? operand(b, operands.peepholes, type, "P", {directions, times(3)}) : nullptr;
  UOpRef alive = readLengths(b, operands.lengths, s);
  std::vector<Function> functions = readFunctions(b, kind, options, s.directions);
  if (b.failed()) return {};

  Dims state = {s.batch, hidden};
  llvm::SmallVector<UOpRef, 2> all, final[2];
  for (int64_t d = 0; d < s.directions; ++d) {
    bool backward = d == 1 || options.direction == Way::Reverse;
    auto turned = [&](UOpRef v) {
      if (!backward || !v) return v;
      return alive ? reverseSequence(b, v, operands.lengths, /*batch=*/1, /*time=*/0) : b.make(Op::Flip, {v}, {0});
    };
    Direction part{d,
                   turned(x),
                   w,
                   item(b, r, d),
                   item(b, bias, d),
                   item(b, peepholes, d),
                   {},
                   llvm::ArrayRef(functions).slice(d * kind.functions.size(), kind.functions.size())};
    for (unsigned i = 0; i < kind.states; ++i)
      part.initial.push_back(initial[i] ? item(b, batchFirst ? b.permute(initial[i], {1, 0, 2}) : initial[i], d)
                                        : b.broadcastTo(b.literal(x, 0), state));
    Results results = run(b, kind, s, part, alive, options);
    if (b.failed()) return {};
    if (options.allSteps) all.push_back(b.unsqueeze(turned(results.all), {1}));
    for (unsigned i = 0; i < kind.states; ++i) final[i].push_back(b.unsqueeze(results.final[i], {0}));
  }
  RecurrentResult result;
  if (options.allSteps) {
    UOpRef y = b.concat(all, 1); // [length, directions, batch, hidden]
    result.all = b.cast(batchFirst ? b.permute(y, {2, 0, 1, 3}) : y, type);
  }
  for (unsigned i = 0; i < kind.states; ++i) {
    UOpRef y = b.concat(final[i], 0);
    (i ? result.cell : result.hidden) = b.cast(batchFirst ? b.permute(y, {1, 0, 2}) : y, type);
  }
  return result;
}

UOpRef gatesInOrder(Composer &b, RecurrentCell cell, UOpRef w) {
  if (cell == RecurrentCell::RNN || !b.requireRank(w, 1)) return w;
  Ints order = cell == RecurrentCell::LSTM ? Ints{0, 3, 1, 2} : Ints{1, 0, 2};
  int64_t rows = b.constExtent(w, 0, "the gates' axis"), count = int64_t(order.size());
  if (rows % count) b.fail(llvm::Twine(rows) + " rows are not those of " + llvm::Twine(count) + " gates");
  if (b.failed()) return nullptr;
  Dims parts;
  for (int64_t gate : order) parts.push_back(b.part(w, 0, gate * (rows / count), rows / count));
  return b.concat(parts, 0);
}

} // namespace astra::compose
