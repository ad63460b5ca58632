//===- Arrays.h: an array, wherever it lies -----------------------------------===//
// Takes:    FILE.npy, or FILE.npz or FILE.safetensors, in which an array has a name: FILE.npz:NAME asks for one.
// Gives:    the array.
// Does not: convert values.
#pragma once
#include "Npy.h"

namespace astra::tool {

/// `name` is the array that a file of several is asked for if `place` names none. False and a sentence in `error`.
bool readArray(const std::string &place, const std::string &name, Npy &out, std::string &error);

/// FILE.npz of FILE.npz:NAME.
std::string fileOf(const std::string &place);

/// Whether the file may hold several arrays, by the end of its name.
bool holdsSeveral(const std::string &path);

} // namespace astra::tool
