//===- Readers.h: one reader for each kind of weight file -------------------===//
// Takes:    the bytes of a file, untrusted.
// Gives:    its tensors and metadata, put behind those that the WeightFile has.
// Keeps:    the bytes must live as long as the WeightFile: whoever calls puts their owner there.
// Does not: name the file in its sentences: whoever calls does.
#pragma once
#include "astra/Import/WeightFile.h"

namespace astra {

llvm::Error readSafetensors(llvm::ArrayRef<uint8_t> file, WeightFile &out);
llvm::Error readGguf(llvm::ArrayRef<uint8_t> file, WeightFile &out);
llvm::Error readTorch(llvm::ArrayRef<uint8_t> file, WeightFile &out);

/// The reader for these bytes by their first ones, or by the name's ending; a sentence where they are of no kind that
/// is known.
llvm::Error readWeights(llvm::ArrayRef<uint8_t> file, llvm::StringRef path, WeightFile &out);

/// Refusals of names that are there twice.
llvm::Error addTensor(WeightFile &out, WeightTensor tensor);
llvm::Error addValue(WeightFile &out, std::string key, WeightValue value);

inline llvm::Error refused(const llvm::Twine &sentence) { return llvm::createStringError(sentence); }
/// A name for a sentence: quoted, without control characters, shortened.
std::string shown(llvm::StringRef name);

} // namespace astra
