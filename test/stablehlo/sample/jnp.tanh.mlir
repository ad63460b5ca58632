"builtin.module"() <{sym_name = "jit_tanh"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<5x7xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>):
    %0 = "stablehlo.tanh"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    "func.return"(%0) : (tensor<5x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
