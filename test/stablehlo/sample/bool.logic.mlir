"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xi1>, tensor<5x7xi1>) -> (tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<i32>, tensor<i1>, tensor<i1>, tensor<35xi32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg4: tensor<5x7xi1>, %arg5: tensor<5x7xi1>):
    %7 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %8 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.and"(%arg4, %arg5) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %11 = "stablehlo.or"(%arg4, %arg5) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %12 = "stablehlo.xor"(%arg4, %arg5) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %13 = "stablehlo.not"(%arg4) : (tensor<5x7xi1>) -> tensor<5x7xi1>
    %14 = "stablehlo.compare"(%arg4, %arg5) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %15 = "stablehlo.convert"(%arg4) : (tensor<5x7xi1>) -> tensor<5x7xi32>
    %16 = "stablehlo.reduce"(%15, %9) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg10: tensor<i32>, %arg11: tensor<i32>):
      %22 = "stablehlo.add"(%arg10, %arg11) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%22) : (tensor<i32>) -> ()
    }) : (tensor<5x7xi32>, tensor<i32>) -> tensor<i32>
    %17 = "stablehlo.reduce"(%arg4, %8) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg8: tensor<i1>, %arg9: tensor<i1>):
      %21 = "stablehlo.or"(%arg8, %arg9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%21) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi1>, tensor<i1>) -> tensor<i1>
    %18 = "stablehlo.reduce"(%arg5, %7) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg6: tensor<i1>, %arg7: tensor<i1>):
      %20 = "stablehlo.and"(%arg6, %arg7) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%20) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi1>, tensor<i1>) -> tensor<i1>
    %19 = "func.call"(%arg4) <{callee = @cumsum}> : (tensor<5x7xi1>) -> tensor<35xi32>
    "func.return"(%10, %11, %12, %13, %14, %16, %17, %18, %19) : (tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<5x7xi1>, tensor<i32>, tensor<i1>, tensor<i1>, tensor<35xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xi1>) -> tensor<35xi32>, sym_name = "cumsum", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<5x7xi1>):
    %4 = "stablehlo.reshape"(%arg3) : (tensor<5x7xi1>) -> tensor<35xi1>
    %5 = "stablehlo.convert"(%4) : (tensor<35xi1>) -> tensor<35xi32>
    %6 = "func.call"(%5) <{callee = @cumsum_0}> : (tensor<35xi32>) -> tensor<35xi32>
    "func.return"(%6) : (tensor<35xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<35xi32>) -> tensor<35xi32>, sym_name = "cumsum_0", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<35xi32>):
    %0 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<i32>
    %2 = "stablehlo.reduce_window"(%arg0, %1) <{padding = dense<[[34, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 35>}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %3 = "stablehlo.add"(%arg1, %arg2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%3) : (tensor<i32>) -> ()
    }) : (tensor<35xi32>, tensor<i32>) -> tensor<35xi32>
    "func.return"(%2) : (tensor<35xi32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
