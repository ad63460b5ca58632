//===- Guard.cpp: LLVM's crashes and fatal errors as errors ------------------===//
#include "Guard.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include <mutex>

using namespace astra;

static thread_local std::string *fatal = nullptr; // where this thread's fatal error goes

static void onFatalError(void *, const char *reason, bool) {
  if (!fatal) return; // not of guarded work: LLVM prints it and aborts
  *fatal = reason;
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(1);
}

namespace {

/// Handlers are those of the process: the first who comes sets them, the last who goes takes them away. LLVM has one of
/// each and does not say which is set, so a program with a handler of its own sets it again after a compilation.
class Handlers {
public:
  Handlers() {
    std::lock_guard<std::mutex> hold(lock);
    if (inside++) return;
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(onFatalError);
  }
  ~Handlers() {
    std::lock_guard<std::mutex> hold(lock);
    if (--inside) return;
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }

private:
  static std::mutex lock;
  static unsigned inside;
};
std::mutex Handlers::lock;
unsigned Handlers::inside = 0;

} // namespace

llvm::Error toolchain::guarded(llvm::StringRef who, llvm::function_ref<void()> work) {
  Handlers handlers;
  std::string said;
  fatal = &said;
  llvm::CrashRecoveryContext context;
  bool whole = context.RunSafely(work);
  fatal = nullptr;
  if (whole && said.empty()) return llvm::Error::success(); // lld has a context of its own, which ends first
  if (!said.empty()) return llvm::createStringError(who + " failed: " + said);
  return llvm::createStringError(who + " crashed (code " + llvm::Twine(context.RetCode) +
                                 "): please report it with what was compiled");
}
