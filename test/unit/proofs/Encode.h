//===- Encode.h: a rule's terms as z3 expressions --------------------------===//
// Takes:    terms of a rule and a kind of values.
// Gives:    z3 expressions that mean what the op table says of these values.
// Does not: decide (Prove.cpp).
#pragma once
#include "astra/Rewrite/Rule.h"
#include <map>
#include <optional>
#include <z3++.h>

namespace astra::proofs {

enum class Values {
  Uninterpreted, // any type at all: ops are functions of which nothing is known
  Integers,      // polynomials over the integers: what holds there holds modulo 2^n
  Index,         // symbolic integers, divisors positive
  Bits,          // two's complement, `width` bits, signed or not
  Bools,
  Half, // IEEE binary16, to nearest even; one NaN
};

class Encoder {
public:
  Values values;
  unsigned width = 0;
  bool isSigned = false;
  bool byDefinition = false;            // rem and mod as the op table writes them, a - (a / b) * b, instead of z3's own
  std::map<unsigned, int64_t> literals; // by number: values that a and b are fixed to

  Encoder(z3::context &c, Values values)
      : values(values), c(c), sort(c), definitions(c.bool_val(true)), defined(c.bool_val(true)) {}

  /// The term, or nothing where this kind of values has no such op. `root` says whether a lone literal is a truth
  /// value.
  std::optional<z3::expr> term(const rules::Term &t, std::optional<z3::sort> root = {});
  /// The guard, over mathematical integers; as in the matcher it fails where it divides by what is not positive.
  std::optional<z3::expr> guard(const rules::Term &t);
  /// What the quotients and remainders so far are: Euclid's form wherever a divisor is positive. Every x and a > 0 have
  /// one, and a divisor that is not positive leaves them free: so this assumes nothing of the row.
  z3::expr defining() const { return definitions; }
  /// Whether the symbolic integers encoded since the last call have a value: their divisors are positive.
  z3::expr takeDefined();
  z3::sort valueSort();

private:
  z3::context &c;
  z3::sort sort;
  z3::expr definitions, defined;
  struct Division {
    z3::expr x, a, quotient, remainder;
  };
  std::vector<Division> divisions;

  z3::expr name(const rules::TermNode &n);
  std::optional<z3::expr> number(const rules::TermNode &n, bool truth);
  std::optional<z3::expr> apply(Op op, const std::vector<z3::expr> &a);
  const Division &euclid(const z3::expr &x, const z3::expr &a);
  std::optional<z3::expr> bits(Op op, const std::vector<z3::expr> &a);
  std::optional<z3::expr> index(Op op, const std::vector<z3::expr> &a);
  std::optional<z3::expr> half(Op op, const std::vector<z3::expr> &a);
  std::optional<z3::expr> logic(Op op, const std::vector<z3::expr> &a);
};

} // namespace astra::proofs
