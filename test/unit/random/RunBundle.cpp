//===- RunBundle.cpp: modules as bundles, run through the C API ------------===//
// Takes:    inputs as the evaluator's tensors.
// Gives:    outputs at their actual extents, new states; a refusal of the runtime as its sentence.
#include "RunBundle.h"
#include "../HostLevel.h"
#include "../KernelCache.h"
#include "astra/Bundle/Assemble.h"
#include "astra/Codegen/Compile.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/astra.h"
#include "calls/Calls.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::test;

static_assert(numDTypes == ASTRA_F8E8M0 + 2); // the C ABI numbers the same list, without void and index
static int32_t abiType(DType t) { return int32_t(t) - 1; }

bool test::canRun(const Target &t) {
  if (t.arch == Arch::AArch64) {
#ifdef ASTRA_SERVE_AARCH64
    return true;
#else
    return false;
#endif
  }
  return hostRuns(t);
}

llvm::Error test::prepare(Module &m) {
  if (auto e = runNumerics(m)) return e;
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) return roots.takeError();
  auto it = roots->begin();
  for (Entry &e : m.entries) {
    for (Value &v : e.outputs) v.value = *it++;
    for (StateUpdate &u : e.updates) u.value = *it++;
  }
  return llvm::Error::success();
}

llvm::Error test::writeBundleTo(BundleParts &parts, llvm::StringRef path) {
  std::error_code failed;
  llvm::raw_fd_ostream out(path, failed);
  return failed ? llvm::createFileError(path, failed) : writeBundle(parts, out);
}

llvm::Error test::writeBundleOf(Module &m, const Target &target, llvm::StringRef path) {
  auto s = schedule(m);
  if (!s) return s.takeError();
  CompileOptions options;
  options.verify = true;
  options.cache = kernelCache();
  auto code = compileKernels(m.ctx(), *s, target, options);
  if (!code) return code.takeError();
  std::vector<CompiledTarget> all;
  all.push_back(std::move(*code));
  auto parts = assemble(m, *s, std::move(all));
  if (!parts) return parts.takeError();
  return writeBundleTo(*parts, path);
}

/// The first extents of a tensor that lies at the strides of its bound.
static Tensor cut(DType dtype, std::vector<int64_t> bound, std::vector<int64_t> shape, const std::string &data) {
  Tensor t{dtype, std::move(shape), {}};
  if (t.shape == bound) {
    t.bytes.assign(data.begin(), data.end());
    return t;
  }
  if (!byteSize(dtype)) { // the bytes of the rows
    std::vector<int64_t> whole = t.shape;
    for (std::vector<int64_t> *s : {&bound, &whole}) s->back() = (s->back() * bitWidth(dtype) + 7) / 8;
    t.bytes = cut(DType::U8, bound, whole, data).bytes;
    return t;
  }
  int64_t size = byteSize(t.dtype);
  for (int64_t k = 0, n = t.count(); k < n; ++k) {
    int64_t at = 0, step = 1, rest = k;
    for (size_t a = t.shape.size(); a-- > 0; rest /= t.shape[a], step *= bound[a]) at += rest % t.shape[a] * step;
    t.bytes.insert(t.bytes.end(), data.begin() + at * size, data.begin() + (at + 1) * size);
  }
  return t;
}

static void put(ByteWriter &out, llvm::ArrayRef<int64_t> shape) {
  out.word(shape.size());
  for (int64_t d : shape) out.word(d);
}

static std::vector<int64_t> shapeOf(UOpRef x) {
  std::vector<int64_t> shape;
  for (UOpRef d : x->shape) shape.push_back(*d->constIndex());
  return shape;
}

static std::string write(const Module &m, llvm::ArrayRef<BundleCall> calls) {
  ByteWriter out;
  for (const BundleCall &c : calls) {
    out.text(c.entry->name);
    out.word(c.in->dims.size());
    for (auto &[name, v] : c.in->dims) out.text(name), out.word(v);
    out.word(c.in->inputs.size());
    for (const Tensor &t : c.in->inputs) {
      out.word(abiType(t.dtype));
      put(out, t.shape);
      out.text(t.bytes.data(), t.bytes.size());
    }
    out.word(c.entry->outputs.size());
    for (const Value &v : c.entry->outputs) out.word(abiType(v.value->dtype));
    out.word(c.entry->updates.size());
    for (const StateUpdate &u : c.entry->updates) {
      UOpRef state = m.state(u.state)->value;
      out.text(u.state);
      out.word(abiType(state->dtype));
      put(out, shapeOf(state));
    }
  }
  return out.bytes;
}

