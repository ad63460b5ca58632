//===- Roles.cpp: what a parameter is in a model ---------------------------===//
// Takes:    the graph of a model, before parameters become states.
// Gives:    the rows of the table, and which of them each parameter is.
// Keeps:    two sweeps. Upward each value gets a fact: a product, a variance, what is normalized. Where facts meet a
//           value that is a parameter moved about, that value is asked to play a role. Downward what is asked goes
//           through movement to the parameters.
#include "astra/NN/Roles.h"
#include "astra/IR/Contract.h"
#include "astra/NN/Initializer.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace astra;
using namespace astra::nn;

namespace {
enum RoleKind : uint8_t { Recurrent, Weight, Bias, Table, Slope, Scale, Shift, None };
constexpr llvm::StringLiteral bound = "1/sqrt(n)";
constexpr const char *within = "uniform(low=-1/sqrt(n), high=1/sqrt(n))";
// reset_parameters of RNNBase; Linear and _ConvNd, twice; Embedding; PReLU; LayerNorm, GroupNorm, RMSNorm, _NormBase.
constexpr RoleInfo table[] = {
    {"recurrent",
     "weights and biases of an LSTM, a GRU or an RNN: of a product with a value that a scan carries, and of "
     "what is added to one; n: the hidden size",
     within},
    {"weight",
     "an operand of a product or a convolution; n: how many of its elements an output sums, of a transposed "
     "convolution how many outputs an input feeds, as PyTorch counts",
     within},
    {"bias", "is added to a product or a convolution, one number a feature; n: as of the weight there", within},
    {"table", "a matrix, rows of it are gathered by indices along the first axis, and it is no weight",
     "normal(mean=0, std=1)"},
    {"slope", "of a PReLU: what a value is multiplied by where it is negative", "constant(value=0.25)"},
    {"scale",
     "multiplies what is divided by its root mean square or standard deviation (layer, group, batch, instance "
     "and RMS norm)",
     "constant(value=1)"},
    {"shift", "is added behind such a scale, one number for each of its own", "constant(value=0)"},
};
static_assert(std::size(table) == None);

enum class Kind : uint8_t {
  Other,
  Stored,     // a parameter or state, moved about
  Carried,    // what a loop carries
  Product,    // of something and a weight
  Square,     // x * x
  Squares,    // a sum of these
  Variance,   // a mean of these, or what is stored and an epsilon
  Deviation,  // its root
  Inverse,    // one over that
  Factor,     // a scale times that
  Normalized, // something times that or times a factor
};
struct Fact {
  Kind kind = Kind::Other;
  bool data = false;      // depends on an input
  bool recurrent = false; // Product: with what a loop carries
  double size = 0;        // Stored: elements; Product: features; Factor, Normalized: elements of the scale, 0: none yet
  double inputs = 0;      // Product: of each feature
  bool scalar = false;    // Stored: of rank 0 before it was moved about
};
struct Wish {
  RoleKind role = None;
  double inputs = 0;
};

double extentOf(UOpRef contract, int64_t label) {
  return double(contract->indices()[label]->constIndex().value_or(0)); // 0: not known, no product counts
}

/// What a product says of its weight, operand `w`.
struct Fan {
  double inputs = 1, features = 1;
};
Fan fanOf(UOpRef n, unsigned w) {
  ContractSpec spec = llvm::cantFail(decodeContract(n->ints));
  llvm::ArrayRef<AffineForm> mine = w ? spec.b : spec.a, other = w ? spec.a : spec.b;
  // A transposed convolution reads its input backward along the kernel.
  auto isBackward = [&](int64_t label) {
    return llvm::any_of(other, [&](const AffineForm &f) {
      return llvm::any_of(f.terms, [&](auto term) { return term.first == label && term.second < 0; });
    });
  };
  Fan forward, backward;
  bool transposed = false;
  for (int64_t label = 0; label < spec.kept + spec.reduced; ++label) {
    if (!hasLabel(mine, label)) continue;
    double extent = extentOf(n, label);
    bool kept = label < spec.kept, turned = !kept && isBackward(label);
    (kept ? forward.features : forward.inputs) *= extent;
    if (turned || (kept && !hasLabel(other, label))) backward.inputs *= extent;
    transposed |= turned;
  }
  backward.features = forward.features;
  return transposed ? backward : forward;
}

/// One graph: of the model, or of a function in it.
class Analysis {
public:
  /// `given`: facts of the function's arguments; of the model's inputs there are none.
  Analysis(llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<Fact> given) : given(given), order(topoSort(outputs)) {
    for (UOpRef n : order)
      if (!n->isIndex()) facts[n] = factOf(n);
    for (UOpRef n : llvm::reverse(order)) {
      if (auto it = wishes.find(n); it != wishes.end()) pass(n, it->second);
      if (isMoved(n) && guard.contains(n)) guard.insert(n->src[0]);
    }
  }
  bool isGuard(UOpRef leaf) const { return guard.contains(leaf); }
  /// What was asked of the leaves.
  template <class Each> void leaves(Op op, Each each) const {
    for (UOpRef n : order)
      if (auto it = wishes.find(n); n->is(op) && it != wishes.end()) each(n, it->second);
  }

private:
  llvm::ArrayRef<Fact> given;
  std::vector<UOpRef> order;
  llvm::DenseMap<UOpRef, Fact> facts;
  llvm::DenseMap<UOpRef, Wish> wishes;
  llvm::DenseSet<UOpRef> guard; // stored scalars that are added to a variance

