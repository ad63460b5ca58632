//===- DocsTest.cpp: docs/rules.md is what the registry says ---------------===//
// After a change of rules: ASTRA_UPDATE_DOCS=1 build/bin/unit-rewrite --gtest_filter=RuleDocs.*
#include "astra/Rewrite/Rewrite.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

TEST(RuleDocs, AreFresh) {
  std::string path = ASTRA_SOURCE_DIR "/docs/rules.md", now = astra::rulesMarkdown();
  if (std::getenv("ASTRA_UPDATE_DOCS")) std::ofstream(path) << now;
  std::ifstream file(path);
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str() == now, true) << "docs/rules.md is stale; run this test with ASTRA_UPDATE_DOCS=1";
}