static std::vector<BundleResult> read(const Module &m, llvm::ArrayRef<BundleCall> calls, const std::string &bytes) {
  std::vector<BundleResult> results;
  ByteReader in(bytes);
  auto shape = [&] {
    std::vector<int64_t> s(in.word());
    for (int64_t &d : s) d = in.word();
    return s;
  };
  for (const BundleCall &c : calls) {
    BundleResult &r = results.emplace_back();
    if (r.refusal = in.text(); !r.refusal.empty()) continue;
    for (const Value &v : c.entry->outputs) {
      std::vector<int64_t> actual = shape(), bound = shape();
      r.result.outputs.push_back(cut(v.value->dtype, bound, std::move(actual), in.text()));
    }
    for (const StateUpdate &u : c.entry->updates) {
      UOpRef state = m.state(u.state)->value;
      std::string data = in.text();
      r.result.states[u.state] = {state->dtype, shapeOf(state), {data.begin(), data.end()}};
    }
  }
  return results;
}

#ifdef ASTRA_SERVE_AARCH64
/// Runs a program of the other architecture; gives what it prints, or fails with what it says, if it exits with another
/// status than 0 and `fine`.
static llvm::Expected<std::string> runEmulated(llvm::ArrayRef<llvm::StringRef> words, int fine) {
  llvm::SmallString<128> files[2];
  for (auto &f : files)
    if (auto e = llvm::sys::fs::createTemporaryFile("emulated", "txt", f)) return llvm::errorCodeToError(e);
  llvm::FileRemover remove0(files[0]), remove1(files[1]);
  llvm::SmallVector<llvm::StringRef> line{ASTRA_QEMU};
  line.append(words.begin(), words.end());
  std::optional<llvm::StringRef> streams[] = {std::nullopt, llvm::StringRef(files[0]), llvm::StringRef(files[1])};
  int status = llvm::sys::ExecuteAndWait(ASTRA_QEMU, line, std::nullopt, streams);
  bool failed = status && status != fine;
  auto text = llvm::MemoryBuffer::getFile(files[failed], false, false);
  if (!text) return llvm::errorCodeToError(text.getError());
  if (failed)
    return llvm::createStringError(llvm::sys::path::filename(words[0]) + " under qemu: " + (*text)->getBuffer());
  return (*text)->getBuffer().str();
}

/// The same calls by the same program, built for the other architecture.
static llvm::Expected<std::string> serveEmulated(llvm::StringRef path, llvm::StringRef level, unsigned threads,
                                                 const std::string &calls) {
  llvm::SmallString<128> files[2]; // calls, results
  for (auto &f : files)
    if (auto e = llvm::sys::fs::createTemporaryFile("calls", "bin", f)) return llvm::errorCodeToError(e);
  llvm::FileRemover remove0(files[0]), remove1(files[1]);
  {
    std::error_code e;
    llvm::raw_fd_ostream out(files[0], e);
    out << calls;
  }
  std::string count = std::to_string(threads);
  auto said = runEmulated({ASTRA_SERVE_AARCH64, path, level, count, files[0], files[1]}, 0);
  if (!said) return said.takeError();
  auto text = llvm::MemoryBuffer::getFile(files[1], false, false);
  if (!text) return llvm::errorCodeToError(text.getError());
  return (*text)->getBuffer().str();
}
#endif

llvm::Expected<std::vector<BundleResult>> test::runCalls(llvm::StringRef path, const Target &target, unsigned threads,
                                                         const Module &m, llvm::ArrayRef<BundleCall> calls) {
  std::string level = llvm::StringRef(target.name).split(':').second.str(), asked = write(m, calls);
#ifdef ASTRA_SERVE_AARCH64
  if (target.arch == Arch::AArch64) {
    auto bytes = serveEmulated(path, level, threads, asked);
    if (!bytes) return bytes.takeError();
    return read(m, calls, *bytes);
  }
#endif
  try {
    return read(m, calls, serve(path.str(), level.c_str(), threads, asked));
  } catch (const std::exception &e) {
    return llvm::createStringError(e.what());
  }
}

llvm::Expected<guard::CheckResult> test::runGuarded(llvm::StringRef path, const Target &target,
                                                    const guard::CheckOptions &options) {
  std::string level = llvm::StringRef(target.name).split(':').second.str();
#ifdef ASTRA_SERVE_AARCH64
  if (target.arch == Arch::AArch64) {
    std::string corners = "--corners=" + std::to_string(options.corners),
                cost = "--cost=" + std::to_string(options.cost);
    auto said = runEmulated({ASTRA_GUARDED_AARCH64, path, corners, cost}, 4);
    if (!said) return said.takeError();
    guard::CheckResult result;
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(*said).split(lines, '\n', -1, false);
    for (llvm::StringRef line : lines)
      if (line.consume_front("FINDING "))
        result.findings.push_back(line.str());
      else
        result.addCounts(line.str());
    return result;
  }
#endif
  try {
    return guard::checkBundle(path.str(), level, options);
  } catch (const std::exception &e) {
    return llvm::createStringError(e.what());
  }
}
