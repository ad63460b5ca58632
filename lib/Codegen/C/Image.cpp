//===- Image.cpp: from C to a flat image -----------------------------------===//
// Takes:    a translation unit and the names of its functions.
// Gives:    the bytes of one section at address 0, and where each function begins.
// Keeps:    bytes a function of source, target and toolchain: no path, no time, no order of threads goes in.
// Does not: accept anything that a loader would have to do: data, got, relocations, imports.
#include "../TemporaryFolder.h"
#include "Cache.h"
#include "Prelude.h"
#include "astra/Codegen/EmitC.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;

namespace {

// What a compiler may call though nothing is included.
constexpr const char support[] = R"c(
typedef __SIZE_TYPE__ size;
__attribute__((visibility("hidden"))) void *memcpy(void *restrict d, const void *restrict s, size n) {
  char *a = d;
  const char *b = s;
  for (size i = 0; i < n; ++i) a[i] = b[i];
  return d;
}
__attribute__((visibility("hidden"))) void *memmove(void *d, const void *s, size n) {
  char *a = d;
  const char *b = s;
  if (a < b)
    for (size i = 0; i < n; ++i) a[i] = b[i];
  else
    while (n--) a[n] = b[n];
  return d;
}
__attribute__((visibility("hidden"))) void *memset(void *d, int c, size n) {
  char *a = d;
  for (size i = 0; i < n; ++i) a[i] = (char)c;
  return d;
}
__attribute__((visibility("hidden"))) int memcmp(const void *x, const void *y, size n) {
  const unsigned char *a = x, *b = y;
  for (size i = 0; i < n; ++i)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}
)c";

constexpr const char script[] = R"ld(
SECTIONS {
  . = 0;
  .image : ALIGN(64) {
    KEEP(*kernels*.o(.text .text.*))
    *(.text .text.*)
    *(.rodata .rodata.*)
  }
  .data : { *(.data .data.* .tdata .tdata.*) }
  .bss : { *(.bss .bss.* .tbss .tbss.* COMMON) }
  .got : { *(.got .got.* .got.plt) }
  .init_array : { KEEP(*(.init_array .init_array.* .ctors .fini_array .fini_array.*)) }
  /DISCARD/ : { *(.comment .note .note.* .eh_frame .eh_frame.* .llvm_addrsig .ARM.attributes) }
  ASSERT(SIZEOF(.data) == 0, "a kernel has writable data")
  ASSERT(SIZEOF(.bss) == 0, "a kernel has writable data")
  ASSERT(SIZEOF(.got) == 0, "a kernel needs a global offset table")
  ASSERT(SIZEOF(.init_array) == 0, "a kernel has an initializer")
}
)ld";

constexpr const char *const commonFlags[] = {
    "-std=c11",
    "-O2",
    "-ffreestanding",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-slp-vectorize", // what is to be vectors is written so; the search takes half of the time
    "-fwrapv",
    "-fvisibility=hidden",
    "-fno-ident",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-jump-tables",
    "-ffunction-sections",
    "-fomit-frame-pointer",
    "-Wno-everything",
    "-c"};

class Workshop {
public:
  static llvm::Expected<Workshop> open() {
    auto folder = TemporaryFolder::make();
    if (!folder) return folder.takeError();
    return Workshop(std::move(*folder));
  }
  std::string path(llvm::StringRef name) const { return folder.at(name); }
  llvm::Error write(llvm::StringRef name, llvm::StringRef text) const { return folder.write(name, text); }
  /// Runs a tool found by name on the unit `name`; the error has what it printed.
  llvm::Error run(llvm::StringRef tool, const std::string &name, llvm::ArrayRef<std::string> arguments) const {
    auto program = llvm::sys::findProgramByName(tool);
    if (!program)
      return llvm::createStringError(tool + " was not found: install the packages of LLVM 22 or add it to PATH");
    std::string log = path(name + ".log");
    llvm::SmallVector<llvm::StringRef, 32> args{tool};
    args.append(arguments.begin(), arguments.end());
    std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(log), llvm::StringRef(log)};
    std::string message;
    int rc = llvm::sys::ExecuteAndWait(*program, args, std::nullopt, redirects, 0, 0, &message);
    if (rc == 0) return llvm::Error::success();
    auto output = llvm::MemoryBuffer::getFile(log);
    return llvm::createStringError(tool + " failed: " + message + (output ? (*output)->getBuffer() : ""));
  }

