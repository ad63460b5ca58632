"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<13xui32>, tensor<13xui32>) -> (tensor<13xui32>, tensor<13xui32>, tensor<13xui32>, tensor<13xui32>, tensor<13xi1>, tensor<13xui32>, tensor<13xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg7: tensor<13xui32>, %arg8: tensor<13xui32>):
    %19 = "stablehlo.constant"() <{value = dense<2> : tensor<ui32>}> : () -> tensor<ui32>
    %20 = "stablehlo.constant"() <{value = dense<3> : tensor<ui32>}> : () -> tensor<ui32>
    %21 = "func.call"(%arg7, %arg8) <{callee = @floor_divide}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %22 = "func.call"(%arg7, %arg8) <{callee = @remainder}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %23 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %24 = "stablehlo.shift_right_logical"(%arg7, %23) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %25 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %26 = "stablehlo.shift_left"(%arg7, %25) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %27 = "stablehlo.compare"(%arg7, %arg8) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xi1>
    %28 = "stablehlo.maximum"(%arg7, %arg8) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %29 = "stablehlo.convert"(%arg7) : (tensor<13xui32>) -> tensor<13xf32>
    "func.return"(%21, %22, %24, %26, %27, %28, %29) : (tensor<13xui32>, tensor<13xui32>, tensor<13xui32>, tensor<13xui32>, tensor<13xi1>, tensor<13xui32>, tensor<13xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>, sym_name = "floor_divide", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<13xui32>, %arg6: tensor<13xui32>):
    %18 = "stablehlo.divide"(%arg5, %arg6) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    "func.return"(%18) : (tensor<13xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>, sym_name = "remainder", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<13xui32>, %arg4: tensor<13xui32>):
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<ui32>}> : () -> tensor<ui32>
    %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %4 = "stablehlo.compare"(%arg4, %3) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xi1>
    %5 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %6 = "func.call"(%4, %5, %arg4) <{callee = @_where}> : (tensor<13xi1>, tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %7 = "stablehlo.remainder"(%arg3, %6) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %8 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %9 = "stablehlo.compare"(%7, %8) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xi1>
    %10 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %11 = "stablehlo.compare"(%7, %10) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xi1>
    %12 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<13xui32>
    %13 = "stablehlo.compare"(%6, %12) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xi1>
    %14 = "stablehlo.compare"(%11, %13) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<13xi1>, tensor<13xi1>) -> tensor<13xi1>
    %15 = "stablehlo.and"(%14, %9) : (tensor<13xi1>, tensor<13xi1>) -> tensor<13xi1>
    %16 = "stablehlo.add"(%7, %6) : (tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    %17 = "stablehlo.select"(%15, %16, %7) : (tensor<13xi1>, tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    "func.return"(%17) : (tensor<13xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<13xi1>, tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<13xi1>, %arg1: tensor<13xui32>, %arg2: tensor<13xui32>):
    %0 = "stablehlo.select"(%arg0, %arg1, %arg2) : (tensor<13xi1>, tensor<13xui32>, tensor<13xui32>) -> tensor<13xui32>
    "func.return"(%0) : (tensor<13xui32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
