//===- Data.h: rows to train on ------------------------------------------------===//
// Takes:    an entry, and for each of its inputs an array in a file, whose first axis counts rows.
// Gives:    the arrays as the entry wants them, rows gathered into a batch, a checksum.
// Keeps:    values: integers may change their width where all of them fit, f64 is rounded to f32 with a note, nothing
//           else is converted. Axes of extent 1 may be there or not, with a note. A NaN, a shape that does not fit,
//           arrays of different length are refused.
// Does not: choose rows.
#pragma once
#include "Checksum.h"
#include "Host.h"
#include "Ranks.h"
#include <cstdint>

namespace astra::tool {

/// The byte where the first NaN of a float type begins, or `bytes` if there is none.
uint64_t firstNaN(const uint8_t *data, uint64_t bytes, int32_t dtype, bool orInfinite = false);
/// "f32[8, 8]"
std::string typeText(int32_t dtype, const std::vector<int64_t> &shape);

struct Column {
  std::string name, place; // of the input; the file
  int32_t dtype = 0;
  std::vector<int64_t> row; // shape of a row
  uint64_t rowBytes = 0;
  std::vector<uint8_t> bytes;
};

class Data {
public:
  /// `places`: "INPUT=FILE", or one file of several arrays. `option` is what they came with, for sentences. Throws a
  /// Refusal.
  void load(const std::vector<std::string> &places, const std::string &option, const astra_entry *entry, Ranks &ranks);
  /// What was done to the arrays that the user may not expect, a sentence each.
  const std::vector<std::string> &notes() const { return said; }
  int64_t rows() const { return count; }
  const std::vector<Column> &columns() const { return list; } // in the order of the entry's inputs
  const Column *find(const std::string &name) const;
  /// Names, types and shapes, and then what is in them: equal for equal data.
  std::string text() const;
  std::string sum() const;
  /// Rows `order[0] ... order[n - 1]` of a column, one after the other.
  void gather(const Column &column, const uint32_t *order, int64_t n, uint8_t *to) const;

private:
  int64_t count = 0;
  std::vector<Column> list;
  std::vector<std::string> said;
};

} // namespace astra::tool
