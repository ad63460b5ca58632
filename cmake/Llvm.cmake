# What programs are linked to of LLVM: ASTRA_LLVM_LIBRARIES, ASTRA_MLIR_LIBRARIES, ASTRA_CLANG_LIBRARIES and
# ASTRA_LLD_LIBRARIES, lists for target_link_libraries. Shared libraries, which link fast; with ASTRA_STATIC archives, of which the linker takes what is used and drops what is
# reached from nowhere, so that astra-compile needs no file of LLVM to run. Then of LLVM's back ends only those are there
# whose machines Astra has: lld names all of them, and what it names of others are functions that do nothing.
find_package(LLVM 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/llvm)
set(ASTRA_BACK_ENDS X86 AArch64 NVPTX AMDGPU)

function(llvm_library variable name) # by the name that a linker takes, or of its file
  find_library(${variable} ${name} REQUIRED PATHS ${LLVM_LIBRARY_DIRS} NO_DEFAULT_PATH)
endfunction()
llvm_library(ASTRA_LLD_ELF lldELF) # lld has no shared library
llvm_library(ASTRA_LLD_COMMON lldCommon)
set(ASTRA_LLD_LIBRARIES ${ASTRA_LLD_ELF} ${ASTRA_LLD_COMMON})

if(NOT ASTRA_STATIC)
  llvm_library(ASTRA_CLANG_CPP libclang-cpp.so.${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR})
  set(ASTRA_CLANG_LIBRARIES ${ASTRA_CLANG_CPP})
  set(ASTRA_LLVM_LIBRARIES LLVM)
  set(ASTRA_MLIR_LIBRARIES MLIR)
  list(APPEND ASTRA_LLD_LIBRARIES z zstd) # for compressed sections
  return()
endif()

# archives(variable prefix): every archive of a project; the linker looks into those that it needs.
function(archives variable prefix)
  file(GLOB found ${LLVM_LIBRARY_DIRS}/lib${prefix}*.a)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
archives(ASTRA_LLVM_LIBRARIES LLVM)
archives(ASTRA_MLIR_LIBRARIES MLIR)
archives(ASTRA_CLANG_LIBRARIES clang)
if(ASTRA_WHEEL)
  find_library(ASTRA_ZSTD_ARCHIVE zstd REQUIRED)
  find_library(ASTRA_ZLIB_ARCHIVE z REQUIRED)
else()
  find_library(ASTRA_ZSTD_ARCHIVE libzstd.a REQUIRED)
  find_library(ASTRA_ZLIB_ARCHIVE libz.a REQUIRED)
endif()

# The functions that register a back end, for those that are left out: nothing refers to their code then. The same for
# Polly, a set of passes that clang runs where it is asked to.
set(others ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM others ${ASTRA_BACK_ENDS})
set(text "// What is left out of a static link (cmake/Llvm.cmake).\n#include <llvm/Plugins/PassPlugin.h>\n")
string(APPEND text "llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {0, nullptr, nullptr, [](llvm::PassBuilder &) {}}; }\n")
foreach(target IN LISTS others)
  foreach(part IN ITEMS TargetInfo Target TargetMC AsmPrinter AsmParser Disassembler TargetMCA)
    string(APPEND text "extern \"C\" void LLVMInitialize${target}${part}() {}\n")
  endforeach()
endforeach()
set(left_out ${CMAKE_BINARY_DIR}/LeftOut.cpp)
file(CONFIGURE OUTPUT ${left_out} CONTENT "${text}" @ONLY)
add_library(AstraLeftOut OBJECT ${left_out})
target_include_directories(AstraLeftOut SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})

list(PREPEND ASTRA_LLVM_LIBRARIES $<TARGET_OBJECTS:AstraLeftOut>)
list(APPEND ASTRA_LLVM_LIBRARIES ${ASTRA_ZSTD_ARCHIVE} ${ASTRA_ZLIB_ARCHIVE} m dl pthread)
