//===- EmitMemory.cpp: what a kernel in C reads and writes -----------------===//
// Takes:    loads, stores, stages and prefetches.
// Gives:    their expressions and statements.
// Keeps:    memory outside of a buffer or stage untouched: what is speculative tests its index.
#include "FunctionEmitter.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace astra;
using namespace astra::cemit;

/// The condition that elements at ... at + lanes - 1 exist; empty when the bounds prove it.
std::string FunctionEmitter::bounds(const std::string &at, UOpRef index, unsigned lanes, UOpRef count) {
  if (!needsTest(index, lanes, count)) return "";
  return "(" + at + " >= 0 && " + at + " <= " + operand(count) + " - " + num(lanes) + ")";
}

/// A value of x's type from pointer[at], where gate (a node or null) and inside (an expression or empty) hold; of
/// `count` elements.
std::string FunctionEmitter::read(UOpRef x, const std::string &pointer, const std::string &at, UOpRef gate,
                                  const std::string &inside, const std::string &count) {
  unsigned lanes = lanesOf(x);
  bool bools = x->dtype == DType::Bool;
  std::string zero, place = pointer + "[" + at + "]";
  if (lanes == 1) {
    std::string s = bools ? place + " != 0" : place, when = inside;
    if (gate) when += (when.empty() ? "" : " && ") + value(gate);
    return when.empty() ? s : when + " ? " + s + " : 0";
  }
  DType element = bools ? DType::U8 : x->dtype;
  std::string T = h.type(element, lanes), s;
  if (gate && !inside.empty()) { // speculative: each lane where it is taken and inside the buffer
    std::string mask = maskAs(gate, bitWidth(element));
    for (unsigned l = 0; l < lanes; ++l) {
      std::string lane = at + " + " + num(l);
      s += (l ? ", " : "(" + T + "){") + ("(" + mask + ")[" + num(l) + "] && " + lane + " >= 0 && " + lane + " < " +
                                          count + " ? " + pointer + "[" + lane + "] : 0");
    }
    s += "}";
    return bools ? "(" + h.type(DType::I8, lanes) + ")(" + s + " != 0)" : s;
  }
  // A masked load of no lane is slow where its address is not mapped: one gate for all lanes is a branch.
  if (gate && gate->op == Op::Splat)
    s = "(" + value(gate->src[0]) + " ? (" + T + ")*(const " + h.unaligned(x->dtype, lanes) + " *)&" + place + " : (" +
        T + "){0})";
  else if (gate)
    s = h.maskedLoad(x->dtype, lanes) + "(&" + place + ", " + maskAs(gate, bitWidth(element)) + ")";
  else
    s = "*(const " + h.unaligned(x->dtype, lanes) + " *)&" + place;
  if (!inside.empty()) s = "(" + inside + " ? (" + T + ")" + s + " : (" + T + "){0})";
  return bools ? "(" + h.type(DType::I8, lanes) + ")(" + s + " != 0)" : s;
}

std::string FunctionEmitter::load(const Inst &i) {
  UOpRef x = i.uop, index = x->indices()[0], gate = x->ntensors > 1 ? x->src[1] : nullptr;
  if (auto row = rowOf.find(x); row != rowOf.end())
    return read(x, row->second.first, row->second.second, nullptr, "", "");
  std::string at = value(index), inside;
  UOpRef count = k.kernel->buffers[x->src[0]->ints[0]].elements;
  if (i.speculative) inside = bounds(operand(index), index, lanesOf(x), count);
  return read(x, "p" + num(x->src[0]->ints[0]), at, gate, inside, i.speculative ? operand(count) : "");
}

/// Pointers for what a loop's steps read; loads that differ by a constant share one.
void FunctionEmitter::pointToRows(llvm::ArrayRef<RowRead> rows, UOpRef range) {
  std::map<std::string, std::string> pointers; // by place
  for (const RowRead &row : rows) {
    std::string place = "p" + num(row.load->src[0]->ints[0]), step;
    for (const IndexTerm &t : row.place) {
      std::string product;
      for (UOpRef a : t.atoms) product += (product.empty() ? "" : " * ") + operand(a);
      place += " + " + product + (t.coefficient == 1 ? "" : " * " + num(t.coefficient));
    }
    auto [pointer, fresh] = pointers.try_emplace(place);
    if (fresh) {
      pointer->second = "row" + num(rowPointers++);
      DType t = k.kernel->buffers[row.load->src[0]->ints[0]].dtype;
      line(std::string("const ") + memoryName(t) + " *" + pointer->second + " = " + place + ";");
      line("POINTER(" + pointer->second + ");");
    }
    if (row.stride) step = value(range) + (row.stride == 1 ? "" : " * " + num(row.stride));
    if (row.constant || step.empty()) step += (step.empty() ? "" : " + ") + num(row.constant);
    rowOf[row.load] = {pointer->second, step};
  }
}

