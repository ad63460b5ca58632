//===- ShortMemoryTest.cpp: no memory, at every request of every function --===//
// Takes:    an allocator that fails from the n-th request on, and a scenario that calls every function of astra.h.
// Gives:    ASTRA_OUT_OF_MEMORY with a sentence for every n; nothing leaks, nothing crashes.
// Keeps:    astra.h itself is the list: a function that the scenario does not call is a failure, and one that it calls
//           as needing no memory must make no request.
// Does not: fail what the system gives without the allocator: mappings, threads.
#include "Client.h"

#include <atomic>
#include <fstream>
#include <regex>
#include <set>
#include <unistd.h>

using namespace astra;
using namespace astra::test;

namespace {

struct Failing {
  int64_t left = -1; ///< the request that fails; -1: none
  std::atomic<int64_t> requests{0}, live{0};
  astra_allocator hooks() {
    astra_allocator a = ASTRA_INIT(astra_allocator);
    a.self = this;
    a.allocate = [](void *self, size_t bytes, size_t alignment) -> void * {
      auto *f = static_cast<Failing *>(self);
      int64_t request = f->requests++;
      if (f->left >= 0 && request >= f->left) return nullptr;
      f->live++;
      void *memory = nullptr;
      return posix_memalign(&memory, alignment < 8 ? 8 : alignment, bytes) == 0 ? memory : nullptr;
    };
    a.release = [](void *self, void *memory, size_t, size_t) {
      static_cast<Failing *>(self)->live--;
      free(memory);
    };
    return a;
  }
};

/// The bundle, in memory and as a file.
struct Files {
  Files() : memory(Machine::standard()) {
    path = testing::TempDir() + "astra-short-memory-XXXXXX";
    int fd = mkstemp(path.data());
    EXPECT_EQ(write(fd, memory.data, memory.size), ssize_t(memory.size));
    close(fd);
  }
  ~Files() { unlink(path.c_str()); }
  Aligned memory;
  std::string path;
};

struct Scenario {
  Failing memory;
  std::set<std::string> called;
  bool threads = false;

