//===- EmitMetal.cpp: linear kernels in the Metal Shading Language ---------===//
// Takes:    instructions in order (Linear.h) and how items are bound to threads.
// Gives:    one text with a function for each kernel, and what a launch must know. A vector of lanes is as many
//           scalars, each a variable; ops are the C emitter's helpers in Metal's dialect. A kernel's arguments are its
//           buffers in the order of their slots, then, where it reads any, the module's dim vector.
// Keeps:    the text is a function of the kernels. An index has 32 bits where its bounds prove that they suffice.
// Does not: load ahead (GpuKernel::pipeline), which changes no bit; f64, which Metal has no type for; run anything.
#include "../C/Helpers.h"
#include "../Value.h"
#include "Barriers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::gpu;

namespace {

using cemit::Helpers;
using cemit::lanesOf;
using Lanes = llvm::SmallVector<std::string, 4>;

constexpr unsigned mostArguments = 31; // that a kernel has in Metal

bool isThread(UOpRef x) { return x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Thread; }
bool fits32(int64_t lo, int64_t hi) { return lo >= INT32_MIN && hi <= INT32_MAX; }
unsigned widthOf(UOpRef index) { return fits32(index->lo, index->hi) ? 32 : 64; }
std::string num(int64_t v) { return std::to_string(v); }
std::string both(const std::string &a, const std::string &b) { return a.empty() ? b : b.empty() ? a : a + " && " + b; }

class MetalKernel {
public:
  MetalKernel(Context &c, Helpers &h, const GpuKernel &k, llvm::ArrayRef<UOpRef> dims, unsigned warp)
      : c(c), h(h), k(k), dims(dims), warp(warp) {}
  llvm::Expected<GpuLaunch> run(std::string &out);

private:
  llvm::Error fail(const llvm::Twine &what) const {
    return llvm::createStringError(std::errc::not_supported, "kernel '%s': %s", k.name.c_str(), what.str().c_str());
  }
  std::string refuse(const llvm::Twine &what) { return h.refuse(what.str()), "0"; }
  void line(const std::string &s) { body.append(indent * 2, ' ').append(s).append("\n"); }
  void open(const std::string &s) { line(s), ++indent; }
  void close() { --indent, line("}"); }
  std::string type(UOpRef x) { return x->isIndex() ? (widthOf(x) == 32 ? "i32" : "i64") : h.type(x->dtype, 1); }

  std::string index(UOpRef x, unsigned width);
  std::string indexOp(UOpRef x);
  Lanes value(UOpRef x);
  Lanes elementwise(UOpRef x);
  Lanes compute(const Inst &i);
  void define(UOpRef x, const Lanes &lanes);
  std::string inside(UOpRef at, unsigned first, unsigned lanes, UOpRef count);
  Lanes load(const Inst &i);
  std::string place(size_t number, llvm::ArrayRef<UOpRef> indices, unsigned lanes);
  int64_t step(const StageArray &a) { return threads.isShared(a.stage) && !a.strides.empty() ? a.strides.back() : 1; }
  Lanes stageRead(const Inst &i);
  std::string firstOf(uint32_t bits);
  size_t arrayOf(UOpRef stage) const {
    return llvm::find_if(k.linear.stages, [&](const StageArray &a) { return a.stage == stage; }) -
           k.linear.stages.begin();
  }
  void put(UOpRef stage);
  void write(UOpRef store);
  void update(UOpRef fold);
  Lanes laneFold(UOpRef fold);
  void beginLoop(size_t at);
  void emit(size_t at);
  llvm::Error prologue(GpuLaunch &launch);
  llvm::Error makeArrays(GpuLaunch &launch);

