"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<14xi32>, tensor<14xi32>) -> (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<14xi32>, %arg1: tensor<14xi32>):
    %0 = "stablehlo.shift_left"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %1 = "stablehlo.shift_right_arithmetic"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %2 = "stablehlo.shift_right_logical"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    "func.return"(%0, %1, %2) : (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
