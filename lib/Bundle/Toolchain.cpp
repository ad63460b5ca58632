//===- Toolchain.cpp: what made a bundle, and its SPDX document -------------===//
// Takes:    the versions that the compiler was built with; a manifest.
// Gives:    the component list of a new bundle; an SPDX 2.3 JSON document of an existing one.
// Keeps:    nothing of the machine, the user or the time: the list is the same wherever the same compiler runs.
// Does not: list what a program around the runtime links.
#include "astra/Bundle/Assemble.h"
#include "astra/Bundle/Spdx.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"
#include <sodium/version.h>

using namespace astra;
using namespace llvm;

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

std::vector<std::unique_ptr<fmt::ComponentT>> astra::toolchain(const std::string &ptxas) {
  constexpr const char *flatbuffersVersion =
      TEXT(FLATBUFFERS_VERSION_MAJOR) "." TEXT(FLATBUFFERS_VERSION_MINOR) "." TEXT(FLATBUFFERS_VERSION_REVISION);
  const struct {
    const char *name, *version, *license;
  } rows[] = {
      {"astra", ASTRA_VERSION, "Apache-2.0 WITH LLVM-exception"},
      {"clang", LLVM_VERSION_STRING, "Apache-2.0 WITH LLVM-exception"},
      {"flatbuffers", flatbuffersVersion, "Apache-2.0"},
      {"libsodium", SODIUM_VERSION_STRING, "ISC"},
      {"lld", LLVM_VERSION_STRING, "Apache-2.0 WITH LLVM-exception"},
      {"llvm", LLVM_VERSION_STRING, "Apache-2.0 WITH LLVM-exception"},
  };
  std::vector<std::unique_ptr<fmt::ComponentT>> out;
  for (const auto &row : rows) {
    auto c = std::make_unique<fmt::ComponentT>();
    c->name = row.name, c->version = row.version, c->license = row.license;
    out.push_back(std::move(c));
  }
  if (!ptxas.empty()) {
    auto c = std::make_unique<fmt::ComponentT>();
    c->name = "ptxas", c->version = ptxas, c->license = "NOASSERTION";
    out.push_back(std::move(c));
  }
  return out;
}

std::string astra::spdx(const fmt::ManifestT &manifest, StringRef sha256Hex) {
  json::Array packages{json::Object{{"SPDXID", "SPDXRef-bundle"},
                                    {"name", manifest.module_},
                                    {"versionInfo", sha256Hex},
                                    {"downloadLocation", "NOASSERTION"},
                                    {"filesAnalyzed", false},
                                    {"licenseConcluded", "NOASSERTION"},
                                    {"licenseDeclared", "NOASSERTION"},
                                    {"copyrightText", "NOASSERTION"}}};
  json::Array relationships{json::Object{{"spdxElementId", "SPDXRef-DOCUMENT"},
                                         {"relationshipType", "DESCRIBES"},
                                         {"relatedSpdxElement", "SPDXRef-bundle"}}};
  for (const auto &c : manifest.toolchain) {
    std::string id = "SPDXRef-" + c->name;
    json::Object package{{"SPDXID", id},
                         {"name", c->name},
                         {"versionInfo", c->version},
                         {"downloadLocation", "NOASSERTION"},
                         {"filesAnalyzed", false},
                         {"licenseConcluded", c->license},
                         {"licenseDeclared", c->license},
                         {"copyrightText", "NOASSERTION"}};
    if (c->name == "astra" && !manifest.commit.empty()) package["sourceInfo"] = "commit " + manifest.commit;
    packages.push_back(std::move(package));
    relationships.push_back(json::Object{
        {"spdxElementId", id}, {"relationshipType", "BUILD_TOOL_OF"}, {"relatedSpdxElement", "SPDXRef-bundle"}});
  }
  // SPDX demands a time; a bundle has none, since it is a function of its input.
  json::Value document = json::Object{
      {"spdxVersion", "SPDX-2.3"},
      {"dataLicense", "CC0-1.0"},
      {"SPDXID", "SPDXRef-DOCUMENT"},
      {"name", manifest.module_ + ".astra"},
      {"documentNamespace", "urn:sha256:" + sha256Hex.str()},
      {"creationInfo", json::Object{{"created", "1970-01-01T00:00:00Z"}, {"creators", json::Array{"Tool: astra"}}}},
      {"packages", std::move(packages)},
      {"relationships", std::move(relationships)}};
  std::string out;
  raw_string_ostream(out) << formatv("{0:2}", document) << "\n";
  return out;
}
