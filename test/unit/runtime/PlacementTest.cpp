//===- PlacementTest.cpp: where work is, how it moves, who hears of its end --===//
// Takes:    the kinds of devices of Conformance.h.
// Checks:   what decision 0119 and docs/descriptors.md say: a device is a handle chosen at run time, of one spelling;
//           memory moves by copies that are asked for, and a move is a copy and a free; an error stays with its
//           promise; kernels know no stream; memory that several streams use comes back when the last has ended.
#include "Conformance.h"
#include "astra/async.hpp"

#include <sys/mman.h>

using namespace astra::test;

namespace {

struct Placement : Conformance {
  astra_pool_stats stats() {
    astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
    EXPECT_OK(astra_pool_get_stats(machine->pool, &s));
    return s;
  }
};

/// One program text, the device a string: the same bytes wherever it is.
TEST_P(Placement, ADeviceIsChosenAtRunTime) {
  std::vector<float> x = {1, -2, 3, 0.5f, 1e-3f, 7}, y(16), want(16);
  for (int n = 0; n < 2; n++)
    for (int i = 0; i < 8; i++) {
      want[size_t(n * 8 + i)] = -0.0f;
      for (int k = 0; k < 3; k++) {
        float &sum = want[size_t(n * 8 + i)];
        sum = __builtin_fmaf(x[size_t(n * 3 + k)], float(i * 3 + k), sum);
      }
    }
  EXPECT_OK(machine->run("apply", {tensor(x, {2, 3})}, {tensor(y, {2, 8})}));
  EXPECT_EQ(memcmp(y.data(), want.data(), 64), 0);
  Device none;
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "no device is named 'tpu:0'",
              astra_device_init(none.out(), machine->runtime, "tpu:0", nullptr, &diag));
}

/// A call takes the memory of its own device and of the host, which a CPU's pools are; that of another GPU is copied
/// first, by copies that the caller asks for.
TEST_P(Placement, TransfersAreExplicit) {
  bool gpu = isGpu(GetParam());
  Device other;
  Pool pool;
  Stream stream;
  Buffer there;
  astra_device_options o = ASTRA_INIT(astra_device_options);
  if (gpu) o.driver = ASTRA_STAND_IN;
  const char *name = !gpu ? "cpu" : GetParam() == Hip ? "hip:1" : "cuda:0";
  EXPECT_OK(astra_device_init(other.out(), machine->runtime, name, &o, &diag));
  EXPECT_OK(astra_pool_init(pool.out(), other, nullptr, &diag));
  EXPECT_OK(astra_stream_init(stream.out(), other, &diag));
  EXPECT_OK(astra_buffer_init(there.out(), pool, 32, &diag));
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, host(8), y(8);
  Promise written, fetched;
  EXPECT_OK(astra_stream_write(stream, there, 0, x.data(), 32, written.out(), &diag));
  EXPECT_OK(astra_promise_wait(written, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "of another device than the stream",
              astra_stream_write(machine->stream, there, 0, x.data(), 32, nullptr, &diag));
  Promise none;
  astra_status s =
      machine->submit(machine->session, machine->stream, "derived", {in(there, 8)}, {tensor(y, {8})}, none.out());
  if (gpu) {
    EXPECT_EQ(s, ASTRA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(diag.text).find("memory of another device; copy it to the host first"), std::string::npos)
        << diag.text;
  } else {
    EXPECT_OK(s);
    EXPECT_OK(astra_promise_wait(none, &diag));
  }
  EXPECT_OK(astra_stream_read(stream, host.data(), there, 0, 32, fetched.out(), &diag));
  EXPECT_OK(astra_promise_wait(fetched, &diag));
  Buffer here = makeBuffer(32);
  write(here, host);
  EXPECT_OK(machine->run("derived", {in(here, 8)}, {tensor(y, {8})}));
  for (size_t i = 0; i < 8; i++) EXPECT_EQ(y[i], x[i] + 3);
}

/// The source is freed as soon as the copy is queued: its memory is nobody else's before the copy has ended.
TEST_P(Placement, AMoveIsACopyAndAFree) {
  if (isInline(GetParam())) GTEST_SKIP() << "a copy has ended when it is queued";
  constexpr uint64_t kBytes = 64 << 10;
  int32_t gate = 0;
  std::vector<float> y = {0}, values(kBytes / 4), got(values.size());
  for (size_t i = 0; i < values.size(); i++) values[i] = float(i);
  Buffer source = makeBuffer(kBytes);
  write(source, values);
  Promise before, copied;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "gate", {gateTensor(gate)}, {tensor(y, {})}, before.out()));
  EXPECT_OK(astra_stream_read(machine->stream, got.data(), source, 0, kBytes, copied.out(), &diag));
  source = Buffer();
  uint64_t fresh = stats().fresh;
  EXPECT_GE(stats().bytes_in_use, kBytes);
  Buffer next = makeBuffer(kBytes);
  EXPECT_EQ(stats().fresh, fresh + 1) << "the source's memory is still read";
  open(gate, 1);
  EXPECT_OK(astra_promise_wait(copied, &diag));
  EXPECT_EQ(got, values);
  EXPECT_OK(astra_promise_wait(before, &diag));
  EXPECT_EQ(stats().bytes_in_use, kBytes);
  Buffer again = makeBuffer(kBytes);
  EXPECT_EQ(stats().fresh, fresh + 1) << "now it serves again";
}

