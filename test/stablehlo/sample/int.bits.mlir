"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<14xi32>) -> (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<14xi32>):
    %0 = "stablehlo.count_leading_zeros"(%arg0) : (tensor<14xi32>) -> tensor<14xi32>
    %1 = "stablehlo.popcnt"(%arg0) : (tensor<14xi32>) -> tensor<14xi32>
    %2 = "stablehlo.abs"(%arg0) : (tensor<14xi32>) -> tensor<14xi32>
    %3 = "stablehlo.sign"(%arg0) : (tensor<14xi32>) -> tensor<14xi32>
    "func.return"(%0, %1, %2, %3) : (tensor<14xi32>, tensor<14xi32>, tensor<14xi32>, tensor<14xi32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
