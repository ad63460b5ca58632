# cpack -G DEB: the components of an install as packages of Debian. Names follow Debian's rules: a library's package is called
# after its soname, what programs are compiled with is in -dev. libastra_verify has a package of its own, because it needs
# libsodium and libastra_rt needs nothing but libc.
# A build with CMAKE_INSTALL_PREFIX=/usr has its libraries in the folder of the machine's architecture, another in /usr/lib.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME astra)
set(CPACK_PACKAGE_VERSION ${ASTRA_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "The Astra authors <astra@localhost.localdomain>" CACHE STRING "who answers for the packages")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/PackagesEpoch.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/PackagesFinish.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/PackagesModes.cmake)
set(CPACK_ASTRA_SOURCE ${CMAKE_SOURCE_DIR})
set(exact "(= ${ASTRA_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# astra_package(component name section "first line" "what it is"): a package; its dependencies beside those of its libraries
# are in CPACK_DEBIAN_<COMPONENT>_PACKAGE_DEPENDS.
set(CPACK_COMPONENTS_ALL "")
macro(astra_package component name section summary text)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
  if(CMAKE_LIBRARY_ARCHITECTURE AND CMAKE_INSTALL_LIBDIR MATCHES "${CMAKE_LIBRARY_ARCHITECTURE}$" AND
      NOT "${component}" STREQUAL "compiler")
    set(CPACK_DEBIAN_${upper}_PACKAGE_MULTIARCH same)
  endif()
endmacro()

astra_package(compiler astra-compiler devel "ahead-of-time compiler of tensor graphs"
"astra-compile makes one file of a model (ONNX or Astra's text): machine code
for every target asked for, which gives the same bits on all of them. With it
come astra-run and astra-train, which run and train bundles, astra-inspect,
astra-opt, and astra-compare, which needs ONNX Runtime for Python.")
# The programs look into LLVM's own folder, since libMLIR is there; dpkg-shlibdeps finds libLLVM there too, as a link
# of a package that says nothing of libraries, and leaves it out.
set(CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS "libastra-rt1 ${exact}")
if(NOT ASTRA_STATIC)
  string(APPEND CPACK_DEBIAN_COMPILER_PACKAGE_DEPENDS ", libllvm22")
endif()
set(CPACK_DEBIAN_COMPILER_PACKAGE_SUGGESTS "python3-numpy, python3-onnx, nvidia-cuda-toolkit")

astra_package(runtime libastra-rt1 libs "runtime of bundles made by astra-compile"
"libastra_rt loads bundles and runs them on CPUs and GPUs. It needs libc alone,
and makes no thread, opens no file and prints nothing unless asked.
libastra_ops computes with tensors without a model. libastra_text turns text
into tokens and back for bundles of language models. libastra_ranks runs one
bundle on several processes.")

astra_package(development libastra-rt-dev libdevel "development files of Astra's runtime"
"Headers for C and C++, static libraries, a CMake package and files for
pkg-config, of libastra_rt, libastra_lapack, libastra_ops, libastra_ranks,
libastra_text and libastra_verify.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libastra-rt1 ${exact}")

astra_package(lapack libastra-lapack1 libs "factorizations for bundles by a LAPACK of the host"
"libastra_lapack gives bundles that ask for them Cholesky, LU, QR, eigenvalues
and singular values of a LAPACK, which it opens when it is asked to. Their bits
are those of that library, of the CPU and of its threads.")
set(CPACK_DEBIAN_LAPACK_PACKAGE_RECOMMENDS "libopenblas0 | liblapack3")
set(CPACK_DEBIAN_LAPACK_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/triggers)
string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libastra-lapack1 ${exact}")

if(TARGET AstraVerify)
  astra_package(verify libastra-verify1 libs "signatures of bundles made by astra-compile"
"libastra_verify checks the ed25519 signature of a bundle for libastra_rt, by
libsodium.")
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libastra-verify1 ${exact}")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libsodium-dev")
endif()
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/triggers)
set(CPACK_DEBIAN_VERIFY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/triggers)
include(CPack)
