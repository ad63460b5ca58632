"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<6x9xf32>) -> (tensor<6x5xcomplex<f32>>, tensor<6x5xcomplex<f32>>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg2: tensor<6x9xf32>):
    %2 = "func.call"(%arg2) <{callee = @fft}> : (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>
    %3 = "func.call"(%arg2) <{callee = @fft_0}> : (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>
    "func.return"(%2, %3) : (tensor<6x5xcomplex<f32>>, tensor<6x5xcomplex<f32>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>, sym_name = "fft", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<6x9xf32>):
    %1 = "stablehlo.fft"(%arg1) <{fft_length = array<i64: 9>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>
    "func.return"(%1) : (tensor<6x5xcomplex<f32>>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>, sym_name = "fft_0", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<6x9xf32>):
    %0 = "stablehlo.fft"(%arg0) <{fft_length = array<i64: 6, 9>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<6x9xf32>) -> tensor<6x5xcomplex<f32>>
    "func.return"(%0) : (tensor<6x5xcomplex<f32>>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
