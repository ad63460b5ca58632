//===- RunPoints.cpp: procedures run at every point of their boxes ---------===//
#include "Boxes.h"
#include "Prove.h"
#include <map>

using namespace astra;
using namespace astra::proofs;

std::string proofs::runPoints(const Rule &r) {
  static const std::map<std::string, BoxRun> boxes = {
      {"reshape-of-reshape", movementBox},
      {"permute-of-permute", movementBox},
      {"expand-of-expand", movementBox},
      {"pad-of-pad", movementBox},
      {"shrink-of-shrink", movementBox},
      {"flip-of-flip", movementBox},
      {"movement-of-nothing", movementBox},
      {"shrink-of-pad", movementBox},
      {"flip-of-ones", movementBox},
      {"expand-outward", movementBox},
      {"movement-of-splat", splatBox},
      {"fold-of-one", foldBox},
      {"cast-same", castBox},
      {"cast-of-cast", castBox},
      {"bitcast-of-bitcast", castBox},
      {"cast-of-iota", iotaBox},
      {"round-of-integer", castBox},
      {"load-gate", gateBox},
      {"store-gate", gateBox},
      {"sink-of-nothing", gateBox},
      {"select-of-gated", gateBox},
      {"fold-literals", literalBox},
  };
  auto it = boxes.find(r.name);
  if (it == boxes.end()) return std::string("no box is named ") + r.name;
  return it->second(r);
}

void proofs::Run::on(Context &c, UOpRef n, const EvalInputs &in, Level level) {
  if (!wrong.empty()) return;
  bool starts = rule.numRoots == 0;
  for (unsigned i = 0; i < rule.numRoots; ++i) starts |= rule.roots[i] == n->op;
  UOpRef made = starts ? rule.procedure({c, level}, n) : nullptr;
  if (!made || made == n) return;
  ++fired;
  if (made->dtype != n->dtype || made->shape != n->shape) {
    wrong = "type or shape changed";
    return;
  }
  auto out = evalNodes({n, made}, in);
  if (!out)
    wrong = llvm::toString(out.takeError());
  else if (int64_t at = firstDifference((*out)[0], (*out)[1]); at >= 0)
    wrong = std::string(info(n->op).mnemonic) + " of " + info(n->src[0]->op).mnemonic + ": element " +
            std::to_string(at) + " differs";
}

std::string proofs::Run::verdict() const {
  return !wrong.empty() ? wrong : fired ? "" : "the rule fired nowhere in its box";
}
