//===- Tensors.h: the weights of a language model as operands ---------------===//
// Takes:    a file of weights and a configuration.
// Gives:    products with matrices, rows of tables and vectors, by the part that a tensor plays.
// Keeps:    a matrix in the format of its file: it is unpacked where it is read. Parameters are b.params. Every
//           tensor of the file is used, or known to be of no use: a network that lacks one would compute something
//           else.
#pragma once
#include "Config.h"
#include "astra/Compose/WeightBlocks.h"
#include "astra/Import/WeightFile.h"
#include <map>
#include <set>

namespace astra::language {

enum class Role {
#define TENSOR(Role, gguf, names) Role,
#include "Tensors.def"
};

class Tensors {
public:
  Tensors(const WeightFile &file, const Config &c, compose::Composer &b) : file(file), c(c), b(b) {}

  bool has(Role role, int64_t layer = 0, const char *suffix = "weight");
  /// Whether the file has a tensor twice, under both names: the second is then of no use.
  bool isCopy(Role second, Role first);
  /// A scale, a shift, a bias, in f32: [extent].
  UOpRef vector(Role role, int64_t layer, int64_t extent, const char *suffix = "weight");
  /// Rows [out] of a matrix [out, in].
  int64_t rowsOf(Role role, int64_t layer, bool columns);
  /// x [rows, in] times a matrix [out, in], or [in, out] by columns, plus the bias that it may have: [rows, out].
  UOpRef product(UOpRef x, Role role, int64_t layer, int64_t out, bool columns = false);
  /// x [rows, in] times the matrix [out, in] of an expert: [rows, out].
  UOpRef expertProduct(UOpRef x, Role role, int64_t layer, int64_t expert, int64_t out);
  /// Rows of a table [count, width], in f32, by numbers [rows].
  UOpRef rows(Role role, UOpRef numbers, int64_t count, int64_t width);
  /// Says which tensors nobody asked for.
  void checkAllUsed();

private:
  const WeightFile &file;
  const Config &c;
  compose::Composer &b;
  std::set<std::string> used;
  std::map<std::string, compose::StoredWeight> stored;

  std::string nameOf(Role role, int64_t layer, const char *suffix, int64_t expert = 0);
  /// The tensor, if it has these dims; null after a failure.
  const WeightTensor *checked(const std::string &name, llvm::ArrayRef<int64_t> dims);
  /// The same as it is stored.
  const compose::StoredWeight *find(const std::string &name, llvm::ArrayRef<int64_t> dims);
  /// Its values, in f32.
  UOpRef values(const std::string &name, llvm::ArrayRef<int64_t> dims);
};

} // namespace astra::language
