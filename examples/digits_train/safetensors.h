/*===- safetensors.h: the states of a session as a file ------------------------===
 * Takes:    a session, its bundle, the path of a .safetensors file (8 bytes of length, a JSON header, the tensors).
 * Gives:    a file with every state, or every state of a file that the bundle has, set.
 * Keeps:    an old file until the new one is whole (it is renamed); states of f32, f64, i64 and u32, little-endian.
 * Does not: read JSON in general: names that need an escape are refused.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "astra/astra.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  int32_t dtype;
  const char *name;
  size_t bytes;
} state_types[] = {{ASTRA_F32, "F32", 4}, {ASTRA_F64, "F64", 8}, {ASTRA_I64, "I64", 8}, {ASTRA_U32, "U32", 4}};

/* The size of a state and the name of its type, or NULL if it is not one of these types. */
static const char *state_type(const astra_tensor_info *state, uint64_t *bytes) {
  for (size_t t = 0; t < sizeof state_types / sizeof *state_types; ++t) {
    if (state_types[t].dtype != state->dtype) continue;
    *bytes = state_types[t].bytes;
    for (int32_t d = 0; d < state->ndim; ++d) *bytes *= (uint64_t)state->upper[d];
    return state_types[t].name;
  }
  return NULL;
}

/* Writes all states. NULL, or what went wrong. */
static const char *save_states(const char *path, const astra_bundle *bundle, astra_session *session, astra_diag *diag) {
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  char header[1 << 16] = "{", *end = header + 1, unfinished[4096];
  uint64_t offset = 0, bytes, length;
  if (astra_bundle_get_info(bundle, &info) != ASTRA_OK) return "the bundle says nothing of its states";
  for (uint32_t i = 0; i < info.num_states; ++i) {
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    if (astra_bundle_get_state(bundle, i, &state) != ASTRA_OK) return "a state cannot be described";
    const char *type = state_type(&state, &bytes);
    if (!type || strpbrk(state.name, "\"\\")) return "a state's type or name is none that this program writes";
    if ((size_t)(header + sizeof header - end) < strlen(state.name) + 512) return "there are too many states";
    end += sprintf(end, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", state.name, type);
    for (int32_t d = 0; d < state.ndim; ++d) end += sprintf(end, "%s%lld", d ? "," : "", (long long)state.upper[d]);
    end += sprintf(end, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                   (unsigned long long)(offset + bytes));
    offset += bytes;
  }
  *end++ = '}';
  while ((end - header) % 8) *end++ = ' ';
  length = (uint64_t)(end - header);
  if (snprintf(unfinished, sizeof unfinished, "%s.new", path) >= (int)sizeof unfinished) return "the path is too long";
  FILE *f = fopen(unfinished, "wb");
  int whole = f && fwrite(&length, 1, 8, f) == 8 && fwrite(header, 1, length, f) == length;
  for (uint32_t i = 0; i < info.num_states && whole; ++i) {
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    const void *data;
    whole = astra_bundle_get_state(bundle, i, &state) == ASTRA_OK &&
            astra_session_lease_state(session, state.name, &data, &bytes, diag) == ASTRA_OK;
    if (!whole) break;
    whole = fwrite(data, 1, bytes, f) == bytes;
    if (astra_session_return_state(session, state.name, diag) != ASTRA_OK) whole = 0;
  }
  if (f && fclose(f) != 0) whole = 0;
  if (whole && rename(unfinished, path) == 0) return NULL;
  remove(unfinished);
  return "the states cannot be written";
}

/* The numbers behind `key` in one tensor's part of the header, which ends at a brace. How many there are; -1: no list.
 */
static int numbers_of(const char *entry, const char *key, unsigned long long *out, int most) {
  const char *end = strchr(entry, '}'), *at = strstr(entry, key);
  int n = 0;
  if (!end || !at || at > end || !(at = strchr(at, '[')) || at > end) return -1;
  for (++at; *at && *at != ']'; ++n) {
    char *next;
    if (n == most) return -1;
    out[n] = strtoull(at, &next, 10);
    if (next == at) return -1;
    for (at = next; *at == ',' || *at == ' '; ++at) {
    }
  }
  return n;
}

/* Sets the states that the file has; `required` of the bundle's states must be there (astra_entry_uses_state of it).
 * NULL, or what went wrong; then no state has changed but those before the one that was refused. */
static const char *load_states(const char *path, const astra_bundle *bundle, const astra_entry *required,
                               astra_session *session, astra_diag *diag) {
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  FILE *f = fopen(path, "rb");
  unsigned char *file = NULL;
  long size = -1;
  const char *wrong = "the states cannot be read";
  if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 8) file = malloc((size_t)size + 1);
  if (file) rewind(f);
  int whole = file && fread(file, 1, (size_t)size, f) == (size_t)size;
  if (f) fclose(f);
  uint64_t length = 0;
  if (whole) memcpy(&length, file, 8);
  if (!whole || length > (uint64_t)size - 8 || astra_bundle_get_info(bundle, &info) != ASTRA_OK) goto done;
  char *header = (char *)file + 8;
  const unsigned char *data = file + 8 + length;
  uint64_t data_bytes = (uint64_t)size - 8 - length;
  file[size] = 0;
  char *text = malloc(length + 1); /* the header with an end */
  if (!text) goto done;
  memcpy(text, header, length);
  text[length] = 0;
  wrong = NULL;
  for (uint32_t i = 0; i < info.num_states && !wrong; ++i) {
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    unsigned long long place[2], shape[ASTRA_MAX_RANK];
    char key[512];
    uint64_t bytes = 0;
    wrong = "a state cannot be described";
    if (astra_bundle_get_state(bundle, i, &state) != ASTRA_OK) break;
    wrong = "a state has a name or a type that this program does not read";
    if (!state_type(&state, &bytes) || snprintf(key, sizeof key, "\"%s\":{", state.name) >= (int)sizeof key) break;
    const char *entry = strstr(text, key);
    if (!entry) {
      wrong = astra_entry_uses_state(required, i) == 1 ? "the file lacks a state that the network needs" : NULL;
      continue;
    }
    wrong = "a tensor of the file has another shape than the state, or lies outside of the file";
    entry += strlen(key);
    if (numbers_of(entry, "\"shape\"", shape, ASTRA_MAX_RANK) != state.ndim) break;
    int same = 1;
    for (int32_t d = 0; d < state.ndim; ++d) same = same && shape[d] == (unsigned long long)state.upper[d];
    if (!same || numbers_of(entry, "\"data_offsets\"", place, 2) != 2) break;
    if (place[0] > place[1] || place[1] > data_bytes || place[1] - place[0] != bytes) break;
    astra_tensor value = ASTRA_INIT(astra_tensor);
    value.data = (void *)(data + place[0]);
    value.data_bytes = bytes;
    value.dtype = state.dtype;
    value.ndim = state.ndim;
    value.shape = state.upper;
    wrong = astra_session_set_state(session, state.name, &value, diag) == ASTRA_OK ? NULL : diag->text;
  }
  free(text);
done:
  free(file);
  return wrong;
}

#endif
