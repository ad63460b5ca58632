"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<14xi32>, tensor<14xi32>) -> (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<14xi32>, %arg1: tensor<14xi32>):
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %1 = "stablehlo.subtract"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %2 = "stablehlo.multiply"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %3 = "stablehlo.divide"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %4 = "stablehlo.remainder"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %5 = "stablehlo.and"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %6 = "stablehlo.or"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %7 = "stablehlo.xor"(%arg0, %arg1) : (tensor<14xi32>, tensor<14xi32>) -> tensor<14xi32>
    %8 = "stablehlo.not"(%arg0) : (tensor<14xi32>) -> tensor<14xi32>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8) : (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
