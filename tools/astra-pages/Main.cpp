//===- astra-pages: man page and completion of a program that is not C++ ------===//
// Takes:    that program's table on standard input, lines of fields with tabs between them: "name NAME",
//           "synopsis TEXT", "summary TEXT", "description TEXT", "operand ENDING", "example LINE", and
//           "option NAME VALUE HELP WORDS"; --man or --completion=SHELL.
// Gives:    what a tool of C++ prints for that.
// Keeps:    the table as the program printed it.
// Does not: get installed; the build runs it.
#include "Options.h"
#include <cstdio>
#include <iostream>
#include <sstream>

using namespace astra::tool;
using std::string;

namespace {

/// The strings that a Program refers to.
struct Table {
  string name, synopsis, summary, description, examples;
  std::vector<string> operands;
  std::vector<std::vector<string>> options;
};

std::vector<string> split(const string &line, char between) {
  std::vector<string> out;
  std::istringstream stream(line);
  for (string field; std::getline(stream, field, between);) out.push_back(field);
  return out;
}

/// False: a line that no table has.
bool read(std::istream &in, Table &t) {
  const std::pair<const char *, string *> texts[] = {
      {"name", &t.name}, {"synopsis", &t.synopsis}, {"summary", &t.summary}, {"description", &t.description}};
  for (string line; std::getline(in, line);) {
    std::vector<string> f = split(line, '\t');
    if (f.size() < 2) return false;
    bool known = true;
    if (f[0] == "operand")
      t.operands.push_back(f[1]);
    else if (f[0] == "example")
      t.examples += f[1] + "\n";
    else if (f[0] == "option" && f.size() >= 4)
      f.resize(5), t.options.push_back(f);
    else
      known = false;
    for (auto &[key, text] : texts)
      if (f[0] == key) *text = f[1], known = true;
    if (!known) return false;
  }
  return !t.name.empty();
}

} // namespace

int main(int argc, char **argv) {
  Table t;
  Program p;
  if (!read(std::cin, t)) {
    std::fputs("astra-pages: standard input is no table of options\n", stderr);
    return Failure;
  }
  p.name = t.name, p.synopsis = t.synopsis, p.summary = t.summary, p.description = t.description;
  p.examples = t.examples, p.printsPages = false;
  for (const string &ending : t.operands) p.operands.push_back(ending);
  for (const std::vector<string> &f : t.options) p.options.push_back({f[1], f[2], f[3], nullptr, split(f[4], ' ')});
  string page, wanted = argc == 2 ? argv[1] : "", completes = "--completion=";
  if (wanted == "--man") page = manPage(p);
  if (wanted.starts_with(completes)) page = completion(p, wanted.substr(completes.size()));
  if (page.empty()) {
    std::fputs("usage: astra-pages --man|--completion=SHELL < TABLE\n", stderr);
    return Usage;
  }
  return std::fputs(page.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? Ok : Failure;
}
