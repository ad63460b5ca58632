"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<i32>) -> (tensor<5x7xf32>, tensor<5x7xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>, %arg1: tensor<i32>):
    %0 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %1 = "stablehlo.constant"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.clamp"(%2, %arg1, %3) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %5 = "stablehlo.case"(%4) ({
      %14 = "stablehlo.sine"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%14) : (tensor<5x7xf32>) -> ()
    }, {
      %13 = "stablehlo.cosine"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%13) : (tensor<5x7xf32>) -> ()
    }, {
      %12 = "stablehlo.tanh"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%12) : (tensor<5x7xf32>) -> ()
    }, {
      "stablehlo.return"(%arg0) : (tensor<5x7xf32>) -> ()
    }) : (tensor<i32>) -> tensor<5x7xf32>
    %6 = "stablehlo.add"(%arg1, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %7 = "stablehlo.clamp"(%2, %6, %0) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %8 = "stablehlo.case"(%7) ({
      %11 = "stablehlo.sine"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%11) : (tensor<5x7xf32>) -> ()
    }, {
      %10 = "stablehlo.cosine"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%10) : (tensor<5x7xf32>) -> ()
    }, {
      %9 = "stablehlo.tanh"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xf32>
      "stablehlo.return"(%9) : (tensor<5x7xf32>) -> ()
    }) : (tensor<i32>) -> tensor<5x7xf32>
    "func.return"(%5, %8) : (tensor<5x7xf32>, tensor<5x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