size_t FunctionEmitter::arrayOf(UOpRef stage) const {
  return llvm::find_if(k.linear.stages, [&](const StageArray &s) { return s.stage == stage; }) -
         k.linear.stages.begin();
}

std::string FunctionEmitter::at(const Inst &i) {
  UOpRef x = i.uop, gate = x->ntensors > 1 ? x->src[1] : nullptr;
  const StageArray &a = k.linear.stages[arrayOf(x->src[0])];
  std::string place, inside;
  for (size_t d = 0; d < x->indices().size(); ++d) {
    UOpRef index = x->indices()[d];
    place =
        d ? (d > 1 ? "(" + place + ")" : place) + " * " + num(a.extents[d]) + " + " + operand(index) : operand(index);
    int64_t lanes = d + 1 == x->indices().size() ? lanesOf(x) : 1;
    if (!i.speculative || !needsTest(index, lanes, a.extents[d])) continue;
    inside += (inside.empty() ? "(" : " && ") + operand(index) + " >= 0 && " + operand(index) +
              " <= " + num(a.extents[d] - lanes);
  }
  if (!inside.empty()) inside += ")";
  return read(x, "s" + num(arrayOf(x->src[0])), place.empty() ? "0" : place, gate, inside, num(a.elements));
}

std::string FunctionEmitter::element(UOpRef stage, size_t number) {
  const StageArray &a = k.linear.stages[arrayOf(stage)];
  UOpRef v = stage->src[0];
  std::string place;
  int64_t each = int64_t(lanesOf(v)) * int64_t(stage->ntensors);
  for (size_t d = 0; d < stage->indices().size(); ++d) {
    bool last = d + 1 == stage->indices().size();
    std::string r = value(stage->indices()[d]);
    if (last && each > 1) r += " * " + num(each);
    if (last && number) r += " + " + num(int64_t(number) * lanesOf(v));
    place = d ? (d > 1 ? "(" + place + ")" : place) + " * " + num(a.extents[d]) + " + " + r : r;
  }
  std::string to = "s" + num(arrayOf(stage)) + "[" + (place.empty() ? "0" : place) + "]";
  return lanesOf(v) > 1 ? "*(" + h.unaligned(v->dtype, lanesOf(v)) + " *)&" + to : to;
}

void FunctionEmitter::write(UOpRef x) {
  UOpRef v = x->src[1], gate = x->ntensors > 2 ? x->src[2] : nullptr;
  unsigned lanes = lanesOf(v);
  std::string place = "p" + num(x->src[0]->ints[0]) + "[" + value(x->indices()[0]) + "]";
  if (lanes == 1)
    line((gate ? "if (" + value(gate) + ") " : "") + place + " = " + value(v) + ";");
  else if (gate && gate->op == Op::Splat)
    line("if (" + value(gate->src[0]) + ") *(" + h.unaligned(v->dtype, lanes) + " *)&" + place + " = " + memory(v) +
         ";");
  else if (gate)
    line(h.maskedStore(v->dtype, lanes) + "(&" + place + ", " +
         maskAs(gate, v->dtype == DType::Bool ? 8 : bitWidth(v->dtype)) + ", " + memory(v) + ");");
  else if (k.kernel->nonTemporal && lanes * byteSize(v->dtype) == lineBytes)
    line("NON_TEMPORAL(" + h.type(v->dtype == DType::Bool ? DType::U8 : v->dtype, lanes) + ", " +
         h.unaligned(v->dtype, lanes) + ", &" + place + ", " + memory(v) + ");");
  else
    line("*(" + h.unaligned(v->dtype, lanes) + " *)&" + place + " = " + memory(v) + ";");
}

void FunctionEmitter::prefetch(const Inst &i) {
  std::string at = value(i.uop->indices()[0]);
  line("PREFETCH(p" + num(i.uop->src[0]->ints[0]) + ", " + at + (i.ahead ? " + " + num(i.ahead) : "") + ");");
}
