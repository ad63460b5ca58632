//===- Run.cpp: kernels on the host's CPU and under qemu -------------------===//
#include "Run.h"
#include "../HostLevel.h"
#include "../KernelCache.h"
#include "astra/IR/Eval.h"
#include "guard/Regions.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <dlfcn.h>
#include <sys/mman.h>

using namespace astra;
using namespace astra::test;

bool astra::test::canRun(const Target &t) {
  if (t.arch == Arch::AArch64) {
#ifdef ASTRA_QEMU
    return true;
#else
    return false;
#endif
  }
  return hostRuns(t);
}

std::string astra::test::evaluate(Job &job, llvm::ArrayRef<UOpRef> dims) {
  std::vector<llvm::MutableArrayRef<uint8_t>> buffers(job.buffers.begin(), job.buffers.end());
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < dims.size(); ++i) values[dims[i]->str.str()] = job.dims[i];
  auto e = evalKernel(job.kernel.sink, buffers, values);
  return e ? llvm::toString(std::move(e)) : "";
}

static int64_t itemsOf(Context &c, const Job &j, llvm::ArrayRef<UOpRef> dims) {
  auto n = idxEvaluate(itemCount(c, j.kernel.sink), [&](UOpRef x) -> std::optional<int64_t> {
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == x) return j.dims[i];
    return std::nullopt;
  });
  return n.value_or(0);
}

using KernelFunction = void (*)(void *const *, const int64_t *, void *, int64_t, int64_t);

/// A job's buffers between guard pages, and its kernel's call.
struct GuardedCall {
  Job &job;
  KernelFunction function;
  int64_t items;
  std::vector<void *> buffers;
  uint8_t *scratch;

  static void run(void *arg) {
    auto &g = *static_cast<GuardedCall *>(arg);
    for (int64_t p = 0; p < g.job.parts; ++p) {
      int64_t first = g.items * p / g.job.parts, last = g.items * (p + 1) / g.job.parts;
      if (first < last) g.function(g.buffers.data(), g.job.dims.data(), g.scratch, first, last);
    }
  }
};

/// Runs it with buffers that begin at a guard page, then with buffers that end at one; a sentence if it leaves one.
static std::string call(Context &c, Job &j, const LinearKernel &k, llvm::ArrayRef<UOpRef> dims, KernelFunction f) {
  constexpr size_t large = 1 << 20; // of all arguments of a function, say: once suffices
  size_t all = 0;
  for (auto &b : j.buffers) all += b.size();
  std::vector<std::vector<uint8_t>> first;
  for (guard::Side side : {guard::Side::Begin, guard::Side::End}) {
    if (side == guard::Side::Begin && all > large) continue;
    guard::Regions regions;
    GuardedCall g{j, f, itemsOf(c, j, dims), {}, nullptr};
    for (auto &b : j.buffers) {
      guard::Region &region = regions.take(b.size());
      g.buffers.push_back(region.place(b.size(), side, 1));
      llvm::copy(b, region.at);
    }
    g.scratch = regions.take(k.linear.scratchBytes).place(k.linear.scratchBytes, side, 64);
    guard::Fault fault;
    bool fine = guard::survives(GuardedCall::run, &g, fault);
    for (size_t i = 0; i < regions.used().size(); ++i) {
      const guard::Region &region = *regions.used()[i];
      int64_t before = 0, behind = 0;
      if (fine ? region.untouched(before, behind) : &region != regions.around(fault.address)) continue;
      int64_t from = fault.address - region.at;
      return "a kernel leaves " +
             (i < j.buffers.size() ? "buffer " + std::to_string(i) : std::string("its scratch memory")) + " of " +
             std::to_string(region.bytes) + " bytes: " +
             (fine ? "it writes " + std::to_string(before ? -before : int64_t(region.bytes) + behind - 1)
                   : "it touches " + std::to_string(from)) +
             " bytes from the beginning";
    }
    if (!fine) return "a kernel faults at an address that is near no buffer";
    for (size_t i = 0; i < j.buffers.size(); ++i) {
      std::vector<uint8_t> bytes(regions.used()[i]->at, regions.used()[i]->at + j.buffers[i].size());
      if (side == guard::Side::Begin) {
        first.push_back(std::move(bytes));
        continue;
      }
      j.buffers[i] = std::move(bytes);
      if (i < first.size() && j.buffers[i] != first[i])
        return "buffer " + std::to_string(i) +
               " gets other bytes where buffers begin than where they end at a guard page";
    }
  }
  return "";
}

static std::string runHere(Context &c, std::vector<Job> &jobs, const Image &image, llvm::ArrayRef<LinearKernel> kernels,
                           llvm::ArrayRef<UOpRef> dims) {
  size_t size = image.bytes.size();
  void *code = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return "mmap failed";
  memcpy(code, image.bytes.data(), size);
  if (mprotect(code, size, PROT_READ | PROT_EXEC)) return "mprotect failed";
  std::string why;
  for (size_t i = 0; i < jobs.size() && why.empty(); ++i) {
    why = call(c, jobs[i], kernels[i], dims,
               reinterpret_cast<KernelFunction>(static_cast<uint8_t *>(code) + image.offsets[i]));
    if (!why.empty()) why = "job " + std::to_string(i) + " (" + jobs[i].kernel.name + "): " + why;
  }
  munmap(code, size);
  return why;
}

