//===- FaultTest.cpp: what happens when a GPU's driver fails ----------------===//
// Takes:    a client's whole life on a GPU of the stand-in driver, step by step; a fault at every call of every
//           function of the driver.
// Checks:   the status of the step that fails; that it succeeds when it is taken again, or that the device is lost and
//           every function says so; that nothing leaks; that in the end the numbers are a CPU's. The table in
//           docs/gpu.md is what was seen. After a change: ASTRA_UPDATE_DOCS=1 build/bin/unit-runtime
//           --gtest_filter=OnGpuFaults.TheTableIsFresh
#include "Client.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

using namespace astra::test;

namespace {

/// A client, whose handles are made step by step.
struct World {
  explicit World(const char *device) : name(device), memory(file()) {}
  static const Bytes &file() {
    static const Bytes bytes = deviceBundle();
    return bytes;
  }
  const char *name;
  Aligned memory;
  Diag diag;
  Runtime runtime;
  Device device;
  Bundle bundle;
  Pool pool;
  Buffer x, y, z;
  Stream stream, second;
  Loaded loaded;
  Session session, other;
  std::vector<float> results;
  float sum = 10; // what the state holds
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8};

  Tensor in(astra_buffer *buffer) {
    Tensor t{Shape{8}, ASTRA_INIT(astra_tensor)};
    t.t.buffer = buffer, t.t.dtype = ASTRA_F32, t.t.ndim = 1, t.t.shape = t.shape.data();
    return t;
  }
  astra_status submit(astra_session *s, astra_stream *on, const char *entry, const astra_tensor &input,
                      const astra_tensor &output, Promise &promise, astra_promise *after = nullptr) {
    astra_call call = ASTRA_INIT(astra_call);
    astra_status found = astra_bundle_find_entry(bundle, entry, &call.entry, &diag);
    EXPECT_EQ(found, ASTRA_OK);
    call.inputs = &input, call.num_inputs = 1, call.outputs = &output, call.num_outputs = 1;
    call.after = &after, call.num_after = after ? 1 : 0;
    return astra_session_submit(s, on, &call, promise.out(), &diag);
  }
  astra_status run(const char *entry, const astra_tensor &input, const astra_tensor &output) {
    Promise promise;
    astra_status s = submit(session, stream, entry, input, output, promise);
    return s ? s : astra_promise_wait(promise, &diag);
  }
  /// A scalar call whose result is kept.
  astra_status number(const char *entry, float value) {
    std::vector<float> input = {value}, output(1);
    astra_status s = run(entry, tensor(input, {}), tensor(output, {}));
    if (!s) results.push_back(output[0]);
    return s;
  }
};

struct Step {
  const char *name;
  astra_status (*take)(World &);
};

