# What a program or shared library has that runs outside of a build tree: position-independent code, relocations that are done
# at the start and read-only from then on, a guard before return addresses, and no path of the build tree to look for
# libraries in ($ORIGIN/../lib in its place, the same after an install). Kernels take no part: they are compiled at run time.
include_guard(GLOBAL)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(GNUInstallDirs)

# A list with an empty element, as CMake pads one that an install makes shorter, means the current folder: so programs are
# built as they are installed.
set(astra_libraries "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
list(REMOVE_DUPLICATES astra_libraries)

# ASTRA_STATIC_LIBC: programs are linked statically, and so at a fixed place.
function(astra_harden)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -fstack-protector-strong)
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "EXECUTABLE" OR kind STREQUAL "SHARED_LIBRARY")
      target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
    endif()
    if(kind STREQUAL "EXECUTABLE" AND NOT ASTRA_STATIC_LIBC)
      target_link_options(${target} PRIVATE -pie)
      set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${astra_libraries}"
        INSTALL_RPATH_USE_LINK_PATH ON) # LLVM's library
    endif()
  endforeach()
endfunction()
