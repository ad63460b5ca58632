//===- EmitC.cpp: linear kernels as C functions ----------------------------===//
// Takes:    instructions in order (Linear.h).
// Gives:    C, one statement each; a loop is a block, so a value's name lives where it is defined.
// Keeps:    names by order of definition. Index arithmetic that is used once, where it is defined, is written in place.
// Does not: reorder or simplify; compute (Helpers.h).
#include "astra/Codegen/EmitC.h"
#include "FunctionEmitter.h"
#include "Prelude.h"
#include "astra/Codegen/Plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::cemit;

namespace {
/// Lanes of one vector, or of two as wide as each other, the second one's numbered behind the first one's.
struct Shuffle {
  llvm::SmallVector<UOpRef, 4> from;
  llvm::SmallVector<int64_t, 16> lanes; // empty: the value is no such thing
};
} // namespace

static Shuffle shuffleOf(UOpRef x) {
  Shuffle s;
  if (x->op != Op::Stack) return {};
  for (UOpRef part : x->src) {
    UOpRef whole = part->op == Op::Lanes ? part->src[0] : part;
    if (!whole->rank() || (!s.from.empty() && lanesOf(whole) != lanesOf(s.from[0]))) return {};
    size_t which = llvm::find(s.from, whole) - s.from.begin();
    if (which == 2) return {};
    if (which == s.from.size()) s.from.push_back(whole);
    int64_t begin = int64_t(which * lanesOf(whole)) + (part == whole ? 0 : part->ints[0]);
    for (int64_t l = 0; l < int64_t(lanesOf(part)); ++l) s.lanes.push_back(begin + l);
  }
  return s;
}

/// How often each value is used, and whether its only use is in the region where it is defined.
void FunctionEmitter::countUses() {
  unsigned regions = 0;
  std::vector<unsigned> stack{0};
  llvm::DenseMap<UOpRef, const RowRead *> rows; // of this loop
  for (auto [n, i] : llvm::enumerate(arranged.insts)) {
    llvm::SmallVector<UOpRef, 4> used;
    if (i.kind == InstKind::LoopBegin || i.kind == InstKind::LoopEnd) rows.clear();
    if (auto found = arranged.rows.find(n); found != arranged.rows.end())
      for (const RowRead &row : found->second) rows[row.load] = &row;
    switch (i.kind) {
    case InstKind::LoopBegin: used.push_back(i.uop->src[0]); break;
    case InstKind::AccInit: used.push_back(i.uop->src[0]); break;
    case InstKind::AccUpdate: used.append(i.uop->tensors().begin() + 1, i.uop->tensors().end()); break;
    case InstKind::Define:
      home[i.uop].first = stack.back();
      if (Shuffle s = shuffleOf(i.uop); !s.lanes.empty()) { // not the values that hold its lanes
        used = s.from;
        break;
      }
      if (const RowRead *row = rows.lookup(i.uop)) {
        for (const IndexTerm &t : row->place) used.append(t.atoms.begin(), t.atoms.end());
        break;
      }
      [[fallthrough]];
    case InstKind::Write: used.append(i.uop->src.begin(), i.uop->src.end()); break;
    case InstKind::Prefetch: used.push_back(i.uop->indices()[0]); break;
    case InstKind::StagePut: used.append(i.uop->tensors().begin(), i.uop->tensors().end()); break;
    case InstKind::StageFill:
      for (UOpRef fold : i.uop->tensors()) used.push_back(fold->src[0]);
      break;
    case InstKind::AccResume:
    case InstKind::Call:
    case InstKind::LoopEnd: break;
    }
    if (i.speculative && i.uop->op == Op::Load) used.push_back(k.kernel->buffers[i.uop->src[0]->ints[0]].elements);
    for (UOpRef u : used) ++uses[u], home[u].second = stack.back();
    if (i.kind == InstKind::AccUpdate)
      for (unsigned region : llvm::ArrayRef(stack).drop_front()) ++sums[loops[region - 1]];
    if (i.kind == InstKind::LoopBegin)
      stack.push_back(++regions), loops.push_back(i.uop), parallelLoops += isParallel(i.uop);
    if (i.kind == InstKind::LoopEnd) stack.pop_back();
  }
}

