//===- Load.cpp: the model and what it is given -----------------------------===//
// Takes:    a model's file, files of constants and weights.
// Gives:    a module that has them.
#include "Compile.h"
#include "Npy.h"
#include "Weights.h"
#include "astra/Compose/TextWords.h"
#include "astra/IR/Verify.h"
#include "astra/Import/StableHLO.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace astra;
using namespace llvm;

/// The files of --constant.
static Expected<std::vector<ConstantInput>> readConstants(ArrayRef<std::pair<std::string, std::string>> files) {
  std::vector<ConstantInput> constants;
  for (const auto &[name, path] : files) {
    tool::Npy array;
    std::string error;
    if (!tool::readNpy(path, array, error)) return createStringError(error);
    if (array.fortranOrder && array.shape.size() > 1)
      return createStringError(path + " is in Fortran order, expected C order");
    constants.push_back({name, DType(array.dtype + 1), std::move(array.shape), std::move(array.data)});
  }
  return constants;
}

/// `weights`: what will replace the model's, or nothing.
static Expected<Module> loadONNX(const Job &job, const WeightFile &weights, std::vector<std::string> &notes) {
  Expected<std::vector<ConstantInput>> constants = readConstants(job.constants);
  if (!constants) return constants.takeError();
  ImportOptions options{job.dims, job.taps, std::move(*constants)};
  if (job.pipeline.training) {
    options.training = true;
    options.prediction = job.pipeline.training->output;
  }
  for (const WeightTensor &t : weights.tensors())
    if (t.dims.empty()) options.scalars.push_back(t.name);
  options.scalars.insert(options.scalars.end(), job.trainScalars.begin(), job.trainScalars.end());
  for (const auto &[name, said] : job.elements) options.elements.push_back({name, said});
  options.integers = !job.qdqFloats;
  options.notes = &notes;
  Expected<Module> m = importONNX(job.model, options);
  for (const std::string &name : job.trainScalars)
    if (const Param *p = m ? m->param(name) : nullptr; m && (!p || p->value->rank()))
      return createStringError("--train-scalars=%s: the model has no initializer of rank 0 of this name that it reads",
                               name.c_str());
  return m;
}

static Expected<Module> loadStableHLO(const Job &job) {
  if (!job.taps.empty())
    return createStringError(std::make_error_code(std::errc::not_supported),
                             "--taps: the values of a StableHLO program have no names");
  Expected<std::vector<ConstantInput>> constants = readConstants(job.constants);
  if (!constants) return constants.takeError();
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(job.model);
  if (!text) return createFileError(job.model, text.getError());
  return importStableHLO((*text)->getBuffer(), job.model, {job.dims, std::move(*constants)});
}

static Expected<Module> loadLanguageModel(const Job &job, std::vector<std::string> &notes) {
  const char *of = !job.constants.empty() ? "--constant"
                   : !job.dims.empty()    ? "--dim"
                   : !job.taps.empty()    ? "--taps"
                                          : "";
  if (*of) return createStringError(std::errc::invalid_argument, "%s is not for a language model", of);
  LanguageOptions options = job.language;
  options.notes = &notes;
  return importLanguageModel(job.model, options);
}

static Expected<Module> loadText(const Job &job, std::vector<std::string> &notes) {
  if (!job.constants.empty())
    return createStringError("--constant is for the inputs of an ONNX or StableHLO model: write a param into " +
                             job.model);
  if (!job.dims.empty())
    return createStringError(
        std::errc::invalid_argument,
        "--dim bounds the dynamic dims of an ONNX or StableHLO model; %s states its own: change \"dim %s\" there",
        job.model.c_str(), job.dims.front().name.c_str());
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(job.model);
  if (!text) return createFileError(job.model, text.getError());
  Expected<Module> m = compose::parseText((*text)->getBuffer(), job.model, &notes);
  if (!m) return m.takeError();
  if (Error e = verify(*m, m->stage)) return createStringError(job.model + ": " + toString(std::move(e)));
  Expected<std::vector<std::string>> unshown = verifyPrograms(*m);
  if (!unshown) return createStringError(job.model + ": " + toString(unshown.takeError()));
  append_range(notes, *unshown);
  if (!job.taps.empty())
    if (Error e = keepTaps(*m, job.taps)) return std::move(e);
  return m;
}

Expected<Module> astra::loadModel(const Job &job, std::vector<std::string> &notes) {
  Expected<WeightFile> weights = job.weights.empty() ? WeightFile() : WeightFile::open(job.weights);
  if (!weights) return weights.takeError();
  StringRef extension = sys::path::extension(job.model);
  if (!job.elements.empty() && extension != ".onnx")
    return createStringError(std::errc::invalid_argument, "--elements is for the inputs of an ONNX model");
  Expected<Module> m = isLanguageModel(job.model) ? loadLanguageModel(job, notes)
                       : extension == ".onnx"     ? loadONNX(job, *weights, notes)
                       : extension == ".mlir"     ? loadStableHLO(job)
                                                  : loadText(job, notes);
  if (!m) return m.takeError();
  if (!job.weights.empty()) {
    Expected<std::string> said = setWeights(*m, *weights, job.keptWeights);
    if (!said) return said.takeError();
    if (!said->empty()) notes.push_back(std::move(*said));
  }
  return m;
}