  static std::string function(const char *call) { return std::string(call).substr(0, strcspn(call, "(")); }
  /// A call that may need memory.
  template <typename F> astra_status may(const char *text, const Diag &diag, F call) {
    called.insert(function(text));
    astra_status s = call();
    EXPECT_TRUE(!s || diag.text[0]) << text;
    return s;
  }
  /// A call that needs none. Where a pool of threads runs, requests of others are counted too.
  template <typename F> auto never(const char *text, F call) {
    called.insert(function(text));
    int64_t before = memory.requests;
    auto result = call();
    if (!threads) {
      EXPECT_EQ(memory.requests, before) << text;
    }
    return result;
  }
  astra_status run(const Files &files, uint32_t threads);
};

/// Everything that a client does, from the runtime to the freed runtime. Gives the first status that is not OK; every
/// handle is freed on the way out.
astra_status Scenario::run(const Files &files, uint32_t numThreads) {
  threads = numThreads > 1;
  astra_allocator hooks = memory.hooks();
  astra_runtime_options ro = ASTRA_INIT(astra_runtime_options);
  ro.allocator = &hooks;
  float number = 1; // outlives the streams that copy it
  Runtime runtime;
  Device device;
  Pool pool;
  Buffer x, y, view, mine;
  Stream stream, second;
  Bundle bundle, opened;
  Loaded loaded;
  Session session;
  Promise promise, mark;
  Diag diag;
#define MAY(call)                                                                                                      \
  if (astra_status s = may(#call, diag, [&] { return call; })) return s
#define NEVER(call) never(#call, [&] { return call; })
#define FINE(call) EXPECT_EQ(NEVER(call), ASTRA_OK)
  EXPECT_NE(NEVER(astra_version()), 0u);
  EXPECT_STREQ(NEVER(astra_status_name(ASTRA_BUSY)), "ASTRA_BUSY");
  EXPECT_STREQ(NEVER(astra_dtype_name(ASTRA_F32)), "f32");
  EXPECT_EQ(NEVER(astra_dtype_bits(ASTRA_F32)), 32u);

  MAY(astra_runtime_init(runtime.out(), &ro, &diag));
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = numThreads;
  MAY(astra_device_init(device.out(), runtime, "cpu", &o, &diag));
  EXPECT_EQ(NEVER(astra_device_has_feature(device, "no such feature")), -1);
  uint32_t nodes = 0;
  EXPECT_EQ(NEVER(astra_nodes("/no such folder", nullptr, &nodes, &diag)), ASTRA_UNSUPPORTED);
  MAY(astra_pool_init(pool.out(), device, nullptr, &diag));
  MAY(astra_buffer_init(x.out(), pool, 1000, &diag));
  MAY(astra_buffer_init(y.out(), pool, 1000, &diag));
  MAY(astra_buffer_init_view(view.out(), x, 64, 16, &diag));
  EXPECT_EQ(NEVER(astra_buffer_bytes(x)), 1000u);
  memset(NEVER(astra_buffer_data(x)), 0, 1000);
  astra_pool_stats stats = ASTRA_INIT(astra_pool_stats);
  FINE(astra_pool_get_stats(pool, &stats));
  FINE(astra_pool_trim(pool));
  MAY(astra_stream_init(stream.out(), device, &diag));
  MAY(astra_stream_init(second.out(), device, &diag));
  MAY(astra_buffer_init_on(mine.out(), pool, stream, 1000, &diag));
  MAY(astra_stream_write(stream, x, 0, &number, sizeof number, promise.out(), &diag));
  MAY(astra_stream_read(stream, &number, x, 0, sizeof number, nullptr, &diag));
  FINE(astra_promise_wait(promise, &diag));
  auto ignore = [](void *, astra_status) {};
  int descriptor = -1;
  FINE(astra_promise_on_ready(promise, ignore, nullptr, &diag));
  FINE(astra_promise_fd(promise, &descriptor, &diag));
  close(descriptor);
  EXPECT_EQ(NEVER(astra_promise_cancel(promise, nullptr)), ASTRA_BUSY);
  astra_stream_stats streamStats = ASTRA_INIT(astra_stream_stats);
  FINE(astra_stream_get_stats(stream, &streamStats));
  FINE(astra_promise_free(promise.out()));

  MAY(astra_runtime_register(runtime, "f", [](auto...) { return astra_status(ASTRA_OK); }, nullptr, 0, &diag));
  MAY(astra_bundle_init_file(opened.out(), runtime, files.path.c_str(), nullptr, &diag));
  MAY(astra_bundle_init_memory(bundle.out(), runtime, files.memory.data, files.memory.size, nullptr, &diag));
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  astra_target_info target = ASTRA_INIT(astra_target_info);
  astra_dim_info dim = ASTRA_INIT(astra_dim_info);
  astra_tensor_info tensorInfo = ASTRA_INIT(astra_tensor_info);
  astra_entry_info entryInfo = ASTRA_INIT(astra_entry_info);
  const astra_entry *entry = nullptr;
  uint32_t index = 0;
  FINE(astra_bundle_get_info(opened, &info));
  FINE(astra_bundle_get_target(opened, 0, &target));
  FINE(astra_bundle_get_dim(opened, 0, &dim));
  FINE(astra_bundle_get_param(opened, 0, &tensorInfo));
  FINE(astra_bundle_get_state(opened, 0, &tensorInfo));
  const void *asset = nullptr;
  uint64_t assetBytes = 0;
  EXPECT_EQ(NEVER(astra_bundle_num_assets(opened)), 2u);
  EXPECT_STREQ(NEVER(astra_bundle_asset_name(opened, 0)), "words");
  uint8_t digest[32];
  EXPECT_EQ(NEVER(astra_bundle_function_name(opened, 0)), nullptr);
  EXPECT_EQ(NEVER(astra_bundle_get_digest(opened, digest)), ASTRA_OK);
  FINE(astra_bundle_find_asset(opened, "words", &asset, &assetBytes, nullptr));
  FINE(astra_bundle_get_entry(opened, 0, &entry));
  FINE(astra_entry_get_info(entry, &entryInfo));
  FINE(astra_entry_get_input(entry, 0, &tensorInfo));
  FINE(astra_entry_get_output(entry, 0, &tensorInfo));
  FINE(astra_entry_find_input(entry, "x", &index, &diag));
  FINE(astra_entry_find_output(entry, "z", &index, &diag));
  EXPECT_EQ(NEVER(astra_entry_uses_state(entry, 0)), 0);

  astra_device *devices[] = {device};
  MAY(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
  EXPECT_NE(NEVER(astra_loaded_target(loaded)), nullptr);
  astra_dim_value dims[] = {{"cap", 4}, {"count", 2}};
  astra_session_options so = ASTRA_INIT(astra_session_options);
  so.dims = dims, so.num_dims = 2;
  MAY(astra_session_init(session.out(), loaded, &so, &diag));
  MAY(astra_session_set_dim(session, "count", 3, &diag));
  FINE(astra_session_set_trace(session, [](void *, const astra_trace_event *) {}, nullptr));
  std::vector<float> w(100), sum(1);
  Tensor t = tensor(w, {8, 3}), state = tensor(sum, {});
  Shape strides = {12, 2};
  MAY(astra_session_set_param(session, "w", &t, &diag));
  t.t.strides = strides.data();
  MAY(astra_loaded_set_param(loaded, "w", &t, &diag));
  Tensor a = tensor(w, {8});
  MAY(astra_session_set_param(session, "a", &a, &diag));
  MAY(astra_loaded_set_param(loaded, "b", &a, &diag)); // the next call of the session follows
  MAY(astra_session_set_state(session, "sum", &state, &diag));
  MAY(astra_session_get_state(session, "sum", &state, &diag));
  const void *lent;
  uint64_t lentBytes;
  MAY(astra_session_lease_state(session, "sum", &lent, &lentBytes, &diag));
  MAY(astra_session_return_state(session, "sum", &diag));
  MAY(astra_session_reset(session, &diag));

  for (const char *name : {"double", "apply", "loop", "accumulate"}) {
    bool apply = strcmp(name, "apply") == 0, scalar = !apply && strcmp(name, "double") != 0;
    Shape in = apply ? Shape{10, 3} : scalar ? Shape{} : Shape{20}, out = apply ? Shape{10, 8} : in, step = {9, 2};
    MAY(astra_bundle_find_entry(bundle, name, &entry, &diag));
    astra_tensor input = ASTRA_INIT(astra_tensor), output = ASTRA_INIT(astra_tensor);
    input.buffer = x, output.buffer = y;
    input.dtype = output.dtype = ASTRA_F32;
    input.ndim = int32_t(in.size()), output.ndim = int32_t(out.size()), input.shape = in.data(),
    output.shape = out.data();
    if (apply) input.strides = step.data();
    uint64_t bytes = 0;
    MAY(astra_entry_output_bound(entry, session, &input, 1, 0, nullptr, nullptr, &bytes, &diag));
    astra_call call = ASTRA_INIT(astra_call);
    astra_promise *after[] = {mark};
    call.entry = entry, call.inputs = &input, call.num_inputs = 1, call.outputs = &output, call.num_outputs = 1;
    call.after = after, call.num_after = mark ? 1 : 0, call.flags = ASTRA_CALL_ALLOW_COPY;
    promise = Promise();
    MAY(astra_session_submit(session, stream, &call, promise.out(), &diag));
    MAY(astra_promise_wait(promise, &diag));
    FINE(astra_promise_poll(promise, &diag));
    int64_t extents[ASTRA_MAX_RANK];
    int32_t ndim;
    FINE(astra_promise_output_shape(promise, 0, extents, &ndim, &diag));
    mark = Promise();
    MAY(astra_stream_wait(second, promise, &diag));
    MAY(astra_stream_mark(second, mark.out(), &diag));
  }
  MAY(astra_promise_wait(mark, &diag));

  for (Promise *p : {&promise, &mark}) FINE(astra_promise_free(p->out()));
  for (Stream *s : {&second, &stream}) FINE(astra_stream_free(s->out()));
  FINE(astra_session_free(session.out()));
  FINE(astra_loaded_free(loaded.out()));
  for (Bundle *b : {&opened, &bundle}) FINE(astra_bundle_free(b->out()));
  for (Buffer *b : {&mine, &view, &y, &x}) FINE(astra_buffer_free(b->out()));
  FINE(astra_pool_free(pool.out()));
  FINE(astra_device_free(device.out()));
  FINE(astra_runtime_free(runtime.out()));
#undef MAY
#undef NEVER
#undef FINE
  return ASTRA_OK;
}

TEST(ShortMemory, AtEveryRequest) {
  Files files;
  for (uint32_t threads : {1u, 3u}) {
    Scenario whole;
    EXPECT_EQ(whole.run(files, threads), ASTRA_OK);
    EXPECT_EQ(whole.memory.live, 0);
    EXPECT_GT(whole.memory.requests, 50);
    for (int64_t n = 0; n < whole.memory.requests; n++) {
      Scenario failing;
      failing.memory.left = n;
      astra_status status = failing.run(files, threads);
      // With threads a promise may be free by the time of the next call, or not: as many requests or one less.
      bool failed = threads == 1 || failing.memory.requests > n;
      EXPECT_EQ(status, failed ? ASTRA_OUT_OF_MEMORY : ASTRA_OK) << "request " << n;
      EXPECT_EQ(failing.memory.live, 0) << "request " << n;
    }
  }
}

/// Calls after the first, one behind another and one that waits for another's promise.
TEST(ShortMemory, CallsAskForNothing) {
  Aligned file(Machine::standard());
  for (uint32_t threads : {1u, 3u}) {
    Failing memory;
    astra_allocator hooks = memory.hooks();
    astra_runtime_options ro = ASTRA_INIT(astra_runtime_options);
    ro.allocator = &hooks;
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.num_threads = threads;
    Runtime runtime;
    Device device;
    Stream stream, second;
    Bundle bundle;
    Loaded loaded;
    Session session, other;
    Diag diag;
    ASSERT_EQ(astra_runtime_init(runtime.out(), &ro, &diag), ASTRA_OK);
    ASSERT_EQ(astra_device_init(device.out(), runtime, "cpu", &o, &diag), ASTRA_OK);
    ASSERT_EQ(astra_bundle_init_memory(bundle.out(), runtime, file.data, file.size, nullptr, &diag), ASTRA_OK);
    astra_device *devices[] = {device};
    ASSERT_EQ(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag), ASTRA_OK);
    for (Stream *s : {&stream, &second}) ASSERT_EQ(astra_stream_init(s->out(), device, &diag), ASTRA_OK);
    astra_dim_value dims[] = {{"cap", 4}, {"count", 2}};
    astra_session_options so = ASTRA_INIT(astra_session_options);
    so.dims = dims, so.num_dims = 2;
    for (Session *s : {&session, &other}) ASSERT_EQ(astra_session_init(s->out(), loaded, &so, &diag), ASTRA_OK);
    const astra_entry *entry = nullptr;
    ASSERT_EQ(astra_bundle_find_entry(bundle, "double", &entry, &diag), ASTRA_OK);
    std::vector<float> x(20, 3), y(20), z(20);
    Tensor in = tensor(x, {20}), between = tensor(y, {20}), out = tensor(z, {20});
    auto twice = [&] { // z = double(double(x)), on two streams
      Promise first, last;
      astra_call call = ASTRA_INIT(astra_call);
      call.entry = entry, call.inputs = &in.t, call.num_inputs = 1, call.outputs = &between.t, call.num_outputs = 1;
      EXPECT_EQ(astra_session_submit(session, stream, &call, first.out(), &diag), ASTRA_OK) << diag.text;
      astra_promise *after[] = {first};
      call.inputs = &between.t, call.outputs = &out.t, call.after = after, call.num_after = 1;
      EXPECT_EQ(astra_session_submit(other, second, &call, last.out(), &diag), ASTRA_OK) << diag.text;
      EXPECT_EQ(astra_promise_wait(last, &diag), ASTRA_OK) << diag.text;
      EXPECT_EQ(z, std::vector<float>(20, 12));
    };
    twice();
    int64_t before = memory.requests;
    for (int i = 0; i < 1000; i++) twice();
    // A worker may hold a promise a little longer than who waits for it; then the next call has one more, once.
    constexpr int64_t ofPromise = 3;
    EXPECT_LE(memory.requests, before + (threads == 1 ? 0 : ofPromise * threads));
  }
}

TEST(ShortMemory, OfEveryFunction) {
  std::ifstream header(ASTRA_HEADER);
  std::string text((std::istreambuf_iterator<char>(header)), {});
  std::set<std::string> declared;
  const std::regex declaration(R"(ASTRA_API\s[^;(]*?(astra_\w+)\()");
  for (std::sregex_iterator i(text.begin(), text.end(), declaration), end; i != end; ++i) declared.insert((*i)[1]);
  EXPECT_GT(declared.size(), 50u);
  Scenario whole;
  Files files;
  EXPECT_EQ(whole.run(files, 1), ASTRA_OK);
  EXPECT_EQ(whole.called, declared);
}

} // namespace
