/* ops.c: a program that adds and sums without a model.
 * usage: ops [BUNDLE]: libastra_ops.astra; beside the library if it is not given. Prints the sum of 1 + 1 .. 6 + 6 and
 * that of each column. */
#include "astra/ops.h"
#include <stdio.h>

static int failed(const astra_diag *diag) {
  fprintf(stderr, "%s: %s\n", astra_status_name(diag->status), diag->text);
  return 1;
}

int main(int argc, char **argv) {
  static float numbers[2][3] = {{1, 2, 3}, {4, 5, 6}};
  static const int32_t first[] = {0};
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_stream *stream = NULL;
  astra_ops *ops = NULL;
  astra_ops_options options = ASTRA_INIT(astra_ops_options);
  astra_view a = ASTRA_INIT(astra_view), twice = ASTRA_INIT(astra_view), all = ASTRA_INIT(astra_view),
             columns = ASTRA_INIT(astra_view);
  const float *sums;
  options.path = argc > 1 ? argv[1] : NULL;
  if (astra_runtime_init(&runtime, NULL, &diag) || astra_device_init(&device, runtime, "cpu", NULL, &diag) ||
      astra_stream_init(&stream, device, &diag) || astra_ops_init(&ops, runtime, device, &options, &diag))
    return failed(&diag);
  a.data = numbers, a.data_bytes = sizeof(numbers), a.dtype = ASTRA_F32, a.ndim = 2;
  a.shape[0] = 2, a.shape[1] = 3, a.strides[0] = 3, a.strides[1] = 1;
  if (astra_op_add(ops, stream, &a, &a, &twice, &diag) || astra_op_sum(ops, stream, &twice, NULL, 0, 0, &all, &diag) ||
      astra_op_sum(ops, stream, &twice, first, 1, 0, &columns, &diag))
    return failed(&diag);
  sums = (const float *)astra_buffer_data(columns.buffer);
  printf("%g %g %g %g\n", *(const float *)astra_buffer_data(all.buffer), sums[0], sums[1], sums[2]);
  astra_buffer_free(&twice.buffer), astra_buffer_free(&all.buffer), astra_buffer_free(&columns.buffer);
  if (astra_stream_free(&stream) || astra_ops_free(&ops) || astra_device_free(&device) || astra_runtime_free(&runtime))
    return 1;
  return 0;
}
