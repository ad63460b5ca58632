"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<35xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg21: tensor<5x7xf32>):
    %27 = "func.call"(%arg21) <{callee = @cumsum}> : (tensor<5x7xf32>) -> tensor<35xf32>
    %28 = "func.call"(%arg21) <{callee = @cumsum_1}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %29 = "func.call"(%arg21) <{callee = @cumprod}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %30 = "func.call"(%arg21) <{callee = @cummax}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %31 = "func.call"(%arg21) <{callee = @cummin}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %32 = "func.call"(%arg21) <{callee = @cumsum_4}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    "func.return"(%27, %28, %29, %30, %31, %32) : (tensor<35xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<35xf32>, sym_name = "cumsum", sym_visibility = "private"}> ({
  ^bb0(%arg20: tensor<5x7xf32>):
    %25 = "stablehlo.reshape"(%arg20) : (tensor<5x7xf32>) -> tensor<35xf32>
    %26 = "func.call"(%25) <{callee = @cumsum_0}> : (tensor<35xf32>) -> tensor<35xf32>
    "func.return"(%26) : (tensor<35xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<35xf32>) -> tensor<35xf32>, sym_name = "cumsum_0", sym_visibility = "private"}> ({
  ^bb0(%arg17: tensor<35xf32>):
    %21 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %23 = "stablehlo.reduce_window"(%arg17, %22) <{padding = dense<[[34, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 35>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %24 = "stablehlo.add"(%arg18, %arg19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%24) : (tensor<f32>) -> ()
    }) : (tensor<35xf32>, tensor<f32>) -> tensor<35xf32>
    "func.return"(%23) : (tensor<35xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cumsum_1", sym_visibility = "private"}> ({
  ^bb0(%arg16: tensor<5x7xf32>):
    %20 = "func.call"(%arg16) <{callee = @cumsum_2}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    "func.return"(%20) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cumsum_2", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<5x7xf32>):
    %16 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %18 = "stablehlo.reduce_window"(%arg13, %17) <{padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 5, 1>}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %19 = "stablehlo.add"(%arg14, %arg15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%19) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    "func.return"(%18) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cumprod", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<5x7xf32>):
    %15 = "func.call"(%arg12) <{callee = @cumprod_3}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
    "func.return"(%15) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cumprod_3", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<5x7xf32>):
    %12 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %13 = "stablehlo.reduce_window"(%arg9, %12) <{padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 7>}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      %14 = "stablehlo.multiply"(%arg10, %arg11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%14) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    "func.return"(%13) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cummax", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<5x7xf32>):
    %8 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %10 = "stablehlo.reduce_window"(%arg6, %9) <{padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 7>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %11 = "stablehlo.maximum"(%arg7, %arg8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    "func.return"(%10) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cummin", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<5x7xf32>):
    %4 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %6 = "stablehlo.reduce_window"(%arg3, %5) <{padding = dense<[[0, 4], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 5, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %7 = "stablehlo.minimum"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    "func.return"(%6) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, sym_name = "cumsum_4", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.reduce_window"(%arg0, %1) <{padding = dense<[[0, 4], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 5, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %3 = "stablehlo.add"(%arg1, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
    "func.return"(%2) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