std::string FunctionEmitter::value(UOpRef x) {
  if (x->op == Op::Const) return h.literal(x->dtype, uint64_t(x->ints[0]));
  if (x->op == Op::Range) return "r" + num(x->ints[0]);
  if (x->op == Op::Dim) {
    const auto *it = llvm::find(dims, x);
    if (it == dims.end()) {
      if (error.empty()) error = "dim '" + x->str.str() + "' is not one of the module";
      return "0";
    }
    unsigned i = it - dims.begin();
    if (!llvm::is_contained(usedDims, i)) usedDims.push_back(i);
    return "d" + num(i);
  }
  if (auto it = inlined.find(x); it != inlined.end()) return it->second;
  return "v" + num(numbers.try_emplace(x, numbers.size()).first->second);
}

std::string FunctionEmitter::operand(UOpRef x) {
  std::string s = value(x);
  return inlined.count(x) && s.find(' ') != std::string::npos ? "(" + s + ")" : s;
}

std::string FunctionEmitter::maskAs(UOpRef x, unsigned bits) {
  std::string s = value(x);
  return maskOf(x) == bits || !x->rank() ? s : "CVT(" + h.mask(bits, lanesOf(x)) + ", " + s + ")";
}

std::string FunctionEmitter::memory(UOpRef x) {
  if (!isVectorOfBools(x)) return value(x);
  return "(" + h.type(DType::U8, lanesOf(x)) + ")(-" + maskAs(x, 8) + ")";
}

// ---- index arithmetic
std::string FunctionEmitter::index(UOpRef x) {
  auto s = [&](unsigned i) { return value(x->src[i]); };
  auto o = [&](unsigned i) { return operand(x->src[i]); };
  switch (x->op) {
  case Op::Add: {
    UOpRef right = x->src[1];
    if (auto c = right->constIndex(); c && *c < 0 && *c != INT64_MIN) return s(0) + " - " + num(-*c);
    return s(0) + " + " + s(1);
  }
  case Op::Mul: return o(0) + " * " + o(1);
  case Op::FloorDiv:
  case Op::Mod: {
    bool div = x->op == Op::FloorDiv;
    if (x->src[0]->lo >= 0 && x->src[1]->lo >= 1)
      return std::string("(i64)((u64)") + o(0) + (div ? " / " : " % ") + "(u64)" + o(1) + ")";
    return h.op(x->op, DType::I64, 1) + "(" + s(0) + ", " + s(1) + ")";
  }
  case Op::Min:
  case Op::Max: return h.op(x->op, DType::I64, 1) + "(" + s(0) + ", " + s(1) + ")";
  case Op::Select: return "(" + s(0) + " ? " + s(1) + " : " + s(2) + ")";
  case Op::Extent: return s(0);
  default:
    if (error.empty()) error = std::string("index op ") + info(x->op).mnemonic + " has no C form";
    return "0";
  }
}

// ---- elementwise
std::string FunctionEmitter::boolVector(UOpRef x) {
  unsigned lanes = lanesOf(x), bits = maskOf(x);
  auto m = [&](unsigned i) { return maskAs(x->src[i], bits); };
  if (x->op == Op::Select) return "SEL(" + h.mask(bits, lanes) + ", " + m(0) + ", " + m(1) + ", " + m(2) + ")";
  const char *form = Helpers::onMasks(x->op);
  if (!form) {
    if (error.empty()) error = std::string(info(x->op).mnemonic) + " on bools has no C form";
    return "0";
  }
  std::string out;
  for (; *form; ++form) out += *form == 'a' ? m(0) : *form == 'b' ? m(1) : std::string(1, *form);
  return out;
}

