//===- client.cpp: a client of the C++ wrapper ----------------------------===//
// Takes:    as client.c.
// Gives:    the same hash as client.c, through astra.hpp; 1 and the line of the first expectation that does not hold.
// Keeps:    C++17.
// Does not: use the C API, but to make the handles that are taken over.
#include "astra/astra.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace {

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) return std::fprintf(stderr, "%s:%d: " #condition "\n", __FILE__, __LINE__), 1;                   \
  } while (0)

/// What fn throws.
template <typename Fn> astra_status thrown(Fn fn) {
  try {
    fn();
  } catch (const astra::Error &error) {
    return error.status();
  }
  return ASTRA_OK;
}

int describes(const astra::Bundle &bundle) {
  astra_bundle_info info = bundle.info();
  EXPECT(std::strcmp(info.contract, "astra-num/1") == 0 && info.num_entries > 0 && info.num_targets > 0);
  EXPECT(std::strcmp(bundle.param(0).name, "w") == 0 && bundle.param(0).ndim == 2);
  EXPECT(std::strcmp(bundle.state(0).name, "sum") == 0 && std::strcmp(bundle.dim(0).name, "n") == 0);
  EXPECT(bundle.dim(0).upper == 5000 && std::strncmp(bundle.target(0).name, "cpu:", 4) == 0);
  astra::Entry entry = bundle.entry("accumulate");
  EXPECT(entry.info().num_inputs == 1 && std::strcmp(entry.info().name, "accumulate") == 0);
  EXPECT(std::strcmp(entry.input(0).name, "x") == 0 && std::strcmp(entry.output(0).name, "y") == 0);
  EXPECT(entry.findInput("x") == 0 && entry.findOutput("y") == 0 && entry.usesState(0) == 1);
  EXPECT(std::strcmp(bundle.entry(0u).info().name, "add") == 0);
  EXPECT(thrown([&] { bundle.entry("nothing"); }) == ASTRA_UNKNOWN_NAME);
  EXPECT(thrown([&] { bundle.entry(1000u); }) == ASTRA_UNKNOWN_NAME);
  EXPECT(thrown([&] { entry.findInput("nothing"); }) == ASTRA_UNKNOWN_NAME);
  EXPECT(thrown([&] { bundle.dim(1000); }) == ASTRA_UNKNOWN_NAME);
  return 0;
}

/// State, trace, lease, and what is replaced.
int remembers(astra::Loaded &loaded, const astra::Device &device, const astra::Stream &stream) {
  astra::Session session(loaded, {{"cap", 8}});
  astra::Tensor<float> x({}, {2}), y, state;
  int launches = 0;
  session.setTrace([](void *self, const astra_trace_event *) { ++*static_cast<int *>(self); }, &launches);
  astra::Call(session, "accumulate").input(x).output(y).run(stream);
  session.setTrace(nullptr, nullptr);
  EXPECT(y.values[0] == 12 && launches == 1);
  {
    astra::StateLease lease = session.leaseState("sum");
    float held;
    EXPECT(lease.bytes() == 4);
    std::memcpy(&held, lease.data(), 4);
    EXPECT(held == 12);
    EXPECT(thrown([&] { astra::Call(session, "accumulate").input(x).output(y).run(stream); }) == ASTRA_BUSY);
  }
  session.setState("sum", x.describe());
  session.getState("sum", state.describe());
  EXPECT(state.values[0] == 2);
  session.reset();
  session.getState("sum", state.describe());
  EXPECT(state.values[0] == 10);
  session.setDim("count", 3);
  astra::Call(session, "loop").input(x).output(y).run(stream);
  EXPECT(y.values[0] == 20); // 2 -> 4 -> 9 -> 20
  astra::Tensor<float> ones({8, 3}, std::vector<float>(24, 1)), rows({1, 3}, {1, 2, 3}), out({1, 8});
  session.setParam("w", ones.describe());
  astra::Call(session, "apply").input(rows).output(out).run(stream);
  EXPECT(out.values[7] == 6);
  // A promise, and what a stream orders by it.
  astra::Stream other(device);
  astra::Promise first = astra::Call(session, "accumulate").input(x).output(y).submit(stream);
  other.wait(first);
  other.mark().wait();
  stream.mark().wait();
  EXPECT(first.ready());
  EXPECT(thrown([&] { loaded.free(); }) == ASTRA_IN_USE);
  return 0;
}

