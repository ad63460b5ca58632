//===- Gates.h: what is true where a gate is ----------------------------------===//
// Takes:    bool values that gates of loads and stores are.
// Gives:    what is not negative where a gate is true, as far as it compares symbolic integers; its value at a point;
//           its text.
// Does not: know values in memory: of a gate that reads them nothing is known.
#pragma once
#include "Inequalities.h"
#include "astra/IR/IndexProgram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace astra {

/// Some alternatives, one of which holds, each a list of what is not negative then.
using Alternatives = llvm::SmallVector<Inequalities::Facts, 1>;

class Gates {
public:
  using Poly = Inequalities::Poly;
  /// facts: what holds around the gate.
  Gates(Inequalities &i, const Inequalities::Facts &facts) : in(i), facts(facts) {}

  /// Of lane `lane` of a bool value, or of all lanes at once by the number of the lane `any` (a polynomial).
  Alternatives of(UOpRef g, std::optional<int64_t> lane, const Poly *any);

private:
  Alternatives negated(UOpRef g, std::optional<int64_t> lane, const Poly *any);
  Alternatives compare(Op op, UOpRef a, UOpRef b, std::optional<int64_t> lane, const Poly *any);
  /// The integer that a lane of an i32 or i64 value is, where it is made of symbolic integers and no conversion or sum
  /// of them leaves the type.
  std::optional<Poly> integer(UOpRef x, std::optional<int64_t> lane, const Poly *any);
  Inequalities &in;
  const Inequalities::Facts &facts;
};

/// A gate at many points: the order of its symbolic integers is found once.
class GateProgram {
public:
  using Value = llvm::function_ref<std::optional<int64_t>(UOpRef)>;
  explicit GateProgram(UOpRef gate);
  /// The value of a lane where the leaves have these values; true where it is read from memory.
  bool at(int64_t lane, Value value) const { return holds(gate, lane, value); }

private:
  bool holds(UOpRef g, int64_t lane, Value value) const;
  std::optional<int64_t> number(UOpRef x, int64_t lane, Value value) const;
  UOpRef gate;
  llvm::DenseMap<UOpRef, IndexProgram> numbers;
};
/// A gate for reading, its comparisons of symbolic integers.
std::string gateText(UOpRef g);

} // namespace astra
