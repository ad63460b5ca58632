//===- Compile.h: from the files of a command line to a file ----------------===//
// Takes:    what the command line says.
// Gives:    the bundle, or the text of the stage asked for, at its place.
// Does not: parse options (Main.cpp), or hold the stages (astra/Pipeline/Pipeline.h).
#pragma once
#include "Progress.h"
#include "Report.h"
#include "astra/Import/Language.h"
#include "astra/Import/ONNX.h"
#include "astra/Quantize/Weights.h"

namespace astra {

struct Job {
  std::string model, output; // output: "-" is stdout, for --emit
  bool qdqFloats = false;    // products between DequantizeLinear and QuantizeLinear stay those of floats
  std::string saveTemps, taps, signingKey, weights;
  std::string plans;                // the file of --plans
  std::vector<std::string> tunings; // files of --tuning; with a search one, which is written
  std::vector<std::string> printAfter;
  std::vector<std::string> recorded; // options that the bundle names: those that its bytes depend on
  std::vector<DimBound> dims;
  std::vector<std::pair<std::string, std::string>> constants; // an ONNX model's inputs, and .npy files
  std::vector<std::pair<std::string, std::string>> elements;  // an ONNX model's inputs, and what is said of theirs
  std::string tokenizer, chatForm;                            // of a language model: where its tokenizer is, "none"
  std::vector<std::pair<std::string, std::string>> assets;    // names, and files that go into the bundle
  std::vector<std::string> keptWeights;                       // patterns of --freeze: these need not be in the file
  std::vector<std::string> trainScalars;                      // initializers of rank 0 that are parameters
  quantize::WeightOptions quantize;
  bool asksQuantize = false;  // whether anything is to be quantized
  std::string calibrate;      // data: .npz, a folder, or text
  std::string labels;         // .npy: the right class of each row
  double percentile = 100;    // of an activation, that a static range holds
  int64_t calibrateMost = 0;  // calls, or tokens; 0: 1000 calls, 4096 tokens
  std::string quantizeReport; // where the table goes; "": nowhere, "-": stdout
  LanguageOptions language;   // of a language model
  bool asksLanguage = false;  // whether one of them is given
  bool timePasses = false;
  PipelineOptions pipeline; // its texts and its provenance are read from the files above
};

/// Fills the report, whatever happens.
llvm::Error runJob(Job &job, tool::Progress &progress, Report &report);

/// The model, as it is when the stages begin; `notes` gets sentences about what may not be meant.
llvm::Expected<Module> loadModel(const Job &job, std::vector<std::string> &notes);

} // namespace astra
