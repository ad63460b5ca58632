//===- RunSchedule.cpp -----------------------------------------------------===//
#include "RunSchedule.h"
#include <cstring>

using namespace astra;

static llvm::Error fail(const llvm::Twine &what) { return llvm::createStringError(what); }

const Kernel &ScheduleRun::lowered(uint32_t k) {
  auto it = kernels.find(k);
  if (it != kernels.end()) return it->second;
  Context &c = m.ctx();
  Kernel l = lowerKernel(c, s.kernels[k], choosePlan(c, s.kernels[k], target));
  return kernels[k] = expand ? expandKernel(c, l) : l;
}

llvm::Error ScheduleRun::launch(const LaunchInstr &l) {
  for (const auto &v : l.variants) {
    if (v.left && *value(v.left) > *value(v.right)) continue;
    const Kernel &k = lowered(v.kernel);
    std::vector<Bytes> buffers;
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      Bytes &from = storage[binding[l.buffers[i]]];
      size_t bytes = *value(k.buffers[i].elements) * byteSize(k.buffers[i].dtype);
      if (bytes > from.size())
        return fail(s.kernels[v.kernel].name + ": buffer " + std::to_string(i) + " needs " + std::to_string(bytes) +
                    " bytes, the plan gives " + std::to_string(from.size()));
      buffers.emplace_back(from.begin(), from.begin() + bytes);
    }
    std::vector<Bytes> before = buffers;
    std::vector<llvm::MutableArrayRef<uint8_t>> views(buffers.begin(), buffers.end());
    auto run = [&]() -> llvm::Error {
      if (!execute) return evalKernel(k.sink, views, dims);
      std::vector<int64_t> vector;
      for (UOpRef d : s.dims) vector.push_back(value(d).value_or(0));
      return execute(v.kernel, views, vector, value(itemCount(m.ctx(), k.sink)).value_or(0));
    };
    if (auto e = run())
      return fail(s.kernels[v.kernel].name + " (" + text(k.plan) + "): " + llvm::toString(std::move(e)));
    for (size_t i = 0; i < k.buffers.size(); ++i)
      if (k.buffers[i].write) std::copy(buffers[i].begin(), buffers[i].end(), storage[binding[l.buffers[i]]].begin());
    if (s.kernels[v.kernel].inPlace)
      for (size_t i = 0; i < buffers[0].size(); ++i) bytesStored += buffers[0][i] != before[0][i];
    return llvm::Error::success();
  }
  return fail("no variant took the launch");
}

llvm::Error ScheduleRun::call(const ExternalInstr &x) {
  std::vector<Tensor> operands, results;
  for (auto [from, to] : {std::pair(&x.operands, &operands), std::pair(&x.results, &results)})
    for (const ExternalInstr::Tensor &t : *from) {
      Tensor &v = to->emplace_back(Tensor{t.dtype, {}, {}});
      for (UOpRef d : t.shape) v.shape.push_back(*value(d));
      const Bytes &bytes = storage[binding[t.buffer]];
      size_t size = tensorBytes(v.dtype, v.shape);
      if (size > bytes.size()) return fail(x.function + ": a tensor leaves its buffer");
      v.bytes.assign(bytes.begin(), bytes.begin() + size);
    }
  if (auto e = externals.at(x.function)(operands, results)) return e;
  for (auto [t, v] : llvm::zip_equal(x.results, results))
    std::copy(v.bytes.begin(), v.bytes.end(), storage[binding[t.buffer]].begin());
  return llvm::Error::success();
}

llvm::Error ScheduleRun::land(size_t left) {
  for (; beside.size() > left; beside.erase(beside.begin()))
    if (auto e = call(*beside.front())) return e;
  return llvm::Error::success();
}

llvm::Error ScheduleRun::program(const Routine &r, uint32_t p) {
  for (const Instr &i : r.programs[p]) {
    if (auto *x = std::get_if<LaunchInstr>(&i)) {
      if (auto e = launch(*x)) return e;
    } else if (auto *x = std::get_if<CopyInstr>(&i)) {
      memcpy(storage[binding[x->dst]].data(), storage[binding[x->src]].data(), *value(x->bytes));
    } else if (auto *x = std::get_if<SetDimInstr>(&i)) {
      int64_t v = *value(x->value);
      if (v < x->dim->lo || v > x->dim->hi)
        return fail("dim " + x->dim->str + " = " + std::to_string(v) + " leaves its bounds");
      dims[x->dim->str.str()] = v;
    } else if (auto *x = std::get_if<ReadDimInstr>(&i)) {
      int64_t v;
      memcpy(&v, storage[binding[x->buffer]].data(), 8);
      if (v < x->dim->lo || v > x->dim->hi) return fail("data dim " + std::to_string(v) + " leaves its bounds");
      dims[x->dim->str.str()] = v;
    } else if (auto *x = std::get_if<WhileInstr>(&i)) {
      for (;;) {
        if (auto e = program(r, x->cond)) return e;
        if (!storage[binding[x->flag]][0]) break;
        if (auto e = program(r, x->body)) return e;
      }
    } else if (auto *x = std::get_if<LoopInstr>(&i)) {
      int64_t n = *value(x->count);
      for (int64_t k = 0; k < n; ++k) {
        dims[x->counter->str.str()] = k;
        if (auto e = program(r, x->body)) return e;
      }
    } else if (auto *x = std::get_if<CondInstr>(&i)) {
      if (auto e = program(r, storage[binding[x->flag]][0] ? x->then : x->otherwise)) return e;
    } else if (auto *x = std::get_if<ExternalInstr>(&i)) {
      // Calls beside are made as late as they may be.
      if (x->beside)
        beside.push_back(x);
      else if (auto e = land(0))
        return e;
      else if (auto e = call(*x))
        return e;
    } else if (auto *x = std::get_if<WaitInstr>(&i)) {
      if (auto e = land(x->left)) return e;
    } else if (auto *x = std::get_if<SwapInstr>(&i))
      std::swap(binding[x->a], binding[x->b]);
  }
  return llvm::Error::success();
}

