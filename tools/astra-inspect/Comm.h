//===- Comm.h: what moves between ranks --------------------------------------===//
#pragma once
#include "astra/Bundle/Reader.h"
#include "llvm/Support/raw_ostream.h"

namespace astra::tool {

/// For how many ranks, on what machine, of what sizes; what is not given is every number that fits, or an upper bound.
struct CommSettings {
  int64_t ranks = 0;
  std::string machine;
  std::vector<std::pair<std::string, std::string>> dims;
  std::vector<std::pair<std::string, std::string>> calls; ///< entry, "FIXED+SHARD": milliseconds of kernels
};
/// The machines that have a row, with commas.
std::string machineNames();
/// Prints, for each entry, what a call sends by collective and by number of ranks. An error says what does not fit.
llvm::Error printComm(llvm::raw_ostream &out, const BundleFile &b, const CommSettings &settings);

} // namespace astra::tool