  Context &c;
  Helpers &h;
  const GpuKernel &k;
  llvm::ArrayRef<UOpRef> dims;
  unsigned warp;
  std::string body;
  unsigned indent = 1, variables = 0, bases = 0;
  llvm::DenseMap<UOpRef, Lanes> values;
  Threads threads;
  Barriers barriers;
  std::string base; // where items of the next parallel range begin
};

// ---- index arithmetic
std::string MetalKernel::index(UOpRef x, unsigned width) {
  if (auto constant = x->constIndex()) return h.literal(DType::I64, uint64_t(*constant));
  std::string name;
  unsigned has = widthOf(x);
  if (x->op == Op::Dim) {
    const auto *it = llvm::find(dims, x);
    if (it == dims.end()) return refuse("dim '" + x->str + "' is not one of the module");
    name = "dim[" + num(it - dims.begin()) + "]";
    has = 64;
  } else {
    auto it = values.find(x);
    if (it == values.end())
      return refuse(llvm::Twine("index ") + info(x->op).mnemonic + " is used before its definition");
    name = it->second[0];
  }
  return has == width ? name : std::string(width == 32 ? "(i32)" : "(i64)") + name;
}

std::string MetalKernel::indexOp(UOpRef x) {
  unsigned width = widthOf(x), w = width;
  if (x->op == Op::Select)
    return value(x->src[0])[0] + " ? " + index(x->src[1], width) + " : " + index(x->src[2], width);
  if (x->op == Op::Extent) return "(" + type(x) + ")" + value(x->src[0])[0];
  for (UOpRef y : x->src) w = std::max(w, widthOf(y));
  std::string a = index(x->src[0], w), b = index(x->src[1], w), U = w == 32 ? "(u32)" : "(u64)", out;
  DType t = w == 32 ? DType::I32 : DType::I64;
  switch (x->op) {
  case Op::Add: out = a + " + " + b; break;
  case Op::Mul: out = a + " * " + b; break;
  case Op::FloorDiv:
  case Op::Mod:
    if (x->src[0]->lo >= 0 && x->src[1]->lo >= 1)
      return "(" + type(x) + ")(" + U + a + (x->op == Op::FloorDiv ? " / " : " % ") + U + b + ")";
    [[fallthrough]];
  case Op::Min:
  case Op::Max: out = h.op(x->op, t, 1) + "(" + a + ", " + b + ")"; break;
  default: return refuse(llvm::Twine("index op ") + info(x->op).mnemonic + " has no form in Metal");
  }
  return w == width ? out : "(" + type(x) + ")(" + out + ")";
}

// ---- values
Lanes MetalKernel::value(UOpRef x) {
  if (x->op == Op::Const) return {h.literal(x->dtype, uint64_t(x->ints[0]))};
  auto it = values.find(x);
  if (it != values.end()) return it->second;
  refuse(llvm::Twine(info(x->op).mnemonic) + " is used before its definition");
  return Lanes(lanesOf(x), "0");
}

Lanes MetalKernel::elementwise(UOpRef x) {
  if (x->src[0]->isIndex()) { // a comparison of symbolic integers
    unsigned w = std::max(widthOf(x->src[0]), widthOf(x->src[1]));
    return {h.op(x->op, w == 32 ? DType::I32 : DType::I64, 1) + "(" + index(x->src[0], w) + ", " + index(x->src[1], w) +
            ")"};
  }
  DType from = x->src[0]->dtype;
  std::string f = x->op == Op::Cast       ? h.cast(from, x->dtype, 1, x->ints[0])
                  : x->op == Op::Bitcast  ? h.bitcast(from, x->dtype, 1)
                  : x->op == Op::Lookup16 ? h.lookup(from, x->dtype, x->ints, 1)
                                          : h.op(x->op, x->op == Op::Select ? x->dtype : from, 1);
  std::vector<Lanes> in;
  for (UOpRef y : x->src) in.push_back(value(y));
  Lanes out;
  for (unsigned l = 0; l < lanesOf(x); ++l) {
    llvm::SmallVector<std::string, 3> of;
    for (const Lanes &y : in) of.push_back(y[l]);
    out.push_back(f + "(" + llvm::join(of, ", ") + ")");
  }
  return out;
}

Lanes MetalKernel::compute(const Inst &i) {
  UOpRef x = i.uop;
  switch (x->op) {
  case Op::Load: return load(i);
  case Op::At: return stageRead(i);
  case Op::LaneFold: return laneFold(x);
  case Op::FromIndex: return {h.cast(DType::I64, x->dtype, 1, false) + "(" + index(x->src[0], 64) + ")"};
  default: break;
  }
  if (x->isIndex()) return {indexOp(x)};
  if (has(x->op, Elementwise) && !has(x->op, Function)) return elementwise(x);
  refuse(std::string(info(x->op).mnemonic) + (has(x->op, Function)
                                                  ? " is a function: the numerics stage replaces it by a program"
                                                  : " has no form in Metal"));
  return Lanes(lanesOf(x), "0");
}

/// Variables for what was computed.
void MetalKernel::define(UOpRef x, const Lanes &lanes) {
  std::string T = type(x), name = "v" + num(variables++);
  Lanes names;
  for (auto [l, s] : llvm::enumerate(lanes)) {
    names.push_back(lanes.size() > 1 ? name + "_" + num(int64_t(l)) : name);
    line(T + " " + names.back() + " = " + s + ";");
  }
  values[x] = std::move(names);
}

// ---- memory
/// The condition that elements at + first ... at + first + lanes - 1 exist; empty when the bounds prove it.
std::string MetalKernel::inside(UOpRef at, unsigned first, unsigned lanes, UOpRef count) {
  if (at->lo + first >= 0 && at->hi + first + lanes <= count->lo) return "";
  std::string i = index(at, 64) + (first ? " + " + num(first) : "");
  return i + " >= 0 && " + i + " <= " + index(count, 64) + " - " + num(lanes);
}

Lanes MetalKernel::load(const Inst &i) {
  UOpRef x = i.uop, at = x->indices()[0];
  int64_t slot = x->src[0]->ints[0];
  Lanes gate = x->ntensors > 1 ? value(x->src[1]) : Lanes(), out;
  std::string start = "p" + num(slot) + "[" + index(at, widthOf(at));
  for (unsigned l = 0; l < lanesOf(x); ++l) {
    std::string when = i.speculative ? inside(at, l, 1, k.kernel->buffers[slot].elements) : "";
    if (!gate.empty()) when = both(when, gate[l]);
    std::string element = start + (l ? " + " + num(l) : "") + "]" + (x->dtype == DType::Bool ? " != 0" : "");
    out.push_back(when.empty() ? element : "(" + when + ") ? " + element + " : (" + type(x) + ")0");
  }
  return out;
}

/// Where an element is; the last index counts `lanes` elements. Of an array that each thread has for itself the digits
/// of its number are no dims.
std::string MetalKernel::place(size_t number, llvm::ArrayRef<UOpRef> indices, unsigned lanes) {
  const StageArray &a = k.linear.stages[number];
  bool shared = threads.isShared(a.stage);
  int64_t stride = 1;
  std::string out;
  for (size_t d = indices.size(); d-- > 0;) {
    if (isThread(a.stage->indices()[d]) && !shared) { // of a vector that is all of a point the lanes are there
      if (d + 1 == indices.size()) stride *= lanesOf(a.stage);
      continue;
    }
    int64_t by = (shared ? a.strides[d] : stride) * (d + 1 == indices.size() ? lanes : 1);
    stride *= a.extents[d];
    out = (out.empty() ? "" : out + " + ") + index(indices[d], 32) + (by == 1 ? "" : " * " + num(by));
  }
  return out.empty() ? "0" : out;
}

Lanes MetalKernel::stageRead(const Inst &i) {
  UOpRef x = i.uop;
  size_t number = arrayOf(x->src[0]);
  const StageArray &a = k.linear.stages[number];
  unsigned lanes = lanesOf(x);
  std::string when, at = place(number, x->indices(), 1);
  for (size_t d = 0; i.speculative && d < x->indices().size(); ++d)
    when = both(when, inside(x->indices()[d], 0, d + 1 == x->indices().size() ? lanes : 1, c.index(a.extents[d])));
  const Lanes gate = x->ntensors > 1 ? value(x->src[1]) : Lanes();
  const std::string all = when;
  Lanes out;
  for (unsigned l = 0; l < lanes; ++l) {
    if (!gate.empty()) when = both(all, gate[l]);
    std::string element = "a" + num(number) + "[" + at + (l ? " + " + num(l * step(a)) : "") + "]" +
                          (x->dtype == DType::Bool ? " != 0" : "");
    out.push_back(when.empty() ? element : "(" + when + ") ? " + element + " : (" + type(x) + ")0");
  }
  return out;
}

/// Of the threads whose numbers differ in other bits than these alone: the first. Empty where there is only one.
std::string MetalKernel::firstOf(uint32_t bits) {
  uint32_t others = uint32_t(k.group - 1) & ~bits;
  return others ? "(lane & " + num(others) + ") == 0" : "";
}

void MetalKernel::put(UOpRef stage) {
  size_t number = arrayOf(stage);
  const StageArray &a = k.linear.stages[number];
  uint32_t closed = 0; // what is the same for several threads one of them puts
  for (UOpRef r : stage->indices())
    if (isThread(r)) closed |= bitsOfRange(r);
  std::string when = threads.isShared(stage) ? firstOf(closed) : "";
  std::string at = place(number, stage->indices(), lanesOf(stage));
  for (auto [l, v] : llvm::enumerate(value(stage->src[0])))
    line((when.empty() ? "" : "if (" + when + ") ") + "a" + num(number) + "[" + at +
         (l ? " + " + num(int64_t(l) * step(a)) : "") + "] = " + v + ";");
}

void MetalKernel::write(UOpRef x) {
  UOpRef at = x->indices()[0];
  Lanes gate = x->ntensors > 2 ? value(x->src[2]) : Lanes();
  std::string first = firstOf(threads.bitsOf(x)), i = index(at, widthOf(at)); // one stores what several have
  for (auto [l, v] : llvm::enumerate(value(x->src[1]))) {
    std::string when = both(gate.empty() ? "" : gate[l], first);
    line((when.empty() ? "" : "if (" + when + ") ") + "p" + num(x->src[0]->ints[0]) + "[" + i +
         (l ? " + " + num(int64_t(l)) : "") + "] = " + v + ";");
  }
}

// ---- control
void MetalKernel::update(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Fma, Op::Dot4};
  Combine kind = Combine(fold->ints[0]);
  unsigned each = valuesOf(kind);
  if (const UnitStep *step = unitStepOf(kind)) {
    refuse(llvm::Twine("a step of matrix unit ") + step->unit->text + " has no form in Metal");
    return;
  }
  std::string f = h.op(ops[fold->ints[0]], fold->dtype, 1);
  Lanes acc = value(fold);
  for (unsigned i = 1; i < fold->ntensors; i += each) {
    Lanes x = value(fold->src[i]), y = each == 2 ? value(fold->src[i + 1]) : Lanes();
    for (unsigned l = 0; l < lanesOf(fold); ++l)
      line(acc[l] + " = " + f + "(" + (each == 2 ? x[l] + ", " + y[l] + ", " + acc[l] : acc[l] + ", " + x[l]) + ");");
  }
}

