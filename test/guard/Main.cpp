//===- Main.cpp: guarded-run [options] BUNDLE.astra ... --------------------===//
// Takes:    bundles. --levels=LIST (those of the bundle that this machine runs), --corners=N of an entry, --cost=N of
//           its corners together, --launches=N of a call, --seed=N, --no-params, --verbose.
// Gives:    a line "FINDING ..." for each way in which a kernel leaves a buffer; a line of counts. Exit code 4 if there
//           are findings, 1 if a bundle does not open.
#include "Check.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>

using namespace astra::guard;

int main(int argc, char **argv) try {
  CheckOptions options;
  std::vector<std::string> paths, levels;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i], value = word.substr(word.find('=') + 1);
    if (!word.starts_with("--"))
      paths.push_back(word);
    else if (word.starts_with("--levels=")) {
      std::istringstream list(value);
      for (std::string level; std::getline(list, level, ',');) levels.push_back(level);
    } else if (word.starts_with("--corners="))
      options.corners = std::strtoull(value.c_str(), nullptr, 10);
    else if (word.starts_with("--cost="))
      options.cost = std::strtoull(value.c_str(), nullptr, 10);
    else if (word.starts_with("--launches="))
      options.launches = std::strtoull(value.c_str(), nullptr, 10);
    else if (word.starts_with("--seed="))
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (word == "--no-params")
      options.params = false;
    else if (word == "--verbose")
      options.verbose = true;
    else
      return fprintf(stderr, "guarded-run: unknown option %s\n", word.c_str()), 2;
  }
  CheckResult all;
  for (const std::string &path : paths)
    for (const std::string &level : levels.empty() ? levelsOf(path) : levels) all += checkBundle(path, level, options);
  for (const std::string &finding : all.findings) printf("FINDING %s\n", finding.c_str());
  printf("%s\n", all.summary().c_str());
  return all.findings.empty() ? 0 : 4;
} catch (const std::exception &e) {
  fprintf(stderr, "guarded-run: %s\n", e.what());
  return 1;
}
