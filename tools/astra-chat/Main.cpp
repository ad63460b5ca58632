//===- astra-chat: talk to a language model --------------------------------===//
// Takes:    a bundle of a language model with its tokenizer, prompts: one of the command line, or lines of the input.
// Gives:    replies as they arise, or as JSON; speed on standard error.
// Keeps:    to astra.h and text.h: what this tool can do, any C program can (examples/chat). A prompt that cannot be
//           answered gets a sentence, and the next one is read.
// Does not: compile, or compute anything of the model.
#include "Conversation.h"
#include "JsonText.h"
#include <cstdio>
#include <iostream>
#include <unistd.h>

using namespace astra::tool;
using std::string;

namespace {

volatile std::sig_atomic_t interrupted = 0;

struct Settings {
  DeviceChoice where;
  Sampling sampling;
  string prompt, system;
  int64_t mostTokens = 0;
  bool isGiven = false, json = false, raw = false, quiet = false;
};

Program describe(Settings &s) {
  Program p;
  p.name = "astra-chat";
  p.synopsis = "FILE.astra [--prompt TEXT] [options]";
  p.summary = "talk to a language model";
  p.description =
      "Each line of the input is a prompt; /reset forgets what was said, /quit ends. The reply appears while it is "
      "made; ^C ends it. The same prompts and the same options give the same replies on every CPU, with any number of "
      "threads. FILE.astra is a bundle that astra-compile made of a GGUF file or of a folder of transformers.";
  p.options = {
      {"prompt", "TEXT", "answers this, and ends",
       [&s](std::string_view v) {
         s.prompt = v, s.isGiven = true;
         return string();
       }},
      {"system", "TEXT", "what the model is told before the conversation", text(s.system)},
      {"raw", "", "goes on with a prompt as with any text, without the form of conversations; nothing is remembered",
       flag(s.raw)},
      {"json", "", "prints each reply as one JSON object on a line, when it is whole", flag(s.json)},
      {"max-tokens", "N", "tokens of a reply at most; until the context is full if not given",
       number(s.mostTokens, 1, INT32_MAX)},
      {"temperature", "T", "how freely tokens are drawn, 0.7 if not given; 0 takes the most likely one each time",
       real(s.sampling.temperature, 0, 100)},
      {"top-k", "N", "draws from the N most likely tokens; 0, which is off, if not given",
       number(s.sampling.topK, 0, INT32_MAX)},
      {"top-p", "P",
       "draws from the most likely tokens that have the probability P together; 0.95 if not given, 1 is off",
       real(s.sampling.topP, 0, 1)},
      {"min-p", "P",
       "draws from tokens that are at least P times as likely as the most likely one; 0, off, if not given",
       real(s.sampling.minP, 0, 1)},
      {"repetition-penalty", "F", "makes tokens that were there before less likely; 1, off, if not given",
       real(s.sampling.repetitionPenalty, 0.01f, 100)},
      {"seed", "N", "decides what is drawn; 0 if not given", number(s.sampling.seed, 0, UINT32_MAX)},
  };
  for (Option &o : deviceOptions(s.where)) p.options.push_back(std::move(o));
  p.options.push_back({"quiet", "", "says nothing of speed", flag(s.quiet)});
  p.operands = {".astra"};
  p.examples = "  astra-compile model.gguf -o model.astra --target=native\n"
               "  astra-chat model.astra\n"
               "  astra-chat model.astra --prompt 'What is the capital of France?' --temperature 0 --threads 2\n"
               "  astra-chat model.astra --raw --prompt 'Once upon a time' --max-tokens 50 --seed 3 --json\n";
  return p;
}

double rate(size_t tokens, double seconds) { return seconds > 0 ? double(tokens) / seconds : 0; }

string listed(const std::vector<int32_t> &tokens) {
  string out = "[";
  for (size_t i = 0; i < tokens.size(); ++i) out += (i ? ", " : "") + std::to_string(tokens[i]);
  return out + "]";
}

string jsonOf(const Reply &r) {
  return "{\"text\": " + quoted(r.text) + ", \"finish\": " + quoted(r.finish) +
         ", \"prompt_tokens\": " + listed(r.promptTokens) + ", \"tokens\": " + listed(r.tokens) +
         ", \"usage\": {\"prompt\": " + std::to_string(r.promptTokens.size()) +
         ", \"prompt_read\": " + std::to_string(r.promptRead) + ", \"reply\": " + std::to_string(r.tokens.size()) +
         "}, \"tokens_per_second\": {\"prompt\": " + jsonNumber(rate(r.promptRead, r.promptSeconds)) +
         ", \"reply\": " + jsonNumber(rate(r.tokens.size(), r.seconds)) + "}}";
}

/// Of a prompt that was refused; a sentence may name bytes that are no text.
string jsonOf(const Refusal &r) {
  string text;
  for (char c : r.text) text += uint8_t(c) < 128 ? c : '?';
  return "{\"error\": " + quoted(text) + "}";
}

/// Answers prompts, and adds up what they took.
class Talk {
public:
  Talk(const Program &program, const Settings &s, const string &path)
      : program(program), s(s), model(path, s.where), conversation(model, s.system, s.raw) {}