/// Memory of a pool: written, used in a call, read back, donated.
int pools(astra::Session &session, const astra::Device &device, const astra::Stream &stream) {
  astra::Pool pool(device);
  const float four[4] = {1, 2, 3, 4};
  float sums[4] = {};
  astra::Buffer x(pool, 16), z(pool, 64), middle(z, 0, 16);
  EXPECT(x.bytes() == 16 && x.data() && middle.data() == z.data());
  stream.write(x, 0, four, 16);
  astra::Call(session, "add")
      .input(x, ASTRA_F32, {4})
      .input(x, ASTRA_F32, {4})
      .output(middle, ASTRA_F32, {4})
      .run(stream);
  stream.read(sums, z, 0, 16).wait();
  EXPECT(sums[3] == 8);
  astra::Call call(session, "double");
  call.donate(std::move(x), ASTRA_F32, {4});
  uint64_t bytes = 0;
  EXPECT(call.bound(0, &bytes) == std::vector<int64_t>{4} && bytes == 16 && !x);
  call.output(middle, ASTRA_F32, {4}).run(stream);
  stream.read(sums, z, 0, 16).wait();
  EXPECT(sums[0] == 2 && pool.stats().bytes_held > 0);
  middle.free(), z.free();
  pool.trim();
  return 0;
}

/// Types that std::vector and C++ do not have.
int types() {
  astra::Tensor<bool> mask({2, 2}, {true, false, true, true});
  astra_tensor t = mask.describe();
  EXPECT(t.dtype == ASTRA_BOOL && t.data_bytes == 4 && static_cast<uint8_t *>(t.data)[1] == 0);
  astra::Tensor<std::complex<float>> c({3});
  EXPECT(c.describe().dtype == ASTRA_C64 && c.describe().data_bytes == 24);
  astra::Tensor<uint16_t> half({1}, {0x3c00});
  half.dtype = ASTRA_F16;
  EXPECT(half.describe().dtype == ASTRA_F16);
  EXPECT(std::strcmp(astra::dtypeName(ASTRA_BF16), "bf16") == 0 && astra::dtypeBits(ASTRA_I4) == 4);
  EXPECT(astra::version() >> 16 == ASTRA_VERSION_MAJOR);
  return 0;
}

/// Handles of the C API, and a bundle in memory.
int takesOver(const char *path) {
  astra_runtime *made = nullptr;
  EXPECT(astra_runtime_init(&made, nullptr, nullptr) == ASTRA_OK);
  astra::Runtime runtime(made);
  astra::Device device(runtime, "cpu");
  EXPECT(device.hasFeature("no such feature") == -1);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> file((std::istreambuf_iterator<char>(in)), {});
  std::vector<char> memory(file.size() + 64);
  char *aligned = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  std::memcpy(aligned, file.data(), file.size());
  astra::Bundle bundle(runtime, aligned, file.size());
  astra::Loaded first(bundle, device);
  astra::Loaded loaded(first.release(), bundle.get());
  EXPECT(!first && loaded);
  astra_session *raw = nullptr;
  const astra_dim_value dims[] = {{"cap", 8}};
  astra_session_options o = ASTRA_INIT(astra_session_options);
  o.dims = dims, o.num_dims = 1;
  EXPECT(astra_session_init(&raw, loaded.get(), &o, nullptr) == ASTRA_OK);
  astra::Session session(raw, bundle.get());
  astra::Stream stream(device);
  astra::Tensor<float> x({2}, {1, 2}), z({2});
  astra::Call(session, bundle.entry("double")).input(x).output(z).run(stream);
  EXPECT(z.values[1] == 4);
  return 0;
}

int run(char **argv) {
  astra::Runtime runtime;
  astra::Device::Options options;
  options.threads = uint32_t(std::atoi(argv[2]));
  options.level = std::strcmp(argv[3], "best") == 0 ? nullptr : argv[3];
  astra::Device device(runtime, "cpu", options);
  astra::Stream stream(device);
  astra::Bundle bundle(runtime, argv[1]);
  astra::Loaded loaded(bundle, device);
  astra::Session session(loaded, {{"cap", 8}});
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t n = 0; n <= 5000; n = 3 * n + 1) {
    astra::Tensor<float> x({n, 3});
    for (size_t i = 0; i < x.values.size(); i++) x.values[i] = float((i * 2654435761u) % 1000) / 1000.0f;
    astra::Call call(session, "apply");
    astra::Tensor<float> y(call.input(x).bound(0));
    astra::Promise promise = call.output(y).run(stream);
    EXPECT(promise.shape(0) == y.shape);
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(y.values.data());
    for (size_t i = 0; i < y.values.size() * 4; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  std::printf("%016llx %s\n", static_cast<unsigned long long>(hash), loaded.target());
  return describes(bundle) || remembers(loaded, device, stream) || pools(session, device, stream) || types() ||
         takesOver(argv[1]);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  try {
    return run(argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
