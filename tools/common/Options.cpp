//===- Options.cpp: the command line of every tool -------------------------===//
// Takes:    a Program's table and argv.
// Gives:    set options, or help, or a man page, or one sentence about what is wrong. Completion.cpp has the rest.
// Keeps:    the table as the only place where an option is written down.
// Does not: exit.
#include "Options.h"
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace astra::tool;
using std::string;
using std::string_view;

string astra::tool::dashed(string_view name) { return (name.size() == 1 ? "-" : "--") + string(name); }

namespace {

constexpr string_view exitCodes[][2] = {{"0", "done"},
                                        {"1", "failed: the sentence on stderr says what to do"},
                                        {"2", "the command line is wrong"},
                                        {"3", "the model or bundle needs something that is not supported"},
                                        {"4", "bytes differ from those expected"}};

string spelled(const Option &o) {
  if (o.value.empty()) return dashed(o.name);
  return dashed(o.name) + (o.name.size() == 1 ? " " : "=") + string(o.value);
}

/// `s` in lines of at most `width`, each after the first indented.
string wrapped(string_view s, size_t indent, size_t width) {
  string out;
  size_t column = indent;
  while (!s.empty()) {
    size_t end = std::min(s.find(' '), s.size());
    if (column > indent && column + 1 + end > width) {
      out += "\n" + string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ', ++column;
    }
    out += s.substr(0, end);
    column += end;
    s.remove_prefix(std::min(end + 1, s.size()));
  }
  return out;
}

string helpText(const Program &p) {
  string out = "usage: " + string(p.name) + " " + string(p.synopsis) + "\n\n";
  out += wrapped(p.description, 0, 100) + "\n\noptions:\n";
  auto option = [&](const Option &o) {
    string head = "  " + spelled(o);
    head += head.size() < 28 ? string(28 - head.size(), ' ') : "\n" + string(28, ' ');
    out += head + wrapped(o.help, 28, 100) + "\n";
  };
  string unused;
  for (const Option &o : p.options) option(o);
  for (const Option &o : commonOptions(p, unused)) option(o);
  out += "\nexit codes:\n";
  for (auto &[code, meaning] : exitCodes) out += "  " + string(code) + "  " + string(meaning) + "\n";
  if (!p.examples.empty()) out += "\nexamples:\n" + string(p.examples);
  return out;
}

/// Text as roff: backslashes and hyphens escaped, no line that begins with a control character.
string roff(string_view s) {
  string out;
  for (char c : s) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += string("\\&") + c;
    else
      out += c;
  }
  return out;
}

size_t editDistance(string_view a, string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

string unknown(const Program &p, string_view name) {
  const Option *nearest = nullptr;
  size_t least = name.size() < 5 ? 2 : 4; // a swap of two letters counts as two edits
  for (const Option &o : p.options)
    if (size_t d = editDistance(o.name, name); o.name.size() > 1 && d < least) least = d, nearest = &o;
  string out = "unknown option " + dashed(name);
  if (nearest) out += "; did you mean " + dashed(nearest->name) + "?";
  return out + " (see " + string(p.name) + " --help)";
}

} // namespace

string astra::tool::manPage(const Program &p) {
  string name(p.name), upper = name;
  for (char &c : upper) c = c >= 'a' && c <= 'z' ? char(c - 32) : c;
  string out = ".TH " + roff(upper) + " 1 \"\" \"Astra " ASTRA_VERSION "\" \"Astra\"\n.SH NAME\n" + roff(name) +
               " \\- " + roff(p.summary) + "\n.SH SYNOPSIS\n.B " + roff(name) + "\n" + roff(p.synopsis) +
               "\n.SH DESCRIPTION\n" + roff(p.description) + "\n.SH OPTIONS\n";
  auto option = [&](const Option &o) { out += ".TP\n.B " + roff(spelled(o)) + "\n" + roff(o.help) + "\n"; };
  string unused;
  for (const Option &o : p.options) option(o);
  for (const Option &o : commonOptions(p, unused)) option(o);
  out += ".SH EXIT STATUS\n";
  for (auto &[code, meaning] : exitCodes) out += ".TP\n.B " + string(code) + "\n" + roff(meaning) + "\n";
  if (!p.examples.empty()) out += ".SH EXAMPLES\n.nf\n" + roff(p.examples) + ".fi\n";
  return out;
}

std::vector<Option> astra::tool::commonOptions(const Program &program, string &page) {
  auto printing = [&page](auto make) {
    return [&page, make](string_view) -> string {
      page = make();
      return "";
    };
  };
  std::vector<Option> out = {
      {"help", "", "prints the options", printing([&program] { return helpText(program); })},
      {"version", "", "prints the version",
       printing([&program] { return string(program.name) + " " ASTRA_VERSION "\n"; })},
  };
  if (!program.printsPages) return out;
  out.push_back({"man", "", "prints the man page", printing([&program] { return manPage(program); })});
  auto complete = [&](string_view shell) -> string {
    page = completion(program, shell);
    return page.empty() ? "'" + string(shell) + "' is not one of bash, zsh, fish" : "";
  };
  out.push_back({"completion",
                 "SHELL",
                 "prints what completes this command in a shell: bash, zsh, fish",
                 complete,
                 {"bash", "zsh", "fish"}});
  return out;
}

