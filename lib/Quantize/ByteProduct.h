//===- ByteProduct.h: contracts whose operands are bytes --------------------===//
// Takes:    a contract with an operand that is a weight in planes, its spec with the weight's axes as they lie, the
//           other operand.
// Gives:    the contract with both operands as bytes (Weights.h), or null where it has no such form.
#pragma once
#include "astra/Quantize/Weights.h"

namespace astra::quantize {

/// `q` i8 with one scale for each place of its first axes, `d`. Without a range that of each row is taken.
UOpRef productOfBytes(compose::Composer &b, UOpRef contract, const ContractSpec &s, unsigned weight, UOpRef q, UOpRef d,
                      UOpRef x, std::optional<Range> range);
UOpRef blockProductOfBytes(compose::Composer &b, UOpRef contract, const ContractSpec &s, unsigned weight,
                           compose::StoredWeight w, UOpRef x);

} // namespace astra::quantize
