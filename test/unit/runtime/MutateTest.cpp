//===- MutateTest.cpp: altered files and short memory ---------------------===//
// Takes:    the standard bundle with bytes changed, an allocator that fails at the n-th request.
// Gives:    a refusal, or a bundle that is harmless to open, ask and load; never a crash, a leak or a touched
// out-parameter. Keeps:    hashes are made right again, so that what is behind them is reached. Does not: run altered
// programs: code is trusted once its hash is.
#include "Client.h"

#include <atomic>

using namespace astra;
using namespace astra::test;

namespace {

/// Opens, asks everything, loads, makes a session.
struct Prober {
  Prober() {
    EXPECT_EQ(astra_runtime_init(runtime.out(), nullptr, nullptr), ASTRA_OK);
    EXPECT_EQ(astra_device_init(device.out(), runtime, "cpu", nullptr, nullptr), ASTRA_OK);
  }
  bool accepts(const Aligned &memory, bool load = true) {
    Bundle bundle;
    Diag diag;
    astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
    o.flags = ASTRA_VERIFY_ALL;
    astra_status s = astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, &o, &diag);
    EXPECT_EQ(bundle == nullptr, s != ASTRA_OK);
    EXPECT_EQ(diag.status, s);
    EXPECT_EQ(diag.text[0] != 0, s != ASTRA_OK);
    if (s) return false;
    astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
    EXPECT_EQ(astra_bundle_get_info(bundle, &info), ASTRA_OK);
    size_t length = strlen(info.module);
    for (uint32_t i = 0; i < info.num_entries; i++) {
      const astra_entry *entry = nullptr;
      astra_entry_info e = ASTRA_INIT(astra_entry_info);
      astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
      astra_bundle_get_entry(bundle, i, &entry);
      astra_entry_get_info(entry, &e);
      for (uint32_t k = 0; k < e.num_inputs; k++)
        astra_entry_get_input(entry, k, &t), length += strlen(t.name) + size_t(t.ndim ? t.upper[0] : 0);
      for (uint32_t k = 0; k < e.num_outputs; k++) astra_entry_get_output(entry, k, &t), length += strlen(t.name);
    }
    if (!load) return length != size_t(-1);
    Loaded loaded;
    astra_device *devices[] = {device};
    if (astra_loaded_init(loaded.out(), bundle, devices, 1, &diag)) return true;
    astra_dim_value dims[] = {{"cap", 2}};
    astra_session_options so = ASTRA_INIT(astra_session_options);
    so.dims = dims, so.num_dims = 1;
    Session session;
    astra_session_init(session.out(), loaded, &so, &diag);
    return length != size_t(-1);
  }
  Runtime runtime;
  Device device;
};

Bytes standardBundle() {
  ManifestMaker k = standardManifest();
  return assemble(k);
}

TEST(Mutated, EveryByteOfHeaderAndTableAsItIs) {
  Prober prober;
  Bytes good = standardBundle();
  Aligned memory(good);
  size_t end = 64 + 4 * sizeof(fmt::Section);
  for (size_t at = 0; at < end; at++)
    for (int bit : {0, 3, 7}) {
      memory.data[at] ^= uint8_t(1 << bit);
      EXPECT_FALSE(prober.accepts(memory)) << "byte " << at;
      memory.data[at] = good[at];
    }
  EXPECT_TRUE(prober.accepts(memory));
}

TEST(Mutated, EveryFieldOfHeaderAndTableWithRightHashes) {
  Prober prober;
  const Bytes good = standardBundle();
  for (size_t at = 8; at < 64 + 4 * sizeof(fmt::Section); at += 4)
    for (uint64_t value : {uint64_t(0), uint64_t(1), uint64_t(0x7fffffff), uint64_t(0xffffffff), uint64_t(65536)}) {
      Bytes b = good;
      auto *header = reinterpret_cast<fmt::Header *>(b.data());
      memcpy(&b[at], &value, 4);
      if (header->sectionCount > 100) continue; // rehash itself would leave the file
      rehash(b);
      prober.accepts(Aligned(b));
    }
}

TEST(Mutated, EveryWordOfTheManifestWithRightHashes) {
  Prober prober;
  const Bytes good = standardBundle();
  auto *table = reinterpret_cast<const fmt::Section *>(good.data() + 64);
  Bytes manifest(good.begin() + ptrdiff_t(table[0].offset), good.begin() + ptrdiff_t(table[0].offset + table[0].bytes));
  size_t accepted = 0;
  Aligned memory(good);
  for (size_t at = 0; at + 4 <= manifest.size(); at += 4)
    for (uint32_t value : {0u, 1u, 0x7fffffffu, 0xffffffffu, 0x10001u}) {
      uint8_t *word = memory.data + table[0].offset + at;
      memcpy(word, &value, 4);
      rehashManifest(memory.data);
      accepted += prober.accepts(memory, at % 128 == 0); // mapping code thousands of times is slow
      memcpy(word, &manifest[at], 4);
    }
  EXPECT_GT(accepted, 0u) << "some fields may hold other values";
}