  /// Throws a Refusal where the prompt cannot be answered.
  void answer(const string &prompt) {
    Reply r = conversation.answer(prompt, s.sampling, s.mostTokens, interrupted, [&](std::string_view piece) {
      if (s.json) return;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    });
    std::printf("%s\n", s.json ? jsonOf(r).c_str() : "");
    std::fflush(stdout);
    if (r.finish == "context")
      complain(program, Ok,
               "the context of " + std::to_string(model.context()) + " tokens is full, and the reply ends");
    promptTokens += r.promptRead, promptSeconds += r.promptSeconds;
    replyTokens += r.tokens.size(), replySeconds += r.seconds;
  }

  /// Says that a prompt was refused; gives the exit code.
  int refuse(const Refusal &r) {
    if (s.json) std::printf("%s\n", jsonOf(r).c_str());
    std::fflush(stdout);
    return complain(program, r.code, r.text);
  }

  /// Gives the exit code: that of the last prompt that was refused, where no terminal is there to see its sentence.
  int lines() {
    bool isTerminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    int code = Ok;
    for (string line; (isTerminal && std::printf("> ") && std::fflush(stdout), std::getline(std::cin, line));) {
      interrupted = 0;
      if (line == "/quit") break;
      try {
        if (line == "/reset")
          conversation.reset();
        else if (line.starts_with("/"))
          throw Refusal{Usage, "'" + line.substr(0, 40) + "' is no command: there are /reset and /quit"};
        else
          answer(line);
      } catch (const Refusal &r) {
        int now = refuse(r);
        if (!isTerminal) code = now;
      }
    }
    return code;
  }

  void saySpeed() const {
    if (s.quiet || !replyTokens) return;
    std::fprintf(stderr, "prompt: %zu tokens, %.1f a second; reply: %zu tokens, %.1f a second\n", promptTokens,
                 rate(promptTokens, promptSeconds), replyTokens, rate(replyTokens, replySeconds));
  }

private:
  const Program &program;
  const Settings &s;
  LanguageModel model;
  Conversation conversation;
  size_t promptTokens = 0, replyTokens = 0;
  double promptSeconds = 0, replySeconds = 0;
};

} // namespace

int main(int argc, char **argv) {
  Settings s;
  Program program = describe(s);
  std::vector<string> files;
  if (int code = parse(program, argc, argv, files); code >= 0) return code;
  string wrong = files.size() != 1 ? "give one bundle" : complaint(s.where);
  if (wrong.empty() && s.raw && !s.system.empty()) wrong = "--system is for a conversation, and --raw is none";
  if (!wrong.empty()) return complain(program, Usage, wrong + " (see astra-chat --help)");
  try {
    Talk talk(program, s, files[0]);
    std::signal(SIGINT, [](int) {
      if (interrupted) _exit(130); // nobody answers: the second one ends the program
      interrupted = 1;
    });
    int code = Ok;
    try {
      if (s.isGiven)
        talk.answer(s.prompt);
      else
        code = talk.lines();
    } catch (const Refusal &r) {
      return talk.refuse(r);
    }
    talk.saySpeed();
    if (std::ferror(stdout) || std::fflush(stdout))
      return complain(program, Failure, "standard output could not be written");
    return code;
  } catch (const Refusal &r) {
    return complain(program, r.code, r.text);
  }
}