const Step steps[] = {
    {"device",
     [](World &w) -> astra_status {
       astra_device_options o = ASTRA_INIT(astra_device_options);
       if (strcmp(w.name, "cpu")) o.driver = ASTRA_STAND_IN;
       if (!w.runtime) {
         EXPECT_EQ(astra_runtime_init(w.runtime.out(), nullptr, nullptr), ASTRA_OK);
       }
       return astra_device_init(w.device.out(), w.runtime, w.name, &o, &w.diag);
     }},
    {"stream",
     [](World &w) -> astra_status {
       if (astra_status s = w.stream ? ASTRA_OK : astra_stream_init(w.stream.out(), w.device, &w.diag)) return s;
       return w.second ? ASTRA_OK : astra_stream_init(w.second.out(), w.device, &w.diag);
     }},
    {"buffer",
     [](World &w) -> astra_status {
       if (astra_status s = w.pool ? ASTRA_OK : astra_pool_init(w.pool.out(), w.device, nullptr, &w.diag)) return s;
       for (Buffer *b : {&w.x, &w.y, &w.z})
         if (astra_status s = *b ? ASTRA_OK : astra_buffer_init(b->out(), w.pool, 32, &w.diag)) return s;
       return ASTRA_OK;
     }},
    {"load",
     [](World &w) -> astra_status {
       if (!w.bundle) {
         EXPECT_EQ(astra_bundle_init_memory(w.bundle.out(), w.runtime, w.memory.data, w.memory.size, nullptr, nullptr),
                   ASTRA_OK);
       }
       astra_device *devices[] = {w.device};
       return astra_loaded_init(w.loaded.out(), w.bundle, devices, 1, &w.diag);
     }},
    {"session",
     [](World &w) -> astra_status {
       astra_dim_value dims[] = {{"cap", 8}, {"count", 3}};
       astra_session_options o = ASTRA_INIT(astra_session_options);
       o.dims = dims, o.num_dims = 2;
       for (Session *s : {&w.session, &w.other})
         if (astra_status e = *s ? ASTRA_OK : astra_session_init(s->out(), w.loaded, &o, &w.diag)) return e;
       return ASTRA_OK;
     }},
    {"param",
     [](World &w) -> astra_status {
       std::vector<float> values(24, 2);
       return astra_loaded_set_param(w.loaded, "w", &tensor(values, {8, 3}), &w.diag);
     }},
    {"derived param",
     [](World &w) -> astra_status {
       std::vector<float> values(8, 7);
       return astra_session_set_param(w.session, "a", &tensor(values, {8}), &w.diag);
     }},
    {"set state",
     [](World &w) -> astra_status {
       std::vector<float> value = {20};
       astra_status s = astra_session_set_state(w.session, "sum", &tensor(value, {}), &w.diag);
       if (!s) w.sum = 20;
       return s;
     }},
    {"write",
     [](World &w) -> astra_status {
       Promise p;
       astra_status s = astra_stream_write(w.stream, w.x, 0, w.numbers.data(), 32, p.out(), &w.diag);
       return s ? s : astra_promise_wait(p, &w.diag);
     }},
    {"call", [](World &w) { return w.run("double", w.in(w.x), w.in(w.y)); }},
    {"call with a state",
     [](World &w) -> astra_status {
       astra_status s = w.number("accumulate", 5);
       if (!s) w.sum = w.results.back();
       return s;
     }},
    {"call that decides", [](World &w) { return w.number("grow", 3); }},
    {"call of a derived param",
     [](World &w) -> astra_status {
       std::vector<float> out(8);
       astra_status s = w.run("derived", tensor(w.numbers, {8}), tensor(out, {8}));
       if (!s) w.results.push_back(out[0]);
       return s;
     }},
    {"calls on two streams",
     [](World &w) -> astra_status {
       Promise a, b;
       astra_status s = w.submit(w.session, w.stream, "double", w.in(w.x), w.in(w.y), a), t = ASTRA_OK;
       if (s) return s;
       t = w.submit(w.other, w.second, "double", w.in(w.y), w.in(w.z), b, a);
       if (!t) t = astra_promise_wait(b, &w.diag);
       s = astra_promise_wait(a, t ? nullptr : static_cast<astra_diag *>(&w.diag));
       return s == ASTRA_OK || t == ASTRA_DEVICE_LOST ? t : s; // of the first that failed
     }},
    {"get state",
     [](World &w) -> astra_status {
       std::vector<float> value(1);
       astra_status s = astra_session_get_state(w.session, "sum", &tensor(value, {}), &w.diag);
       if (!s) w.results.push_back(value[0]);
       return s;
     }},
    {"read",
     [](World &w) -> astra_status {
       std::vector<float> values(8);
       Promise p;
       astra_status s = astra_stream_read(w.stream, values.data(), w.z, 0, 32, p.out(), &w.diag);
       if (!s) s = astra_promise_wait(p, &w.diag);
       if (!s) w.results.insert(w.results.end(), values.begin(), values.end());
       return s;
     }},
};

/// What was seen of one fault.
struct Seen {
  std::string step, status, after;
};