//===- Short memory -------------------------------------------------------===//

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

/// Everything a client does, from the runtime to the freed runtime. Gives the first status that is not OK; every handle
/// is freed on the way out.
astra_status scenario(Failing &memory, const Aligned &file, uint32_t threads) {
  astra_allocator hooks = memory.hooks();
  astra_runtime_options ro = ASTRA_INIT(astra_runtime_options);
  ro.allocator = &hooks;
  Runtime runtime;
  Device device;
  Pool pool;
  Buffer x, y, view;
  Stream stream, second;
  Bundle bundle;
  Loaded loaded;
  Session session;
  Promise promise, mark;
  Diag diag;
#define DO(call)                                                                                                       \
  if (astra_status s = call) {                                                                                         \
    EXPECT_NE(diag.text[0], 0) << #call;                                                                               \
    return s;                                                                                                          \
  }
  DO(astra_runtime_init(runtime.out(), &ro, &diag));
  astra_device_options o = ASTRA_INIT(astra_device_options);
  o.num_threads = threads;
  DO(astra_device_init(device.out(), runtime, "cpu", &o, &diag));
  DO(astra_pool_init(pool.out(), device, nullptr, &diag));
  DO(astra_buffer_init(x.out(), pool, 1000, &diag));
  DO(astra_buffer_init(y.out(), pool, 1000, &diag));
  DO(astra_buffer_init_view(view.out(), x, 64, 16, &diag));
  memset(astra_buffer_data(x), 0, 1000);
  DO(astra_stream_init(stream.out(), device, &diag));
  DO(astra_stream_init(second.out(), device, &diag));
  DO(astra_bundle_init_memory(bundle.out(), runtime, file.data, file.size, nullptr, &diag));
  astra_device *devices[] = {device};
  DO(astra_loaded_init(loaded.out(), bundle, devices, 1, &diag));
  astra_dim_value dims[] = {{"cap", 4}, {"count", 3}};
  astra_session_options so = ASTRA_INIT(astra_session_options);
  so.dims = dims, so.num_dims = 2;
  DO(astra_session_init(session.out(), loaded, &so, &diag));
  std::vector<float> w(100);
  Tensor t = tensor(w, {8, 3});
  Shape strides = {12, 2};
  DO(astra_session_set_param(session, "w", &t, &diag));
  t.t.strides = strides.data();
  DO(astra_loaded_set_param(loaded, "w", &t, &diag));
  for (const char *name : {"double", "apply", "loop"}) {
    bool apply = strcmp(name, "apply") == 0, loop = strcmp(name, "loop") == 0;
    Shape in = apply ? Shape{10, 3} : loop ? Shape{} : Shape{20}, out = apply ? Shape{10, 8} : in, step = {9, 2};
    const astra_entry *entry = nullptr;
    DO(astra_bundle_find_entry(bundle, name, &entry, &diag));
    astra_tensor input = ASTRA_INIT(astra_tensor), output = ASTRA_INIT(astra_tensor);
    input.buffer = x, output.buffer = y;
    input.dtype = output.dtype = ASTRA_F32;
    input.ndim = int32_t(in.size()), output.ndim = int32_t(out.size()), input.shape = in.data(),
    output.shape = out.data();
    if (apply) input.strides = step.data();
    uint64_t bytes = 0;
    DO(astra_entry_output_bound(entry, session, &input, 1, 0, nullptr, nullptr, &bytes, &diag));
    astra_call call = ASTRA_INIT(astra_call);
    astra_promise *after[] = {mark};
    call.entry = entry, call.inputs = &input, call.num_inputs = 1, call.outputs = &output, call.num_outputs = 1;
    call.after = after, call.num_after = mark ? 1 : 0, call.flags = ASTRA_CALL_ALLOW_COPY;
    promise = Promise();
    DO(astra_session_submit(session, stream, &call, promise.out(), &diag));
    DO(astra_promise_wait(promise, &diag));
    mark = Promise();
    DO(astra_stream_wait(second, promise, &diag));
    DO(astra_stream_mark(second, mark.out(), &diag));
  }
  DO(astra_promise_wait(mark, &diag));
#undef DO
  return ASTRA_OK;
}

TEST(ShortMemory, AtEveryRequest) {
  ManifestMaker maker = standardManifest();
  Aligned file(assemble(maker));
  for (uint32_t threads : {1u, 3u}) {
    Failing counter;
    EXPECT_EQ(scenario(counter, file, threads), ASTRA_OK);
    EXPECT_EQ(counter.live, 0);
    EXPECT_GT(counter.requests, 50);
    for (int64_t n = 0; n < counter.requests; n++) {
      Failing failing;
      failing.left = n;
      EXPECT_EQ(scenario(failing, file, threads), ASTRA_OUT_OF_MEMORY) << "request " << n;
      EXPECT_EQ(failing.live, 0) << "request " << n;
    }
  }
}

} // namespace