[[maybe_unused]] static std::string runEmulated(Context &c, std::vector<Job> &jobs, const Image &image,
                                                llvm::ArrayRef<LinearKernel> kernels, llvm::ArrayRef<UOpRef> dims,
                                                llvm::StringRef qemu, llvm::StringRef host) {
  std::vector<int64_t> words;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job &j = jobs[i];
    words.insert(words.end(), {int64_t(image.offsets[i]), itemsOf(c, j, dims), j.parts,
                               int64_t(kernels[i].linear.scratchBytes), int64_t(j.dims.size())});
    words.insert(words.end(), j.dims.begin(), j.dims.end());
    words.push_back(j.buffers.size());
    for (const auto &b : j.buffers) {
      words.push_back(b.size());
      size_t at = words.size();
      words.resize(at + (b.size() + 7) / 8);
      if (!b.empty()) memcpy(&words[at], b.data(), b.size());
    }
  }
  llvm::SmallString<64> dir;
  if (llvm::sys::fs::createUniqueDirectory("astra-test", dir)) return "no temporary folder";
  auto path = [&](const char *name) { return (dir + "/" + name).str(); };
  auto write = [&](const char *name, const void *data, size_t size) {
    std::error_code ec;
    llvm::raw_fd_ostream(path(name), ec).write(static_cast<const char *>(data), size);
  };
  write("image", image.bytes.data(), image.bytes.size());
  write("jobs", words.data(), words.size() * 8);
  std::string a = path("image"), b = path("jobs"), o = path("out");
  int rc = llvm::sys::ExecuteAndWait(qemu, {qemu, host, a, b, o});
  std::string why = rc ? "the host program under qemu gave " + std::to_string(rc) : "";
  if (auto out = llvm::MemoryBuffer::getFile(o); out && !rc) {
    const char *p = (*out)->getBufferStart();
    for (Job &j : jobs)
      for (auto &buffer : j.buffers) {
        if (!buffer.empty()) memcpy(buffer.data(), p, buffer.size());
        p += buffer.size();
      }
    if (p != (*out)->getBufferEnd()) why = "results of another size";
  } else if (!rc) {
    why = "no results";
  }
  llvm::sys::fs::remove_directories(dir);
  return why;
}

/// The kernels as C, equal ones once; kernels and names have one row per job. An error as a sentence.
static std::string emitAll(Context &c, std::vector<Job> &jobs, const Target &target, llvm::ArrayRef<UOpRef> dims,
                           std::vector<LinearKernel> &kernels, std::vector<std::string> &names, std::string &source) {
  llvm::DenseMap<UOpRef, size_t> first;
  std::vector<LinearKernel> distinct;
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto [it, fresh] = first.try_emplace(jobs[i].kernel.sink, i);
    if (fresh) {
      auto l = linearize(c, jobs[i].kernel);
      if (!l) return llvm::toString(l.takeError());
      distinct.push_back({"kernel" + std::to_string(i), &jobs[i].kernel, std::move(*l)});
      kernels.push_back(distinct.back());
    } else {
      kernels.push_back(kernels[it->second]);
    }
    names.push_back(kernels.back().name);
  }
  auto text = emitC(c, distinct, target, dims);
  if (!text) return llvm::toString(text.takeError());
  source = std::move(*text);
  return "";
}

std::string astra::test::run(Context &c, std::vector<Job> &jobs, const Target &target, llvm::ArrayRef<UOpRef> dims) {
  std::vector<LinearKernel> kernels;
  std::vector<std::string> names;
  std::string source;
  if (std::string why = emitAll(c, jobs, target, dims, kernels, names, source); !why.empty()) return why;
  auto image = buildImage(source, names, target, 2, kernelCache());
  if (!image) return llvm::toString(image.takeError());
#ifdef ASTRA_QEMU
  if (target.arch == Arch::AArch64) return runEmulated(c, jobs, *image, kernels, dims, ASTRA_QEMU, ASTRA_HOST);
#endif
  return runHere(c, jobs, *image, kernels, dims);
}

std::string astra::test::runCompiled(Context &c, std::vector<Job> &jobs, llvm::StringRef compiler,
                                     llvm::ArrayRef<std::string> flags, llvm::ArrayRef<UOpRef> dims) {
  std::vector<LinearKernel> kernels;
  std::vector<std::string> names;
  std::string source;
  if (std::string why = emitAll(c, jobs, allTargets()[0], dims, kernels, names, source); !why.empty()) return why;
  auto program = llvm::sys::findProgramByName(compiler);
  llvm::SmallString<64> dir;
  if (!program || llvm::sys::fs::createUniqueDirectory("astra-test", dir)) return "no compiler or no temporary folder";
  std::string text = (dir + "/kernels.c").str(), library = (dir + "/kernels.so").str();
  std::error_code ec;
  llvm::raw_fd_ostream(text, ec) << source;
  std::vector<llvm::StringRef> args{compiler, "-std=c11", "-Wall", "-Werror", "-fPIC", "-shared", text, "-o", library};
  args.insert(args.end(), flags.begin(), flags.end());
  args.push_back("-lm");
  std::string why;
  if (llvm::sys::ExecuteAndWait(*program, args)) why = compiler.str() + " failed";
  void *handle = why.empty() ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (why.empty() && !handle) why = dlerror();
  for (size_t i = 0; handle && i < jobs.size() && why.empty(); ++i)
    why = call(c, jobs[i], kernels[i], dims, reinterpret_cast<KernelFunction>(dlsym(handle, names[i].c_str())));
  if (handle) dlclose(handle);
  llvm::sys::fs::remove_directories(dir);
  return why;
}
