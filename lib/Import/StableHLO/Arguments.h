//===- Arguments.h: main's arguments ---------------------------------------===//
// Takes:    the tree, what the user says of dims and of constant arguments.
// Gives:    the entry's inputs, and a value for each argument of main.
// Keeps:    an argument's name is that of its location, as JAX prints it with debug info ("x", "params['w']"), else
//           arg0, arg1 ... by its place. What a dynamic extent is called JAX writes into the messages of its assertions
//           on shapes ("args[0].shape = (b, 2*c)"); without them it is NAME_AXIS.
// Does not: lower an op.
#pragma once
#include "Lowering.h"
#include "llvm/ADT/StringSet.h"

namespace astra::stablehlo {

class Arguments {
public:
  Arguments(Module &module, const File &file, const Operation &main, const StableHLOOptions &options)
      : module(module), file(file), main(main), options(options) {}

  /// Nothing is added to the entry after a failure. All that is asked about dims is asked at once.
  llvm::Expected<std::vector<UOpRef>> declare(Entry &entry, std::vector<Param> &params);

private:
  void findNames();
  void findTexts();
  void refuseLostDims(const Entry &entry);
  void refuseUnusedBounds();
  UOpRef extent(unsigned argument, unsigned axis);
  UOpRef namedDim(const std::string &name, unsigned argument, unsigned axis);
  const DimBound *bound(llvm::StringRef name, bool byAny = false);
  UOpRef constant(const ConstantInput &k, const Type &type, std::vector<Param> &params);
  void ask(std::string sentence, const std::string &flag = "");

  Module &module;
  const File &file;
  const Operation &main;
  const StableHLOOptions &options;
  std::vector<std::string> names;              // of the arguments
  std::vector<std::vector<std::string>> texts; // of each argument's extents; "" for a constant one
  llvm::StringSet<> given;                     // dims that some axis gives
  llvm::StringMap<UOpRef> dims;
  llvm::StringSet<> used;
  std::vector<std::string> sentences, flags;
};

} // namespace astra::stablehlo
