"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<5x7xi32>, tensor<5x7x4xui8>, tensor<5x7xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.bitcast_convert"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xi32>
    %1 = "stablehlo.bitcast_convert"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7x4xui8>
    %2 = "stablehlo.bitcast_convert"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7x2xui16>
    %3 = "stablehlo.bitcast_convert"(%2) : (tensor<5x7x2xui16>) -> tensor<5x7xf32>
    "func.return"(%0, %1, %3) : (tensor<5x7xi32>, tensor<5x7x4xui8>, tensor<5x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