  void ask(UOpRef n, Wish wish) {
    Wish &w = wishes[n];
    if (wish.role < w.role || (wish.role == w.role && wish.inputs > w.inputs)) w = wish;
  }
  static bool isMoved(UOpRef n) {
    return has(n->op, Movement) || n->is(Op::Cast) || n->is(Op::Tap) || n->is(Op::Detach) || n->is(Op::After) ||
           n->is(Op::WithGradient);
  }

  Fact factOf(UOpRef n);
  Fact moved(UOpRef n) const;
  Fact product(UOpRef n);
  Fact times(UOpRef x, UOpRef y);
  Fact plus(UOpRef x, UOpRef y);
  Fact over(UOpRef x, UOpRef y);
  void slope(UOpRef n);
  void call(UOpRef n);
  void pass(UOpRef n, Wish wish);
  unsigned weightOperand(UOpRef n) const {
    return facts.lookup(n->src[1]).data ? 0 : 1;
  } // of two, as in ONNX, the second
};

Fact Analysis::factOf(UOpRef n) {
  Fact f;
  for (UOpRef s : n->tensors()) f.data |= facts.lookup(s).data;
  auto kindIs = [&](Kind k) { return facts.lookup(n->src[0]).kind == k; };
  auto is = [&](Kind k) {
    f.kind = k;
    return f;
  };
  if (isMoved(n)) return moved(n);
  switch (n->op) {
  case Op::Param:
  case Op::State:
    f.size = 1;
    for (UOpRef d : n->shape) f.size *= double(d->hi);
    f.scalar = !n->rank();
    return is(Kind::Stored);
  case Op::Arg:
    if (size_t(n->ints[0]) < given.size()) return given[n->ints[0]];
    f.data = true;
    return f;
  case Op::Random: f.data = true; return f;
  case Op::Contract: return product(n);
  case Op::Mul: return times(n->src[0], n->src[1]);
  case Op::Add: return plus(n->src[0], n->src[1]);
  case Op::Sub: return facts.lookup(n->src[1]).kind == Kind::Normalized ? plus(n->src[0], n->src[1]) : f;
  case Op::Div: return over(n->src[0], n->src[1]);
  case Op::Reduce: return kindIs(Kind::Square) && ReduceKind(n->ints[0]) == ReduceKind::Sum ? is(Kind::Squares) : f;
  case Op::Sqrt: return kindIs(Kind::Variance) ? is(Kind::Deviation) : f;
  case Op::Rsqrt: return kindIs(Kind::Variance) ? is(Kind::Inverse) : f;
  case Op::Gather:
    if (n->ints[0] == 0 && n->src[0]->rank() == 2) ask(n->src[0], {Table});
    return f;
  case Op::Select:
    slope(n);
    for (UOpRef s : n->src.drop_front()) // a concatenation
      if (Fact part = facts.lookup(s); !f.data && part.kind == Kind::Stored && part.size > f.size) f = part;
    return f;
  case Op::Cond:
  case Op::While:
  case Op::Scan:
    call(n);
    f.data = true;
    return f;
  default: return f;
  }
}

/// A part of a tensor has a part of its numbers; repeated they are no more.
Fact Analysis::moved(UOpRef n) const {
  Fact f = facts.lookup(n->src[0]);
  if (f.kind == Kind::Stored && (n->is(Op::Shrink) || n->is(Op::Pad)))
    for (auto [now, was] : llvm::zip(n->shape, n->src[0]->shape))
      if (now != was && now->constIndex() && was->constIndex()) f.size *= double(now->hi) / double(was->hi);
  return f;
}

Fact Analysis::product(UOpRef n) {
  unsigned w = weightOperand(n);
  Fact weight = facts.lookup(n->src[w]), other = facts.lookup(n->src[1 - w]), f;
  f.data = weight.data || other.data;
  Fan fan = fanOf(n, w);
  if (weight.data || fan.inputs < 1) return f;
  f.kind = Kind::Product;
  f.recurrent = other.kind == Kind::Carried;
  f.size = fan.features;
  f.inputs = fan.inputs;
  ask(n->src[w], {f.recurrent ? Recurrent : Weight, fan.inputs});
  return f;
}

Fact Analysis::times(UOpRef x, UOpRef y) {
  Fact a = facts.lookup(x), b = facts.lookup(y), f;
  f.data = a.data || b.data;
  if (x == y) {
    if (f.data) f.kind = Kind::Square;
    return f;
  }
  for (unsigned turn = 0; turn < 2; ++turn, std::swap(x, y), std::swap(a, b)) {
    bool constant = !b.data && b.kind == Kind::Other; // b: a number, or many equal ones
    if (b.kind == Kind::Inverse && a.kind == Kind::Stored) {
      ask(x, {Scale});
      f.kind = Kind::Factor, f.size = a.size;
    } else if (b.kind == Kind::Inverse || b.kind == Kind::Factor) {
      f.kind = Kind::Normalized, f.size = b.size;
    } else if (a.kind == Kind::Normalized && !a.size && b.kind == Kind::Stored) {
      ask(y, {Scale});
      f.kind = Kind::Normalized, f.size = b.size;
    } else if (constant && (a.kind == Kind::Squares || a.kind == Kind::Variance)) {
      f.kind = Kind::Variance;
    } else if (constant && (a.kind == Kind::Product || a.kind == Kind::Normalized)) {
      return a;
    }
    if (f.kind != Kind::Other) break;
  }
  return f;
}

/// x + y, and x - y where y is normalized.
Fact Analysis::plus(UOpRef x, UOpRef y) {
  Fact a = facts.lookup(x), b = facts.lookup(y), f;
  f.data = a.data || b.data;
  if (a.kind == Kind::Stored && b.kind == Kind::Stored) return a.size < b.size ? b : a;
  for (unsigned turn = 0; turn < 2; ++turn, std::swap(x, y), std::swap(a, b)) {
    bool constant = !b.data && b.kind == Kind::Other;
    bool guards = b.kind == Kind::Stored && b.scalar && a.kind == Kind::Variance;
    if (guards) guard.insert(y);
    if (guards || (constant && (a.kind == Kind::Variance || a.kind == Kind::Stored))) {
      f.kind = Kind::Variance;
    } else if (a.kind == Kind::Normalized && b.kind == Kind::Stored && a.size == b.size) {
      ask(y, {Shift});
    } else if (a.kind == Kind::Product && a.recurrent) {
      ask(y, {Recurrent, a.inputs}); // the product of the step's input, or a bias
    } else if (a.kind == Kind::Product && b.kind == Kind::Stored && a.size == b.size) {
      ask(y, {Bias, a.inputs});
    }
  }
  return f;
}

Fact Analysis::over(UOpRef x, UOpRef y) {
  Fact a = facts.lookup(x), b = facts.lookup(y), f;
  f.data = a.data || b.data;
  bool constant = !a.data && a.kind == Kind::Other;
  if (b.kind == Kind::Deviation && a.kind == Kind::Stored) {
    ask(x, {Scale});
    f.kind = Kind::Factor, f.size = a.size;
  } else if (b.kind == Kind::Deviation) {
    f.kind = constant ? Kind::Inverse : Kind::Normalized;
  } else if (!b.data && b.kind == Kind::Other && (a.kind == Kind::Squares || a.kind == Kind::Variance)) {
    f.kind = Kind::Variance;
  }
  return f;
}

/// x < 0 ? x * slope : x, or 0 < x ? x : x * slope.
void Analysis::slope(UOpRef n) {
  UOpRef condition = n->src[0];
  if (!condition->is(Op::Lt) && !condition->is(Op::Le)) return;
  for (unsigned i = 1; i <= 2; ++i) {
    UOpRef x = n->src[3 - i], product = n->src[i];
    if (!product->is(Op::Mul) || !llvm::is_contained(product->src, x) || condition->src[i - 1] != x) continue;
    UOpRef s = product->src[product->src[0] == x];
    if (facts.lookup(s).kind == Kind::Stored) ask(s, {Slope});
  }
}

/// The functions of a control op, with what is known of its sources; what is asked of their arguments is asked of
/// these. Functions are nested at most 16 deep (Verify.cpp).
void Analysis::call(UOpRef n) {
  unsigned first = n->is(Op::Cond); // source 0 of a cond is no argument
  size_t carried = n->is(Op::While) ? n->ntensors : n->is(Op::Scan) ? size_t(n->ints[0]) : 0;
  UOpRef body = n->fns.back();
  std::vector<Fact> in;
  for (UOpRef s : n->tensors().drop_front(first)) in.push_back(facts.lookup(s));
  for (size_t i = 0; i < carried; ++i) {
    UOpRef next = body->src[i];
    bool stays = next->is(Op::Arg) && next->ints[0] == int64_t(i);
    if (!stays) in[i] = Fact{Kind::Carried, /*data=*/true};
  }
  for (size_t i = carried; n->is(Op::Scan) && i < carried + size_t(n->ints[1]); ++i) // a step has a slice of these
    if (auto length = n->src[i]->shape[0]->constIndex(); in[i].kind == Kind::Stored && length.value_or(0) > 0)
      in[i].size /= double(*length);
  for (UOpRef function : n->fns)
    Analysis(function->src, in).leaves(Op::Arg, [&](UOpRef arg, Wish wish) {
      ask(n->src[first + arg->ints[0]], wish);
    });
}

void Analysis::pass(UOpRef n, Wish wish) {
  bool fixed = !facts.lookup(n).data;
  if (isMoved(n)) {
    ask(n->src[0], wish);
  } else if (n->is(Op::Select) && fixed) { // a concatenation
    ask(n->src[1], wish);
    ask(n->src[2], wish);
  } else if (n->is(Op::Add) && (wish.role == Recurrent || (wish.role == Bias && fixed))) {
    ask(n->src[0], wish);
    ask(n->src[1], wish);
  } else if (n->is(Op::Contract) && wish.role == Recurrent && facts.lookup(n).kind == Kind::Product) {
    ask(n->src[weightOperand(n)], wish);
  }
}
} // namespace

llvm::ArrayRef<RoleInfo> nn::roles() { return table; }

Recipe Role::initializer() const {
  std::string text = info->begins, number;
  llvm::raw_string_ostream(number) << llvm::format("%.17g", 1 / std::sqrt(inputs));
  for (size_t at; (at = text.find(bound)) != text.npos;) text.replace(at, bound.size(), number);
  return llvm::cantFail(parseInitializer(text));
}

llvm::DenseMap<UOpRef, Role> nn::rolesOf(llvm::ArrayRef<UOpRef> outputs) {
  llvm::DenseMap<UOpRef, Role> result;
  Analysis all(outputs, {});
  all.leaves(Op::Param, [&](UOpRef n, Wish w) { result[n] = {&table[w.role], w.inputs}; });
  for (UOpRef n : topoSort(outputs))
    if (n->is(Op::Param) && all.isGuard(n)) result[n].isGuard = true;
  return result;
}
