//===- DriverTest.cpp: the makers' own drivers, without a GPU -----------------===//
// Takes:    CUDA's stub of libcuda (of the toolkit, or ASTRA_CUDA_DRIVER) and AMD's libamdhip64 (Debian's package, or
//           ASTRA_HIP_DRIVER); where a library is not there its tests are skipped.
// Checks:   every name of the driver tables is a function of the library, but of an old libamdhip64 those that came
//           later; making a device is refused with the sentence for what the library is; AMD's numbers are ours.
#include "src/Driver.h" // before FlatBuffers, whose assertion it defines

#include "Client.h"
#include <dlfcn.h>
#include <set>

using namespace astra::test;

namespace {

struct Name {
  const char *cuda, *hip;
};
constexpr Name names[] = {
#define CALL(field, parameters, cuda, hip) {cuda, hip},
    ASTRA_DRIVER_CALLS(CALL)
#undef CALL
};

/// The first of these libraries that can be opened; a name from the environment comes first. What is opened stays.
std::string firstOf(const char *variable, std::vector<std::string> files) {
  if (const char *given = getenv(variable)) files = {given};
  for (const std::string &file : files)
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return file;
  return "";
}
std::string cudaStub() {
  return firstOf("ASTRA_CUDA_DRIVER",
                 {"/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/lib/x86_64-linux-gnu/stubs/libcuda.so"});
}
std::string hipDriver() {
  return firstOf("ASTRA_HIP_DRIVER", {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"});
}

struct RealDrivers : testing::Test {
  Runtime runtime;
  Diag diag;
  int open(const char *device, const std::string &driver) {
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.driver = driver.c_str();
    Device made;
    diag = Diag();
    return astra_device_init(made.out(), runtime, device, &o, &diag);
  }
  void SetUp() override { EXPECT_OK(astra_runtime_init(runtime.out(), nullptr, &diag)); }
};

TEST_F(RealDrivers, CudaHasEveryName) {
  std::string file = cudaStub();
  if (file.empty()) GTEST_SKIP() << "CUDA's stub of libcuda is not here";
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const Name &n : names)
    if (const char *name = n.cuda + (*n.cuda == '?'); *name) // ?: a driver may lack it
      EXPECT_TRUE(dlsym(library, name)) << name << " of " << file;
}

TEST_F(RealDrivers, CudaStubIsNoDriver) {
  std::string file = cudaStub();
  if (file.empty()) GTEST_SKIP() << "CUDA's stub of libcuda is not here";
  EXPECT_STREQ(astra_status_name(open("cuda:0", file)), "ASTRA_UNSUPPORTED") << diag.text;
  EXPECT_NE(std::string(diag.text).find("is a stub to link with"), std::string::npos) << diag.text;
}

TEST_F(RealDrivers, HipHasEveryName) {
  std::string file = hipDriver();
  if (file.empty()) GTEST_SKIP() << "AMD's libamdhip64 is not here (Debian: libamdhip64-5)";
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::set<std::string> missing, later{"hipDrvGetErrorName", "hipGetDevicePropertiesR0600"}; // than Debian's 5.2
  for (const Name &n : names)
    if (*n.hip && !dlsym(library, n.hip)) missing.insert(n.hip);
  EXPECT_TRUE(missing.empty() || missing == later) << missing.size() << " names, " << *missing.begin();
}

TEST_F(RealDrivers, HipWithoutAGpu) {
  std::string file = hipDriver();
  if (file.empty()) GTEST_SKIP() << "AMD's libamdhip64 is not here (Debian: libamdhip64-5)";
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto count = reinterpret_cast<int (*)(int *)>(dlsym(library, "hipGetDeviceCount"));
  ASSERT_TRUE(count);
  int devices = 0, error = count(&devices);
  if (error == 0 && devices > 0) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(error, int(astra::rt::kDriverNoDevice));
  bool old = !dlsym(library, "hipGetDevicePropertiesR0600");
  EXPECT_STREQ(astra_status_name(open("hip:0", file)), "ASTRA_UNSUPPORTED") << diag.text;
  const char *why = old ? "has no function hipDrvGetErrorName; version 6.0 or newer is needed"
                        : "the driver of AMD GPUs finds none in this machine";
  EXPECT_NE(std::string(diag.text).find(why), std::string::npos) << diag.text;
}

} // namespace
