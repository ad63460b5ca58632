//===- MakeTestBundle.cpp: the standard bundle as a file ------------------===//
// Takes:    a path.
// Gives:    the bundle of TestBundle.cpp there.
// Keeps:    the same bytes every time.
// Does not: check it (the tests do).
#include "TestBundle.h"

#include <cstdio>
#include <cstring>
#include <fstream>

static constexpr char usage[] =
    "usage: make-test-bundle FILE.astra\n\n"
    "Writes the bundle that the tests of the runtime use: small kernels written by hand for "
    "every form of program.\n";

int main(int argc, char **argv) {
  bool ended = argc > 1 && std::strcmp(argv[1], "--") == 0;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return std::fputs(usage, stdout), 0;
  if (argc != 2 + ended || (!ended && argv[1][0] == '-')) return std::fputs(usage, stderr), 2;
  const char *path = argv[1 + ended];
  astra::test::ManifestMaker maker = astra::test::standardManifest();
  astra::test::Bytes bytes = assemble(maker);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  out.close();
  if (!out) return std::fprintf(stderr, "make-test-bundle: %s: cannot be written\n", path), 1;
  return 0;
}
