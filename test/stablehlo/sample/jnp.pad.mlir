"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>) -> (tensor<8x10xf32>, tensor<9x11xf32>, tensor<7x9xf32>, tensor<9x11xf32>, tensor<7x9xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg9: tensor<5x7xf32>):
    %38 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %39 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %40 = "func.call"(%arg9, %39) <{callee = @_pad}> : (tensor<5x7xf32>, tensor<i32>) -> tensor<8x10xf32>
    %41 = "func.call"(%arg9) <{callee = @_pad_0}> : (tensor<5x7xf32>) -> tensor<9x11xf32>
    %42 = "func.call"(%arg9) <{callee = @_pad_2}> : (tensor<5x7xf32>) -> tensor<7x9xf32>
    %43 = "func.call"(%arg9) <{callee = @_pad_3}> : (tensor<5x7xf32>) -> tensor<9x11xf32>
    %44 = "func.call"(%arg9, %38) <{callee = @_pad_4}> : (tensor<5x7xf32>, tensor<i32>) -> tensor<7x9xf32>
    "func.return"(%40, %41, %42, %43, %44) : (tensor<8x10xf32>, tensor<9x11xf32>, tensor<7x9xf32>, tensor<9x11xf32>, tensor<7x9xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<i32>) -> tensor<8x10xf32>, sym_name = "_pad", sym_visibility = "private"}> ({
  ^bb0(%arg7: tensor<5x7xf32>, %arg8: tensor<i32>):
    %36 = "stablehlo.convert"(%arg8) : (tensor<i32>) -> tensor<f32>
    %37 = "stablehlo.pad"(%arg7, %36) <{edge_padding_high = array<i64: 2, 3>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<5x7xf32>, tensor<f32>) -> tensor<8x10xf32>
    "func.return"(%37) : (tensor<8x10xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<9x11xf32>, sym_name = "_pad_0", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<5x7xf32>):
    %24 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 3, 7>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<2x7xf32>
    %25 = "func.call"(%24) <{callee = @_flip}> : (tensor<2x7xf32>) -> tensor<2x7xf32>
    %26 = "stablehlo.concatenate"(%25, %arg6) <{dimension = 0 : i64}> : (tensor<2x7xf32>, tensor<5x7xf32>) -> tensor<7x7xf32>
    %27 = "stablehlo.slice"(%26) <{limit_indices = array<i64: 6, 7>, start_indices = array<i64: 4, 0>, strides = array<i64: 1, 1>}> : (tensor<7x7xf32>) -> tensor<2x7xf32>
    %28 = "func.call"(%27) <{callee = @_flip}> : (tensor<2x7xf32>) -> tensor<2x7xf32>
    %29 = "stablehlo.concatenate"(%26, %28) <{dimension = 0 : i64}> : (tensor<7x7xf32>, tensor<2x7xf32>) -> tensor<9x7xf32>
    %30 = "stablehlo.slice"(%29) <{limit_indices = array<i64: 9, 3>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<9x7xf32>) -> tensor<9x2xf32>
    %31 = "func.call"(%30) <{callee = @_flip_1}> : (tensor<9x2xf32>) -> tensor<9x2xf32>
    %32 = "stablehlo.concatenate"(%31, %29) <{dimension = 1 : i64}> : (tensor<9x2xf32>, tensor<9x7xf32>) -> tensor<9x9xf32>
    %33 = "stablehlo.slice"(%32) <{limit_indices = array<i64: 9, 8>, start_indices = array<i64: 0, 6>, strides = array<i64: 1, 1>}> : (tensor<9x9xf32>) -> tensor<9x2xf32>
    %34 = "func.call"(%33) <{callee = @_flip_1}> : (tensor<9x2xf32>) -> tensor<9x2xf32>
    %35 = "stablehlo.concatenate"(%32, %34) <{dimension = 1 : i64}> : (tensor<9x9xf32>, tensor<9x2xf32>) -> tensor<9x11xf32>
    "func.return"(%35) : (tensor<9x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7xf32>) -> tensor<2x7xf32>, sym_name = "_flip", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<2x7xf32>):
    %23 = "stablehlo.reverse"(%arg5) <{dimensions = array<i64: 0>}> : (tensor<2x7xf32>) -> tensor<2x7xf32>
    "func.return"(%23) : (tensor<2x7xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<9x2xf32>) -> tensor<9x2xf32>, sym_name = "_flip_1", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<9x2xf32>):
    %22 = "stablehlo.reverse"(%arg4) <{dimensions = array<i64: 1>}> : (tensor<9x2xf32>) -> tensor<9x2xf32>
    "func.return"(%22) : (tensor<9x2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<7x9xf32>, sym_name = "_pad_2", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<5x7xf32>):
    %8 = "stablehlo.slice"(%arg3) <{limit_indices = array<i64: 1, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<1x7xf32>) -> tensor<1x1x7xf32>
    %10 = "stablehlo.reshape"(%9) : (tensor<1x1x7xf32>) -> tensor<1x7xf32>
    %11 = "stablehlo.slice"(%arg3) <{limit_indices = array<i64: 5, 7>, start_indices = array<i64: 4, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<1x7xf32>
    %12 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<1x7xf32>) -> tensor<1x1x7xf32>
    %13 = "stablehlo.reshape"(%12) : (tensor<1x1x7xf32>) -> tensor<1x7xf32>
    %14 = "stablehlo.concatenate"(%10, %arg3, %13) <{dimension = 0 : i64}> : (tensor<1x7xf32>, tensor<5x7xf32>, tensor<1x7xf32>) -> tensor<7x7xf32>
    %15 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 7, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<7x7xf32>) -> tensor<7x1xf32>
    %16 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<7x1xf32>) -> tensor<7x1x1xf32>
    %17 = "stablehlo.reshape"(%16) : (tensor<7x1x1xf32>) -> tensor<7x1xf32>
    %18 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 7, 7>, start_indices = array<i64: 0, 6>, strides = array<i64: 1, 1>}> : (tensor<7x7xf32>) -> tensor<7x1xf32>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<7x1xf32>) -> tensor<7x1x1xf32>
    %20 = "stablehlo.reshape"(%19) : (tensor<7x1x1xf32>) -> tensor<7x1xf32>
    %21 = "stablehlo.concatenate"(%17, %14, %20) <{dimension = 1 : i64}> : (tensor<7x1xf32>, tensor<7x7xf32>, tensor<7x1xf32>) -> tensor<7x9xf32>
    "func.return"(%21) : (tensor<7x9xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>) -> tensor<9x11xf32>, sym_name = "_pad_3", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<5x7xf32>):
    %2 = "stablehlo.slice"(%arg2) <{limit_indices = array<i64: 5, 7>, start_indices = array<i64: 3, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<2x7xf32>
    %3 = "stablehlo.slice"(%arg2) <{limit_indices = array<i64: 2, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf32>) -> tensor<2x7xf32>
    %4 = "stablehlo.concatenate"(%2, %arg2, %3) <{dimension = 0 : i64}> : (tensor<2x7xf32>, tensor<5x7xf32>, tensor<2x7xf32>) -> tensor<9x7xf32>
    %5 = "stablehlo.slice"(%4) <{limit_indices = array<i64: 9, 7>, start_indices = array<i64: 0, 5>, strides = array<i64: 1, 1>}> : (tensor<9x7xf32>) -> tensor<9x2xf32>
    %6 = "stablehlo.slice"(%4) <{limit_indices = array<i64: 9, 2>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<9x7xf32>) -> tensor<9x2xf32>
    %7 = "stablehlo.concatenate"(%5, %4, %6) <{dimension = 1 : i64}> : (tensor<9x2xf32>, tensor<9x7xf32>, tensor<9x2xf32>) -> tensor<9x11xf32>
    "func.return"(%7) : (tensor<9x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<i32>) -> tensor<7x9xf32>, sym_name = "_pad_4", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<5x7xf32>, %arg1: tensor<i32>):
    %0 = "stablehlo.convert"(%arg1) : (tensor<i32>) -> tensor<f32>
    %1 = "stablehlo.pad"(%arg0, %0) <{edge_padding_high = array<i64: 1, 1>, edge_padding_low = array<i64: 1, 1>, interior_padding = array<i64: 0, 0>}> : (tensor<5x7xf32>, tensor<f32>) -> tensor<7x9xf32>
    "func.return"(%1) : (tensor<7x9xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
