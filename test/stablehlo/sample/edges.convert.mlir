"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<8xf32>) -> (tensor<8xi32>, tensor<8xi8>, tensor<8xf32>, tensor<8xi1>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.convert"(%arg0) : (tensor<8xf32>) -> tensor<8xi32>
    %2 = "stablehlo.convert"(%arg0) : (tensor<8xf32>) -> tensor<8xi8>
    %3 = "stablehlo.convert"(%arg0) : (tensor<8xf32>) -> tensor<8xbf16>
    %4 = "stablehlo.convert"(%3) : (tensor<8xbf16>) -> tensor<8xf32>
    %5 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %6 = "stablehlo.compare"(%arg0, %5) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %7 = "stablehlo.convert"(%6) : (tensor<8xi1>) -> tensor<8xi1>
    "func.return"(%1, %2, %4, %7) : (tensor<8xi32>, tensor<8xi8>, tensor<8xf32>, tensor<8xi1>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
