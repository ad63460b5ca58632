"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<i32>, tensor<5x7xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<9.900000e+01> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.abs"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %6:3 = "stablehlo.while"(%arg0, %4, %5) ({
    ^bb0(%arg4: tensor<5x7xf32>, %arg5: tensor<i32>, %arg6: tensor<5x7xf32>):
      %11 = "stablehlo.reduce"(%arg6, %3) <{dimensions = array<i64: 0, 1>}> ({
      ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
        %13 = "stablehlo.add"(%arg7, %arg8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%13) : (tensor<f32>) -> ()
      }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<f32>
      %12 = "stablehlo.compare"(%11, %2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%12) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg1: tensor<5x7xf32>, %arg2: tensor<i32>, %arg3: tensor<5x7xf32>):
      %7 = "stablehlo.add"(%arg2, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %8 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
      %9 = "stablehlo.multiply"(%arg3, %8) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      %10 = "stablehlo.add"(%9, %arg1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%arg1, %7, %10) : (tensor<5x7xf32>, tensor<i32>, tensor<5x7xf32>) -> ()
    }) : (tensor<5x7xf32>, tensor<i32>, tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<i32>, tensor<5x7xf32>)
    "func.return"(%6#1, %6#2) : (tensor<i32>, tensor<5x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