/// Whether a loop divides vectors of f32 by what it has from outside, the same for all lanes, where that takes long: of
/// a short loop divisions go on beside what comes before and after it.
bool FunctionEmitter::dividesByOne(UOpRef x) const {
  constexpr int64_t longLoop = 12;
  UOpRef by = x->src[1];
  unsigned region = home.lookup(x).first;
  if (!region || loops[region - 1]->src[0]->lo < longLoop) return false;
  return target.slowDivision && x->dtype == DType::F32 && lanesOf(x) * byteSize(x->dtype) == target.vectorBytes &&
         by->op == Op::Splat && home.lookup(by).first != region;
}

/// Whether a select makes the NaNs of such a quotient the canonical one, which Helpers::quotient gives already.
bool FunctionEmitter::isCanonical(UOpRef select) const {
  UOpRef same = select->src[0], q = select->src[1], nan = select->src[2];
  return q->op == Op::Div && dividesByOne(q) && same->op == Op::Eq && same->src[0] == q && same->src[1] == q &&
         nan->op == Op::Splat && nan->src[0]->op == Op::Const && uint32_t(nan->src[0]->ints[0]) == 0x7fc00000;
}

std::string FunctionEmitter::elementwise(UOpRef x) {
  unsigned lanes = lanesOf(x);
  UOpRef a = x->src[0], typed = x->op == Op::Select ? x->src[1] : a;
  if (isVectorOfBools(typed) && x->op != Op::Cast && x->op != Op::Bitcast) return boolVector(x);
  switch (x->op) {
  case Op::Cast:
    if (isVectorOfBools(a) && isVectorOfBools(x)) return value(a);
    if (isVectorOfBools(a)) return h.fromMask(x->dtype, lanes) + "(" + maskAs(a, maskBits(x->dtype)) + ")";
    if (isVectorOfBools(x)) return h.toMask(a->dtype, lanes) + "(" + value(a) + ")";
    return h.cast(a->dtype, x->dtype, lanes, x->ints[0]) + "(" + value(a) + ")";
  case Op::Bitcast:
    if (isVectorOfBools(a)) return h.bitcast(DType::U8, x->dtype, lanes) + "(" + memory(a) + ")";
    return h.bitcast(a->dtype, x->dtype, lanes) + "(" + value(a) + ")";
  case Op::Lookup16: return h.lookup(a->dtype, x->dtype, x->ints, lanes) + "(" + value(a) + ")";
  case Op::Select:
    if (isCanonical(x)) return value(x->src[1]);
    return h.op(Op::Select, x->dtype, lanes) + "(" + maskAs(a, bitWidth(x->dtype)) + ", " + value(x->src[1]) + ", " +
           value(x->src[2]) + ")";
  default: break;
  }
  bool real = isFloat(typed->dtype) && !isNarrow(typed->dtype);
  switch (real ? x->op : Op::Sink) { // what C's operators say just as well
  case Op::Add: return value(a) + " + " + value(x->src[1]);
  case Op::Sub: return value(a) + " - " + value(x->src[1]);
  case Op::Mul: return value(a) + " * " + value(x->src[1]);
  case Op::Div:
    if (dividesByOne(x)) return h.quotient(lanes) + "(" + value(a) + ", " + value(x->src[1]) + ")";
    return value(a) + " / " + value(x->src[1]);
  default: break;
  }
  std::string s = h.op(x->op, typed->dtype, lanes) + "(";
  for (size_t i = 0; i < x->src.size(); ++i) s += (i ? ", " : "") + value(x->src[i]);
  return s + ")";
}

