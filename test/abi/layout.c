/*===- layout.c: where the fields of the ABI's structs are ------------------===
 * Takes:    astra.h and tensor.h.
 * Gives:    nothing: it compiles, or a field has moved. On every 64-bit platform the numbers are these.
 * Keeps:    what bindings in other languages write down for themselves (bindings/rust/src/sys.rs).
 * Does not: know functions (astra_rt.abi).
 */
#include "astra/tensor.h"

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type "." #field)
#define SIZE(type, bytes) _Static_assert(sizeof(type) == bytes, #type)

#define IS(number, value) _Static_assert(number == value, #number)

/* Numbers of types are in files and in other languages: they stay. */
IS(ASTRA_BOOL, 1);
IS(ASTRA_I8, 2);
IS(ASTRA_I16, 3);
IS(ASTRA_I32, 4);
IS(ASTRA_I64, 5);
IS(ASTRA_U8, 6);
IS(ASTRA_U16, 7);
IS(ASTRA_U32, 8);
IS(ASTRA_U64, 9);
IS(ASTRA_F16, 10);
IS(ASTRA_BF16, 11);
IS(ASTRA_F32, 12);
IS(ASTRA_F64, 13);
IS(ASTRA_C64, 14);
IS(ASTRA_C128, 15);
IS(ASTRA_I2, 16);
IS(ASTRA_U2, 17);
IS(ASTRA_I4, 18);
IS(ASTRA_U4, 19);
IS(ASTRA_F4E2M1, 20);
IS(ASTRA_F8E4M3FN, 21);
IS(ASTRA_F8E5M2, 22);
IS(ASTRA_F8E4M3FNUZ, 23);
IS(ASTRA_F8E5M2FNUZ, 24);
IS(ASTRA_F8E8M0, 25);
IS(ASTRA_TENSOR_DONATED, 1);
IS(ASTRA_TENSOR_CONJUGATE, 2);
IS(ASTRA_MAX_RANK, 16);

SIZE(astra_diag, 512);
AT(astra_diag, status, 8);
AT(astra_diag, text, 12);

SIZE(astra_tensor, 72);
AT(astra_tensor, buffer, 8);
AT(astra_tensor, data, 16);
AT(astra_tensor, data_bytes, 24);
AT(astra_tensor, byte_offset, 32);
AT(astra_tensor, dtype, 40);
AT(astra_tensor, ndim, 44);
AT(astra_tensor, shape, 48);
AT(astra_tensor, strides, 56);
AT(astra_tensor, flags, 64);

SIZE(astra_view, 312);
AT(astra_view, buffer, 8);
AT(astra_view, data, 16);
AT(astra_view, data_bytes, 24);
AT(astra_view, byte_offset, 32);
AT(astra_view, dtype, 40);
AT(astra_view, ndim, 44);
AT(astra_view, flags, 48);
AT(astra_view, reserved, 52);
AT(astra_view, shape, 56);
AT(astra_view, strides, 184);

SIZE(astra_call, 64);
AT(astra_call, entry, 8);
AT(astra_call, inputs, 16);
AT(astra_call, num_inputs, 24);
AT(astra_call, outputs, 32);
AT(astra_call, num_outputs, 40);
AT(astra_call, after, 48);
AT(astra_call, num_after, 56);
AT(astra_call, flags, 60);

SIZE(astra_tensor_info, 48);
AT(astra_tensor_info, name, 8);
AT(astra_tensor_info, dtype, 16);
AT(astra_tensor_info, ndim, 20);
AT(astra_tensor_info, lower, 24);
AT(astra_tensor_info, upper, 32);
AT(astra_tensor_info, is_tap, 40);

SIZE(astra_entry_info, 32);
AT(astra_entry_info, name, 8);
AT(astra_entry_info, num_inputs, 16);
AT(astra_entry_info, num_outputs, 20);
AT(astra_entry_info, waits_on_host, 24);

SIZE(astra_bundle_info, 56);
AT(astra_bundle_info, module, 8);
AT(astra_bundle_info, contract, 16);
AT(astra_bundle_info, numerics, 24);
AT(astra_bundle_info, num_entries, 32);

SIZE(astra_device_options, 80);
AT(astra_device_options, executor, 8);
AT(astra_device_options, num_threads, 16);
AT(astra_device_options, level, 24);
AT(astra_device_options, emulator, 32);
AT(astra_device_options, driver, 40);
AT(astra_device_options, flags, 48);
AT(astra_device_options, spin_ns, 56);
AT(astra_device_options, node, 64);
AT(astra_device_options, sysfs, 72);

SIZE(astra_pool_options, 32);
AT(astra_pool_options, max_bytes, 8);
AT(astra_pool_options, flags, 16);
AT(astra_pool_options, node, 20);
AT(astra_pool_options, sysfs, 24);

SIZE(astra_pool_stats, 56);
AT(astra_pool_stats, bytes_held, 8);
AT(astra_pool_stats, bytes_in_use, 16);
AT(astra_pool_stats, peak_in_use, 24);
AT(astra_pool_stats, fresh, 32);
AT(astra_pool_stats, recycled, 40);
AT(astra_pool_stats, in_order, 48);

SIZE(astra_stream_stats, 32);
AT(astra_stream_stats, tasks, 8);
AT(astra_stream_stats, dependencies, 16);
AT(astra_stream_stats, waits, 24);

SIZE(astra_session_options, 24);
SIZE(astra_dim_value, 16);
AT(astra_session_options, dims, 8);
AT(astra_session_options, num_dims, 16);

SIZE(astra_trace_event, 72);
