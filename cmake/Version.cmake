# The version of this source tree: of the tools, the packages and the CMake package. The C ABI has one of its own
# (ASTRA_VERSION_MAJOR in astra.h, which the soname of libastra_rt follows), and so has the bundle format.
set(ASTRA_VERSION 0.2.0)
