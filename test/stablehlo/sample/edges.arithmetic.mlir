"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<15xf32>) -> (tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<15xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<15xf32>
    %5 = "stablehlo.add"(%arg0, %4) : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
    %6 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<15xf32>
    %7 = "stablehlo.multiply"(%arg0, %6) : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
    %8 = "stablehlo.negate"(%arg0) : (tensor<15xf32>) -> tensor<15xf32>
    %9 = "stablehlo.abs"(%arg0) : (tensor<15xf32>) -> tensor<15xf32>
    %10 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<15xf32>
    %11 = "stablehlo.divide"(%arg0, %10) : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
    %12 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<15xf32>
    %13 = "stablehlo.maximum"(%arg0, %12) : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
    %14 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<15xf32>
    %15 = "stablehlo.minimum"(%arg0, %14) : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
    %16 = "stablehlo.sign"(%arg0) : (tensor<15xf32>) -> tensor<15xf32>
    "func.return"(%5, %7, %8, %9, %11, %13, %15, %16) : (tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
