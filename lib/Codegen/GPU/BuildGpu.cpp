//===- BuildGpu.cpp: from LLVM IR to cubins and HSACO ----------------------===//
// Takes:    a module of kernels (GPU.h).
// Gives:    PTX and, where ptxas is installed, a cubin; or HSACO, linked by lld. What each kernel takes is read back:
//           from ptxas's report, from the notes of HSACO.
// Keeps:    bytes a function of the module and the toolchain.
#include "astra/Codegen/Machinery.h"
#include "astra/Codegen/PtxCalls.h"
#include "astra/Toolchain/TemporaryFolder.h"
#include "astra/Toolchain/Toolchain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace astra;
using namespace astra::gpu;
using llvm::StringRef;

namespace {

/// Milliseconds since it was made or asked.
class Clock {
public:
  double operator()() {
    auto now = std::chrono::steady_clock::now();
    double since = std::chrono::duration<double, std::milli>(now - last).count();
    last = now;
    return since;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// The shared arrays of a kernel in one that the launch gives its size: code for NVIDIA states no more than 48 KiB. A
/// kernel has its own arrays (EmitMemory.cpp).
void makeDynamic(llvm::Module &m, StringRef kernel) {
  constexpr unsigned sharedSpace = 3;
  llvm::LLVMContext &c = m.getContext();
  llvm::Type *byte = llvm::Type::getInt8Ty(c);
  llvm::GlobalVariable *all = m.getNamedGlobal("dynamic_shared");
  if (!all) {
    all = new llvm::GlobalVariable(m, llvm::ArrayType::get(byte, 0), false, llvm::GlobalValue::ExternalLinkage, nullptr,
                                   "dynamic_shared", nullptr, llvm::GlobalValue::NotThreadLocal, sharedSpace);
    all->setAlignment(llvm::Align(64));
  }
  uint64_t offset = 0;
  for (llvm::GlobalVariable &g : llvm::make_early_inc_range(m.globals())) {
    if (g.getAddressSpace() != sharedSpace || !g.getName().starts_with((kernel + ".shared").str())) continue;
    llvm::Align alignment = g.getAlign().value_or(llvm::Align(64));
    offset = llvm::alignTo(offset, alignment);
    all->setAlignment(std::max(all->getAlign().value_or(alignment), alignment));
    llvm::Constant *at = llvm::ConstantInt::get(llvm::Type::getInt32Ty(c), offset);
    g.replaceAllUsesWith(llvm::ConstantExpr::getInBoundsGetElementPtr(byte, all, at));
    offset += llvm::alignTo(m.getDataLayout().getTypeAllocSize(g.getValueType()), 64);
    g.eraseFromParent();
  }
}

/// Refuses a kernel that is too long to be compiled in a reasonable time: for 78,564 instructions neither ptxas nor
/// LLVM's code for AMD ended in 15 s; 22,501 take 3 s, and the longest kernel of the end-to-end tests is half as long.
llvm::Error checkLength(llvm::Module &m, const GpuModule &g) {
  constexpr unsigned most = 32768; // instructions of LLVM IR
  for (const GpuLaunch &k : g.kernels)
    if (unsigned length = m.getFunction(k.name)->getInstructionCount(); length > most)
      return llvm::createStringError(std::errc::not_supported,
                                     "kernel '%s' is %u instructions for %s; the most are %u: sort, or fold, smaller "
                                     "tiles in it, or store what it sorts in a kernel of its own",
                                     k.name.c_str(), length, g.target->name, most);
  return llvm::Error::success();
}

/// The module through LLVM's pipeline; `use` gets it together with the back end.
template <class T>
llvm::Expected<T> optimized(const GpuModule &g,
                            llvm::function_ref<llvm::Expected<T>(llvm::Module &, llvm::TargetMachine &)> use) {
  llvm::LLVMContext context;
  auto m = readBitcode(g.bitcode, context);
  if (!m) return m.takeError();
  auto machine = backEnd(*g.target);
  if (!machine) return machine.takeError();
  for (const GpuLaunch &k : g.kernels)
    if (hasDynamicShared(k, *g.target)) makeDynamic(**m, k.name);
  writePtxCalls(**m);
  if (auto e = checkLength(**m, g)) return std::move(e);
  optimize(**m, **machine, llvm::OptimizationLevel::O3);
  if (auto e = checkLength(**m, g)) return std::move(e);
  return use(**m, **machine);
}

/// Runs a program; gives what it printed.
llvm::Expected<std::string> run(const TemporaryFolder &folder, StringRef program, llvm::ArrayRef<StringRef> arguments) {
  std::string log = folder.at("log");
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log), StringRef(log)};
  llvm::SmallVector<StringRef, 16> all{program};
  all.append(arguments.begin(), arguments.end());
  std::string message;
  int rc = llvm::sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0, 0, &message);
  auto output = llvm::MemoryBuffer::getFile(log);
  std::string text = output ? (*output)->getBuffer().str() : "";
  if (rc) return llvm::createStringError(program + " failed: " + message + text);
  return text;
}