// ---- vectors from parts and parts of vectors
std::string FunctionEmitter::compose(UOpRef x) {
  unsigned lanes = lanesOf(x);
  bool bools = isVectorOfBools(x);
  std::string T = typeOf(x);
  auto scalar = [&](UOpRef s) { return bools ? "-(i32)" + operand(s) : value(s); };
  auto source = [&](UOpRef s) { return bools ? maskAs(s, maskOf(x)) : value(s); };
  if (x->op == Op::Splat) return "SPLAT(" + T + ", " + scalar(x->src[0]) + ")";
  if (Shuffle f = shuffleOf(x); !f.lanes.empty()) {
    std::string s = "__builtin_shufflevector(" + source(f.from.front()) + ", " + source(f.from.back());
    for (int64_t l : f.lanes) s += ", " + num(l);
    return s + ")";
  }
  if (x->op == Op::Stack) {
    std::string s;
    for (UOpRef y : x->src) {
      if (!y->rank()) {
        s += (s.empty() ? "" : ", ") + scalar(y);
        continue;
      }
      std::string v = source(y);
      for (unsigned i = 0; i < lanesOf(y); ++i) s += (s.empty() ? "" : ", ") + v + "[" + num(i) + "]";
    }
    return "(" + T + "){" + s + "}";
  }
  UOpRef y = x->src[0]; // Lanes
  if (lanes == 1) return lanesOf(y) == 1 ? value(y) : value(y) + "[" + num(x->ints[0]) + "]" + (bools ? " != 0" : "");
  if (lanes == lanesOf(y)) return value(y);
  std::string s = "__builtin_shufflevector(" + value(y) + ", " + value(y);
  for (unsigned i = 0; i < lanes; ++i) s += ", " + num(x->ints[0] + i);
  return s + ")";
}

// ---- statements
std::string FunctionEmitter::expression(const Inst &i) {
  UOpRef x = i.uop;
  switch (x->op) {
  case Op::Load: return load(i);
  case Op::At: return at(i);
  case Op::Splat:
  case Op::Stack:
  case Op::Lanes: return compose(x);
  case Op::FromIndex: return h.cast(DType::I64, x->dtype, 1, false) + "(" + value(x->src[0]) + ")";
  default: break;
  }
  if (x->isIndex()) return index(x);
  if (has(x->op, Elementwise) && !has(x->op, Function)) {
    if (x->src[0]->isIndex())
      return h.op(x->op, DType::I64, 1) + "(" + value(x->src[0]) + ", " + value(x->src[1]) + ")";
    return elementwise(x);
  }
  if (error.empty())
    error = std::string(info(x->op).mnemonic) + (has(x->op, Function)
                                                     ? " is a function: the numerics stage replaces it by a program"
                                                     : " has no place in a kernel");
  return "0";
}

/// The width of the lanes of a vector of bools is that of what it is made from.
static unsigned chooseMask(UOpRef x, const llvm::DenseMap<UOpRef, unsigned> &masks) {
  auto of = [&](UOpRef s) { return masks.lookup(s); };
  switch (x->op) {
  case Op::Load:
  case Op::At: return 8;
  case Op::Splat:
  case Op::Stack: return 32;
  case Op::Cast: return x->src[0]->dtype == DType::Bool ? of(x->src[0]) : maskBits(x->src[0]->dtype);
  case Op::Select: return of(x->src[1]);
  default: break;
  }
  return x->src[0]->dtype == DType::Bool ? of(x->src[0]) : maskBits(x->src[0]->dtype);
}

/// Its values have the names that its first use would give them.
std::string FunctionEmitter::outlinedFunction(size_t number) {
  const Outlined &f = outlines.functions[number];
  std::string text = "static __attribute__((noinline)) " + typeOf(f.body.back()) + " " + outlined[number] + "(" +
                     typeOf(f.argument) + " " + value(f.argument) + ") {\n";
  llvm::DenseMap<UOpRef, bool> defined;
  auto add = [&](UOpRef x) {
    std::string s = expression({InstKind::Define, x});
    text += "  " + typeOf(x) + " " + value(x) + " = " + s + ";\n";
  };
  for (UOpRef x : f.body) {
    for (UOpRef s : x->src)
      if (s->op == Op::Splat && isLiteral(s) && defined.try_emplace(s, true).second) add(s);
    if (isVectorOfBools(x)) masks[x] = chooseMask(x, masks);
    add(x);
  }
  return text + "  return " + value(f.body.back()) + ";\n}\n";
}

