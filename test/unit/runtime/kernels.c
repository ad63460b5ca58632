//===- kernels.c: hand-written kernels for the tests of the runtime -------===//
// Takes:    the arguments of CPU kernel ABI 1.
// Gives:    small kernels with exact results; item i is usually element i.
// Keeps:    no import, no data, no call: linked into a flat image (image.ld).
// Does not: run fast.
#include <stdint.h>

#define KERNEL(name) void name(void *const *buf, const int64_t *dim, void *scratch, int64_t first, int64_t last)
#define UNUSED (void)dim, (void)scratch, (void)first, (void)last

/* out[i] = x[i] + y[i] */
KERNEL(add) {
  UNUSED;
  const float *x = buf[0], *y = buf[1];
  float *out = buf[2];
  for (int64_t i = first; i < last; i++) out[i] = x[i] + y[i];
}

/* out[i] = 2 * x[i]: the second variant of a launch, to be told from `add` of x and x by nothing but its name */
KERNEL(twice) {
  UNUSED;
  const float *x = buf[0];
  float *out = buf[2];
  for (int64_t i = first; i < last; i++) out[i] = 2 * x[i];
}

/* the same, for a number of items that no dim gives */
KERNEL(sum) {
  UNUSED;
  const float *x = buf[0], *y = buf[1];
  float *out = buf[2];
  for (int64_t i = first; i < last; i++) out[i] = x[i] + y[i];
}

/* stored[i/4][k][i%4] = rowMajor[i][k], i < 8, k < 3: one item is one row i */
KERNEL(pack) {
  UNUSED;
  const float *row = buf[0];
  float *stored = buf[1];
  for (int64_t i = first; i < last; i++)
    for (int64_t k = 0; k < 3; k++) stored[(i / 4 * 3 + k) * 4 + i % 4] = row[i * 3 + k];
}

/* out[n][i] = sum over k of x[n][k] * w[i][k], w stored as pack stores it; one item is one row n; uses scratch */
KERNEL(apply) {
  UNUSED;
  const float *x = buf[0], *w = buf[1];
  float *out = buf[2], *sums = scratch;
  for (int64_t n = first; n < last; n++) {
    for (int64_t i = 0; i < 8; i++) {
      sums[i] = -0.0f;
      for (int64_t k = 0; k < 3; k++) sums[i] = __builtin_fmaf(x[n * 3 + k], w[(i / 4 * 3 + k) * 4 + i % 4], sums[i]);
    }
    for (int64_t i = 0; i < 8; i++) out[n * 8 + i] = sums[i];
  }
}

/* state[0] = state[0] + x[0]; out[0] = state[0] */
KERNEL(accumulate) {
  UNUSED;
  float *state = buf[0], *out = buf[2];
  const float *x = buf[1];
  state[0] = state[0] + x[0];
  out[0] = state[0];
}

/* cache[len][:] = x[:], 4 columns; dim[3] is len */
KERNEL(append) {
  UNUSED;
  float *cache = buf[0];
  const float *x = buf[1];
  for (int64_t i = first; i < last; i++) cache[dim[3] * 4 + i] = x[i];
}

/* out[i] = sum over rows r <= len of cache[r][i] */
KERNEL(columns) {
  UNUSED;
  const float *cache = buf[0];
  float *out = buf[1];
  for (int64_t i = first; i < last; i++) {
    float sum = -0.0f;
    for (int64_t r = 0; r <= dim[3]; r++) sum = sum + cache[r * 4 + i];
    out[i] = sum;
  }
}

/* values, count = the positive elements of x in order; dim[0] is n, one item */
KERNEL(compact) {
  UNUSED;
  const float *x = buf[0];
  float *values = buf[1];
  int64_t *count = buf[2], k = 0;
  for (int64_t i = 0; i < dim[0]; i++)
    if (x[i] > 0) values[k++] = x[i];
  count[0] = k;
}

/* out = sum of values[0 .. k); dim[1] is k, one item */
KERNEL(total) {
  UNUSED;
  const float *values = buf[0];
  float *out = buf[1], sum = 0;
  for (int64_t i = 0; i < dim[1]; i++) sum = sum + values[i];
  out[0] = sum;
}

/* flag = x[0] < 100 */
KERNEL(small) {
  UNUSED;
  ((uint8_t *)buf[1])[0] = ((const float *)buf[0])[0] < 100;
}

/* y[i] = 2 * x[i] + dim[2] (a loop's counter), from one carried buffer to the other */
KERNEL(step) {
  UNUSED;
  const float *x = buf[0];
  float *y = buf[1];
  for (int64_t i = first; i < last; i++) y[i] = 2 * x[i] + (float)dim[2];
}

/* out[0] = 1 if the rounding mode is to nearest even and subnormals are kept */
KERNEL(environment) {
  UNUSED;
  volatile float tiny = 0x1p-149f, one = 1, third = 3;
  float *out = buf[0];
  out[0] = tiny * one != 0 && one / third == 0x1.555556p-2f;
}

/* waits until gate[0] is not 0; out[0] = gate[0] */
KERNEL(gate) {
  UNUSED;
  const int32_t *gate = buf[0];
  int32_t seen;
  while ((seen = __atomic_load_n(gate, __ATOMIC_ACQUIRE)) == 0) {
  }
  ((float *)buf[1])[0] = (float)seen;
}

/* times[i] grows by 1 for each item; ranges[first] = last - first */
KERNEL(visit) {
  UNUSED;
  float *times = buf[0], *ranges = buf[1];
  ranges[first] = (float)(last - first);
  for (int64_t i = first; i < last; i++) times[i] += 1;
}

/* Each item waits until all have begun, or a while: met[i] = 1 if they have. come[0], an integer, grows by 1 for each;
   dim[0] says how many there are. */
KERNEL(meet) {
  UNUSED;
  int32_t *come = buf[0];
  float *met = buf[1];
  for (int64_t i = first; i < last; i++) {
    __atomic_fetch_add(come, 1, __ATOMIC_ACQ_REL);
    for (int64_t k = 0; k < 4000000000 && !met[i]; k++) met[i] = __atomic_load_n(come, __ATOMIC_ACQUIRE) == dim[0];
  }
}
