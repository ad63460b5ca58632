# What programs are linked to of LLVM: ASTRA_LLVM_LIBRARIES, ASTRA_MLIR_LIBRARIES, ASTRA_CLANG_LIBRARIES and
# ASTRA_LLD_LIBRARIES, lists for target_link_libraries.
find_package(LLVM 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/llvm)

function(llvm_library variable name) # by the name that a linker takes, or of its file
  find_library(${variable} ${name} REQUIRED PATHS ${LLVM_LIBRARY_DIRS} NO_DEFAULT_PATH)
endfunction()
llvm_library(ASTRA_LLD_ELF lldELF) # lld has no shared library
llvm_library(ASTRA_LLD_COMMON lldCommon)
set(ASTRA_LLD_LIBRARIES ${ASTRA_LLD_ELF} ${ASTRA_LLD_COMMON})

llvm_library(ASTRA_CLANG_CPP libclang-cpp.so.${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR})
set(ASTRA_CLANG_LIBRARIES ${ASTRA_CLANG_CPP})
set(ASTRA_LLVM_LIBRARIES LLVM)
set(ASTRA_MLIR_LIBRARIES MLIR)
list(APPEND ASTRA_LLD_LIBRARIES z zstd) # for compressed sections
