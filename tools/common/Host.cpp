//===- Host.cpp: what a tool needs to use the runtime -----------------------===//
#include "Host.h"
#include <cstring>

using namespace astra::tool;

Handles::~Handles() {
  for (astra_buffer *&b : buffers) astra_buffer_free(&b);
  astra_stream_free(&stream);
  astra_session_free(&session);
  astra_loaded_free(&loaded);
  astra_bundle_free(&bundle);
  astra_pool_free(&pool);
  astra_device_free(&host);
  astra_device_free(&device);
  astra_runtime_free(&runtime);
}

static int exitCode(astra_status s) {
  bool unsupported = s == ASTRA_NEWER_FORMAT || s == ASTRA_UNKNOWN_FEATURE || s == ASTRA_WRONG_CONTRACT ||
                     s == ASTRA_NO_TARGET || s == ASTRA_UNSUPPORTED;
  return unsupported ? Unsupported : Failure;
}

/// A sentence of the library that asks for a value by a function of its own asks for the option that gives it.
static std::string inOptions(std::string text, bool takesValues) {
  static constexpr struct {
    const char *before, *behind, *ask; // around the name; what follows, which names a function
    const char *option, *value;
  } rows[] = {
      {"needs dim ", "", "; give it in astra_session_options.dims", "--dim ", "=N"},
      {"needs dim ", "", "; set it with astra_session_set_dim", "--dim ", "=N"},
      {"param ", " is not stored in the bundle", "; set it with astra_loaded_set_param", "--param ", "=FILE.npy"},
      {"the function '", "', which is not registered",
       "; register it with astra_runtime_register before the bundle is loaded", "--function ", "=LIBRARY:SYMBOL"},
      {"", "", " (ASTRA_DEVICE_ALLOW_PTX)", "", ""}};
  for (const auto &row : rows) {
    size_t end = text.find(std::string(row.behind) + row.ask), begin = text.find(row.before);
    if (end == text.npos || begin >= end || (*row.option && !takesValues)) continue;
    std::string name = text.substr(begin + strlen(row.before), end - begin - strlen(row.before));
    std::string rest = text.substr(end + strlen(row.behind) + strlen(row.ask));
    text.resize(end);
    text += row.behind;
    text += *row.option ? std::string(": give ") + row.option + name + row.value : " (--allow-ptx)";
    text += rest;
  }
  return text;
}

void Checked::operator()(astra_status s) {
  if (s == ASTRA_OK) return;
  std::string text = diag.text[0] ? inOptions(diag.text, takesValues) : astra_status_name(s);
  bool named = file.empty() || text.find(file) != text.npos;
  throw Refusal{exitCode(s), named ? text : file + ": " + text};
}