/// Every function of a lost device says so, and none hangs.
void expectLost(World &w) {
  Diag d;
#define LOST(call)                                                                                                     \
  do {                                                                                                                 \
    d = Diag();                                                                                                        \
    EXPECT_STREQ(astra_status_name(call), "ASTRA_DEVICE_LOST") << #call;                                               \
    EXPECT_NE(std::string(d.text).find("is lost"), std::string::npos) << d.text;                                       \
  } while (0)
  std::vector<float> v(24);
  Promise p;
  Stream stream;
  Pool pool;
  Buffer buffer;
  Loaded loaded;
  Session session;
  astra_device *devices[] = {w.device};
  LOST(astra_stream_init(stream.out(), w.device, &d));
  LOST(astra_pool_init(pool.out(), w.device, nullptr, &d));
  if (w.pool) LOST(astra_buffer_init(buffer.out(), w.pool, 100, &d));
  if (w.stream) LOST(astra_stream_mark(w.stream, p.out(), &d));
  if (w.x) LOST(astra_stream_write(w.stream, w.x, 0, v.data(), 4, p.out(), &d));
  if (w.x) LOST(astra_stream_read(w.stream, v.data(), w.x, 0, 4, p.out(), &d));
  if (w.bundle) LOST(astra_loaded_init(loaded.out(), w.bundle, devices, 1, &d));
  if (w.loaded) LOST(astra_session_init(session.out(), w.loaded, nullptr, &d));
  if (w.loaded) LOST(astra_loaded_set_param(w.loaded, "w", &tensor(v, {8, 3}), &d));
  if (!w.session) return;
  const void *data;
  uint64_t bytes;
  LOST(astra_session_set_param(w.session, "w", &tensor(v, {8, 3}), &d));
  LOST(astra_session_set_state(w.session, "sum", &tensor(v, {}), &d));
  if (w.other) LOST(astra_session_get_state(w.other, "sum", &tensor(v, {}), &d));
  if (w.other) LOST(astra_session_lease_state(w.other, "sum", &data, &bytes, &d));
  LOST(astra_session_reset(w.session, &d));
  w.diag = Diag();
  if (!w.stream) return;
  EXPECT_EQ(w.submit(w.session, w.stream, "accumulate", tensor(v, {}), tensor(v, {}), p), ASTRA_DEVICE_LOST);
#undef LOST
}

/// The life of a client with at most one fault. Gives what was seen of it; nothing if all went well.
std::vector<Seen> live(const char *device, std::vector<float> &results) {
  World w(device);
  std::vector<Seen> seen;
  for (const Step &step : steps) {
    w.diag = Diag();
    astra_status status = step.take(w);
    if (!status) continue;
    EXPECT_NE(w.diag.text[0], 0) << step.name;
    Seen s{step.name, astra_status_name(status), "as before"};
    if (status == ASTRA_DEVICE_LOST) {
      s.after = "lost";
      if (w.device) expectLost(w);
      seen.push_back(s);
      return seen;
    }
    w.diag = Diag();
    status = step.take(w);
    if (status == ASTRA_STATE_LOST) {
      s.after = "its states are lost until they are set";
      std::vector<float> value = {w.sum};
      EXPECT_EQ(astra_session_set_state(w.session, "sum", &tensor(value, {}), &w.diag), ASTRA_OK) << w.diag.text;
      status = step.take(w);
    }
    EXPECT_EQ(status, ASTRA_OK) << step.name << ": " << w.diag.text;
    seen.push_back(s);
    if (status) return seen;
  }
  results = w.results;
  return seen;
}