/// Steps n/2 ... 1 of the tree, each an exchange between lanes; all of them get the result.
Lanes MetalKernel::laneFold(UOpRef fold) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  Lanes out = value(fold->src[0]);
  unsigned lanes = *fold->indices()[0]->src[0]->constIndex();
  std::string f = h.op(ops[fold->ints[0]], fold->dtype, 1), exchange = h.exchange(fold->dtype), T = type(fold);
  for (std::string &x : out)
    for (unsigned distance = lanes / 2; distance; distance /= 2) {
      std::string name = "v" + num(variables++);
      line(T + " " + name + " = " + f + "(" + x + ", " + exchange + "(" + x + ", " + num(distance) + "));");
      x = name;
    }
  return out;
}

void MetalKernel::beginLoop(size_t at) {
  UOpRef range = k.linear.insts[at].uop, extent = range->src[0];
  // SIMD groups may part in a loop in which none of them waits for another; the lanes of one stay together.
  if (uint32_t bits = threads.bitsOf(extent); bits && ((bits & (warp - 1)) || barriers.within(at)))
    refuse("the threads of an item go through a loop different numbers of times");
  std::string r = "r" + num(range->ints[0]), n = index(extent, widthOf(extent)), T = type(range);
  values[range] = {r};
  if (RangeKind(range->ints[1]) != RangeKind::Parallel)
    return open("for (" + T + " " + r + " = 0; " + r + " < " + n + "; ++" + r + ") {");
  std::string from = base.empty() ? "item" : "item - " + base, next = "base" + num(bases++);
  line("const item_t " + next + " = " + (base.empty() ? "" : base + " + ") + "(item_t)" + n + ";");
  open("if (" + both(base.empty() ? "" : "item >= " + base, "item < " + next) + ") {");
  line("const " + T + " " + r + " = (" + T + ")(" + from + ");");
  base = next;
}

