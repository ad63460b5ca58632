//===- Failures.h: sentences that a model earned ----------------------------===//
// Takes:    sentences about nodes, inputs and flags.
// Gives:    one error with all of them; the --dim flags that they ask for, as a line to paste.
// Keeps:    the order in which they came; ops that have no row first, each once. What ONNX allows and Astra lacks has
//           the code not_supported, also beside a flag that is missing or wrong; what is wrong with the model another
//           one.
// Does not: find faults.
#pragma once
#include "astra/Import/ONNX.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace astra::onnx {

class Failures {
public:
  bool empty() const { return sentences.empty() && unknownOps.empty(); }
  size_t size() const { return sentences.size(); }
  void add(std::string text, bool unsupported = false);
  /// What a flag lacks or says wrongly. `asks`: the sentence says what to type.
  void addOfFlag(std::string text, bool asks = false);
  /// Bounds of a name that nothing asks for.
  void addUnused(const std::string &dim, std::string text);
  /// `why` it is not supported, the end of a sentence.
  void addUnknownOp(const std::string &op, llvm::function_ref<std::string()> describe,
                    llvm::function_ref<std::string()> why);
  /// Whether something is wrong with the model itself; set back to what it was where what failed may never run.
  bool isWrong() const { return wrong; }
  void setWrong(bool is) { wrong = is; }
  /// Whether a node of some graph can never run: what it is given does not fit, for no values of the dims.
  bool isImpossible() const { return impossible; }
  /// Of sentences that were added one by one; "" where there is none.
  std::string first() const { return sentences.empty() ? "" : sentences.front().text; }
  void setImpossible() { impossible = true; }
  /// Whether one more sentence would be printed.
  bool matters() const { return sentences.size() < mostPrinted; }

  /// Puts what the sentences ask for among `dims`; false where that changes nothing.
  bool answer(std::vector<DimBound> &dims) const;
  /// Takes bounds away that are unused, where nothing else is wrong: what follows from a failure may use them. False
  /// where that changes nothing.
  bool dropUnused(std::vector<DimBound> &dims) const;
  /// Takes bounds away that a sentence calls unused.
  void leaveOutUnused(std::vector<DimBound> &dims) const;
  /// Adds the sentences of a later attempt that ask for flags.
  void addQuestions(const Failures &later);
  /// `last`: a line after all others.
  llvm::Error error(const std::string &last = "") const;

private:
  struct Sentence {
    std::string text;
    std::vector<DimBound> asks; // lo > hi: "=N"
    std::string unused;         // or a dim whose bounds are
  };
  struct UnknownOp {
    std::string first, why; // the description of the first node
    unsigned nodes = 0;
  };
  std::vector<Sentence> sentences;
  std::vector<UnknownOp> unknownOps;
  llvm::StringMap<size_t> placeOfOp;
  bool wrong = false, lacks = false, impossible = false; // some of them

  static constexpr size_t mostPrinted = 20, mostKept = 1000; // a lowering that tries two ways copies them
  void keep(std::string text, bool asks);
};

/// "--dim batch=1..64 --dim 'total=past + 1'".
std::string flagsText(llvm::ArrayRef<DimBound> dims);

} // namespace astra::onnx
