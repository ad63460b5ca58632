# What a user runs: the tools. Not the tests.
add_custom_target(programs)

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
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} LLVM)
endfunction()

# astra_tool(name [MAN] DEPS ...): a program from the .cpp files of its folder, tools/<name>. MAN: its --man goes to
# share/man/man1.
function(astra_tool name)
  cmake_parse_arguments(ARG "MAN" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  add_dependencies(programs ${name})
  if(ARG_MAN AND NOT CMAKE_CROSSCOMPILING)
    set(man ${CMAKE_BINARY_DIR}/share/man/man1)
    file(MAKE_DIRECTORY ${man})
    add_custom_command(TARGET ${name} POST_BUILD COMMAND $<TARGET_FILE:${name}> --man > ${man}/${name}.1 VERBATIM)
  endif()
endfunction()

# astra_unit_test(name DEPS ...): a GoogleTest program from the .cpp files of its folder, test/unit/<name>, run by ctest.
function(astra_unit_test name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(unit-${name} ${sources})
  target_link_libraries(unit-${name} PRIVATE ${ARG_DEPS} GTest::gtest_main)
  add_test(NAME unit-${name} COMMAND unit-${name})
endfunction()
