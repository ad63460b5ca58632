//===- Json.cpp: libFuzzer's view of tokenizer.json -------------------------===//
// Takes:    bytes of libFuzzer as tokenizer.json.
// Gives:    what sanitizers see; a sentence, or a tokenizer.
// Keeps:    what is compiled, the library opens: the two agree on the rules of the form.
// Does not: know what tokens should be.
#include "astra/Import/Tokenizer.h"
#include "astra/text.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Tables of all characters are made before the first input is timed.
extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  const char every[] =
      R"({"model": {"type": "Unigram", "vocab": [["a", 0]]}, "normalizer": {"type": "Sequence", "normalizers":
    [{"type": "NFC"}, {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAA="}]},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?i:a)|\\p{L}"}, "behavior": "Isolated"}})";
  auto made = astra::import::tokenizerFromJson(every);
  if (!made) {
    fprintf(stderr, "%s\n", llvm::toString(made.takeError()).c_str());
    abort();
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<std::string> made =
      astra::import::tokenizerFromJson({reinterpret_cast<const char *>(data), size}, {}, {}, "chatml");
  if (!made) {
    if (llvm::toString(made.takeError()).empty()) abort();
    return 0;
  }
  std::vector<uint64_t> bytes(made->size() / 8 + 1);
  memcpy(bytes.data(), made->data(), made->size());
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_text *text = nullptr;
  if (astra_text_init(&text, bytes.data(), made->size(), &diag)) {
    fprintf(stderr, "what was compiled is refused: %s\n", diag.text);
    abort();
  }
  const char sample[] = "Don't  stop <s>\n\n\u00e9t\u00e9 12345 \u6771\u4eac \xed\x95\x9c";
  int32_t tokens[512];
  size_t count = 0;
  astra_text_encode(text, sample, sizeof sample - 1, ASTRA_TEXT_SPECIAL, tokens, 512, &count, &diag);
  astra_text_free(&text);
  return 0;
}