void MetalKernel::emit(size_t at) {
  const Inst &i = k.linear.insts[at];
  if (barriers.before.contains(at)) line("threadgroup_barrier(mem_flags::mem_threadgroup);");
  switch (i.kind) {
  case InstKind::Define: {
    UOpRef x = i.uop;
    if (x->op == Op::Splat) {
      values[x] = Lanes(lanesOf(x), value(x->src[0])[0]);
    } else if (x->op == Op::Stack) {
      Lanes all;
      for (UOpRef y : x->src) llvm::append_range(all, value(y));
      values[x] = std::move(all);
    } else if (x->op == Op::Lanes) {
      Lanes from = value(x->src[0]);
      values[x] = Lanes(from.begin() + x->ints[0], from.begin() + x->ints[0] + lanesOf(x));
    } else {
      define(x, compute(i));
    }
    break;
  }
  case InstKind::LoopBegin: beginLoop(at); break;
  case InstKind::LoopEnd: close(); break;
  case InstKind::AccInit: {
    Lanes init = value(i.uop->src[0]);
    define(i.uop, init.size() == lanesOf(i.uop) ? init : Lanes(lanesOf(i.uop), init[0]));
    break;
  }
  case InstKind::AccUpdate: update(i.uop); break;
  case InstKind::StagePut: put(i.uop); break;
  case InstKind::Write: write(i.uop); break;
  case InstKind::StageFill:
  case InstKind::AccResume: refuse("its sums are spilled, which is for CPUs"); break;
  case InstKind::Call: llvm_unreachable("a GPU launches followers by themselves");
  case InstKind::Prefetch: break; // hints; plans of GPUs have none
  }
}