/// An error is its promise's, for whoever asks and as often as they ask; the stream goes on.
TEST_P(Placement, AnErrorStaysWithItsPromise) {
  std::vector<float> x = {1, 2}, y = {0}, z(2), unchanged = {-1, -1};
  Session other = machine->makeSession(), third = machine->makeSession();
  Promise failed, dependant, independent;
  EXPECT_OK(
      machine->submit(machine->session, machine->stream, "overdraw", {tensor(x, {2})}, {tensor(y, {})}, failed.out()));
  EXPECT_OK(machine->submit(other, machine->stream, "double", {tensor(x, {2})}, {tensor(unchanged, {2})},
                            dependant.out(), {failed}));
  EXPECT_OK(machine->submit(third, machine->stream, "double", {tensor(x, {2})}, {tensor(z, {2})}, independent.out()));
  EXPECT_OK(astra_promise_wait(independent, &diag));
  EXPECT_EQ(z, (std::vector<float>{2, 4}));
  std::string sentence;
  for (int again = 0; again < 2; again++) {
    Diag mine;
    EXPECT_EQ(astra_promise_wait(failed, &mine), ASTRA_DATA_DIM);
    EXPECT_EQ(astra_promise_poll(failed, nullptr), ASTRA_DATA_DIM);
    if (again) {
      EXPECT_EQ(sentence, mine.text);
    }
    sentence = mine.text;
    EXPECT_EQ(astra_promise_wait(dependant, &mine), ASTRA_DEPENDENCY);
  }
  EXPECT_EQ(unchanged, (std::vector<float>{-1, -1})) << "it has not run";
  auto future = astra::toFuture(astra::Promise(std::exchange(*dependant.out(), nullptr)));
  try {
    future.get();
    ADD_FAILURE() << "a future of a failed call has a value";
  } catch (const astra::Error &e) {
    EXPECT_EQ(e.status(), ASTRA_DEPENDENCY);
  }
}

INSTANTIATE_TEST_SUITE_P(On, Placement, testing::Values(Inline, Two, Seven, Host, HostQueues, Cuda, Hip, CudaThreads),
                         kindName);

/// A kind, and of a GPU a number: nothing else names a device, and nothing names one in two ways.
TEST(Descriptors, DevicesHaveOneSpelling) {
  auto m = Machine::withGpu("cuda:0");
  astra_device_options o = ASTRA_INIT(astra_device_options);
  for (const char *name :
       {"cuda:00", "cuda:01", "cuda:+1", "cuda: 1", "cuda:-0", "cuda:1 ", "cuda:0x1", "cuda:", "hip:01", "cuda:2",
        "cuda:18446744073709551617", "CUDA:0", "cuda", "cuda0", "gpu", "cpu:0", "cpu:", ""}) {
    Device device;
    o.driver = ASTRA_STAND_IN;
    astra_status s = astra_device_init(device.out(), m->runtime, name, &o, &m->diag);
    EXPECT_TRUE(s == ASTRA_UNSUPPORTED || s == ASTRA_UNKNOWN_NAME) << name << ": " << astra_status_name(s);
    EXPECT_NE(std::string(m->diag.text).find(std::string("'") + name + "'"), std::string::npos) << m->diag.text;
  }
  for (const char *name : {"cpu", "cuda:0", "cuda:1", "hip:0"}) {
    Device device;
    o.driver = strcmp(name, "cpu") == 0 ? nullptr : ASTRA_STAND_IN;
    EXPECT_EQ(astra_device_init(device.out(), m->runtime, name, &o, &m->diag), ASTRA_OK) << name;
  }
}

