//===- Options.cpp: the command line of a tool, as a table ------------------===//
#include "Support/Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using llvm::StringRef;

static llvm::Error assign(const Option &o, StringRef text) {
  if (auto *flag = std::get_if<bool *>(&o.to))
    **flag = true;
  else if (auto *s = std::get_if<std::string *>(&o.to))
    **s = text.str();
  else if (auto *list = std::get_if<std::vector<std::string> *>(&o.to))
    (*list)->push_back(text.str());
  else if (text.getAsInteger(10, *std::get<uint64_t *>(o.to)))
    return llvm::createStringError("%s takes a number, found %s", o.name, text.str().c_str());
  return llvm::Error::success();
}

llvm::Expected<bool> astra::parseCommandLine(const Command &c, int argc, char **argv,
                                             std::vector<std::string> &positional) {
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    StringRef arg = argv[i];
    if (!options || !arg.starts_with("-") || arg == "-") {
      positional.push_back(arg.str());
      continue;
    }
    if (arg == "--") {
      options = false;
      continue;
    }
    for (auto [name, text] : {std::pair<StringRef, std::string (*)(const Command &)>{"--help", helpText},
                              {"--man", manPage},
                              {"--version", [](const Command &c) { return std::string(c.name) + " 0.1.0\n"; }}})
      if (arg == name) {
        llvm::outs() << text(c);
        return false;
      }
    auto [name, value] = arg.split('=');
    auto row = llvm::find_if(c.options, [n = name](const Option &o) { return n == o.name; });
    if (row == c.options.end())
      return llvm::createStringError("no option is called %s (see --help)", name.str().c_str());
    bool flag = !*row->value;
    if (flag && arg.contains('=')) return llvm::createStringError("%s takes no value", row->name);
    if (!flag && !arg.contains('=')) {
      if (++i == argc) return llvm::createStringError("%s needs a value: %s", row->name, row->value);
      value = argv[i];
    }
    if (auto e = assign(*row, value)) return std::move(e);
  }
  return true;
}

std::string astra::helpText(const Command &c) {
  std::string out = std::string(c.name) + ": " + c.summary + "\n\nusage: " + c.name + " " + c.synopsis + "\n\n";
  size_t width = 0;
  auto left = [](const Option &o) {
    return std::string("  ") + o.name + (*o.value ? (o.name[1] == '-' ? "=" : " ") : "") + o.value;
  };
  for (const Option &o : c.options) width = std::max(width, left(o).size());
  for (const Option &o : c.options) {
    std::string l = left(o);
    out += l + std::string(width + 2 - l.size(), ' ') + o.help + "\n";
  }
  return out + (*c.notes ? "\n" : "") + c.notes;
}

static std::string escaped(StringRef s) { // for troff
  std::string out;
  for (char ch : s) {
    if (ch == '-' || ch == '\\') out += '\\';
    if (ch == '.' && (out.empty() || out.back() == '\n')) out += "\\&";
    out += ch;
  }
  return out;
}
std::string astra::manPage(const Command &c) {
  std::string out = ".TH " + StringRef(c.name).upper() + " 1\n.SH NAME\n" + escaped(c.name) + " \\- " +
                    escaped(c.summary) + "\n.SH SYNOPSIS\n.B " + escaped(c.name) + "\n" + escaped(c.synopsis) +
                    "\n.SH OPTIONS\n";
  for (const Option &o : c.options)
    out += ".TP\n.B " + escaped(std::string(o.name) + (*o.value ? "=" : "") + o.value) + "\n" + escaped(o.help) + "\n";
  if (*c.notes) out += ".SH NOTES\n.nf\n" + escaped(c.notes) + ".fi\n";
  return out;
}
