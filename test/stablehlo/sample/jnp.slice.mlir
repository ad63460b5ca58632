"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<3x4xf32>, tensor<5xf32>, tensor<7xf32>, tensor<5x7x1xf32>, tensor<2x2xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 4, 7>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 2>}> : (tensor<5x7xf32>) -> tensor<3x4xf32>
    %1 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 5, 4>, start_indices = array<i64: 0, 3>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<5x1xf32>
    %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<5x1xf32>) -> tensor<5x1xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<5x1xf32>) -> tensor<5xf32>
    %4 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 5, 7>, start_indices = array<i64: 4, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1x7xf32>) -> tensor<7xf32>
    %6 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x7xf32>) -> tensor<5x7x1xf32>
    %7 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 5, 7>, start_indices = array<i64: 1, 2>, strides = array<i64: 2, 3>}> : (tensor<5x7xf32>) -> tensor<2x2xf32>
    "func.return"(%0, %3, %5, %6, %7) : (tensor<3x4xf32>, tensor<5xf32>, tensor<7xf32>, tensor<5x7x1xf32>, tensor<2x2xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
