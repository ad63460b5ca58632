# Where the libraries, the headers, the CMake package and the pkg-config files go. Components: runtime (libastra_rt.so.1,
# libastra_ops.so.1, libastra_ranks.so.1 and libastra_text.so.1; the bundle of operations: lib/Ops/module), verify
# (libastra_verify.so.1), lapack (libastra_lapack.so.1) and development (what a program that uses them is compiled with).
# Nothing that is written names an absolute folder, so that the tree can be moved, and installed under any prefix.
include(CMakePackageConfigHelpers)

# astra_install_library(TARGET component): the shared library in its component, its name without a number beside the headers.
function(astra_install_library target component)
  install(TARGETS ${target} EXPORT Astra
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

set(astra_headers astra.h astra.hpp async.hpp gpu.h lapack.h ops.def ops.h ops.hpp ranks.h tensor.h tensor.hpp text.h)
set(astra_pkg_config astra-lapack astra-ops astra-ranks astra-rt astra-text)
astra_install_library(AstraRuntime runtime)
astra_install_library(AstraRuntimeStatic development)
astra_install_library(AstraOps runtime)
astra_install_library(AstraOpsStatic development)
astra_install_library(AstraRanks runtime)
astra_install_library(AstraRanksStatic development)
astra_install_library(AstraText runtime)
astra_install_library(AstraTextStatic development)
astra_install_library(AstraLapack lapack)
if(TARGET AstraVerify)
  list(APPEND astra_headers verify.h)
  list(APPEND astra_pkg_config astra-verify)
  astra_install_library(AstraVerify verify)
  astra_install_library(AstraVerifyStatic development)
endif()
foreach(header IN LISTS astra_headers)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/../../include/astra/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/astra COMPONENT development)
endforeach()

# The licence goes with every part. Debian's packages say it their own way (cmake/PackagesFinish.cmake).
foreach(component runtime verify lapack development compiler)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/../../LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/../../NOTICE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endforeach()

# find_package(Astra). A library serves every program that was made for an older one, so any newer version will do.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Astra)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/AstraConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/AstraConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/AstraConfigVersion.cmake VERSION ${ASTRA_VERSION}
  COMPATIBILITY AnyNewerVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/AstraConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/AstraConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)
install(EXPORT Astra NAMESPACE Astra:: FILE AstraTargets.cmake DESTINATION ${package} COMPONENT development)

# pkg-config: folders as they lie from the file, unless they were given as absolute ones.
set(package ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(folder LIBDIR INCLUDEDIR)
  set(pc_${folder} ${CMAKE_INSTALL_${folder}})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up "/${package}" "/")
  string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(name IN LISTS astra_pkg_config)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${package} COMPONENT development)
endforeach()