llvm::Error MetalKernel::makeArrays(GpuLaunch &launch) {
  constexpr uint64_t most = 16384; // bytes of a thread's own arrays
  for (auto [number, a] : llvm::enumerate(k.linear.stages)) {
    uint64_t bytes = std::max(1u, byteSize(a.stage->dtype));
    bool shared = threads.isShared(a.stage);
    int64_t count = shared || a.stage->indices().empty() ? a.elements : 1;
    for (auto [d, r] : llvm::enumerate(a.stage->indices()))
      if (!shared && !isThread(r))
        count *= a.extents[d];
      else if (!shared && d + 1 == a.stage->indices().size())
        count *= lanesOf(a.stage);
    count = std::max<int64_t>(count, 1);
    (shared ? launch.shared : launch.privateBytes) += llvm::alignTo(uint64_t(count) * bytes, 64);
    h.type(a.stage->dtype, 1);
    line((shared ? "threadgroup " : "") + cemit::memoryName(a.stage->dtype) + " a" + num(int64_t(number)) + "[" +
         num(count) + "];");
  }
  if (launch.privateBytes > most)
    return fail("its arrays take " + num(int64_t(launch.privateBytes)) + " bytes of each thread; at most " +
                num(int64_t(most)) + " have a form in Metal");
  return llvm::Error::success();
}

