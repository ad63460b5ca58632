"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<4x4xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg8: tensor<4x4xf32>, %arg9: tensor<4x3xf32>):
    %4 = "func.call"(%arg8, %arg9) <{callee = @_solve_triangular}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %5 = "func.call"(%arg8, %arg9) <{callee = @_solve_triangular_0}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %6 = "func.call"(%arg8, %arg9) <{callee = @_solve_triangular_1}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %7 = "func.call"(%arg8, %arg9) <{callee = @_solve_triangular_2}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%4, %5, %6, %7) : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, sym_name = "_solve_triangular", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<4x4xf32>, %arg7: tensor<4x3xf32>):
    %3 = "stablehlo.triangular_solve"(%arg6, %arg7) <{left_side = true, lower = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%3) : (tensor<4x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, sym_name = "_solve_triangular_0", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<4x4xf32>, %arg5: tensor<4x3xf32>):
    %2 = "stablehlo.triangular_solve"(%arg4, %arg5) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%2) : (tensor<4x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, sym_name = "_solve_triangular_1", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<4x4xf32>, %arg3: tensor<4x3xf32>):
    %1 = "stablehlo.triangular_solve"(%arg2, %arg3) <{left_side = true, lower = false, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%1) : (tensor<4x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, sym_name = "_solve_triangular_2", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4x4xf32>, %arg1: tensor<4x3xf32>):
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%0) : (tensor<4x3xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
