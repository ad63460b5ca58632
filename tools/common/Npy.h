//===- Npy.h: NumPy's .npy files -------------------------------------------===//
// Takes:    files of format 1.0, 2.0 and 3.0 (numpy.lib.format), little-endian.
// Gives:    dtype by the runtime's number, shape, order and bytes.
// Keeps:    a file is input from outside: every length is checked; output goes where OutputFile.h says.
// Does not: convert values. bf16 and the fp8 types, which NumPy does not have, are read and written as unsigned
//           integers of their width; sub-byte types as integers of a byte, one for each element, that hold its bits.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace astra::tool {

struct Npy {
  int32_t dtype = 0; // astra_dtype
  std::vector<int64_t> shape;
  bool fortranOrder = false;
  std::vector<uint8_t> data;
};

/// False and a sentence in `error` if the file cannot be read or is none.
bool readNpy(const std::string &path, Npy &out, std::string &error);
/// The same of a file's bytes; `error` does not name the file.
bool parseNpy(const std::vector<uint8_t> &file, Npy &out, std::string &error);
/// Makes an array that stands for one of `dtype`, which NumPy does not have, that one; leaves any other as it is. False
/// and a sentence where an integer does not fit the sub-byte type.
bool adopt(Npy &array, int32_t dtype, std::string &error);
/// The codes of a sub-byte type as u8, one byte for each element; any other array as it is.
Npy unpacked(Npy array);

/// Row-major only.
bool writeNpy(const std::string &path, const Npy &array, std::string &error);

} // namespace astra::tool