/// Functions whose failure matters, by both names; "kernel" is work that fails when it runs. What gives back is another
/// test's.
struct Function {
  const char *names[2];
};
const Function functions[] = {{{"cuInit", "hipInit"}},
                              {{"cuDriverGetVersion", "hipDriverGetVersion"}},
                              {{"cuDeviceGetCount", "hipGetDeviceCount"}},
                              {{"cuDeviceGet", "hipDeviceGet"}},
                              {{"cuDeviceGetAttribute", "hipGetDevicePropertiesR0600"}},
                              {{"cuDevicePrimaryCtxRetain", nullptr}},
                              {{"cuModuleLoadData", "hipModuleLoadData"}},
                              {{"cuModuleGetFunction", "hipModuleGetFunction"}},
                              {{"cuMemAlloc_v2", "hipMalloc"}},
                              {{"cuMemsetD8Async", "hipMemsetD8Async"}},
                              {{"cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"}},
                              {{"cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"}},
                              {{"cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"}},
                              {{"cuStreamCreate", "hipStreamCreateWithFlags"}},
                              {{"cuStreamSynchronize", "hipStreamSynchronize"}},
                              {{"cuStreamWaitEvent", "hipStreamWaitEvent"}},
                              {{"cuEventCreate", "hipEventCreateWithFlags"}},
                              {{"cuEventRecord", "hipEventRecord"}},
                              {{"cuEventQuery", "hipEventQuery"}},
                              {{"cuEventSynchronize", "hipEventSynchronize"}},
                              {{"cuLaunchKernel", "hipModuleLaunchKernel"}},
                              {{"kernel", "kernel"}}};
struct Failure {
  int error;
  const char *name;
};
const Failure failures[] = {{2, "out of memory"}, {701, "refused"}, {719, "device lost"}};

void begin() {
  standInReset();
  standInBundle(World::file().data(), World::file().size(), true);
}

/// One row for each function, failure, status and state afterwards: the steps where it was seen.
using Table = std::map<std::tuple<size_t, size_t, std::string, std::string>, std::vector<std::string>>;

Table sweep(int flavour) {
  const char *device = flavour ? "hip:0" : "cuda:0";
  std::vector<float> wanted, results;
  EXPECT_TRUE(live("cpu", wanted).empty());
  begin();
  EXPECT_TRUE(live(device, results).empty());
  EXPECT_EQ(results, wanted);
  EXPECT_EQ(standInLive(), 0);
  std::map<std::string, int64_t> counts;
  for (const Function &f : functions)
    if (f.names[flavour]) counts[f.names[flavour]] = standInCalls(f.names[flavour]);
  counts["kernel"] = standInCalls(flavour ? "hipModuleLaunchKernel" : "cuLaunchKernel");
  Table table;
  for (size_t f = 0; f < std::size(functions); f++)
    for (size_t e = 0; e < std::size(failures); e++) {
      const char *name = functions[f].names[flavour];
      bool isAsynchronous = name && strcmp(name, "kernel") == 0;
      if (!name || (isAsynchronous && failures[e].error != 719)) continue; // work that was begun loses the device
      for (int64_t n = 0; n < counts[name]; n++) {
        begin();
        standInFail(name, n, failures[e].error);
        SCOPED_TRACE(std::string(name) + " " + std::to_string(n) + ": " + std::to_string(failures[e].error));
        results.clear();
        std::vector<Seen> seen = live(device, results);
        EXPECT_LE(seen.size(), 1u);
        if (seen.empty() || seen[0].after != "lost") {
          EXPECT_EQ(results, wanted);
        }
        EXPECT_EQ(standInLive(), 0);
        if (seen.empty()) seen.push_back({"any", "ASTRA_OK", "as before: it was not needed"});
        std::vector<std::string> &at = table[{f, e, seen[0].status, seen[0].after}];
        if (at.empty() || at.back() != seen[0].step) at.push_back(seen[0].step);
      }
    }
  return table;
}

TEST(OnGpuFaults, AtEveryCallOfHip) {
  Table table = sweep(1);
  EXPECT_GT(table.size(), 20u);
}

