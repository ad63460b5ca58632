//===- Completion.cpp: what shells complete of a tool's command line --------===//
// Takes:    a Program's table.
// Gives:    a script for bash, zsh or fish that offers the options, their words, and files of the right ending.
// Keeps:    what a value is, is read from what --help calls it: FILE.npy, DIR, NAME=FILE, LIST. The scripts need
//           nothing but their shell.
// Does not: install them (cmake/Astra.cmake).
#include "Options.h"

using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

/// What a value is made of.
struct Value {
  enum Kind { Text, File, Folder, Words } kind = Text;
  string ending;     // of files; "": any
  bool pair = false; // NAME=VALUE: what is behind '=' is completed
  bool list = false; // several with commas: the last is completed
};

Value valueOf(const Option &o) {
  Value v;
  string_view text = o.value;
  if (size_t eq = text.find('='); eq != text.npos) v.pair = true, text.remove_prefix(eq + 1);
  if (o.value == "LIST" || o.value.ends_with(",...")) v.list = true;
  if (!o.words.empty()) {
    v.kind = Value::Words;
  } else if (size_t file = text.find("FILE"); file != text.npos) {
    v.kind = Value::File;
    if (string_view ending = text.substr(file + 4); ending.starts_with(".")) v.ending = ending;
  } else if (text == "DIR") {
    v.kind = Value::Folder;
  }
  return v;
}

/// The beginning of a help text, which fits beside a name in a menu.
string brief(string_view help) {
  if (size_t colon = help.find(": "); help.starts_with("with ") && colon < 24) help.remove_prefix(colon + 2);
  for (string_view end : {"; ", ". ", ": "}) help = help.substr(0, help.find(end));
  if (help.size() <= 70) return string(help);
  return string(help.substr(0, help.rfind(' ', 66))) + " ...";
}

string joined(const auto &words, string_view between) {
  string out;
  for (const auto &w : words) out += (out.empty() ? "" : string(between)) + string(w);
  return out;
}

string replaced(string_view text, char what, string_view by) {
  string out;
  for (char c : text) c == what ? out += by : out += c;
  return out;
}

/// A word of a shell: '...'.
string quoted(string_view s) { return "'" + replaced(s, '\'', "'\\''") + "'"; }

/// The table with the options of every program.
std::vector<Option> allOptions(const Program &p) {
  string unused;
  std::vector<Option> out = p.options;
  for (Option &o : commonOptions(p, unused)) out.push_back(std::move(o));
  return out;
}

/// Bash cuts words at '=' and ':', and replaces the last piece alone. So the word is taken from the line as it is,
/// completed as a whole, and what is before its last piece is taken off again.
constexpr string_view bashEnd = R"(  esac
  head=${word%"$part"} cut=
  if [ -n "$breaks" ]; then cut=${word%"${word##*[$breaks]}"}; fi
  while IFS= read -r found; do
    found=$head$found
    COMPREPLY+=("${found#"$cut"}")
  done < <(
    case $kind in
      words) compgen -W "$words" -- "$part" ;;
      folder) compgen -d -- "$part" ;;
      file)
        for ending in $endings; do compgen -f -X "!*$ending" -- "$part"; done
        if [ -n "$endings" ]; then compgen -d -- "$part"; else compgen -f -- "$part"; fi
        ;;
    esac)
  case $kind in file | folder) compopt -o filenames ;; esac
  if [[ ${COMPREPLY[*]} == *= ]]; then compopt -o nospace; fi
}
)";

