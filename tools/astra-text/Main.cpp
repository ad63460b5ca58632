//===- astra-text: text to tokens and back ---------------------------------===//
// Takes:    a tokenizer: tokenizer.json, a folder that has it, a GGUF file, or the compiled form; texts or tokens.
// Gives:    the compiled form; tokens of texts, text of tokens.
// Keeps:    what libastra_text gives: the tool links it.
// Does not: run models.
#include "Options.h"
#include "StandardOutput.h"
#include "astra/Import/Tokenizer.h"
#include "astra/text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "OutputFile.h"
#include <cstring>
#include <iostream>

using namespace astra;
using namespace astra::tool;

namespace {

struct Settings {
  std::string output, form;
  bool decode = false, pieces = false, special = false, around = false;
};

Program describeProgram(Settings &s) {
  Program p;
  p.name = "astra-text";
  p.synopsis = "TOKENIZER [TEXT...] [options]";
  p.summary = "turn text into tokens and back";
  p.description = "TOKENIZER is a tokenizer.json, a folder that has one, a GGUF file, or the compiled form of it. "
                  "Without a TEXT, each line of "
                  "the input is one. Prints the tokens of a text on a line.";
  p.options = {
      {"o", "FILE", "writes the compiled form, which libastra_text reads", text(s.output)},
      {"decode", "", "takes tokens, prints text", flag(s.decode)},
      {"pieces", "", "prints the bytes of each token beside its number", flag(s.pieces)},
      {"special", "", "reads names of special tokens in a text as those tokens", flag(s.special)},
      {"around", "", "puts the tokens that the model expects around a text", flag(s.around)},
      {"form", "NAME", "the form of conversations, if the template's is not known: " + import::chatForms() + ", none",
       text(s.form)},
  };
  p.operands = {".json", ".tok", ".gguf"};
  p.examples = "  astra-text model/ 'Hello, world!' --pieces\n  astra-text model/ -o model.tok\n  echo 1 2 3 | "
               "astra-text model.tok --decode\n";
  return p;
}

class Session {
public:
  Session(const astra_text *text, const Settings &settings) : text(text), s(settings) {}

  /// One text or one row of tokens; "" or what is wrong.
  std::string one(llvm::StringRef line) {
    astra_diag diag = ASTRA_INIT(astra_diag);
    if (s.decode) {
      std::vector<int32_t> tokens;
      llvm::SmallVector<llvm::StringRef> words;
      llvm::SplitString(line, words, ", \t[]");
      for (llvm::StringRef word : words)
        if (word.getAsInteger(10, tokens.emplace_back())) return "\"" + word.str() + "\" is no token's number";
      size_t size = 0;
      if (astra_status status = astra_text_decode(text, tokens.data(), tokens.size(), 0, nullptr, 0, &size, &diag);
          status && status != ASTRA_CAPACITY)
        return diag.text;
      std::string out(size, 0);
      if (size && astra_text_decode(text, tokens.data(), tokens.size(), 0, out.data(), size, &size, &diag))
        return diag.text;
      llvm::outs() << out << "\n";
      return "";
    }
    uint32_t flags = (s.special ? ASTRA_TEXT_SPECIAL : 0) | (s.around ? ASTRA_TEXT_AROUND : 0);
    std::vector<int32_t> tokens(line.size() + 16);
    size_t count = 0;
    astra_status status =
        astra_text_encode(text, line.data(), line.size(), flags, tokens.data(), tokens.size(), &count, &diag);
    if (status == ASTRA_CAPACITY) {
      tokens.resize(count);
      status = astra_text_encode(text, line.data(), line.size(), flags, tokens.data(), tokens.size(), &count, &diag);
    }
    if (status) return diag.text;
    for (size_t i = 0; i < count; ++i) {
      llvm::outs() << (i && !s.pieces ? " " : "") << tokens[i];
      if (!s.pieces) continue;
      const char *bytes = nullptr;
      size_t size = 0;
      if (astra_text_token(text, tokens[i], &bytes, &size, &diag)) return diag.text;
      llvm::outs() << "\t\"";
      llvm::printEscapedString({bytes, size}, llvm::outs());
      llvm::outs() << "\"\n";
    }
    if (!s.pieces) llvm::outs() << "\n";
    return "";
  }

private:
  const astra_text *text;
  const Settings &s;
};

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  Program program = describeProgram(settings);
  std::vector<std::string> operands;
  if (int code = parse(program, argc, argv, operands); code >= 0) return code;
  if (operands.empty()) return complain(program, Usage, "give a tokenizer (see astra-text --help)");
  llvm::Expected<std::string> bytes = import::tokenizerOf(operands[0], settings.form);
  if (!bytes) return complain(program, Failure, llvm::toString(bytes.takeError()));
  // A string's bytes may begin anywhere; the library wants a multiple of 8.
  std::vector<uint64_t> aligned(bytes->size() / 8 + 1);
  memcpy(aligned.data(), bytes->data(), bytes->size());
  astra_text *text = nullptr;
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (astra_text_init(&text, aligned.data(), bytes->size(), &diag)) return complain(program, Failure, diag.text);
  int code = Ok;
  if (!settings.output.empty()) {
    std::string wrong;
    if (!writeWhole(settings.output, bytes->data(), bytes->size(), wrong)) code = complain(program, Failure, wrong);
  }
  Session session(text, settings);
  auto run = [&](llvm::StringRef line) {
    if (std::string wrong = session.one(line); !wrong.empty()) code = complain(program, Failure, wrong);
  };
  for (size_t i = 1; i < operands.size() && code == Ok; ++i) run(operands[i]);
  if (operands.size() == 1 && settings.output.empty())
    for (std::string line; code == Ok && std::getline(std::cin, line);) run(line);
  astra_text_free(&text);
  return code == Ok ? finished(program, Ok) : code;
}
