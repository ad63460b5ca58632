//===- Print.cpp: a schedule as text ---------------------------------------===//
#include "astra/IR/Text.h"
#include "astra/Schedule/Program.h"

using namespace astra;

namespace {
struct Printer {
  const Schedule &s;
  std::string out;

  template <class... A> void line(unsigned depth, const A &...a) {
    out.append(2 * depth, ' ');
    (out.append(a), ...);
    out += '\n';
  }
  static std::string num(uint64_t v) { return std::to_string(v); }
  static std::string list(const std::vector<uint32_t> &xs) {
    std::string t;
    for (uint32_t x : xs) t += (t.empty() ? "" : ", ") + num(x);
    return t;
  }

  static std::string followersOf(const KernelSpec &k) {
    std::string t = k.follows ? " follows" : "";
    for (const Follower &f : k.followers) t += (t.empty() ? ", followed by " : ", ") + f.spec.name;
    return t;
  }

  static std::string beginOf(const Placed &p) {
    std::string t;
    for (UOpRef i : p.begin) t += (t.empty() ? " from [" : ", ") + indexText(i);
    if (t.empty()) return t;
    t += "] of [";
    for (auto [i, extent] : llvm::enumerate(p.allocated)) t += (i ? ", " : "") + indexText(extent);
    return t + "]";
  }

  void program(const Routine &r, uint32_t p, unsigned depth) {
    for (const Instr &i : r.programs[p]) std::visit([&](auto &x) { instr(r, x, depth); }, i);
  }
  void instr(const Routine &, const LaunchInstr &l, unsigned depth) {
    std::string t;
    for (const auto &v : l.variants)
      t += (t.empty() ? "" : " else ") + s.kernels[v.kernel].name +
           (v.left ? " if " + indexText(v.left) + " <= " + indexText(v.right) : "");
    line(depth, "launch ", t, " (", list(l.buffers), ")");
  }
  void instr(const Routine &, const CopyInstr &x, unsigned d) {
    line(d, "copy ", num(x.dst), " <- ", num(x.src), ": ", indexText(x.bytes), " bytes");
  }
  void instr(const Routine &, const SetDimInstr &x, unsigned d) {
    line(d, "set ", indexText(x.dim), " = ", indexText(x.value));
  }
  void instr(const Routine &, const ReadDimInstr &x, unsigned d) {
    line(d, "read ", indexText(x.dim), " from ", num(x.buffer));
  }
  void instr(const Routine &r, const WhileInstr &x, unsigned d) {
    line(d, "while ", num(x.flag), " by");
    program(r, x.cond, d + 2);
    line(d, "do");
    program(r, x.body, d + 1);
  }
  void instr(const Routine &r, const LoopInstr &x, unsigned d) {
    line(d, "for ", indexText(x.counter), " < ", indexText(x.count));
    program(r, x.body, d + 1);
  }
  void instr(const Routine &r, const CondInstr &x, unsigned d) {
    line(d, "if ", num(x.flag));
    program(r, x.then, d + 1);
    line(d, "else");
    program(r, x.otherwise, d + 1);
  }
  void instr(const Routine &, const SwapInstr &x, unsigned d) { line(d, "swap ", num(x.a), " ", num(x.b)); }
  void instr(const Routine &, const ExternalInstr &x, unsigned d) {
    auto list = [](const std::vector<ExternalInstr::Tensor> &ts) {
      std::string t;
      for (const ExternalInstr::Tensor &v : ts)
        t += (t.empty() ? "" : ", ") + num(v.buffer) + ": " + typeText(v.dtype, v.shape);
      return t;
    };
    line(d, "call ", x.function, x.deterministic ? " deterministic" : "", x.effects ? " effects" : "", " (",
         list(x.operands), ") -> (", list(x.results), ")", x.beside ? " beside" : "");
  }
  void instr(const Routine &, const WaitInstr &x, unsigned d) {
    line(d, "wait", x.left ? " until " + num(x.left) + " run" : "");
  }

  void routine(const Routine &r) {
    static const char *const kinds[] = {"input", "output", "param", "state", "slot"};
    for (size_t i = 0; i < r.buffers.size(); ++i)
      line(1, "buffer ", num(i), ": ", kinds[int(r.buffers[i].kind)], " ", num(r.buffers[i].index), ", ",
           indexText(r.buffers[i].bytes), " bytes");
    for (size_t i = 0; i < r.slots.size(); ++i) line(1, "slot ", num(i), ": ", indexText(r.slots[i]), " bytes");
    program(r, 0, 1);
  }
};
} // namespace

std::string astra::print(const Schedule &s) {
  Printer p{s, {}};
  for (const KernelSpec &k : s.kernels) {
    std::string in;
    for (const Placed &x : k.inputs)
      in += (in.empty() ? "" : ", ") + typeText(x.value->dtype, x.value->shape) +
            (x.layout.isRowMajor() ? "" : " " + text(x.layout));
    const Placed &o = k.outputs[0];
    p.line(0, "kernel ", k.name, " (", in, ") -> ", typeText(o.value->dtype, o.value->shape),
           o.layout.isRowMajor() ? "" : " " + text(o.layout), Printer::beginOf(o), k.inPlace ? " in place" : "",
           Printer::followersOf(k));
  }
  for (const StoredParam &x : s.params)
    p.line(0, "param ", x.param->str.str(), ": ", typeText(x.param->dtype, x.param->shape), " ", text(x.layout),
           x.fixed ? " fixed" : "", x.derive < 0 ? "" : ", derived by " + Printer::num(x.derive));
  for (size_t i = 0; i < s.derives.size(); ++i) {
    p.line(0, "derive ", Printer::num(i));
    p.routine(s.derives[i]);
  }
  for (const ScheduledEntry &e : s.entries) {
    p.line(0, "entry ", e.entry->name);
    p.routine(e.routine);
    if (!e.strided) continue;
    p.line(0, "entry ", e.entry->name, " at strides");
    p.routine(e.strided->routine);
  }
  return p.out;
}