TEST(OnGpuFaults, TheTableIsFreshAtEveryCallOfCuda) {
  std::string text = "| driver's call | fails | in | status | afterwards |\n|---|---|---|---|---|\n";
  // Functions of which the same is to be said are one row, at the place of the first.
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto &[key, in] : sweep(0)) {
    const auto &[f, e, status, after] = key;
    std::set<std::string> said;
    std::string rest = std::string(" | ") + failures[e].name + " | ";
    for (const std::string &step : in)
      if (said.insert(step).second) rest += (said.size() > 1 ? ", " : "") + step;
    rest += " | `" + status + "` | " + after + " |\n";
    std::string name = std::string("`") + functions[f].names[0] + "`";
    auto same = std::find_if(rows.begin(), rows.end(), [&](const auto &row) { return row.second == rest; });
    if (same != rows.end())
      same->first += ", " + name;
    else
      rows.push_back({name, rest});
  }
  for (const auto &[names, rest] : rows) text += "| " + names + rest;
  std::ifstream file(ASTRA_GPU_DOCS);
  std::stringstream all;
  all << file.rdbuf();
  std::string page = all.str(), first = "<!-- faults: FaultTest.cpp -->\n", last = "<!-- end of faults -->\n";
  size_t a = page.find(first), b = page.find(last);
  ASSERT_TRUE(a != page.npos && b != page.npos);
  a += first.size();
  if (std::getenv("ASTRA_UPDATE_DOCS")) {
    page.replace(a, b - a, text);
    std::ofstream(ASTRA_GPU_DOCS) << page;
    return;
  }
  EXPECT_EQ(page.substr(a, b - a) == text, true) << "docs/gpu.md is stale; run this test with ASTRA_UPDATE_DOCS=1";
}

/// What gives back may fail; nobody can do anything about it, and nothing hangs.
TEST(OnGpuFaults, AtWhatGivesBack) {
  for (const char *name : {"cuMemFree_v2", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuModuleUnload"})
    for (int error : {1, 719}) {
      begin();
      standInFail(name, 0, error);
      std::vector<float> results;
      std::vector<Seen> seen = live("cuda:0", results);
      EXPECT_TRUE(seen.empty() || seen[0].after == "lost") << name;
    }
  begin();
}

/// A kernel fails while several calls are in flight: all of them end with the loss, the waits return, the sessions and
/// streams can be freed.
TEST(OnGpuFaults, WhatIsInFlightEndsWithTheLoss) {
  for (const char *device : {"cuda:0", "hip:0"}) {
    std::unique_ptr<Machine> m = Machine::withGpu(device);
    Diag &diag = m->diag;
    Stream other;
    EXPECT_OK(astra_stream_init(other.out(), m->device, &diag));
    Session second = m->makeSession(), third = m->makeSession();
    std::vector<float> x = {1}, y(1), z(1), w(1);
    standInHold(1), standInHold(2);
    standInFail("kernel", 0, 700);
    Promise a, b, c, mark;
    EXPECT_OK(m->submit(m->session, m->stream, "accumulate", {tensor(x, {})}, {tensor(y, {})}, a.out()));
    EXPECT_OK(m->submit(second, other, "accumulate", {tensor(y, {})}, {tensor(z, {})}, b.out(), {a}));
    EXPECT_OK(m->submit(third, m->stream, "accumulate", {tensor(x, {})}, {tensor(w, {})}, c.out()));
    EXPECT_OK(astra_stream_mark(other, mark.out(), &diag));
    standInGo();
    EXPECT_FAIL(ASTRA_DEVICE_LOST, "is lost (ERROR_ILLEGAL_ADDRESS, 700)", astra_promise_wait(mark, &diag));
    for (astra_promise *p :
         {static_cast<astra_promise *>(a), static_cast<astra_promise *>(b), static_cast<astra_promise *>(c)})
      EXPECT_FAIL(ASTRA_DEVICE_LOST, "is lost", astra_promise_wait(p, &diag));
    EXPECT_EQ(astra_promise_poll(a, &diag), ASTRA_DEVICE_LOST);
    EXPECT_FAIL(ASTRA_DEVICE_LOST, "is lost", m->run("accumulate", {tensor(x, {})}, {tensor(y, {})}));
    mark = Promise(), a = Promise(), b = Promise(), c = Promise();
    second = Session(), third = Session(), other = Stream();
    m.reset();
    EXPECT_EQ(standInLive(), 0);
  }
}

} // namespace
