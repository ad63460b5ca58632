include(${CMAKE_CURRENT_LIST_DIR}/Hardening.cmake)
# What a user runs: the tools. Not the tests.
add_custom_target(programs)

# precompile(target): headers of LLVM and of the language that most files read, once for all targets that take the same
# options; half of a build's time is reading them. Not by g++: its build shows that files include what they use.
function(precompile target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    return()
  endif()
  get_target_property(kind ${target} TYPE) # programs are compiled for one place, libraries for any
  if(kind STREQUAL EXECUTABLE)
    set(owner precompiled-for-programs)
  else()
    set(owner precompiled-for-libraries)
  endif()
  if(NOT TARGET ${owner})
    precompiled_headers(${owner} ${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  add_dependencies(${target} ${owner}-sum)
endfunction()

# precompiled_headers(owner kind): a target that is there for its precompiled headers alone. It has no definitions, as they
# would be a part of them, and nothing that depends on the folder.
# The bytes of a precompiled header name the folder that it was made in, so ccache would find nothing that was compiled with
# one in another folder. It takes the file with .sum at its end instead (cmake/ccache): the hash of the headers' text behind
# the preprocessor, with the compiler's version.
function(precompiled_headers owner kind)
  set(headers <algorithm> <cstring> <functional> <map> <memory> <optional> <string> <vector> <llvm/ADT/ArrayRef.h>
    <llvm/ADT/DenseMap.h> <llvm/ADT/DenseSet.h> <llvm/ADT/STLExtras.h> <llvm/ADT/SmallVector.h> <llvm/ADT/StringExtras.h>
    <llvm/ADT/StringMap.h> <llvm/Support/Error.h> <llvm/Support/MathExtras.h> <llvm/Support/raw_ostream.h>)
  set(folder ${CMAKE_BINARY_DIR}/precompiled/${owner})
  if(kind STREQUAL EXECUTABLE)
    list(APPEND headers <gtest/gtest.h>)
    file(CONFIGURE OUTPUT ${folder}/empty.cpp CONTENT "int main() {}\n")
    add_executable(${owner} ${folder}/empty.cpp)
    target_link_libraries(${owner} PRIVATE GTest::gtest LLVM)
  else()
    file(CONFIGURE OUTPUT ${folder}/empty.cpp CONTENT "\n")
    add_library(${owner} STATIC ${folder}/empty.cpp)
  endif()
  set_target_properties(${owner} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder} ARCHIVE_OUTPUT_DIRECTORY ${folder})
  target_include_directories(${owner} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_options(${owner} PRIVATE -Xclang -fno-pch-timestamp) # so that ccache finds it again
  target_precompile_headers(${owner} PRIVATE ${headers})
  list(TRANSFORM headers REPLACE "(.+)" "#include \\1")
  list(JOIN headers "\n" text)
  file(CONFIGURE OUTPUT ${folder}/headers.h CONTENT "${text}\n")
  set(pch ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${owner}.dir/cmake_pch.hxx.pch)
  add_custom_command(OUTPUT ${pch}.sum DEPENDS ${pch} VERBATIM COMMAND sh -c
    "{ \"$1\" --version && \"$1\" -std=c++20 -O2 -isystem \"$2\" -E -P -x c++ \"$3\"; } | sha256sum >\"$4\"" sum
    ${CMAKE_CXX_COMPILER} "${LLVM_INCLUDE_DIRS}" ${folder}/headers.h ${pch}.sum)
  add_custom_target(${owner}-sum DEPENDS ${pch}.sum)
endfunction()

# astra_library(Name [EXCLUDE folder] DEPS ...): one static library of the compiler from every .cpp in its folder.
function(astra_library name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_EXCLUDE}/")
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} ${ASTRA_LLVM_LIBRARIES})
  precompile(${name})
endfunction()

# astra_pages(name command... [DEPENDS file...]): the man page and the completion of a program, printed by the command with
# --man and --completion=SHELL behind it, into the build's share, and where they are installed.
function(astra_pages name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(share ${CMAKE_BINARY_DIR}/share)
  set(man ${share}/man/man1/${name}.1)
  set(bash ${share}/bash-completion/completions/${name})
  set(zsh ${share}/zsh/site-functions/_${name})
  set(fish ${share}/fish/vendor_completions.d/${name}.fish)
  set(commands COMMAND ${ARG_UNPARSED_ARGUMENTS} --man > ${man})
  foreach(shell bash zsh fish)
    list(APPEND commands COMMAND ${ARG_UNPARSED_ARGUMENTS} --completion=${shell} > ${${shell}})
  endforeach()
  foreach(file ${man} ${bash} ${zsh} ${fish})
    get_filename_component(folder ${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    string(REPLACE "${share}/" "" place ${folder})
    if(file STREQUAL man)
      set(place ${CMAKE_INSTALL_MANDIR}/man1)
    else()
      set(place ${CMAKE_INSTALL_DATADIR}/${place})
    endif()
    install(FILES ${file} DESTINATION ${place} COMPONENT compiler)
  endforeach()
  add_custom_command(OUTPUT ${man} ${bash} ${zsh} ${fish} ${commands} DEPENDS ${ARG_DEPENDS} VERBATIM)
  add_custom_target(${name}-pages ALL DEPENDS ${man} ${bash} ${zsh} ${fish})
  add_dependencies(programs ${name}-pages)
endfunction()

# astra_tool(name [USERS] DEPS ...): a program from the .cpp files of its folder, tools/<name>. USERS: it is for users, and
# installed, with its pages.
function(astra_tool name)
  cmake_parse_arguments(ARG "USERS" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  astra_harden(${name})
  add_dependencies(programs ${name})
  if(NOT ARG_USERS)
    return()
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
  if(NOT CMAKE_CROSSCOMPILING)
    astra_pages(${name} $<TARGET_FILE:${name}> DEPENDS ${name})
  endif()
endfunction()

# astra_run_once(out [FILES ...] COMMAND ...): what add_test takes to run a command that is a function of files alone (of those, and of
# what it names) unless it has passed with the same bytes: test/common/verdicts.py.
function(astra_run_once out)
  cmake_parse_arguments(ARG "" "" "FILES;COMMAND" ${ARGN})
  set(${out} python3 ${CMAKE_SOURCE_DIR}/test/common/verdicts.py --run ${ARG_FILES} -- ${ARG_COMMAND} PARENT_SCOPE)
endfunction()

# astra_paths(target NAME path ...): macros that are these paths, as strings. They come by a header that is included: as -D they would
# make every object of the target one of this folder, of which ccache finds nothing in another.
function(astra_paths target)
  set(text "#pragma once\n")
  while(ARGN)
    list(POP_FRONT ARGN name path)
    string(APPEND text "#define ${name} \"${path}\"\n")
  endwhile()
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}-paths.h)
  file(GENERATE OUTPUT ${header} CONTENT "${text}")
  target_compile_options(${target} PRIVATE "SHELL:-include ${header}")
endfunction()

# astra_unit_test(name DEPS ...): a GoogleTest program from the .cpp files of its folder, test/unit/<name>, run by ctest.
function(astra_unit_test name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(unit-${name} ${sources})
  target_link_libraries(unit-${name} PRIVATE ${ARG_DEPS} GTest::gtest_main)
  precompile(unit-${name})
  add_test(NAME unit-${name} COMMAND unit-${name})
endfunction()
