/*===- text.h: text to tokens and back ---------------------------------------===
 * Takes:    a tokenizer in the form that astra-compile puts into a bundle (docs/tokenizers.md).
 * Gives:    tokens of a text, text of tokens, and the prompt of a conversation.
 * Keeps:    the conventions of astra.h. A handle is never changed: any number of threads may use it at once.
 * Does not: read tokenizer.json, run models, print. The library needs libc alone.
 *
 * Text is UTF-8; anything else is refused with ASTRA_INVALID_ARGUMENT and the place of the first wrong byte. A function
 * that writes into the caller's memory takes its capacity and always gives the size that is needed: with too little
 * room nothing is written and the status is ASTRA_CAPACITY. Sizes count bytes or tokens, without a zero at the end.
 */
#ifndef ASTRA_TEXT_H
#define ASTRA_TEXT_H

#include "astra/astra.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer. */
typedef struct astra_text astra_text;

/* Checks `bytes`, which must begin at a multiple of 8, stay as they are and outlive the handle; a tokenizer in a
 * bundle does (astra_bundle_find_asset). */
ASTRA_API astra_status astra_text_init(astra_text **text, const void *bytes, size_t size, astra_diag *diag);
ASTRA_API void astra_text_free(astra_text **text);

/*===- Tokens ---------------------------------------------------------------===*/

/* Tokens are 0 .. astra_text_tokens() - 1. */
ASTRA_API int32_t astra_text_tokens(const astra_text *text);

/* The bytes of a token as the vocabulary has them; they belong to the handle. ASTRA_OUT_OF_BOUNDS: no such token. */
ASTRA_API astra_status astra_text_token(const astra_text *text, int32_t token, const char **bytes, size_t *size,
                                        astra_diag *diag);

/* The token whose bytes in the vocabulary are these, special ones included; -1: there is none. */
ASTRA_API int32_t astra_text_find(const astra_text *text, const char *bytes, size_t size);

/* 1 for a token that stands for no text: the begin of a text, the end of a turn; else 0. */
ASTRA_API int astra_text_is_special(const astra_text *text, int32_t token);

typedef enum astra_text_role {
  ASTRA_TEXT_BEGIN = 0,   /* of a text */
  ASTRA_TEXT_END = 1,     /* of a text: generation ends here */
  ASTRA_TEXT_TURN = 2,    /* the end of a turn of a conversation: generation ends here, too */
  ASTRA_TEXT_UNKNOWN = 3, /* what stands for text outside of the vocabulary */
  ASTRA_TEXT_PAD = 4
} astra_text_role;

/* The token with a role; -1: there is none. */
ASTRA_API int32_t astra_text_role_token(const astra_text *text, int32_t role);

/*===- Text to tokens -------------------------------------------------------===*/

enum {
  /* Puts what the model expects around a text: often a token at its begin. */
  ASTRA_TEXT_AROUND = 1,
  /* The names of special tokens in the text are those tokens. Never for text of strangers: without the flag, a name is
   * read as plain text. */
  ASTRA_TEXT_SPECIAL = 2
};

ASTRA_API astra_status astra_text_encode(const astra_text *text, const char *utf8, size_t bytes, uint32_t flags,
                                         int32_t *tokens, size_t capacity, size_t *count, astra_diag *diag);

/*===- Tokens to text -------------------------------------------------------===*/

enum {
  /* Special tokens are left out. */
  ASTRA_TEXT_PLAIN = 1
};

/* Bytes that are no UTF-8 (tokens may end in the middle of a character) become U+FFFD. */
ASTRA_API astra_status astra_text_decode(const astra_text *text, const int32_t *tokens, size_t count, uint32_t flags,
                                         char *utf8, size_t capacity, size_t *bytes, astra_diag *diag);

/* Text of tokens that come one by one. Set to zero before the first; astra_text_stream_end gives what is held back. */
typedef struct astra_text_stream {
  uint32_t begun; /* 1 behind the first token that gave text */
  uint32_t held;  /* bytes held back: the begin of a character */
  uint8_t bytes[8];
} astra_text_stream;

/* The whole characters that are complete with this token. On a failure, ASTRA_CAPACITY too, the stream is as before. */
ASTRA_API astra_status astra_text_stream_next(const astra_text *text, astra_text_stream *stream, int32_t token,
                                              uint32_t flags, char *utf8, size_t capacity, size_t *bytes,
                                              astra_diag *diag);
/* U+FFFD, if the last token ended in the middle of a character; needs at most 3 bytes. */
ASTRA_API astra_status astra_text_stream_end(astra_text_stream *stream, char *utf8, size_t capacity, size_t *bytes,
                                             astra_diag *diag);

/*===- Conversations --------------------------------------------------------===*/

typedef struct astra_text_message {
  const char *role; /* "system", "user" or "assistant" */
  const char *content;
} astra_text_message;

enum {
  /* Ends with the begin of the assistant's turn, so that a model goes on from there. */
  ASTRA_TEXT_ANSWER = 1
};

/* The name of the tokenizer's form of conversations, e.g. "chatml"; NULL: it has none. */
ASTRA_API const char *astra_text_chat_form(const astra_text *text);

/* A conversation as the model was trained on it, as text. A system message comes first; the others take turns, the
 * user's first. ASTRA_UNSUPPORTED: the tokenizer has no form of conversations. */
ASTRA_API astra_status astra_text_chat(const astra_text *text, const astra_text_message *messages, size_t count,
                                       uint32_t flags, char *utf8, size_t capacity, size_t *bytes, astra_diag *diag);

/* The same as tokens. Names of special tokens in the contents are plain text: nobody can end a turn by writing so. */
ASTRA_API astra_status astra_text_chat_encode(const astra_text *text, const astra_text_message *messages, size_t count,
                                              uint32_t flags, int32_t *tokens, size_t capacity, size_t *got,
                                              astra_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
