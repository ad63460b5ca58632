//===- MakeTestBundle.cpp: the standard bundle as a file ------------------===//
// Takes:    a path.
// Gives:    the bundle of TestBundle.cpp there.
// Keeps:    the same bytes every time.
// Does not: check it (the tests do).
#include "TestBundle.h"

#include <fstream>

int main(int, char **argv) {
  astra::test::ManifestMaker maker = astra::test::standardManifest();
  astra::test::Bytes bytes = assemble(maker);
  std::ofstream out(argv[1], std::ios::binary);
  out.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  return out.good() ? 0 : 1;
}