private:
  explicit Workshop(TemporaryFolder folder) : folder(std::move(folder)) {}
  TemporaryFolder folder;
};

llvm::Expected<Image> readImage(llvm::StringRef path, llvm::ArrayRef<std::string> names) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) return llvm::createStringError("the linker gave no file");
  auto object = llvm::object::ObjectFile::createELFObjectFile((*file)->getMemBufferRef());
  if (!object) return object.takeError();
  Image image;
  for (const auto &section : (*object)->sections()) {
    auto name = section.getName();
    if (!name) return name.takeError();
    llvm::object::ELFSectionRef elf(section);
    bool loaded = elf.getFlags() & llvm::ELF::SHF_ALLOC;
    if (*name == ".image") {
      auto contents = section.getContents();
      if (!contents) return contents.takeError();
      if (section.getAddress() != 0) return llvm::createStringError("the image does not begin at address 0");
      image.bytes.assign(contents->bytes_begin(), contents->bytes_end());
    } else if (loaded && section.getSize()) {
      return llvm::createStringError("the image has a section " + *name + " beside its code");
    }
  }
  llvm::StringMap<uint64_t> places;
  for (const auto &symbol : (*object)->symbols()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    auto flags = symbol.getFlags();
    if (!name) return name.takeError();
    if (!address) return address.takeError();
    if (!flags) return flags.takeError();
    if (!name->empty() && !(*flags & llvm::object::SymbolRef::SF_Undefined)) places[*name] = *address;
  }
  for (const std::string &n : names) {
    auto it = places.find(n);
    if (it == places.end() || it->second >= image.bytes.size())
      return llvm::createStringError("the image has no function '" + n + "'");
    image.offsets.push_back(it->second);
  }
  return image;
}

} // namespace

/// The source in parts that compile by themselves, as many whatever the number of jobs, so that bytes do not depend on
/// it. Each begins with the same head and has four kernels, or as many as are worth reading it again.
static std::vector<std::string> partsOf(llvm::StringRef source) {
  constexpr size_t kernelsPerPart = 4, headsPerPart = 4;
  llvm::StringRef mark = cemit::kernelMark;
  size_t at = source.find(mark), count = 0;
  llvm::StringRef head = source.take_front(at);
  std::vector<std::string> parts;
  for (; at != llvm::StringRef::npos; ++count) {
    size_t end = source.find(mark, at + mark.size());
    if (parts.empty() || (count >= kernelsPerPart && parts.back().size() - head.size() >= head.size() / headsPerPart))
      parts.push_back(head.str()), count = 0;
    parts.back() += source.slice(at, end);
    at = end;
  }
  return parts;
}

/// What the compiler says that it is.
static llvm::Expected<std::string> compilerName(const Workshop &shop) {
  if (auto e = shop.run("clang-22", "version", {"--version"})) return e;
  auto file = llvm::MemoryBuffer::getFile(shop.path("version.log"));
  if (!file) return llvm::createStringError("clang-22 --version gave nothing");
  return (*file)->getBuffer().str();
}

/// One part to an object; `support` is what a compiler may call, which must not become calls of itself. `compiler` is
/// empty where nothing is cached.
static llvm::Error compileUnit(const Workshop &shop, const std::string &unit, llvm::StringRef source,
                               const Target &target, const ObjectCache &cache = ObjectCache(""),
                               const std::string &compiler = "") {
  std::vector<std::string> args(std::begin(commonFlags), std::end(commonFlags));
  args.insert(args.end(), target.clangFlags.begin(), target.clangFlags.end());
  if (unit == "support") args.push_back("-fno-builtin");
  std::string name = cache.nameOf({compiler, llvm::join(args, "\n"), source.str()});
  if (auto object = cache.find(name)) return shop.write(unit + ".o", *object);
  if (auto e = shop.write(unit + ".c", source)) return e;
  args.insert(args.end(), {shop.path(unit + ".c"), "-o", shop.path(unit + ".o")});
  if (auto e = shop.run("clang-22", unit, args)) return e;
  if (auto object = llvm::MemoryBuffer::getFile(shop.path(unit + ".o"), false, false))
    cache.store(name, (*object)->getBuffer());
  return llvm::Error::success();
}

