//===- Blob.cpp: libFuzzer's view of libastra_text -------------------------===//
// Takes:    bytes of libFuzzer: how long the tokenizer is (2 bytes), a tokenizer, a text.
// Gives:    what sanitizers see when a tokenizer that opens reads the text, and writes it again whole and token by
//           token.
// Keeps:    the text of all tokens at once is that of the tokens one by one.
// Does not: know what tokens should be.
#include "astra/text.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t blob = std::min<size_t>(size - 2, data[0] | data[1] << 8), rest = size - 2 - blob;
  std::vector<uint64_t> bytes(blob / 8 + 1); // a tokenizer begins at a multiple of 8
  memcpy(bytes.data(), data + 2, blob);
  const char *utf8 = reinterpret_cast<const char *>(data + 2 + blob);
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_text *text = nullptr;
  if (astra_text_init(&text, bytes.data(), blob, &diag)) {
    if (!*diag.text) abort();
    return 0;
  }
  std::vector<int32_t> tokens(8 * rest + 64);
  size_t count = 0;
  for (uint32_t flags : {0u, uint32_t(ASTRA_TEXT_AROUND | ASTRA_TEXT_SPECIAL)}) {
    if (astra_text_encode(text, utf8, rest, flags, tokens.data(), tokens.size(), &count, &diag)) continue;
    size_t bytesOut = 0;
    if (astra_text_decode(text, tokens.data(), count, 0, nullptr, 0, &bytesOut, &diag) && diag.status != ASTRA_CAPACITY)
      abort();
    std::string whole(bytesOut, 0), parts;
    if (bytesOut && astra_text_decode(text, tokens.data(), count, 0, whole.data(), bytesOut, &bytesOut, &diag)) abort();
    astra_text_stream stream = {};
    std::vector<char> part(1 << 17);
    size_t got = 0;
    for (size_t i = 0; i < count; ++i) {
      if (astra_text_stream_next(text, &stream, tokens[i], 0, part.data(), part.size(), &got, &diag)) abort();
      parts.append(part.data(), got);
    }
    if (astra_text_stream_end(&stream, part.data(), part.size(), &got, &diag)) abort();
    if (parts.append(part.data(), got) != whole) abort();
  }
  std::string content(utf8, rest);
  astra_text_message messages[] = {{"system", content.c_str()}, {"user", content.c_str()}};
  astra_text_chat_encode(text, messages, 2, ASTRA_TEXT_ANSWER, tokens.data(), tokens.size(), &count, &diag);
  astra_text_free(&text);
  return 0;
}
