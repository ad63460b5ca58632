//===- Host.cpp: what a tool needs to use the runtime -----------------------===//
#include "Host.h"

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

void Checked::operator()(astra_status s) {
  if (s == ASTRA_OK) return;
  std::string text = diag.text[0] ? diag.text : astra_status_name(s);
  bool named = file.empty() || text.find(file) != text.npos;
  throw Refusal{exitCode(s), named ? text : file + ": " + text};
}
