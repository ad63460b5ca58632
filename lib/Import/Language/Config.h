//===- Config.h: what a language model is made of ---------------------------===//
// Takes:    config.json, or the metadata of a GGUF file.
// Gives:    one description for both.
// Keeps:    every number in bounds that products of them cannot leave.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace astra {
class WeightFile;
}

namespace astra::language {

enum class Norm { RMS, Layer, Plain };
enum class Places { Before, After, Around };
enum class HeadNorm { None, Head, Row };
enum class FeedForward { Gated, Two };
enum Trait : unsigned {
  FromZero = 1,
  ScaledEmbedding = 2,
  Positions = 4,
  Columns = 8,
  PairsInGGUF = 16,
  NormalizedRoutes = 32,
  NormalizedInGGUF = 64,
  Parts = 128,
};

struct Architecture {
  llvm::StringRef name, gguf;
  Norm norm;
  Places places;
  HeadNorm headNorm;
  FeedForward feedForward;
  unsigned traits;
  const char *remarks;
  bool has(Trait t) const { return traits & t; }
};
llvm::ArrayRef<Architecture> architectures();

/// How positions turn queries and keys.
struct Rotation {
  enum Kind { Plain, Linear, Llama3, Yarn, Long } kind = Plain;
  double theta = 10000, factor = 1;
  double original = 0;                           // positions that the model was trained for first; 0: not said
  double lowFactor = 1, highFactor = 4;          // of Llama3
  double betaFast = 32, betaSlow = 1;            // of Yarn
  double mscale = 0, mscaleAll = 0;              // of Yarn; 0: not said
  bool truncate = true;                          // of Yarn
  std::optional<double> attentionFactor;         // of Yarn and Long
  std::vector<double> shortFactors, longFactors; // of Long
  double part = 1;                               // of a head's columns, that are rotated

  /// What is wrong with the factors, or "".
  std::string wrong(int64_t headSize) const;
  /// Frequencies of half of the columns of a head, and what cosines and sines are multiplied by. `context`: how many
  /// positions there will be; `positions`: the most that the model is made for.
  std::vector<float> frequencies(int64_t headSize, int64_t context, int64_t positions, double &factor) const;
};

enum class Activation { Silu, Gelu, GeluTanh, Relu };

struct Config {
  const Architecture *architecture = nullptr;
  bool gguf = false; // the conventions of weights are those of GGUF files
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, keyHeads = 0, headSize = 0, hidden = 0, positions = 0;
  double epsilon = 1e-5;
  double scale = 0;          // of scores
  bool scaleByLayer = false; // divided by the layer's number from 1
  double softcap = 0, finalSoftcap = 0;
  double clip = 0; // of queries, keys and values; 0: none
  Activation activation = Activation::Silu;
  Rotation rotation, localRotation; // of layers without and with a window
  bool hasLocalRotation = false;
  std::vector<int64_t> windows; // of each layer how many keys a query sees; -1: all
  int64_t experts = 0, chosen = 0, expertHidden = 0, sharedHidden = 0;
  bool normalizedRoutes = false;
  std::vector<bool> routed; // of each layer whether it has experts
};

/// Of the text of config.json, or of a GGUF file. Errors do not name the file.
llvm::Expected<Config> readConfig(llvm::StringRef json);
llvm::Expected<Config> readConfig(const WeightFile &file);

/// For those two: the row of a name, else null and the names that there are; what the fields say, where the
/// architecture is set.
const Architecture *architectureNamed(llvm::StringRef name, bool gguf, std::string &others);
llvm::Error readConfig(class Fields &fields, Config &config);

} // namespace astra::language
