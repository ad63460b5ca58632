//===- Clang.cpp: clang in the process --------------------------------------===//
// Takes:    see Toolchain.h. The only file that includes clang's headers, which are slow to compile.
// Keeps:    the file system that clang sees holds the source alone, so nothing of this machine changes what it does:
//           neither headers nor the GCC that a driver looks for.
#include "Guard.h"
#include "astra/Toolchain/Toolchain.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/DiagnosticIDs.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/Version.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Driver/Compilation.h"
#include "clang/Driver/Driver.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <mutex>

using namespace astra;

static constexpr const char sourceName[] = "/kernels.c";

/// The back ends of the CPU targets.
static void registerTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeAArch64TargetInfo();
    LLVMInitializeX86Target(), LLVMInitializeAArch64Target();
    LLVMInitializeX86TargetMC(), LLVMInitializeAArch64TargetMC();
    LLVMInitializeX86AsmPrinter(), LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeX86AsmParser(), LLVMInitializeAArch64AsmParser(); // of inline assembly
  });
}

static llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> filesWith(llvm::StringRef source) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(sourceName, 0, llvm::MemoryBuffer::getMemBufferCopy(source, sourceName));
  files->setCurrentWorkingDirectory("/");
  return files;
}

namespace {

/// What clang says, as text.
class Diagnostics {
public:
  Diagnostics()
      : printer(stream, options), engine(llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(
                                      clang::DiagnosticIDs::create(), options, &printer, /*ShouldOwnClient=*/false)) {}
  clang::DiagnosticsEngine &operator*() { return *engine; }
  llvm::Error failure() { return llvm::createStringError("clang failed: " + stream.str()); }
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> shared() { return engine; }

private:
  std::string text;
  llvm::raw_string_ostream stream{text};
  clang::DiagnosticOptions options;
  clang::TextDiagnosticPrinter printer;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine;
};

} // namespace

std::string toolchain::clangVersion() { return clang::getClangFullVersion(); }

llvm::Expected<toolchain::CCompiler> toolchain::CCompiler::make(llvm::ArrayRef<std::string> flags) {
  Diagnostics said;
  clang::driver::Driver driver("clang", "x86_64-unknown-linux-gnu", *said, "clang", filesWith(""));
  std::vector<const char *> all{"clang"};
  for (const std::string &flag : flags) all.push_back(flag.c_str());
  all.insert(all.end(), {"-x", "c", sourceName});
  std::unique_ptr<clang::driver::Compilation> plan(driver.BuildCompilation(all));
  if (!plan || (*said).hasErrorOccurred() || plan->getJobs().size() != 1) return said.failure();
  const llvm::opt::ArgStringList &arguments = plan->getJobs().begin()->getArguments();
  return CCompiler(std::vector<std::string>(arguments.begin() + 1, arguments.end())); // behind -cc1
}

llvm::Expected<std::string> toolchain::CCompiler::compile(llvm::StringRef source) const {
  registerTargets();
  llvm::SmallVector<char, 0> result;
  Diagnostics said;
  bool good = false;
  llvm::Error crashed = guarded("clang", [&] {
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    std::vector<const char *> all;
    for (const std::string &a : arguments) all.push_back(a.c_str());
    if (!clang::CompilerInvocation::CreateFromArgs(*invocation, all, *said)) return;
    invocation->getFrontendOpts().DisableFree = false; // the process lives on
    invocation->getCodeGenOpts().DisableFree = false;
    bool assembly = invocation->getFrontendOpts().ProgramAction == clang::frontend::EmitAssembly;
    clang::CompilerInstance compiler(std::move(invocation));
    compiler.setVirtualFileSystem(filesWith(source));
    compiler.setDiagnostics(said.shared());
    compiler.setVerboseOutputStream(llvm::nulls()); // "1 error generated."
    compiler.createFileManager();
    compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(result));
    std::unique_ptr<clang::CodeGenAction> action;
    if (assembly)
      action = std::make_unique<clang::EmitAssemblyAction>();
    else
      action = std::make_unique<clang::EmitObjAction>();
    good = compiler.ExecuteAction(*action);
  });
  if (crashed) return std::move(crashed);
  if (!good || (*said).hasErrorOccurred()) return said.failure();
  return std::string(result.begin(), result.end());
}