llvm::Expected<std::vector<uint8_t>> contents(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, false, false);
  if (!file) return llvm::createStringError("the tool gave no file");
  return std::vector<uint8_t>((*file)->getBufferStart(), (*file)->getBufferEnd());
}

/// The number that stands before `word` in a line of ptxas, or 0.
uint64_t numberBefore(StringRef line, StringRef word) {
  size_t at = line.find(word);
  if (at == StringRef::npos) return 0;
  StringRef digits = line.take_front(at).rtrim();
  size_t begin = digits.find_last_not_of("0123456789");
  uint64_t v = 0;
  digits.drop_front(begin == StringRef::npos ? 0 : begin + 1).getAsInteger(10, v);
  return v;
}

/// "Compiling entry function 'k' for ...", then lines with its stack and spills, and "Used N registers, N bytes smem".
void readPtxasReport(StringRef report, std::vector<GpuUse> &kernels) {
  GpuUse *current = nullptr;
  llvm::SmallVector<StringRef> lines;
  report.split(lines, '\n');
  for (StringRef line : lines) {
    if (size_t at = line.find("Compiling entry function '"); at != StringRef::npos) {
      StringRef name = line.drop_front(at).split('\'').second.split('\'').first;
      current = nullptr;
      for (GpuUse &k : kernels)
        if (k.name == name) current = &k;
    } else if (current && line.contains("bytes stack frame")) {
      current->stack = numberBefore(line, "bytes stack frame");
      current->spills = numberBefore(line, "bytes spill stores") + numberBefore(line, "bytes spill loads");
    } else if (current && line.contains("Used ")) {
      current->registers = numberBefore(line, "registers");
      current->shared = numberBefore(line, "bytes smem");
    }
  }
}

/// The notes of HSACO: a map whose "amdhsa.kernels" describe each kernel.
llvm::Error readNotes(llvm::ArrayRef<uint8_t> hsaco, std::vector<GpuUse> &kernels) {
  StringRef bytes(reinterpret_cast<const char *>(hsaco.data()), hsaco.size());
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "hsaco"));
  if (!object) return object.takeError();
  auto *elf = llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(object->get());
  if (!elf) return llvm::createStringError("HSACO is not a 64-bit ELF file");
  auto sections = elf->getELFFile().sections();
  if (!sections) return sections.takeError();
  for (const auto &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE) continue;
    llvm::Error wrong = llvm::Error::success();
    for (const auto &note : elf->getELFFile().notes(section, wrong)) {
      if (note.getName() != "AMDGPU" || note.getType() != llvm::ELF::NT_AMDGPU_METADATA) continue;
      llvm::msgpack::Document document;
      if (!document.readFromBlob(note.getDescAsStringRef(section.sh_addralign), false)) continue;
      for (auto &node : document.getRoot().getMap(true)["amdhsa.kernels"].getArray(true)) {
        auto &map = node.getMap(true);
        auto number = [&](StringRef key) -> uint64_t {
          auto it = map.find(key);
          return it == map.end() || it->second.getKind() != llvm::msgpack::Type::UInt ? 0 : it->second.getUInt();
        };
        for (GpuUse &k : kernels)
          if (k.name == map[".name"].getString()) {
            k.registers = number(".vgpr_count"); // of all kinds
            k.scalarRegisters = number(".sgpr_count");
            k.shared = number(".group_segment_fixed_size");
            k.stack = number(".private_segment_fixed_size");
            k.spills = number(".vgpr_spill_count") + number(".sgpr_spill_count");
          }
      }
    }
    if (wrong) return wrong;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::string> astra::gpuOptimizedIR(const GpuModule &g) {
  return optimized<std::string>(g, [](llvm::Module &m, llvm::TargetMachine &) -> llvm::Expected<std::string> {
    std::string text;
    llvm::raw_string_ostream out(text);
    m.print(out, nullptr);
    return text;
  });
}

llvm::Expected<std::string> astra::gpuAssembly(const GpuModule &g) {
  return optimized<std::string>(g, [](llvm::Module &m, llvm::TargetMachine &machine) {
    return emit(m, machine, llvm::CodeGenFileType::AssemblyFile);
  });
}

