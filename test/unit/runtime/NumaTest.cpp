//===- NumaTest.cpp: nodes of memory, and memory that a driver pins ----------===//
// Takes:    trees of files as sysfs has them, of machines that are not there; this machine's own; the stand-in driver.
// Checks:   which nodes are read out of them, and the sentence for each file that is wrong; what the system is asked
//           to bind, by a `syscall` of the test's own; threads that stay on a node; pinned pools.
#include "Client.h"
#include "astra/astra.hpp"

#include <cstdarg>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace astra::test;

namespace {

/// What mbind was asked, in place of the system.
struct Bound {
  void *memory;
  unsigned long bytes, mode, mask, bits, flags;
};
bool recording = false;
int answer = 0; // an errno
std::vector<Bound> bound;

} // namespace

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long &x : a) x = va_arg(list, long);
  va_end(list);
  if (number == SYS_mbind && recording) {
    bound.push_back({reinterpret_cast<void *>(a[0]), static_cast<unsigned long>(a[1]), static_cast<unsigned long>(a[2]),
                     reinterpret_cast<unsigned long *>(a[3])[0], static_cast<unsigned long>(a[4]),
                     static_cast<unsigned long>(a[5])});
    if (!answer) return 0;
    errno = answer;
    return -1;
  }
  static auto *system = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  return system(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

namespace {

struct Numa : testing::Test {
  Diag diag;
  Runtime runtime;
  std::filesystem::path root;
  Numa() {
    char name[] = "/tmp/astra-numa-XXXXXX";
    root = mkdtemp(name);
    recording = false, answer = 0, bound.clear();
    EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag));
  }
  ~Numa() override {
    recording = false;
    std::filesystem::remove_all(root);
  }
  /// Files below devices/system.
  void tree(std::vector<std::pair<std::string, std::string>> files) {
    std::filesystem::remove_all(root / "devices");
    for (auto &[name, text] : files) {
      auto path = root / "devices/system" / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
  }
  std::vector<uint32_t> nodes() {
    std::vector<uint32_t> out(1024);
    auto count = uint32_t(out.size());
    EXPECT_OK(astra_nodes(root.c_str(), out.data(), &count, &diag));
    out.resize(count);
    return out;
  }
  astra_pool_options onNode(uint32_t node) {
    astra_pool_options o = ASTRA_INIT(astra_pool_options);
    o.flags = ASTRA_POOL_ON_NODE, o.node = node, o.sysfs = sysfs = root.c_str();
    return o;
  }
  Device cpu() {
    Device d;
    EXPECT_OK(astra_device_init(d.out(), runtime, "cpu", nullptr, &diag));
    return d;
  }
  const char *sysfs = nullptr;
};
using Numbers = std::vector<uint32_t>;

TEST_F(Numa, NodesAreRead) {
  tree({{"node/online", "0\n"}});
  EXPECT_EQ(nodes(), Numbers{0});
  tree({{"node/online", "0-1\n"}});
  EXPECT_EQ(nodes(), (Numbers{0, 1}));
  tree({{"node/online", "0-3"}});
  EXPECT_EQ(nodes(), (Numbers{0, 1, 2, 3}));
  tree({{"node/online", "0,2,5-6\n"}}); // holes in the numbering
  EXPECT_EQ(nodes(), (Numbers{0, 2, 5, 6}));
  tree({{"node/online", "0-3\n"}, {"node/has_memory", "1,3\n"}}); // some have CPUs alone
  EXPECT_EQ(nodes(), (Numbers{1, 3}));
  tree({{"node/online", "1023\n"}});
  EXPECT_EQ(nodes(), Numbers{1023});
  tree({{"node/online", "\n"}});
  EXPECT_EQ(nodes(), Numbers());
  EXPECT_EQ(astra::nodes(root.c_str()), Numbers());

  tree({{"node/online", "0-3\n"}});
  uint32_t two[2] = {7, 7}, count = 2;
  EXPECT_FAIL(ASTRA_CAPACITY, "there are 4 NUMA nodes and room for 2", astra_nodes(root.c_str(), two, &count, &diag));
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(two[0], 7u);
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "NULL", astra_nodes(root.c_str(), two, nullptr, &diag));
}

