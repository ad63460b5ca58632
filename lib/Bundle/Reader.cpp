//===- Reader.cpp: bundles for tools ---------------------------------------===//
// Takes:    a path.
// Gives:    a mapped and checked file.
// Keeps:    the runtime's reader as the only judge: nothing here looks at a byte before it has accepted the file.
// Does not: repeat its checks.
#include "astra/Bundle/Reader.h"
#include "astra/astra.h"
#include "llvm/ADT/ScopeExit.h"
#include <sodium.h>

using namespace astra;
using namespace llvm;

namespace {

int verifySignature(const uint8_t *signature, const uint8_t *message, size_t bytes, const uint8_t *key) {
  return sodium_init() < 0 || crypto_sign_verify_detached(signature, message, bytes, key);
}

bool isNewer(astra_status s) {
  return s == ASTRA_NEWER_FORMAT || s == ASTRA_UNKNOWN_FEATURE || s == ASTRA_WRONG_CONTRACT;
}

} // namespace

Error astra::checkBundle(StringRef name, ArrayRef<char> data, uint32_t flags, const uint8_t *key) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_runtime_options hooks = ASTRA_INIT(astra_runtime_options);
  hooks.verify = verifySignature;
  astra_bundle_options options = ASTRA_INIT(astra_bundle_options);
  options.flags = flags | (key ? ASTRA_VERIFY_SIGNATURE : 0);
  options.public_key = key;
  astra_runtime *runtime = nullptr;
  astra_bundle *bundle = nullptr;
  astra_status s = astra_runtime_init(&runtime, &hooks, &diag);
  if (s == ASTRA_OK) s = astra_bundle_init_memory(&bundle, runtime, data.data(), data.size(), &options, &diag);
  astra_bundle_free(&bundle);
  astra_runtime_free(&runtime);
  if (s == ASTRA_OK) return Error::success();
  return createStringError(isNewer(s) ? std::errc::not_supported : std::errc::invalid_argument, "%s: %s",
                           name.str().c_str(), diag.text);
}

ArrayRef<uint8_t> BundleFile::signer() const {
  const fmt::Section &last = sections().back();
  if (fmt::SectionKind(last.kind) != fmt::SectionKind::Signature) return {};
  return bytes(last).take_front(crypto_sign_PUBLICKEYBYTES);
}

Expected<BundleFile> BundleFile::open(StringRef path, bool verifyAll) {
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(path);
  if (!file) return createFileError(path, file.takeError());
  scope_exit close([&] { sys::fs::closeFile(*file); });
  sys::fs::file_status status;
  if (std::error_code e = sys::fs::status(*file, status)) return createFileError(path, e);
  if (status.type() != sys::fs::file_type::regular_file)
    return createStringError(std::errc::invalid_argument, "%s: is not a regular file", path.str().c_str());
  BundleFile out;
  if (status.getSize()) {
    std::error_code e;
    out.map = sys::fs::mapped_file_region(*file, sys::fs::mapped_file_region::readonly, status.getSize(), 0, e);
    if (e) return createFileError(path, e);
  }
  ArrayRef<char> data(out.map.const_data(), size_t(status.getSize()));
  if (Error e = checkBundle(path, data, verifyAll ? ASTRA_VERIFY_ALL : 0, nullptr)) return std::move(e);
  if (ArrayRef<uint8_t> key = out.signer(); !key.empty())
    if (Error e = checkBundle(path, data, 0, key.data())) return std::move(e);
  fmt::GetManifest(out.bytes(out.sections().front()).data())->UnPackTo(&out.manifest);
  return std::move(out);
}