/// A kernel is a function of buffers, dims, scratch memory and a range of items: it runs with no runtime about it.
TEST(KernelBorder, AKernelKnowsNoStream) {
#if defined(__x86_64__)
  using Kernel = void (*)(void *const *buffers, const int64_t *dims, void *scratch, int64_t first, int64_t last);
  ManifestMaker maker;
  size_t bytes = maker.x86.code.size();
  void *code = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  memcpy(code, maker.x86.code.data(), bytes);
  ASSERT_EQ(mprotect(code, bytes, PROT_READ | PROT_EXEC), 0);
  auto add = reinterpret_cast<Kernel>(static_cast<char *>(code) + maker.x86.offset("add"));
  float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40}, z[] = {0, 0, 0, 0};
  void *buffers[] = {x, y, z};
  int64_t dims[] = {4};
  add(buffers, dims, nullptr, 2, 4); // any part of its items, in any order, on any thread
  EXPECT_EQ(z[0] + z[1], 0);
  add(buffers, dims, nullptr, 0, 2);
  EXPECT_EQ(z[0] + z[1] + z[2] + z[3], 110);
  munmap(code, bytes);
#endif
}

/// Three streams write neighbouring buffers that are freed meanwhile: each part serves again when its own stream has
/// ended, and neighbours that became one only when both have.
struct ThreeStreams : Placement {};
TEST_P(ThreeStreams, APartServesAgainWhenItsOwnStreamHasEnded) {
  constexpr uint64_t kPart = 64 << 10;
  {
    Buffer segment = makeBuffer(3 * kPart);
  }
  std::vector<float> values(kPart / 4, 5), y[3] = {{0}, {0}, {0}};
  int32_t gates[3] = {0, 0, 0};
  Buffer parts[3];
  char *places[3];
  Stream streams[3];
  Session sessions[3];
  Promise written[3];
  for (int i = 0; i < 3; i++) {
    parts[i] = makeBuffer(kPart);
    places[i] = static_cast<char *>(astra_buffer_data(parts[i]));
  }
  ASSERT_EQ(stats().fresh, 1u);
  ASSERT_EQ(places[1], places[0] + kPart);
  ASSERT_EQ(places[2], places[1] + kPart);
  for (int i = 0; i < 3; i++) {
    streams[i] = makeStream();
    sessions[i] = machine->makeSession();
    EXPECT_OK(machine->submit(sessions[i], streams[i], "gate", {gateTensor(gates[i])}, {tensor(y[i], {})}, nullptr));
    EXPECT_OK(astra_stream_write(streams[i], parts[i], 0, values.data(), kPart, written[i].out(), &diag));
    parts[i] = Buffer();
  }
  auto placeOf = [&](uint64_t bytes) { return static_cast<char *>(astra_buffer_data(makeBuffer(bytes))); };
  auto isInside = [&](const char *p) { return p >= places[0] && p < places[2] + kPart; };
  EXPECT_FALSE(isInside(placeOf(kPart))) << "all three are in flight";
  EXPECT_EQ(astra_pool_trim(machine->pool), ASTRA_OK); // nor does a trim take them
  open(gates[1], 1);
  EXPECT_OK(astra_promise_wait(written[1], &diag));
  EXPECT_EQ(placeOf(kPart), places[1]);
  EXPECT_FALSE(isInside(placeOf(2 * kPart))) << "its neighbours are in flight";
  EXPECT_EQ(astra_pool_trim(machine->pool), ASTRA_OK);
  open(gates[0], 1);
  EXPECT_OK(astra_promise_wait(written[0], &diag));
  EXPECT_EQ(placeOf(2 * kPart), places[0]);
  EXPECT_FALSE(isInside(placeOf(3 * kPart))) << "the third is in flight";
  EXPECT_EQ(astra_pool_trim(machine->pool), ASTRA_OK);
  open(gates[2], 1);
  EXPECT_OK(astra_promise_wait(written[2], &diag));
  EXPECT_EQ(placeOf(3 * kPart), places[0]);
}
INSTANTIATE_TEST_SUITE_P(On, ThreeStreams, testing::Values(Seven, HostQueues), kindName);

} // namespace