void astra::tool::offer(Program &program, string_view name, std::vector<string> words) {
  auto o = std::find_if(program.options.begin(), program.options.end(), [&](Option &x) { return x.name == name; });
  assert(o != program.options.end());
  o->words = std::move(words);
}

int astra::tool::complain(const Program &program, int code, string_view text) {
  std::fprintf(stderr, "%s: %.*s\n", string(program.name).c_str(), int(text.size()), text.data());
  return code;
}

/// Prints a page that was asked for; gives the exit code.
static int show(const Program &program, const string &page) {
  if (std::fputs(page.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return Ok;
  return complain(program, Failure, "standard output cannot be written: " + string(std::strerror(errno)));
}

int astra::tool::parse(const Program &program, int argc, char **argv, std::vector<string> &positional) {
  string page;
  const std::vector<Option> common = commonOptions(program, page);
  for (int i = 1; i < argc; ++i) {
    string_view arg = argv[i];
    if (arg == "--") {
      positional.insert(positional.end(), argv + i + 1, argv + argc);
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      positional.emplace_back(arg);
      continue;
    }
    bool isLong = arg.starts_with("--");
    string_view name = isLong ? arg.substr(2) : arg.substr(1, 1), value;
    bool given = false;
    if (isLong) {
      if (size_t eq = name.find('='); eq != name.npos) {
        value = name.substr(eq + 1), name = name.substr(0, eq);
        given = true;
      }
    } else if (arg.size() > 2) {
      value = arg.substr(2);
      given = true;
    }
    const Option *o = nullptr;
    for (const std::vector<Option> *table : {&common, &program.options})
      for (const Option &x : *table)
        if (x.name == name && (name.size() == 1) == !isLong) o = &x;
    if (!o) return complain(program, Usage, unknown(program, name));
    if (o->value.empty() && given)
      return complain(program, Usage, dashed(name) + " takes no value, but was given '" + string(value) + "'");
    if (!o->value.empty() && !given) {
      if (i + 1 == argc) return complain(program, Usage, dashed(name) + " needs a value: " + spelled(*o));
      value = argv[++i];
    }
    if (string wrong = o->set(value); !wrong.empty()) return complain(program, Usage, dashed(name) + ": " + wrong);
    if (!page.empty()) return show(program, page);
  }
  return -1;
}

bool astra::tool::parseInteger(string_view s, int64_t least, int64_t most, int64_t &out) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size() || v < least || v > most) return false;
  out = v;
  return true;
}

std::function<string(string_view)> astra::tool::text(string &out) {
  return [&out](string_view v) -> string {
    if (v.empty()) return "the value is empty";
    out = v;
    return "";
  };
}
std::function<string(string_view)> astra::tool::flag(bool &out) {
  return [&out](string_view) -> string {
    out = true;
    return "";
  };
}
std::function<string(string_view)> astra::tool::number(int64_t &out, int64_t least, int64_t most) {
  return [&out, least, most](string_view v) -> string {
    if (parseInteger(v, least, most, out)) return "";
    return "'" + string(v) + "' is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}
std::function<string(string_view)> astra::tool::real(float &out, float least, float most) {
  return [&out, least, most](string_view v) -> string {
    float x;
    auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), x);
    if (error != std::errc() || end != v.data() + v.size() || !(x >= least && x <= most)) {
      char bounds[64];
      std::snprintf(bounds, sizeof bounds, "%g to %g", double(least), double(most));
      return "'" + string(v) + "' is not a number from " + bounds;
    }
    out = x;
    return "";
  };
}
std::function<string(string_view)> astra::tool::list(std::vector<string> &out) {
  return [&out](string_view v) -> string {
    out.emplace_back(v);
    return "";
  };
}
std::function<string(string_view)> astra::tool::commas(std::vector<string> &out) {
  return [&out](string_view v) -> string {
    while (true) {
      size_t end = std::min(v.find(','), v.size());
      if (end == 0) return "an empty name in the list";
      out.emplace_back(v.substr(0, end));
      if (end == v.size()) return "";
      v.remove_prefix(end + 1);
    }
  };
}
std::function<string(string_view)> astra::tool::pairs(std::vector<std::pair<string, string>> &out) {
  return [&out](string_view v) -> string {
    size_t eq = v.find('=');
    if (eq == v.npos || eq == 0 || eq + 1 == v.size()) return "'" + string(v) + "' is not NAME=VALUE";
    for (auto &[name, value] : out)
      if (name == v.substr(0, eq)) return "'" + name + "' is given twice";
    out.emplace_back(v.substr(0, eq), v.substr(eq + 1));
    return "";
  };
}
