# The one build for aarch64 that all tests share: the programs that only run bundles, linked statically, for qemu. Where there is
# a cross compiler and qemu it is part of Astra's build, in build/aarch64; scripts/demo makes its runtime there too.
find_program(ASTRA_CROSS aarch64-linux-gnu-g++)
find_program(ASTRA_CROSS_C aarch64-linux-gnu-gcc)
find_program(ASTRA_QEMU qemu-aarch64)
if(NOT ASTRA_CROSS OR NOT ASTRA_CROSS_C OR NOT ASTRA_QEMU)
  return()
endif()
set(ASTRA_AARCH64 ${CMAKE_BINARY_DIR}/aarch64)
set(programs ${ASTRA_AARCH64}/astra-run ${ASTRA_AARCH64}/astra-train/astra-train ${ASTRA_AARCH64}/calls/serve-calls
  ${ASTRA_AARCH64}/guard/guarded-run)
set(sources)
foreach(folder IN ITEMS lib/Runtime lib/Emulator lib/Files tools/common tools/astra-run tools/astra-train test/guard test/unit/random/calls
                        include/astra cmake)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*)
  list(APPEND sources ${found})
endforeach()
add_custom_command(OUTPUT ${programs}
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR}/tools/astra-run -B ${ASTRA_AARCH64} -G ${CMAKE_GENERATOR} -DASTRA_TEST_PROGRAMS=ON
          -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=${ASTRA_CROSS_C} -DCMAKE_CXX_COMPILER=${ASTRA_CROSS}
          -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER} -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
  COMMAND ${CMAKE_COMMAND} --build ${ASTRA_AARCH64}
  COMMAND ${CMAKE_COMMAND} -E touch ${programs}
  DEPENDS ${sources} VERBATIM COMMENT "Building what runs bundles, for aarch64")
add_custom_target(aarch64 ALL DEPENDS ${programs})
