//===- Image.cpp: from C to a flat image -----------------------------------===//
// Takes:    a translation unit and the names of its functions.
// Gives:    the bytes of one section at address 0, and where each function begins.
// Keeps:    bytes a function of source, target and toolchain: no path, no time, no order of threads goes in.
// Does not: accept anything that a loader would have to do: data, got, relocations, imports.
#include "Cache.h"
#include "Prelude.h"
#include "astra/Codegen/EmitC.h"
#include "astra/Toolchain/Toolchain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/ThreadPool.h"

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
    "-Wno-everything"};

llvm::Expected<Image> readImage(llvm::StringRef file, llvm::ArrayRef<std::string> names) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(file, "image"));
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

static std::vector<std::string> flagsFor(const Target &target, const char *output) {
  std::vector<std::string> flags(std::begin(commonFlags), std::end(commonFlags));
  flags.insert(flags.end(), target.clangFlags.begin(), target.clangFlags.end());
  flags.push_back(output);
  return flags;
}

namespace {

/// Compiles for one target, or takes from the cache.
class Units {
public:
  Units(const Target &target, llvm::StringRef cacheFolder) : flags(flagsFor(target, "-c")), cache(cacheFolder) {}
  /// From any thread.
  llvm::Expected<std::string> object(llvm::StringRef source) const { return object(source, flags); }
  /// What a compiler may call, which must not become calls of itself.
  llvm::Expected<std::string> supportObject() const {
    std::vector<std::string> all = flags;
    all.push_back("-fno-builtin");
    return object(support, all);
  }

private:
  std::vector<std::string> flags;
  ObjectCache cache;

  llvm::Expected<std::string> object(llvm::StringRef source, const std::vector<std::string> &all) const {
    std::string name = cache.nameOf({toolchain::clangVersion(), llvm::join(all, "\n"), source.str()});
    if (auto stored = cache.find(name)) return std::move(*stored);
    auto compiler = toolchain::CCompiler::make(all);
    if (!compiler) return compiler.takeError();
    auto made = compiler->compile(source);
    if (made) cache.store(name, *made);
    return made;
  }
};

} // namespace

/// Whether an object needs a function that is not in it.
static llvm::Expected<bool> callsOut(llvm::StringRef object) {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernels"));
  if (!file) return file.takeError();
  for (const auto &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return flags.takeError();
    if (*flags & llvm::object::SymbolRef::SF_Undefined && !(*flags & llvm::object::SymbolRef::SF_FormatSpecific))
      return true;
  }
  return false;
}

/// The objects and, where one of them calls out, what it may call; of no objects (a module that copies alone) that by
/// itself, of which nothing is kept.
static llvm::Expected<Image> linked(const Units &units, llvm::ArrayRef<std::string> objects,
                                    llvm::ArrayRef<std::string> names) {
  bool needsSupport = objects.empty();
  std::vector<toolchain::LinkInput> inputs;
  for (const std::string &object : objects) {
    auto calls = callsOut(object);
    if (!calls) return calls.takeError();
    needsSupport |= *calls;
    inputs.push_back({"kernels" + std::to_string(inputs.size()) + ".o", object});
  }
  std::string supportObject;
  if (needsSupport) {
    auto made = units.supportObject();
    if (!made) return made.takeError();
    supportObject = std::move(*made);
    inputs.push_back({"support.o", supportObject});
  }
  auto file = toolchain::link(
      inputs, {"-static", "--gc-sections", "--build-id=none", "--no-undefined", "-z", "norelro"}, script);
  if (!file) return file.takeError();
  return readImage(*file, names);
}

llvm::Expected<Image> astra::buildImage(llvm::StringRef cSource, llvm::ArrayRef<std::string> names,
                                        const Target &target, unsigned jobs, llvm::StringRef cacheFolder) {
  Units units(target, cacheFolder);
  std::vector<std::string> sources = partsOf(cSource), objects(sources.size()), errors(sources.size());
  auto compile = [&](size_t i) {
    auto object = units.object(sources[i]);
    if (object)
      objects[i] = std::move(*object);
    else
      errors[i] = llvm::toString(object.takeError());
  };
  if (jobs <= 1 || sources.size() <= 1) {
    for (size_t i = 0; i < sources.size() && (i == 0 || errors[i - 1].empty()); ++i) compile(i);
  } else {
    // The longest first, so that no thread is left with one at the end.
    std::vector<std::pair<size_t, size_t>> order; // by falling size, then by number
    for (size_t i = 0; i < sources.size(); ++i) order.push_back({~sources[i].size(), i});
    llvm::sort(order);
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(jobs));
    for (auto [size, i] : order) pool.async([&compile, i = i] { compile(i); });
    pool.wait();
  }
  for (const std::string &e : errors)
    if (!e.empty()) return llvm::createStringError(e);
  return linked(units, objects, names);
}

llvm::Expected<Image> astra::linkImage(llvm::StringRef object, llvm::ArrayRef<std::string> names,
                                       const Target &target) {
  return linked(Units(target, ""), {object.str()}, names);
}

llvm::Expected<std::string> astra::assemblyText(llvm::StringRef cSource, const Target &target) {
  auto compiler = toolchain::CCompiler::make(flagsFor(target, "-S"));
  if (!compiler) return compiler.takeError();
  auto text = compiler->compile(cSource);
  if (!text) return text.takeError();
  // The first directive names the file.
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*text).split(lines, '\n');
  llvm::erase_if(lines, [](llvm::StringRef l) { return l.trim().starts_with(".file"); });
  return llvm::join(lines, "\n");
}
