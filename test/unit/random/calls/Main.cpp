//===- Main.cpp: serve-calls BUNDLE LEVEL THREADS CALLS RESULTS ------------===//
#include "Calls.h"
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>

int main(int argc, char **argv) try {
  if (argc != 6) return 2;
  std::ifstream in(argv[4], std::ios::binary);
  std::string calls((std::istreambuf_iterator<char>(in)), {});
  std::ofstream out(argv[5], std::ios::binary);
  out << astra::test::serve(argv[1], argv[2], unsigned(std::atoi(argv[3])), calls) << std::flush;
  return out ? 0 : 1;
} catch (const std::exception &e) {
  std::cerr << e.what() << '\n';
  return 1;
}