llvm::Expected<EvalResult> ScheduleRun::run(unsigned e, const EvalInputs &in) {
  const ScheduledEntry &se = s.entries[e];
  const Entry &entry = *se.entry;
  dims = in.dims;
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    for (size_t a = 0; a < in.inputs[i].shape.size(); ++a)
      if (UOpRef d = entry.inputs[i].value->shape[a]; d->op == Op::Dim) dims[d->str.str()] = in.inputs[i].shape[a];
  const Routine &r = se.routine;
  storage.assign(r.buffers.size() + r.slots.size(), {});
  binding.resize(r.buffers.size());
  for (size_t i = 0; i < r.slots.size(); ++i) storage[r.buffers.size() + i].assign(*value(r.slots[i]), 0xcd);
  for (size_t i = 0; i < r.buffers.size(); ++i) {
    const ProgramBuffer &b = r.buffers[i];
    binding[i] = i;
    size_t bytes = *value(b.bytes);
    Bytes &to = storage[i];
    switch (b.kind) {
    case BufferKind::Input: to = in.inputs[b.index].bytes; break;
    case BufferKind::Output: to.assign(bytes, 0xcd); break;
    case BufferKind::Param: {
      const StoredParam &p = s.params[b.index];
      auto given = in.params.find(p.param->str.str());
      const Bytes &rowMajor = given != in.params.end() ? given->second.bytes : *p.data;
      std::vector<int64_t> shape;
      for (UOpRef d : p.param->shape) shape.push_back(*d->constIndex());
      to = arrange(p.layout, shape, byteSize(p.param->dtype), rowMajor);
      break;
    }
    case BufferKind::State: {
      auto given = in.states.find(s.states[b.index]->str.str());
      if (given != in.states.end())
        to = given->second.bytes;
      else if (const StateVar *v = m.state(s.states[b.index]->str); v->initial)
        to = *v->initial;
      else
        to.assign(bytes, 0);
      break;
    }
    case BufferKind::Slot: binding[i] = r.buffers.size() + b.index; break;
    }
    if (storage[binding[i]].size() < bytes)
      return fail("buffer " + std::to_string(i) + " of " + std::to_string(bytes) + " bytes lies in " +
                  std::to_string(storage[binding[i]].size()));
  }
  if (auto err = program(r, 0)) return std::move(err);
  if (!beside.empty()) return fail("nothing waits for a call beside");
  EvalResult out;
  for (size_t i = 0; i < r.buffers.size(); ++i) {
    const ProgramBuffer &b = r.buffers[i];
    if (b.kind == BufferKind::State) {
      Tensor t{s.states[b.index]->dtype, {}, storage[i]};
      for (UOpRef d : s.states[b.index]->shape) t.shape.push_back(*value(d));
      out.states[s.states[b.index]->str.str()] = t;
    }
    if (b.kind != BufferKind::Output) continue;
    UOpRef v = entry.outputs[b.index].value;
    Tensor t{v->dtype, {}, {}};
    std::vector<int64_t> bound;
    for (UOpRef d : se.outputShapes[b.index]) t.shape.push_back(*value(d));
    for (UOpRef d : se.outputBounds[b.index]) bound.push_back(*value(d));
    // Elements lie at the strides of the bound, those of a sub-byte type as the bytes of rows.
    std::vector<int64_t> at(t.shape.size()), shape = t.shape;
    unsigned size = std::max(1u, byteSize(v->dtype));
    if (isSubByte(v->dtype) && !shape.empty())
      for (std::vector<int64_t> *of : {&shape, &bound}) of->back() = (of->back() * bitWidth(v->dtype) + 7) / 8;
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    for (int64_t k = 0; k < n; ++k) {
      int64_t from = 0;
      for (size_t a = 0; a < at.size(); ++a) from = from * bound[a] + at[a];
      t.bytes.insert(t.bytes.end(), storage[i].begin() + from * size, storage[i].begin() + (from + 1) * size);
      for (size_t a = at.size(); a-- > 0;) {
        if (++at[a] < shape[a]) break;
        at[a] = 0;
      }
    }
    if (out.outputs.size() <= b.index) out.outputs.resize(b.index + 1);
    out.outputs[b.index] = std::move(t);
  }
  return out;
}