void FunctionEmitter::define(const Inst &i) {
  UOpRef x = i.uop;
  if (!uses.lookup(x)) return;
  if (auto call = outlines.calls.find(x); call != outlines.calls.end()) {
    const auto &[function, argument] = call->second;
    return line(typeOf(x) + " " + value(x) + " = " + outlined[function] + "(" + value(argument) + ");");
  }
  if (outlines.isInternal.count(x)) return;
  if (isVectorOfBools(x)) masks[x] = chooseMask(x, masks);
  auto [defined, used] = home.lookup(x);
  if (x->isIndex() && x->op != Op::Extent && uses.lookup(x) == 1 && defined == used) {
    std::string s = expression(i);
    inlined[x] = s;
    return;
  }
  if (arranged.again.contains(x)) {
    inlined[x] = expression(i);
    return;
  }
  inlined.erase(x);
  std::string s = expression(i), name = value(x);
  line(typeOf(x) + " " + name + " = " + s + ";");
}

/// A kernel of more loops than these is long as it is: a compiler that unrolls them takes half of its time for that.
static constexpr size_t manyLoops = 32;
/// A loop with so many sums, a register tile, hides what it takes to count: copies of it gain nothing.
static constexpr unsigned manySums = 8;

void FunctionEmitter::beginLoop(UOpRef range) {
  std::string r = value(range), n = value(range->src[0]);
  if ((loops.size() > manyLoops && !isParallel(range)) || sums.lookup(range) >= manySums) line("ROLLED");
  if (!isParallel(range)) {
    line("for (i64 " + r + " = 0; " + r + " < " + n + "; ++" + r + ") {");
    ++indent;
    return;
  }
  // Note [Parts of a kernel]
  // A kernel whose tiles are not all alike has a loop for each kind: those that are whole, those at the edges. Each
  // call gets its share of each loop, so that half of the items is half of the work, and calls for neighbouring items
  // write to neighbouring memory: were the loops one after another in the order of items, the columns that are left
  // over of all rows would be one thread's, in lines that another thread writes too (a copy with a frame of zeros took
  // as long on two threads as on one).
  if (isStep)
    line("for (i64 " + r + " = 0; " + r + " < " + n + "; ++" + r + ") {");
  else if (parallelLoops == 1)
    line("for (i64 " + r + " = first; " + r + " < last; ++" + r + ") {");
  else
    line("for (i64 " + r + " = share(first, " + n + ", all), end" + r + " = share(last, " + n + ", all); " + r +
         " < end" + r + "; ++" + r + ") {");
  ++indent;
}

/// The number of all items, where their loops share them.
void FunctionEmitter::countItems() {
  if (parallelLoops < 2 || isStep) return;
  std::string sum;
  for (const Inst &i : arranged.insts) {
    if (i.kind != InstKind::LoopBegin || !isParallel(i.uop)) continue;
    for (UOpRef x : topoSort(i.uop->src[0]))
      if (x->op != Op::Const && x->op != Op::Dim) inlined[x] = index(x);
    sum += (sum.empty() ? "" : " + ") + operand(i.uop->src[0]);
  }
  inlined.clear();
  line("i64 all = " + sum + ";");
}

void FunctionEmitter::endLoop(UOpRef) {
  --indent;
  line("}");
}

void FunctionEmitter::update(UOpRef fold) {
  Combine c = Combine(fold->ints[0]);
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Fma, Op::Dot4};
  std::string acc = value(fold);
  Op op = unitStepOf(c) ? Op::Fma : ops[unsigned(c)];
  unsigned lanes = lanesOf(fold);
  for (llvm::ArrayRef<UOpRef> rest = fold->tensors().drop_front(); !rest.empty(); rest = rest.drop_front(valuesOf(c))) {
    std::string s;
    if (unitStepOf(c)) {
      s = h.unitStep(c, lanes) + "(";
      for (UOpRef v : rest.take_front(valuesOf(c))) s += value(v) + ", ";
      s += acc + ")";
    } else if (isVectorOfBools(fold)) {
      std::string m = maskAs(rest[0], maskOf(fold));
      s = acc + (op == Op::And || op == Op::Min || op == Op::Mul ? " & " : " | ") + m;
    } else if (isFloat(fold->dtype) && !isNarrow(fold->dtype) && (op == Op::Add || op == Op::Mul)) {
      s = acc + (op == Op::Add ? " + " : " * ") + value(rest[0]);
    } else {
      std::string f = h.op(op, fold->dtype, lanes);
      s = valuesOf(c) == 2 ? f + "(" + value(rest[0]) + ", " + value(rest[1]) + ", " + acc + ")"
                           : f + "(" + acc + ", " + value(rest[0]) + ")";
    }
    for (UOpRef v : rest.take_front(valuesOf(c)))
      if (arranged.again.contains(v)) line("REREAD;");
    line(acc + " = " + s + ";");
  }
}

