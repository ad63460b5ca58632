//===- Procedures.h: rules that a pattern cannot say -----------------------===//
// Each takes a node of the ops of its row and gives an equal node, or null where it does not apply. The rows are in
// rules/.
#pragma once
#include "astra/Rewrite/Rewrite.h"

namespace astra::rules {

// IndexProcedural.cpp
UOpRef divByBounds(RuleContext, UOpRef);
UOpRef divOfSum(RuleContext, UOpRef);
UOpRef divOfFactor(RuleContext, UOpRef);
UOpRef divOfDiv(RuleContext, UOpRef);
UOpRef modByBounds(RuleContext, UOpRef);
UOpRef modOfSum(RuleContext, UOpRef);
UOpRef modOfFactor(RuleContext, UOpRef);
UOpRef sumOfDivMod(RuleContext, UOpRef);
UOpRef minByBounds(RuleContext, UOpRef);
UOpRef maxByBounds(RuleContext, UOpRef);
UOpRef compareByBounds(RuleContext, UOpRef);
UOpRef ltOfFactor(RuleContext, UOpRef);

// MovementProcedural.cpp
UOpRef reshapeOfReshape(RuleContext, UOpRef);
UOpRef permuteOfPermute(RuleContext, UOpRef);
UOpRef expandOfExpand(RuleContext, UOpRef);
UOpRef padOfPad(RuleContext, UOpRef);
UOpRef shrinkOfShrink(RuleContext, UOpRef);
UOpRef flipOfFlip(RuleContext, UOpRef);
UOpRef movementOfNothing(RuleContext, UOpRef);
UOpRef shrinkOfPad(RuleContext, UOpRef);
UOpRef flipOfOnes(RuleContext, UOpRef);
UOpRef expandOutward(RuleContext, UOpRef);
UOpRef movementOfSplat(RuleContext, UOpRef);
UOpRef foldOfOne(RuleContext, UOpRef);

// CastProcedural.cpp
UOpRef castOfCast(RuleContext, UOpRef);
UOpRef castSame(RuleContext, UOpRef);
UOpRef bitcastOfBitcast(RuleContext, UOpRef);
UOpRef castOfIota(RuleContext, UOpRef);
UOpRef roundOfInteger(RuleContext, UOpRef);

// ValidityProcedural.cpp
UOpRef loadGate(RuleContext, UOpRef);
UOpRef storeGate(RuleContext, UOpRef);
UOpRef sinkOfNothing(RuleContext, UOpRef);
UOpRef selectOfGated(RuleContext, UOpRef);

// FoldProcedural.cpp
UOpRef foldLiterals(RuleContext, UOpRef);

} // namespace astra::rules