TEST_F(Numa, FilesThatAreWrongAreSentences) {
  uint32_t count = 0;
  tree({});
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "this system knows of no NUMA nodes",
              astra_nodes(root.c_str(), nullptr, &count, &diag));
  std::string long_(5000, '1');
  for (std::string text : {"-", "0-", "-1", "0,", ",0", "0,,1", "3-1", "a", "0 1", "0-1-2", "0\n1\n", "1024", "0-4096",
                           "99999999999999999999", "0x1", "0;1", " 0", "\n\n"}) {
    tree({{"node/online", text}});
    EXPECT_FAIL(ASTRA_IO, "which is no list of numbers below 1024", astra_nodes(root.c_str(), nullptr, &count, &diag));
  }
  for (size_t length : {4095u, 4096u, 5000u}) {
    std::string text = "0";
    while (text.size() < length) text += ",0";
    tree({{"node/online", text}});
    EXPECT_FAIL(ASTRA_IO, "no list", astra_nodes(root.c_str(), nullptr, &count, &diag));
  }
  tree({});
  std::filesystem::create_directories(root / "devices/system/node/online"); // a folder
  EXPECT_FAIL(ASTRA_IO, "no list", astra_nodes(root.c_str(), nullptr, &count, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "a name of more than",
              astra_nodes(std::string(3000, 'x').c_str(), nullptr, &count, &diag));
}

TEST_F(Numa, MemoryIsBoundToItsNode) {
  tree({{"node/online", "0,2,5-6\n"}});
  recording = true;
  Device device = cpu();
  Pool pool;
  for (uint32_t none : {1u, 4u, 7u, 1023u, 1024u, 4000000000u, UINT32_MAX}) {
    astra_pool_options o = onNode(none);
    std::string sentence = "there is no NUMA node " + (none == UINT32_MAX ? "-1" : std::to_string(none)) +
                           " with memory; those of this machine are 0,2,5-6";
    EXPECT_FAIL(ASTRA_UNKNOWN_NAME, sentence.c_str(), astra_pool_init(pool.out(), device, &o, &diag));
  }
  astra_pool_options o = onNode(5);
  EXPECT_OK(astra_pool_init(pool.out(), device, &o, &diag));
  EXPECT_TRUE(bound.empty()) << "nothing is bound before it is asked for";
  std::vector<Buffer> buffers(20);
  for (size_t i = 0; i < buffers.size(); i++) {
    EXPECT_OK(astra_buffer_init(buffers[i].out(), pool, 1000 + i * 40000, &diag));
    auto *at = static_cast<char *>(astra_buffer_data(buffers[i]));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u);
    memset(at, int(i), 1000 + i * 40000);
    bool inside = false;
    for (const Bound &b : bound) {
      auto *begin = static_cast<char *>(b.memory);
      inside |= at >= begin && at + 1000 + i * 40000 <= begin + b.bytes;
    }
    EXPECT_TRUE(inside) << "a buffer lies in memory that was bound";
  }
  for (const Bound &b : bound) {
    EXPECT_EQ(b.mode, 2u) << "MPOL_BIND";
    EXPECT_EQ(b.mask, 1u << 5);
    EXPECT_EQ(b.bits, 1025u);
    EXPECT_EQ(b.flags, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.memory) % 4096 + b.bytes % 4096, 0u);
  }
  size_t segments = bound.size();
  buffers.clear();
  Buffer again;
  EXPECT_OK(astra_buffer_init(again.out(), pool, 100000, &diag));
  EXPECT_EQ(bound.size(), segments) << "bound memory serves again";
  again = Buffer();
  EXPECT_EQ(astra_pool_trim(pool), ASTRA_OK);
  astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
  EXPECT_OK(astra_pool_get_stats(pool, &s));
  EXPECT_EQ(s.bytes_held, 0u);

  answer = EPERM;
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "the system refuses to bind memory to NUMA node 5 (Operation not permitted)",
              astra_buffer_init(again.out(), pool, 64, &diag));
  EXPECT_OK(astra_pool_get_stats(pool, &s));
  EXPECT_EQ(s.bytes_held + s.bytes_in_use, 0u);
}

TEST_F(Numa, SmallBuffersShareAMapping) {
  tree({{"node/online", "0\n"}});
  recording = true;
  Device device = cpu();
  Pool pool;
  astra_pool_options o = onNode(0);
  EXPECT_OK(astra_pool_init(pool.out(), device, &o, &diag));
  std::vector<Buffer> buffers(1000);
  for (Buffer &b : buffers) EXPECT_OK(astra_buffer_init(b.out(), pool, 64, &diag));
  EXPECT_EQ(bound.size(), 1u);
}

