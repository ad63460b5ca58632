"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<2x5x4x3xf32>, tensor<3x3x3x3xf32>) -> (tensor<2x10x8x3xf32>, tensor<2x11x12x3xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x5x4x3xf32>, %arg1: tensor<3x3x3x3xf32>):
    %0 = "stablehlo.convolution"(%arg0, %arg1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 2>, padding = dense<[[2, 1], [2, 1]]> : tensor<2x2xi64>}> : (tensor<2x5x4x3xf32>, tensor<3x3x3x3xf32>) -> tensor<2x10x8x3xf32>
    %1 = "stablehlo.reverse"(%arg1) <{dimensions = array<i64: 0>}> : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
    %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 1>}> : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
    %3 = "stablehlo.transpose"(%2) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<3x3x3x3xf32>) -> tensor<3x3x3x3xf32>
    %4 = "stablehlo.convolution"(%arg0, %3) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 3>, padding = dense<2> : tensor<2x2xi64>}> : (tensor<2x5x4x3xf32>, tensor<3x3x3x3xf32>) -> tensor<2x11x12x3xf32>
    "func.return"(%0, %4) : (tensor<2x10x8x3xf32>, tensor<2x11x12x3xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