/// The functions of a tile, one after another, all items of each.
void FunctionEmitter::call(const Inst &i) {
  const TileRegion &region = k.regions[i.ahead];
  line("tile[" + num(dims.size()) + "] = " + value(i.uop) + ";");
  for (const TileRegion::Step &s : region.steps) {
    std::string arguments;
    for (const TileRegion::Argument &a : s.arguments)
      arguments += (arguments.empty() ? "" : ", ") +
                   (a.local ? "(u8 *)scratch + " + num(a.number) : "buf[" + num(a.number) + "]");
    line("{");
    line("  void *a[] = {" + arguments + "};");
    line("  " + s.name + "(a, tile, (u8 *)scratch + " + num(region.scratch) + ", 0, (i64)1 << 62);");
    line("}");
  }
}

llvm::Error FunctionEmitter::check(UOpRef x) const {
  unsigned lanes = lanesOf(x);
  if (x->rank() > 1 || lanes < 1 || lanes > mostLanes || (lanes & (lanes - 1)))
    return fail("a vector of " + std::to_string(lanes) + " lanes: expected a power of two up to " +
                std::to_string(mostLanes));
  if (!isArithmetic(x->dtype) && !isSmall(x->dtype) && x->dtype != DType::Index && x->dtype != DType::Void)
    return fail(llvm::Twine("values of ") + info(x->dtype).text + " have no C form");
  return llvm::Error::success();
}

llvm::Error FunctionEmitter::prologue(std::string &out) {
  out += std::string(isStep ? "static __attribute__((noinline)) " : "") + "void " + k.name +
         "(void *const *buf, const i64 *dim, void *scratch, i64 first, i64 last) {\n";
  std::vector<bool> used(k.kernel->buffers.size());
  for (const Inst &i : arranged.insts)
    if (i.uop->op == Op::Load || i.uop->op == Op::Store) used[i.uop->src[0]->ints[0]] = true;
  for (size_t i = 0; i < used.size(); ++i) {
    const KernelBuffer &b = k.kernel->buffers[i];
    if (!used[i]) continue;
    h.type(b.dtype, 1);
    if (!isArithmetic(b.dtype) && !isSmall(b.dtype))
      return fail(llvm::Twine("a buffer of ") + info(b.dtype).text + " has no C form");
    out += std::string("  ") + (b.write ? "" : "const ") + memoryName(b.dtype) + " *" +
           (b.read && b.write ? "" : "restrict ") + "p" + num(i) + " = buf[" + num(i) + "];\n";
  }
  for (size_t i = 0; i < k.linear.stages.size(); ++i) {
    const StageArray &s = k.linear.stages[i];
    std::string t = memoryName(s.stage->dtype);
    out += "  " + t + " *restrict s" + num(i) + " = __builtin_assume_aligned((u8 *)scratch + " + num(s.offset) +
           ", 64);\n";
  }
  if (!k.regions.empty())
    out += "  i64 *tile = (i64 *)((u8 *)scratch + " + num(k.linear.scratchBytes) + ");\n  for (i64 i = 0; i < " +
           num(dims.size()) + "; ++i) tile[i] = dim[i];\n";
  llvm::sort(usedDims);
  for (unsigned d : usedDims) out += "  i64 d" + num(d) + " = dim[" + num(d) + "]; /* " + dims[d]->str.str() + " */\n";
  return llvm::Error::success();
}