TEST_F(Numa, OptionsThatMakeNoSense) {
  tree({{"node/online", "0\n"}});
  auto machine = Machine::withGpu("cuda:0");
  Device device = cpu();
  Pool pool;
  astra_pool_options o = onNode(0);
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "memory of a GPU is of no NUMA node",
              astra_pool_init(pool.out(), machine->device, &o, &diag));
  o.flags = ASTRA_POOL_PINNED;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "memory is pinned by a GPU's driver",
              astra_pool_init(pool.out(), device, &o, &diag));
  o.flags = ASTRA_POOL_PINNED | ASTRA_POOL_ON_NODE;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "of no node", astra_pool_init(pool.out(), machine->device, &o, &diag));
  o.flags = 8;
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "the flags 0x8", astra_pool_init(pool.out(), device, &o, &diag));
  astra_device_options d = ASTRA_INIT(astra_device_options);
  d.flags = ASTRA_DEVICE_ON_NODE, d.sysfs = root.c_str();
  Device none;
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "give num_threads above 1",
              astra_device_init(none.out(), runtime, "cpu", &d, &diag));
  d.num_threads = 2;
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "there is no NUMA node 0 (there is no",
              astra_device_init(none.out(), runtime, "cpu", &d, &diag));
  tree({{"node/node0/cpulist", "0-1,x\n"}});
  EXPECT_FAIL(ASTRA_IO, "'0-1,x", astra_device_init(none.out(), runtime, "cpu", &d, &diag));
  tree({{"node/node0/cpulist", "\n"}}); // memory without CPUs
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "has no CPU that is online", astra_device_init(none.out(), runtime, "cpu", &d, &diag));
  tree({{"node/node0/cpulist", "0-1023\n"}, {"cpu/online", "1023\n"}}); // all of them offline
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "that this process may use", astra_device_init(none.out(), runtime, "cpu", &d, &diag));
  tree({{"node/node0/cpulist", "0-1023\n"}, {"cpu/online", "0-\n"}});
  EXPECT_FAIL(ASTRA_IO, "cpu/online has '0-", astra_device_init(none.out(), runtime, "cpu", &d, &diag));
}

TEST_F(Numa, ThreadsStayOnTheirNode) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
  int cpu = 0;
  while (!CPU_ISSET(unsigned(cpu), &mine)) cpu++;
  tree({{"node/node3/cpulist", "1023," + std::to_string(cpu) + "\n"}}); // one that this process may not use
  Machine m(1);
  Device device;
  astra_device_options d = ASTRA_INIT(astra_device_options);
  d.flags = ASTRA_DEVICE_ON_NODE, d.node = 3, d.num_threads = 2, d.sysfs = root.c_str();
  EXPECT_OK(astra_device_init(device.out(), m.runtime, "cpu", &d, &diag));
  Stream stream;
  Loaded loaded;
  EXPECT_OK(astra_stream_init(stream.out(), device, &diag));
  astra_device *devices[] = {device};
  EXPECT_OK(astra_loaded_init(loaded.out(), m.bundle, devices, 1, &diag));
  std::swap(m.loaded, loaded);
  Session session = m.makeSession();
  std::swap(m.loaded, loaded);
  struct Seen {
    cpu_set_t cpus;
    pid_t thread;
  } seen{};
  EXPECT_EQ(astra_session_set_trace(
                session,
                [](void *self, const astra_trace_event *) {
                  auto &s = *static_cast<Seen *>(self);
                  sched_getaffinity(0, sizeof(s.cpus), &s.cpus);
                  s.thread = gettid();
                },
                &seen),
            ASTRA_OK);
  int32_t gate = 0;
  std::vector<float> y = {0};
  Tensor t{Shape{}, ASTRA_INIT(astra_tensor)};
  t.t.data = &gate, t.t.data_bytes = 4, t.t.dtype = ASTRA_I32;
  Promise p;
  EXPECT_OK(m.submit(session, stream, "gate", {t}, {tensor(y, {})}, p.out()));
  int fd = -1;
  EXPECT_OK(astra_promise_fd(p, &fd, &diag));
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  pollfd ready{fd, POLLIN, 0}; // a thread that waits in the library would share the work
  EXPECT_EQ(poll(&ready, 1, 60000), 1);
  close(fd);
  EXPECT_NE(seen.thread, gettid());
  EXPECT_EQ(CPU_COUNT(&seen.cpus), 1);
  EXPECT_TRUE(CPU_ISSET(unsigned(cpu), &seen.cpus));
}

