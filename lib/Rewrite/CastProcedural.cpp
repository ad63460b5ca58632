//===- CastProcedural.cpp: cast, bitcast -----------------------------------===//
// Takes:    a cast, bitcast or rounding op whose source is rewritten.
// Gives:    an equal node without a conversion that changes nothing.
#include "Procedures.h"

using namespace astra;

/// Every value of `from` is a value of `to` (a NaN a NaN).
static bool holds(DType to, DType from) {
  if (from == to || from == DType::Bool) return isArithmetic(to);
  const DTypeInfo &f = info(from), &t = info(to);
  if (isFloat(from)) return isFloat(to) && t.exponentBits >= f.exponentBits && t.mantissaBits >= f.mantissaBits;
  if (!isInt(from)) return false;
  unsigned magnitude = f.bits - isSigned(from);
  if (isFloat(to)) return magnitude <= t.mantissaBits + 1 && magnitude < (1u << (t.exponentBits - 1));
  return isInt(to) && magnitude <= t.bits - isSigned(to) && (isUnsigned(from) || isSigned(to));
}

UOpRef rules::castSame(RuleContext, UOpRef n) { return n->dtype == n->src[0]->dtype ? n->src[0] : nullptr; }

UOpRef rules::castOfCast(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Cast) return nullptr;
  DType from = in->src[0]->dtype, between = in->dtype, to = n->dtype;
  bool wraps = isInt(from) && isInt(between) && isInt(to) && bitWidth(between) >= bitWidth(to);
  bool saturates = isInt(from) && isFloat(between) && isInt(to) && !holds(to, from); // where the direct cast would wrap
  if (!wraps && (saturates || !holds(between, from))) return nullptr;
  return to == from ? in->src[0] : r.c.make(Op::Cast, {in->src[0]}, n->ints, {}, to);
}

UOpRef rules::bitcastOfBitcast(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Bitcast) return nullptr;
  DType from = in->src[0]->dtype, to = n->dtype;
  if (!isInt(in->dtype)) return nullptr;
  return to == from ? in->src[0] : r.c.make(Op::Bitcast, {in->src[0]}, {}, {}, to);
}

UOpRef rules::castOfIota(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if ((in->op != Op::Iota && in->op != Op::FromIndex) || in->dtype != DType::I64 ||
      (!isInt(n->dtype) && !isFloat(n->dtype)))
    return nullptr;
  return r.c.make(in->op, in->src, in->ints, {}, n->dtype);
}

UOpRef rules::roundOfInteger(RuleContext, UOpRef n) {
  UOpRef in = n->src[0];
  return in->op == Op::Cast && (isInt(in->src[0]->dtype) || in->src[0]->dtype == DType::Bool) ? in : nullptr;
}