string bash(const Program &p) {
  string name(p.name), function = "_" + replaced(name, '-', "_"), names, cases;
  for (const Option &o : allOptions(p)) {
    names += " " + dashed(o.name) + (o.value.empty() || o.name.size() == 1 ? "" : "=");
    if (o.value.empty()) continue;
    Value v = valueOf(o);
    cases += "    " + dashed(o.name) + ")";
    if (v.kind == Value::Words) cases += " kind=words words=" + quoted(joined(o.words, " "));
    if (v.kind == Value::File) cases += " kind=file endings=" + quoted(v.ending);
    if (v.kind == Value::Folder) cases += " kind=folder";
    if (v.kind == Value::Text) cases += " kind=";
    cases += v.pair || v.list ? " part=${value##*[=,]} ;;\n" : " ;;\n";
  }
  return "# bash completion for " + name + ", printed by " + name + " --completion=bash\n" + function +
         "() {\n"
         "  local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^=:]/} word before option value part head "
         "cut found\n"
         "  local kind words endings IFS=$' \\t\\n'\n"
         "  word=${line##* } before=${line% *}\n"
         "  before=${before%\"${before##*[! ]}\"} before=${before##* }\n"
         "  case $word in\n"
         "    --*=*) option=${word%%=*} value=${word#*=} ;;\n"
         "    *) option=$before value=$word ;;\n"
         "  esac\n"
         "  part=$value COMPREPLY=()\n"
         "  case $option in\n" +
         cases +
         "    *)\n"
         "      if [[ $word == -* ]]; then kind=words words=" +
         quoted(names.substr(1)) + " part=$word; else kind=file endings=" + quoted(joined(p.operands, " ")) +
         "; fi\n"
         "      ;;\n" +
         string(bashEnd) + "complete -F " + function + " " + name + "\n";
}

string zsh(const Program &p) {
  auto files = [](const string &ending) { return ending.empty() ? string("_files") : "_files -g \"*" + ending + "\""; };
  string out = "#compdef " + string(p.name) + "\n# zsh completion, printed by " + string(p.name) +
               " --completion=zsh\n_arguments -S \\\n";
  for (const Option &o : allOptions(p)) {
    string spec = "*" + dashed(o.name);
    if (!o.value.empty()) spec += o.name.size() == 1 ? "+" : "=";
    spec += "[" + replaced(replaced(brief(o.help), '[', "\\["), ']', "\\]") + "]";
    if (!o.value.empty()) {
      Value v = valueOf(o);
      string action;
      if (v.kind == Value::Words) action = "compadd " + string(v.list ? "-S \"\" " : "") + "-- " + joined(o.words, " ");
      if (v.kind == Value::File) action = files(v.ending);
      if (v.kind == Value::Folder) action = "_files -/";
      if (!action.empty()) action = (v.pair || v.list ? "{compset -P \"*[=,]\"; " : "{") + action + "}";
      spec += ":" + replaced(o.value, ':', "\\:") + ":" + replaced(action, ':', "\\:");
    }
    out += "  " + quoted(spec) + " \\\n";
  }
  string endings;
  for (string_view e : p.operands) endings += (endings.empty() ? "" : "|") + string(e);
  return out + "  " + quoted("*:file:{" + files(p.operands.size() > 1 ? "(" + endings + ")" : endings) + "}") + "\n";
}

string fish(const Program &p) {
  string name(p.name), out = "# fish completion for " + name + ", printed by " + name + " --completion=fish\n";
  auto files = [](string_view ending) {
    return ending.empty() ? string(" -F") : " -k -xa " + quoted("(__fish_complete_suffix " + string(ending) + ")");
  };
  out += "complete -c " + name + (p.operands.empty() ? string(" -F") : files(joined(p.operands, " "))) + "\n";
  for (const Option &o : allOptions(p)) {
    out += "complete -c " + name + (o.name.size() == 1 ? " -s " : " -l ") + string(o.name);
    if (!o.value.empty()) {
      Value v = valueOf(o);
      string words = joined(o.words, " ");
      if (v.kind == Value::Words && v.pair) out += " -x"; // fish offers whole values
      if (v.kind == Value::Words && !v.pair)
        out += " -xa " + quoted(v.list ? "(__fish_append , " + words + ")" : words);
      if (v.kind == Value::File) out += " -r" + (v.pair || v.list ? string(" -F") : files(v.ending));
      if (v.kind == Value::Folder) out += " -xa '(__fish_complete_directories)'";
      if (v.kind == Value::Text) out += " -x";
    }
    out += " -d " + quoted(brief(o.help)) + "\n";
  }
  return out;
}

} // namespace

string astra::tool::completion(const Program &program, string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return "";
}