llvm::Expected<std::string> FunctionEmitter::run() {
  countUses();
  outlines = outline(arranged.insts, [&](UOpRef x) { return home.lookup(x).first; }, target.vectorBytes);
  for (size_t i = 0; i < outlines.functions.size(); ++i) outlined.push_back(k.name + "_outlined" + num(i));
  countItems();
  for (auto [n, i] : llvm::enumerate(arranged.insts)) {
    if (auto e = check(i.uop)) return e;
    switch (i.kind) {
    case InstKind::Define: define(i); break;
    case InstKind::LoopBegin:
      if (auto rows = arranged.rows.find(n); rows != arranged.rows.end()) pointToRows(rows->second, i.uop);
      if (auto tiles = tilesOf(n); !tiles.empty()) tileLoop(n, tiles), tiled.push_back(i.uop);
      beginLoop(i.uop);
      if (arranged.spilling.count(n)) line("SPILL_VECTORS;");
      break;
    case InstKind::LoopEnd:
      rowOf.clear(); // those are of innermost loops
      endLoop(i.uop);
      if (!tiled.empty() && tiled.back() == i.uop) line("#endif"), tiled.pop_back();
      break;
    case InstKind::AccInit: {
      if (isVectorOfBools(i.uop)) masks[i.uop] = maskOf(i.uop->src[0]);
      std::string init = value(i.uop->src[0]);
      line(typeOf(i.uop) + " " + value(i.uop) + " = " + init + ";");
      break;
    }
    case InstKind::AccUpdate: update(i.uop); break;
    case InstKind::StagePut: put(i.uop); break;
    case InstKind::StageFill:
      for (auto [n, fold] : llvm::enumerate(i.uop->tensors()))
        line(element(i.uop, n) + " = " + value(fold->src[0]) + ";");
      break;
    case InstKind::AccResume:
      for (auto [n, fold] : llvm::enumerate(i.uop->tensors()))
        line(typeOf(i.uop) + " " + value(fold) + " = " + element(i.uop, n) + ";");
      break;
    case InstKind::Write: write(i.uop); break;
    case InstKind::Prefetch: prefetch(i); break;
    case InstKind::Call: call(i); break;
    }
    if (!error.empty()) return fail(error);
    if (!h.refused().empty()) return fail(h.refused());
  }
  std::string out;
  for (size_t i = 0; i < outlined.size(); ++i) out += outlinedFunction(i);
  if (auto e = prologue(out)) return e;
  if (k.kernel->nonTemporal) line("NON_TEMPORAL_END;");
  return out + body + "}\n";
}

static bool isIdentifier(llvm::StringRef s) {
  return !s.empty() && !llvm::isDigit(s[0]) && llvm::all_of(s, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

llvm::Expected<std::string> astra::emitC(Context &c, llvm::ArrayRef<LinearKernel> kernels, const Target &target,
                                         llvm::ArrayRef<UOpRef> dims) {
  Helpers h;
  std::string functions;
  std::vector<std::string> names;
  auto emit = [&](const LinearKernel &k, llvm::ArrayRef<UOpRef> dims, bool isStep) -> llvm::Error {
    names.push_back(k.name);
    if (!isIdentifier(k.name)) return llvm::createStringError("kernel name '" + k.name + "' is not an identifier of C");
    FunctionEmitter emitter(c, h, k, target, dims, isStep);
    auto f = emitter.run();
    if (!f) return f.takeError();
    functions += *f;
    llvm::append_range(names, emitter.outlinedNames());
    return llvm::Error::success();
  };
  for (const LinearKernel &k : kernels) {
    functions += kernelMark;
    for (const TileRegion &r : k.regions) {
      std::vector<UOpRef> known(dims);
      known.push_back(r.tile);
      for (const TileRegion::Step &s : r.steps)
        if (auto e = emit({s.name, s.kernel, s.linear}, known, true)) return e;
    }
    if (auto e = emit(k, dims, false)) return e;
  }
  for (const std::string &name : names)
    if (h.isTaken(name)) return llvm::createStringError("kernel name '" + name + "' is one of the C helpers'");
  return h.text() + functions;
}