/// Whether an object needs a function that is not in it.
static llvm::Expected<bool> callsOut(const std::string &path) {
  auto file = llvm::object::ObjectFile::createObjectFile(path);
  if (!file) return file.takeError();
  for (const auto &symbol : file->getBinary()->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return flags.takeError();
    if (*flags & llvm::object::SymbolRef::SF_Undefined && !(*flags & llvm::object::SymbolRef::SF_FormatSpecific))
      return true;
  }
  return false;
}

/// The objects of units and, where one of them calls out, what it may call; of no units (a module that copies alone)
/// that by itself, of which nothing is kept.
static llvm::Expected<Image> link(const Workshop &shop, std::vector<std::string> units,
                                  llvm::ArrayRef<std::string> names, const Target &target,
                                  const ObjectCache &cache = ObjectCache(""), const std::string &compiler = "") {
  bool needsSupport = units.empty();
  for (const std::string &u : units) {
    auto calls = callsOut(shop.path(u + ".o"));
    if (!calls) return calls.takeError();
    needsSupport |= *calls;
  }
  if (needsSupport) {
    if (auto e = compileUnit(shop, "support", support, target, cache, compiler)) return e;
    units.push_back("support");
  }
  if (auto e = shop.write("image.ld", script)) return e;
  std::vector<std::string> args = {"-static",
                                   "--gc-sections",
                                   "--build-id=none",
                                   "--no-undefined",
                                   "-z",
                                   "norelro",
                                   "-T",
                                   shop.path("image.ld"),
                                   "-o",
                                   shop.path("image.elf")};
  for (const std::string &u : units) args.push_back(shop.path(u + ".o"));
  if (auto e = shop.run("ld.lld-22", "image", args)) return e;
  return readImage(shop.path("image.elf"), names);
}

llvm::Expected<Image> astra::buildImage(llvm::StringRef cSource, llvm::ArrayRef<std::string> names,
                                        const Target &target, unsigned jobs, llvm::StringRef cacheFolder) {
  auto shop = Workshop::open();
  if (!shop) return shop.takeError();
  ObjectCache cache(cacheFolder);
  std::string compiler;
  if (!cacheFolder.empty()) {
    auto name = compilerName(*shop);
    if (!name) return name.takeError();
    compiler = std::move(*name);
  }
  std::vector<std::string> units, sources = partsOf(cSource);
  for (size_t i = 0; i < sources.size(); ++i) units.push_back("kernels" + std::to_string(i));
  std::vector<std::string> errors(units.size());
  {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(std::max(jobs, 1u)));
    for (size_t i = 0; i < units.size(); ++i)
      pool.async(
          [&, i] { errors[i] = llvm::toString(compileUnit(*shop, units[i], sources[i], target, cache, compiler)); });
    pool.wait();
  }
  for (const std::string &e : errors)
    if (!e.empty()) return llvm::createStringError(e);
  return link(*shop, units, names, target, cache, compiler);
}

llvm::Expected<Image> astra::linkImage(llvm::StringRef object, llvm::ArrayRef<std::string> names,
                                       const Target &target) {
  auto shop = Workshop::open();
  if (!shop) return shop.takeError();
  if (auto e = shop->write("kernels.o", object)) return e;
  return link(*shop, {"kernels"}, names, target);
}

llvm::Expected<std::string> astra::assemblyText(llvm::StringRef cSource, const Target &target) {
  auto shop = Workshop::open();
  if (!shop) return shop.takeError();
  if (auto e = shop->write("kernels.c", cSource)) return e;
  std::vector<std::string> args(std::begin(commonFlags), std::end(commonFlags));
  args.back() = "-S"; // in place of -c
  args.insert(args.end(), target.clangFlags.begin(), target.clangFlags.end());
  args.insert(args.end(), {"-x", "c", shop->path("kernels.c"), "-o", shop->path("kernels.s")});
  if (auto e = shop->run("clang-22", "kernels", args)) return e;
  auto file = llvm::MemoryBuffer::getFile(shop->path("kernels.s"));
  if (!file) return llvm::createStringError("the compiler gave no file");
  // The first directive names the temporary file.
  llvm::SmallVector<llvm::StringRef> lines;
  (*file)->getBuffer().split(lines, '\n');
  llvm::erase_if(lines, [](llvm::StringRef l) { return l.trim().starts_with(".file"); });
  return llvm::join(lines, "\n");
}
