"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<12x18xf32>, tensor<6x13xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) <{edge_padding_high = array<i64: 2, 0>, edge_padding_low = array<i64: 1, -1>, interior_padding = array<i64: 1, 2>}> : (tensor<5x7xf32>, tensor<f32>) -> tensor<12x18xf32>
    %2 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 1, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<1x1xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<1x1xf32>) -> tensor<f32>
    %4 = "stablehlo.pad"(%arg0, %3) <{edge_padding_high = array<i64: 1, -2>, edge_padding_low = array<i64: 0, 2>, interior_padding = array<i64: 0, 1>}> : (tensor<5x7xf32>, tensor<f32>) -> tensor<6x13xf32>
    "func.return"(%1, %4) : (tensor<12x18xf32>, tensor<6x13xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