/// This machine's own node, with the system asked in earnest.
TEST_F(Numa, ThisMachine) {
  uint32_t all[1024], count = 1024;
  if (astra_nodes(nullptr, all, &count, &diag) || !count) GTEST_SKIP() << "this system knows of no NUMA nodes";
  Device device = cpu();
  Pool pool;
  astra_pool_options o = ASTRA_INIT(astra_pool_options);
  o.flags = ASTRA_POOL_ON_NODE, o.node = all[count - 1];
  EXPECT_OK(astra_pool_init(pool.out(), device, &o, &diag));
  Buffer b;
  astra_status s = astra_buffer_init(b.out(), pool, 10 << 20, &diag);
  if (s == ASTRA_UNSUPPORTED) GTEST_SKIP() << diag.text;
  EXPECT_OK(s);
  auto *at = static_cast<char *>(astra_buffer_data(b));
  memset(at, 1, 10 << 20);
  constexpr int kNode = 1, kAddress = 2; // MPOL_F_NODE, MPOL_F_ADDR
  for (size_t byte : {size_t(0), size_t(5) << 20, (size_t(10) << 20) - 1}) {
    int node = -1;
    if (syscall(SYS_get_mempolicy, &node, nullptr, 0L, at + byte, long(kNode | kAddress), 0L) != 0)
      GTEST_SKIP() << "the system does not say where memory is";
    EXPECT_EQ(node, int(o.node));
  }
}

/// Memory that the driver pinned: of the host for every call, held until the calls that use it have ended.
class Pinned : public testing::TestWithParam<const char *> {};
TEST_P(Pinned, IsMemoryOfTheHost) {
  auto m = Machine::withGpu(GetParam());
  Diag &diag = m->diag;
  {
    Pool pool;
    astra_pool_options o = ASTRA_INIT(astra_pool_options);
    o.flags = ASTRA_POOL_PINNED;
    EXPECT_OK(astra_pool_init(pool.out(), m->device, &o, &diag));
    constexpr uint64_t kBytes = 64 << 10;
    Buffer x, y, there;
    EXPECT_OK(astra_buffer_init(x.out(), pool, kBytes, &diag));
    EXPECT_OK(astra_buffer_init(y.out(), pool, 32, &diag));
    EXPECT_OK(astra_buffer_init(there.out(), m->pool, 32, &diag));
    auto *values = static_cast<float *>(astra_buffer_data(x)), *result = static_cast<float *>(astra_buffer_data(y));
    ASSERT_NE(values, nullptr);
    for (int i = 0; i < 8; i++) values[i] = float(i);
    auto of = [](astra_buffer *b) {
      static const int64_t shape = 8;
      astra_tensor t = ASTRA_INIT(astra_tensor);
      t.buffer = b, t.dtype = ASTRA_F32, t.ndim = 1, t.shape = &shape;
      return t;
    };
    EXPECT_OK(m->run("derived", {of(x)}, {of(y)}));
    for (int i = 0; i < 8; i++) EXPECT_EQ(result[i], float(i) + 3);
    EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "the buffer is memory of the host",
                astra_stream_write(m->stream, x, 0, values, 32, nullptr, &diag));
    Promise in, out;
    EXPECT_OK(astra_stream_write(m->stream, there, 0, values, 32, in.out(), &diag));
    EXPECT_OK(astra_stream_read(m->stream, result, there, 0, 32, out.out(), &diag));
    EXPECT_OK(astra_promise_wait(out, &diag));
    EXPECT_EQ(memcmp(values, result, 32), 0);

    // Freed while a call reads it: nobody else's before that has ended.
    standInHold(-1);
    Promise run;
    EXPECT_OK(m->submit(m->session, m->stream, "derived", {of(x)}, {of(y)}, run.out()));
    x = Buffer();
    Buffer next;
    EXPECT_OK(astra_buffer_init(next.out(), pool, kBytes, &diag));
    EXPECT_NE(astra_buffer_data(next), values);
    EXPECT_EQ(astra_pool_trim(pool), ASTRA_OK);
    standInGo();
    EXPECT_OK(astra_promise_wait(run, &diag));
    EXPECT_EQ(result[7], 10);
    astra_pool_stats s = ASTRA_INIT(astra_pool_stats);
    EXPECT_OK(astra_pool_get_stats(pool, &s));
    Buffer again;
    EXPECT_OK(astra_buffer_init(again.out(), pool, kBytes, &diag));
    EXPECT_EQ(astra_buffer_data(again), values) << "now it serves again";
    EXPECT_EQ(standInCalls(strncmp(GetParam(), "hip", 3) ? "cuMemHostAlloc" : "hipHostMalloc"), int64_t(s.fresh));

    standInFail(strncmp(GetParam(), "hip", 3) ? "cuMemHostAlloc" : "hipHostMalloc", 0, 2);
    Buffer none;
    EXPECT_FAIL(ASTRA_OUT_OF_MEMORY, "no memory for", astra_buffer_init(none.out(), pool, 1 << 20, &diag));
  }
  m.reset();
  EXPECT_EQ(standInLive(), 0);
}
INSTANTIATE_TEST_SUITE_P(On, Pinned, testing::Values("cuda:0", "hip:0"),
                         [](const auto &i) { return std::string(i.param).substr(0, std::string(i.param).find(':')); });

} // namespace