llvm::Error MetalKernel::prologue(GpuLaunch &launch) {
  llvm::DenseSet<UOpRef> seen;
  auto note = [&](UOpRef x) {
    for (UOpRef d : topoSort({x}))
      if (d->op == Op::Dim) seen.insert(d);
  };
  note(k.kernel->sink);
  for (const KernelBuffer &b : k.kernel->buffers) note(b.elements);
  for (auto [i, d] : llvm::enumerate(dims))
    if (seen.contains(d)) launch.dims.push_back(i);
  if (k.kernel->buffers.size() + !launch.dims.empty() > mostArguments)
    return fail("it has " + num(int64_t(k.kernel->buffers.size())) + " buffers; a kernel of Metal has at most " +
                num(mostArguments) + " arguments");
  if (std::string why = threads.find(k, warp); !why.empty()) return fail(why);
  GpuKernel plain{k.name, k.kernel, k.linear, k.threads, k.group};
  barriers.find(plain, threads);
  if (auto e = makeArrays(launch)) return e;
  UOpRef items = itemCount(c, k.kernel->sink);
  std::string perBlock = num(k.threads / k.group);
  line(std::string("typedef ") + (fits32(0, items->hi + k.threads) ? "u32" : "u64") + " item_t;");
  line("const item_t item = (item_t)block * " + perBlock + " + thread_number" +
       (k.group > 1 ? " / " + num(k.group) : "") + ";");
  if (k.group > 1) line("const u32 lane = thread_number % " + num(k.group) + ";");
  for (UOpRef x : topoSort({k.kernel->sink}))
    if (isThread(x)) {
      int64_t stride = strideOf(x), n = *x->src[0]->constIndex();
      std::string name = "t" + num(x->ints[0]) + "_" + num(stride);
      line("const " + type(x) + " " + name + " = (" + type(x) + ")(lane / " + num(stride) + " % " + num(n) + ");");
      values[x] = {name};
    }
  return llvm::Error::success();
}

llvm::Expected<GpuLaunch> MetalKernel::run(std::string &out) {
  GpuLaunch launch{k.name, k.threads, k.group, {}, 0, 0};
  if (auto e = prologue(launch)) return e;
  for (size_t n = 0; n < k.linear.insts.size() && h.refused().empty(); ++n) emit(n);
  std::string head = "\n[[max_total_threads_per_threadgroup(" + num(k.threads) + ")]]\nkernel void " + k.name + "(";
  size_t number = 0;
  for (const KernelBuffer &b : k.kernel->buffers) {
    h.type(b.dtype, 1);
    head += "device " + std::string(b.write ? "" : "const ") + cemit::memoryName(b.dtype) + " *p" +
            num(int64_t(number)) + " [[buffer(" + num(int64_t(number)) + ")]],\n    ";
    ++number;
  }
  if (!launch.dims.empty()) head += "constant i64 *dim [[buffer(" + num(int64_t(number)) + ")]],\n    ";
  if (!h.refused().empty()) return fail(h.refused());
  out += head +
         "u32 thread_number [[thread_position_in_threadgroup]],\n    u32 block [[threadgroup_position_in_grid]]) {\n" +
         body + "}\n";
  return launch;
}

} // namespace

llvm::Expected<MetalText> astra::emitMetal(Context &c, llvm::ArrayRef<GpuKernel> kernels, llvm::ArrayRef<UOpRef> dims) {
  Helpers h(cemit::Dialect::Metal);
  MetalText out;
  std::string functions;
  for (const GpuKernel &k : kernels) {
    auto launch = MetalKernel(c, h, k, dims, metalTarget().warp).run(functions);
    if (!launch) return launch.takeError();
    if (auto e = checkLaunch(*launch, metalTarget())) return std::move(e);
    if (h.isTaken(k.name)) return llvm::createStringError("kernel name '" + k.name + "' is one of the helpers'");
    out.kernels.push_back(std::move(*launch));
  }
  out.source = h.text() + functions;
  return out;
}
