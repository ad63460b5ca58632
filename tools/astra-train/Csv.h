//===- Csv.h: a table of numbers as text ----------------------------------------===//
// Takes:    a file of lines, cells between commas, the type that they are wanted in.
// Gives:    an array of two axes, lines and cells.
// Keeps:    a decimal number is rounded once, to the type that is wanted; an integer type takes whole numbers that fit.
//           A first line without a number is a header. What is no number, or a line of another length, is refused with
//           its place.
// Does not: take other separators, or text over several lines.
#pragma once
#include "Npy.h"

namespace astra::tool {

bool isCsv(const std::string &path);
/// False and a sentence in `error` if the file is no such table. `header`: the first line, where it is one.
bool readCsv(const std::string &path, int32_t dtype, Npy &out, std::string &header, std::string &error);

} // namespace astra::tool
