//===- Ops.cpp: random tensors, and the evaluator --------------------------===//
#include "Ops.h"
#include "astra/IR/Verify.h"

namespace astra::test {

DType typeOf(int32_t dtype) {
  for (int t = 0; t <= int(DType::C128); t++)
    if (llvm::StringRef(info(DType(t)).text) == astra_dtype_name(dtype)) return DType(t);
  return DType::Void;
}

std::vector<uint8_t> elementsOf(Random &random, int32_t dtype, int64_t count) {
  uint64_t width = astra_dtype_bits(dtype) / 8;
  std::vector<uint8_t> bytes(uint64_t(count) * width);
  bool isComplex = dtype == ASTRA_C64 || dtype == ASTRA_C128;
  uint64_t part = isComplex ? width / 2 : width;
  DType t = typeOf(dtype == ASTRA_C64 ? ASTRA_F32 : dtype == ASTRA_C128 ? ASTRA_F64 : dtype);
  for (uint64_t at = 0; at < bytes.size(); at += part) {
    uint64_t bits = random();
    int which = int(random() % 8);
    if (dtype == ASTRA_BOOL) {
      bits &= 1;
    } else if (isFloat(t)) {
      static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0.5};
      double v = which == 0 ? special[random() % 8] : double(int64_t(random() % 2001) - 1000) / 64;
      if (which < 7) {
        Context c;
        bits = uint64_t(Builder(c).lit(t, v)->ints[0]);
      } // else any bits: subnormals, NaNs with payloads
    } else if (which < 6) {
      bits = uint64_t(int64_t(random() % 21) - 10);
    }
    memcpy(&bytes[at], &bits, part);
  }
  return bytes;
}

Strided tensorOf(Random &random, int32_t dtype, const Extents &shape, bool strided) {
  Strided s;
  uint64_t width = astra_dtype_bits(dtype) / 8;
  size_t rank = shape.size();
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; i++) order[i] = i;
  if (strided) std::shuffle(order.begin(), order.end(), random);
  int64_t step = 1, first = 0;
  s.view.ndim = int32_t(rank), s.view.dtype = dtype;
  for (size_t k = rank; k-- > 0;) {
    size_t i = order[k];
    int64_t gap = strided && random() % 3 == 0 ? 2 : 1;
    bool backwards = strided && random() % 4 == 0;
    s.view.shape[i] = shape[i];
    s.view.strides[i] = backwards ? -step * gap : step * gap;
    if (backwards && shape[i]) first += step * gap * (shape[i] - 1);
    step *= std::max<int64_t>(shape[i], 1) * gap;
  }
  s.memory = elementsOf(random, dtype, step);
  s.view.data = s.memory.data(), s.view.data_bytes = s.memory.size(), s.view.byte_offset = uint64_t(first) * width;
  return s;
}

Extents shapeOf(const astra_view &view) { return Extents(view.shape, view.shape + view.ndim); }

Tensor denseOf(const astra_view &view) {
  Tensor t{typeOf(view.dtype), shapeOf(view), {}};
  uint64_t width = astra_dtype_bits(view.dtype) / 8;
  t.bytes.resize(uint64_t(t.count()) * width);
  const auto *base = static_cast<const uint8_t *>(view.buffer ? astra_buffer_data(view.buffer) : view.data);
  std::vector<int64_t> index(t.shape.size());
  for (int64_t n = 0; n < t.count(); n++) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); i++) at += index[i] * view.strides[i];
    memcpy(&t.bytes[uint64_t(n) * width], base + view.byte_offset + at * int64_t(width), width);
    for (size_t i = index.size(); i-- > 0 && ++index[i] == t.shape[i];) index[i] = 0;
  }
  return t;
}

Extents randomShape(Random &random, int rank, int64_t most) {
  Extents shape;
  for (int i = 0; i < rank; i++)
    shape.push_back(random() % 16 == 0 ? 0 : random() % 4 == 0 ? 1 : 1 + int64_t(random() % uint64_t(most)));
  return shape;
}

Ops::Ops(uint32_t threads) {
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = threads, options.level = getenv("ASTRA_OPS_LEVEL");
  astra_ops_options where = ASTRA_INIT(astra_ops_options);
  where.path = ASTRA_OPS_BUNDLE;
  EXPECT_EQ(astra_runtime_init(&runtime, nullptr, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(astra_device_init(&device, runtime, "cpu", &options, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(astra_stream_init(&stream, device, &diag), ASTRA_OK) << diag.text;
  EXPECT_EQ(astra_ops_init(&library, runtime, device, &where, &diag), ASTRA_OK) << diag.text;
}

/// Everything goes, in the reverse order: no buffer, call or session is left.
Ops::~Ops() {
  EXPECT_EQ(astra_stream_free(&stream), ASTRA_OK);
  EXPECT_EQ(astra_ops_free(&library), ASTRA_OK);
  EXPECT_EQ(astra_device_free(&device), ASTRA_OK);
  EXPECT_EQ(astra_runtime_free(&runtime), ASTRA_OK);
}

Tensor Ops::call(const astra_op &op, const Strided *into) {
  astra_view out = into ? into->view : ASTRA_INIT(astra_view);
  astra_promise *promise = nullptr;
  astra_status status = astra_ops_call(library, stream, &op, &out, &promise, &diag);
  EXPECT_EQ(status, ASTRA_OK) << op.name << ": " << diag.text;
  if (status) return {};
  status = astra_promise_wait(promise, &diag);
  EXPECT_EQ(status, ASTRA_OK) << op.name << ": " << diag.text;
  astra_promise_free(&promise);
  Tensor result = denseOf(out);
  if (!into) astra_buffer_free(&out.buffer);
  return result;
}

Tensor expected(const std::vector<Tensor> &inputs, const Graph &graph) {
  Module m;
  compose::Composer b(m.ctx());
  Entry e;
  e.name = "main";
  std::vector<UOpRef> x;
  for (const Tensor &t : inputs) {
    compose::Dims dims;
    for (int64_t n : t.shape) dims.push_back(b.idx(n));
    x.push_back(b.b.arg(int64_t(x.size()), t.dtype, dims));
    e.inputs.push_back({"x" + std::to_string(x.size()), x.back()});
  }
  llvm::Expected<UOpRef> y = compose::composed(b, graph(b, x));
  if (!y) return ADD_FAILURE() << llvm::toString(y.takeError()), Tensor();
  e.outputs.push_back({"y", *y});
  EvalInputs in;
  in.inputs = inputs;
  EvalOptions options;
  options.function = evalFunction;
  llvm::Expected<EvalResult> found = evalEntry(m, e, in, options);
  if (!found) return ADD_FAILURE() << llvm::toString(found.takeError()), Tensor();
  return found->outputs[0];
}

} // namespace astra::test
