//===- Formula.cpp: rows of mathematics in both modes ----------------------===//
// Takes:    a row, a node of its op, tangents of the sources or the cotangent of the result.
// Gives:    the tangent as the row states it, or the row transposed: from the root of the term down, a sum hands its
//           cotangent to both sides, a product hands it on times the other factor, of a complex one its conjugate, a
//           choice on one side or 0.
// Keeps:    recursion over terms alone (31 nodes). What multiplies a tangent that is not asked for is not built.
#include "Rows.h"

using namespace astra;
using namespace astra::autograd;
using namespace astra::rules;

namespace {
class Instance {
public:
  Instance(Builder &b, const Formula &row, UOpRef n) : b(b), row(row), n(n) {
    const TermNode &root = row.value.root();
    for (unsigned i = 0; i < root.arity; ++i) {
      const TermNode &name = row.value.nodes[root.arg[i]];
      source[unsigned(name.kind)][name.number] = n->src[i];
      if (name.kind == TermKind::Value) position[name.number] = i;
    }
  }
  static constexpr unsigned root(const Term &t) { return t.size - 1; }

  UOpRef forward(unsigned at, Tangents d) {
    const TermNode &t = node(at);
    if (isTangent(t)) return d[positionOf(t)];
    if (!linear(at)) return nullptr; // the 0 of a choice
    UOpRef l = linear(t.arg[0]) ? forward(t.arg[0], d) : nullptr;
    UOpRef r = t.arity > 1 && linear(t.arg[1]) ? forward(t.arg[1], d) : nullptr;
    switch (t.op) {
    case Op::Neg: return l ? b.un(Op::Neg, l) : nullptr;
    case Op::Add: return l && r ? b.add(l, r) : l ? l : r;
    case Op::Sub: return l && r ? b.sub(l, r) : l ? l : r ? b.un(Op::Neg, r) : nullptr;
    case Op::Mul: return l ? b.mul(l, value(t.arg[1])) : r ? b.mul(value(t.arg[0]), r) : nullptr;
    case Op::Div:
    case Op::Scale2: return l ? b.bin(t.op, l, value(t.arg[1])) : nullptr;
    default: { // Select
      UOpRef other = linear(t.arg[2]) ? forward(t.arg[2], d) : nullptr;
      if (!r && !other) return nullptr;
      UOpRef zero = b.litInt(n->dtype, 0);
      return b.select(value(t.arg[0]), r ? r : zero, other ? other : zero);
    }
    }
  }

  void backward(unsigned at, UOpRef g, llvm::ArrayRef<bool> wanted, llvm::SmallVectorImpl<UOpRef> &out) {
    const TermNode &t = node(at);
    if (!reaches(at, wanted)) return;
    if (isTangent(t)) {
      UOpRef &slot = out[positionOf(t)];
      slot = slot ? b.add(slot, g) : g;
      return;
    }
    auto pass = [&](unsigned k, auto make) {
      if (linear(t.arg[k]) && reaches(t.arg[k], wanted)) backward(t.arg[k], make(), wanted, out);
    };
    UOpRef zero = b.litInt(n->dtype, 0);
    switch (t.op) {
    case Op::Neg: return pass(0, [&] { return b.un(Op::Neg, g); });
    case Op::Add: pass(0, [&] { return g; }); return pass(1, [&] { return g; });
    case Op::Sub: pass(0, [&] { return g; }); return pass(1, [&] { return b.un(Op::Neg, g); });
    case Op::Mul:
      pass(0, [&] { return b.mul(g, conjugate(b, value(t.arg[1]))); });
      return pass(1, [&] { return b.mul(conjugate(b, value(t.arg[0])), g); });
    case Op::Div:
    case Op::Scale2: return pass(0, [&] { return b.bin(t.op, g, conjugate(b, value(t.arg[1]))); });
    default: // Select
      pass(1, [&] { return b.select(value(t.arg[0]), g, zero); });
      return pass(2, [&] { return b.select(value(t.arg[0]), zero, g); });
    }
  }

private:
  Builder &b;
  const Formula &row;
  UOpRef n;
  std::array<std::array<UOpRef, numNames>, 3> source{};
  std::array<unsigned, numNames> position{};
  std::array<UOpRef, Term::capacity> values{};

  const TermNode &node(unsigned at) const { return row.tangent.nodes[at]; }
  bool linear(unsigned at) const { return row.linear >> at & 1; }
  unsigned positionOf(const TermNode &tangent) const { return position[tangent.number - firstTangent]; }

  bool reaches(unsigned at, llvm::ArrayRef<bool> wanted) const {
    const TermNode &t = node(at);
    if (isTangent(t)) return wanted[positionOf(t)];
    for (unsigned k = 0; k < t.arity; ++k)
      if (linear(t.arg[k]) && reaches(t.arg[k], wanted)) return true;
    return false;
  }

  /// A part without tangents.
  UOpRef value(unsigned at) {
    if (values[at]) return values[at];
    const TermNode &t = node(at);
    UOpRef v = nullptr;
    switch (t.kind) {
    case TermKind::Int: v = b.litInt(n->dtype, t.value); break;
    case TermKind::Real: v = b.lit(n->dtype, std::bit_cast<double>(t.value)); break;
    case TermKind::Apply:
      v = t.arity == 1   ? b.un(t.op, value(t.arg[0]))
          : t.arity == 2 ? b.bin(t.op, value(t.arg[0]), value(t.arg[1]))
                         : b.tern(t.op, value(t.arg[0]), value(t.arg[1]), value(t.arg[2]));
      break;
    default: v = t.kind == TermKind::Value && t.number == resultName ? n : source[unsigned(t.kind)][t.number];
    }
    return values[at] = v;
  }
};
} // namespace

/// A magnitude of complex numbers is real, which no row can say: the parts of x / |x|, 0 of 0, times those of dx.
static bool isMagnitude(UOpRef n) { return n->is(Op::Abs) && isComplex(n->src[0]->dtype); }
static std::array<UOpRef, 2> direction(Builder &b, UOpRef n) {
  UOpRef zero = b.lit(n->dtype, 0), none = b.eq(n, zero), length = b.select(none, b.lit(n->dtype, 1), n), x = n->src[0];
  return {b.select(none, zero, b.div(b.real(x), length)), b.select(none, zero, b.div(b.imag(x), length))};
}

UOpRef autograd::tangentOf(Builder &b, const Formula &f, UOpRef n, Tangents d) {
  if (isMagnitude(n)) {
    auto [re, im] = direction(b, n);
    return b.add(b.mul(re, b.real(d[0])), b.mul(im, b.imag(d[0])));
  }
  return Instance(b, f, n).forward(Instance::root(f.tangent), d);
}

llvm::SmallVector<UOpRef, 3> autograd::transposed(Builder &b, const Formula &f, UOpRef n, UOpRef g,
                                                  llvm::ArrayRef<bool> wanted) {
  llvm::SmallVector<UOpRef, 3> out(n->src.size());
  if (isMagnitude(n)) {
    auto [re, im] = direction(b, n);
    if (wanted[0]) out[0] = b.complex(b.mul(re, g), b.mul(im, g));
    return out;
  }
  Instance(b, f, n).backward(Instance::root(f.tangent), g, wanted, out);
  return out;
}