std::string astra::ptxasPath() {
  for (auto found :
       {llvm::sys::findProgramByName("ptxas"), llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"})})
    if (found) return *found;
  return "";
}

llvm::Expected<std::string> astra::ptxasVersion(const std::string &ptxas) {
  auto made = TemporaryFolder::make();
  if (!made) return made.takeError();
  const TemporaryFolder &folder = *made;
  auto text = run(folder, ptxas, {"--version"});
  if (!text) return text.takeError();
  StringRef version = StringRef(*text).split(", V").second;
  return version.take_while([](char c) { return llvm::isDigit(c) || c == '.'; }).str();
}

bool astra::hasDynamicShared(const GpuLaunch &k, const GpuTarget &t) {
  return t.flavour == GpuFlavour::CUDA && k.shared > t.sharedBytes;
}

llvm::Error astra::checkLaunch(const GpuLaunch &k, const GpuTarget &t) {
  auto bad = [&](uint64_t figure, const char *what, uint64_t limit) {
    return llvm::createStringError(std::errc::not_supported, "kernel '%s' takes %llu %s on %s; there are %llu",
                                   k.name.c_str(), (unsigned long long)figure, what, t.name, (unsigned long long)limit);
  };
  if (k.threads > t.threads) return bad(k.threads, "threads a block", t.threads);
  if (k.shared > mostShared(t)) return bad(k.shared, "bytes of shared memory a block", mostShared(t));
  if (!k.threads || k.threads % t.warp)
    return llvm::createStringError(std::errc::not_supported,
                                   "kernel '%s' has blocks of %u threads; warps of %s have %u", k.name.c_str(),
                                   k.threads, t.name, t.warp);
  return llvm::Error::success();
}

/// PTX and, where there is ptxas, a cubin.
static llvm::Error buildCubin(const GpuModule &g, bool noFuse, const std::string &ptxas, GpuBinary &out) {
  Clock clock;
  auto text = gpuAssembly(g);
  if (!text) return text.takeError();
  out.assembly = std::move(*text);
  out.backEnd = clock();
  if (ptxas.empty()) return llvm::Error::success();
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.takeError();
  std::string in = folder->at("in"), result = folder->at("out"), arch = std::string("-arch=") + g.target->chip;
  if (auto e = folder->write("in", out.assembly)) return e;
  llvm::SmallVector<StringRef> arguments{"-v", arch, in, "-o", result};
  if (noFuse) arguments.push_back("-fmad=false");
  auto report = run(*folder, ptxas, arguments);
  if (!report) return report.takeError();
  out.tool = clock();
  if (size_t at = report->find("(C75"); at != std::string::npos) // multiplications of warp groups one after another
    return llvm::createStringError("ptxas waits for each instruction of a warp group: " +
                                   StringRef(*report).drop_front(at).split('\n').first);
  readPtxasReport(*report, out.kernels);
  auto code = contents(result);
  if (!code) return code.takeError();
  out.code = std::move(*code);
  return llvm::Error::success();
}

static llvm::Error buildHsaco(const GpuModule &g, GpuBinary &out) {
  Clock clock;
  auto object = optimized<std::string>(g, [](llvm::Module &m, llvm::TargetMachine &machine) {
    return emit(m, machine, llvm::CodeGenFileType::ObjectFile);
  });
  if (!object) return object.takeError();
  out.backEnd = clock();
  auto code = toolchain::link({{"in", *object}}, {"-shared", "--no-undefined", "--build-id=none"});
  if (!code) return code.takeError();
  out.tool = clock();
  out.code.assign(code->begin(), code->end());
  return llvm::Error::success();
}

llvm::Expected<GpuBinary> astra::buildGpu(const GpuModule &g, bool noFuse, const std::string &ptxas) {
  GpuBinary out;
  for (const GpuLaunch &k : g.kernels)
    if (auto e = checkLaunch(k, *g.target)) return std::move(e);
  for (const GpuLaunch &k : g.kernels) out.kernels.push_back({k.name});
  if (auto e = g.target->flavour == GpuFlavour::CUDA ? buildCubin(g, noFuse, ptxas, out) : buildHsaco(g, out))
    return std::move(e);
  if (out.code.empty()) {
    out.kernels.clear();
    return out;
  }
  if (g.target->flavour == GpuFlavour::HIP)
    if (auto e = readNotes(out.code, out.kernels)) return std::move(e);
  for (auto [launch, use] : llvm::zip_equal(g.kernels, out.kernels)) { // what the back end added is there too
    if (hasDynamicShared(launch, *g.target)) use.shared += launch.shared;
    GpuLaunch whole = launch;
    whole.shared = use.shared;
    if (auto e = checkLaunch(whole, *g.target)) return std::move(e);
  }
  return out;
}
