"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<?x8xi32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>) -> tensor<?x8x11xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg47: tensor<?x8xi32>, %arg48: tensor<64x16xf32>, %arg49: tensor<16x16xf32>, %arg50: tensor<16x48xf32>, %arg51: tensor<16xf32>, %arg52: tensor<16x64xf32>, %arg53: tensor<64x16xf32>, %arg54: tensor<16x16xf32>, %arg55: tensor<16x48xf32>, %arg56: tensor<16xf32>, %arg57: tensor<16x64xf32>, %arg58: tensor<8x16xf32>, %arg59: tensor<11x16xf32>):
    %407 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %408 = "stablehlo.get_dimension_size"(%arg47) <{dimension = 0 : i64}> : (tensor<?x8xi32>) -> tensor<i32>
    %409 = "stablehlo.compare"(%408, %407) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%409, %408) <{api_version = 2 : i32, call_target_name = "shape_assertion", has_side_effect = true}> {error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 8). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details."} : (tensor<i1>, tensor<i32>) -> ()
    %410 = "func.call"(%408, %arg47, %arg48, %arg49, %arg50, %arg51, %arg52, %arg53, %arg54, %arg55, %arg56, %arg57, %arg58, %arg59) <{callee = @_wrapped_jax_export_main}> : (tensor<i32>, tensor<?x8xi32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>) -> tensor<?x8x11xf32>
    "func.return"(%410) : (tensor<?x8x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.global_constant = "b"}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}], function_type = (tensor<i32>, tensor<?x8xi32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>) -> tensor<?x8x11xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "_wrapped_jax_export_main", sym_visibility = "private"}> ({
  ^bb0(%arg17: tensor<i32>, %arg18: tensor<?x8xi32>, %arg19: tensor<64x16xf32>, %arg20: tensor<16x16xf32>, %arg21: tensor<16x48xf32>, %arg22: tensor<16xf32>, %arg23: tensor<16x64xf32>, %arg24: tensor<64x16xf32>, %arg25: tensor<16x16xf32>, %arg26: tensor<16x48xf32>, %arg27: tensor<16xf32>, %arg28: tensor<16x64xf32>, %arg29: tensor<8x16xf32>, %arg30: tensor<11x16xf32>):
    %63 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %64 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %65 = "stablehlo.constant"() <{value = dense<0.797884583> : tensor<f32>}> : () -> tensor<f32>
    %66 = "stablehlo.constant"() <{value = dense<64> : tensor<1xi32>}> : () -> tensor<1xi32>
    %67 = "stablehlo.constant"() <{value = dense<4.471500e-02> : tensor<f32>}> : () -> tensor<f32>
    %68 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %69 = "stablehlo.constant"() <{value = dense<-2.38197633E+38> : tensor<f32>}> : () -> tensor<f32>
    %70 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %71 = "stablehlo.constant"() <{value = dense<0.353553385> : tensor<f32>}> : () -> tensor<f32>
    %72 = "stablehlo.constant"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %73 = "stablehlo.constant"() <{value = dense<24> : tensor<1xi32>}> : () -> tensor<1xi32>
    %74 = "stablehlo.constant"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
    %75 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %76 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %77 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %78 = "stablehlo.constant"() <{value = dense<16> : tensor<1xi32>}> : () -> tensor<1xi32>
    %79 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %80 = "stablehlo.constant"() <{value = dense<11> : tensor<i32>}> : () -> tensor<i32>
    %81 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %82 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %83 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %84 = "stablehlo.concatenate"(%83, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %85 = "stablehlo.dynamic_broadcast_in_dim"(%82, %84) <{broadcast_dimensions = array<i64>}> : (tensor<i32>, tensor<2xi32>) -> tensor<?x8xi32>
    %86 = "stablehlo.compare"(%arg18, %85) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<?x8xi32>, tensor<?x8xi32>) -> tensor<?x8xi1>
    %87 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %88 = "stablehlo.concatenate"(%87, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %89 = "stablehlo.dynamic_broadcast_in_dim"(%80, %88) <{broadcast_dimensions = array<i64>}> : (tensor<i32>, tensor<2xi32>) -> tensor<?x8xi32>
    %90 = "stablehlo.add"(%arg18, %89) : (tensor<?x8xi32>, tensor<?x8xi32>) -> tensor<?x8xi32>
    %91 = "stablehlo.select"(%86, %90, %arg18) : (tensor<?x8xi1>, tensor<?x8xi32>, tensor<?x8xi32>) -> tensor<?x8xi32>
    %92 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %93 = "stablehlo.concatenate"(%92, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %94 = "stablehlo.dynamic_broadcast_in_dim"(%91, %93) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xi32>, tensor<3xi32>) -> tensor<?x8x1xi32>
    %95 = "stablehlo.gather"(%arg30, %94) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<11x16xf32>, tensor<?x8x1xi32>) -> tensor<?x8x16xf32>
    %96 = "stablehlo.broadcast_in_dim"(%arg29) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %97 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %98 = "stablehlo.concatenate"(%97, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %99 = "stablehlo.dynamic_broadcast_in_dim"(%96, %98) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x8x16xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %100 = "stablehlo.add"(%95, %99) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %101 = "stablehlo.reduce"(%100, %77) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg45: tensor<f32>, %arg46: tensor<f32>):
      %406 = "stablehlo.add"(%arg45, %arg46) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%406) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %102 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %103 = "stablehlo.concatenate"(%102, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %104 = "stablehlo.dynamic_broadcast_in_dim"(%101, %103) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %105 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %106 = "stablehlo.concatenate"(%105, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %107 = "stablehlo.dynamic_broadcast_in_dim"(%76, %106) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %108 = "stablehlo.divide"(%104, %107) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %109 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %110 = "stablehlo.concatenate"(%109, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %111 = "stablehlo.dynamic_broadcast_in_dim"(%108, %110) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %112 = "stablehlo.subtract"(%100, %111) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %113 = "func.call"(%arg17, %100, %82) <{callee = @_var}> : (tensor<i32>, tensor<?x8x16xf32>, tensor<i32>) -> tensor<?x8x1xf32>
    %114 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %115 = "stablehlo.concatenate"(%114, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %116 = "stablehlo.dynamic_broadcast_in_dim"(%75, %115) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %117 = "stablehlo.add"(%113, %116) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %118 = "stablehlo.rsqrt"(%117) : (tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %119 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %120 = "stablehlo.concatenate"(%119, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %121 = "stablehlo.dynamic_broadcast_in_dim"(%118, %120) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %122 = "stablehlo.multiply"(%112, %121) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %123 = "stablehlo.broadcast_in_dim"(%arg22) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %124 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %125 = "stablehlo.concatenate"(%124, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %126 = "stablehlo.dynamic_broadcast_in_dim"(%123, %125) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %127 = "stablehlo.multiply"(%122, %126) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %128 = "stablehlo.dot_general"(%127, %arg21) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x48xf32>) -> tensor<?x8x48xf32>
    %129 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %130 = "stablehlo.concatenate"(%129, %81, %74, %73) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %131 = "stablehlo.dynamic_reshape"(%128, %130) : (tensor<?x8x48xf32>, tensor<4xi32>) -> tensor<?x8x2x24xf32>
    %132 = "stablehlo.concatenate"(%72, %72, %72, %72) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %133 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %134 = "stablehlo.concatenate"(%133, %81, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %135 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %136 = "stablehlo.real_dynamic_slice"(%131, %132, %134, %135) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %137 = "stablehlo.concatenate"(%72, %72, %72, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %138 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %139 = "stablehlo.concatenate"(%138, %81, %74, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %140 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %141 = "stablehlo.real_dynamic_slice"(%131, %137, %139, %140) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %142 = "stablehlo.concatenate"(%72, %72, %72, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %143 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %144 = "stablehlo.concatenate"(%143, %81, %74, %73) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %145 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %146 = "stablehlo.real_dynamic_slice"(%131, %142, %144, %145) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %147 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %148 = "stablehlo.concatenate"(%147, %81, %74, %79, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %149 = "stablehlo.dynamic_reshape"(%136, %148) : (tensor<?x8x2x8xf32>, tensor<5xi32>) -> tensor<?x8x2x1x8xf32>
    %150 = "stablehlo.dot_general"(%149, %141) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<?x8x2x1x8xf32>, tensor<?x8x2x8xf32>) -> tensor<?x2x8x1x8xf32>
    %151 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %152 = "stablehlo.concatenate"(%151, %74, %81, %79, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %153 = "stablehlo.dynamic_broadcast_in_dim"(%71, %152) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<5xi32>) -> tensor<?x2x8x1x8xf32>
    %154 = "stablehlo.multiply"(%150, %153) : (tensor<?x2x8x1x8xf32>, tensor<?x2x8x1x8xf32>) -> tensor<?x2x8x1x8xf32>
    %155 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %156 = "stablehlo.concatenate"(%155, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %157 = "stablehlo.dynamic_broadcast_in_dim"(%70, %156) <{broadcast_dimensions = array<i64>}> : (tensor<i1>, tensor<4xi32>) -> tensor<?x2x8x8xi1>
    %158 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<8x8xi1>
    %159 = "func.call"(%arg17, %158) <{callee = @tril}> : (tensor<i32>, tensor<8x8xi1>) -> tensor<8x8xi1>
    %160 = "stablehlo.broadcast_in_dim"(%159) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<8x8xi1>) -> tensor<1x1x8x8xi1>
    %161 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %162 = "stablehlo.concatenate"(%161, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %163 = "stablehlo.dynamic_broadcast_in_dim"(%160, %162) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x8x8xi1>, tensor<4xi32>) -> tensor<?x2x8x8xi1>
    %164 = "stablehlo.and"(%157, %163) : (tensor<?x2x8x8xi1>, tensor<?x2x8x8xi1>) -> tensor<?x2x8x8xi1>
    %165 = "func.call"(%arg17, %164, %154, %69) <{callee = @_where_0}> : (tensor<i32>, tensor<?x2x8x8xi1>, tensor<?x2x8x1x8xf32>, tensor<f32>) -> tensor<1x?x2x8x8xf32>
    %166 = "stablehlo.reduce"(%165, %68) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg43: tensor<f32>, %arg44: tensor<f32>):
      %405 = "stablehlo.maximum"(%arg43, %arg44) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%405) : (tensor<f32>) -> ()
    }) : (tensor<1x?x2x8x8xf32>, tensor<f32>) -> tensor<1x?x2x8xf32>
    %167 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %168 = "stablehlo.concatenate"(%79, %167, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %169 = "stablehlo.dynamic_broadcast_in_dim"(%68, %168) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<4xi32>) -> tensor<1x?x2x8xf32>
    %170 = "stablehlo.maximum"(%169, %166) : (tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>) -> tensor<1x?x2x8xf32>
    %171 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %172 = "stablehlo.concatenate"(%79, %171, %74, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %173 = "stablehlo.dynamic_broadcast_in_dim"(%170, %172) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x?x2x8xf32>, tensor<5xi32>) -> tensor<1x?x2x8x1xf32>
    %174 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %175 = "stablehlo.concatenate"(%79, %174, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %176 = "stablehlo.dynamic_broadcast_in_dim"(%173, %175) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x?x2x8x1xf32>, tensor<5xi32>) -> tensor<1x?x2x8x8xf32>
    %177 = "stablehlo.subtract"(%165, %176) : (tensor<1x?x2x8x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %178 = "stablehlo.exponential"(%177) : (tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %179 = "stablehlo.reduce"(%178, %77) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %404 = "stablehlo.add"(%arg41, %arg42) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%404) : (tensor<f32>) -> ()
    }) : (tensor<1x?x2x8x8xf32>, tensor<f32>) -> tensor<1x?x2x8xf32>
    %180 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %181 = "stablehlo.concatenate"(%79, %180, %74, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %182 = "stablehlo.dynamic_broadcast_in_dim"(%179, %181) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x?x2x8xf32>, tensor<5xi32>) -> tensor<1x?x2x8x1xf32>
    %183 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %184 = "stablehlo.concatenate"(%79, %183, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %185 = "stablehlo.dynamic_broadcast_in_dim"(%182, %184) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x?x2x8x1xf32>, tensor<5xi32>) -> tensor<1x?x2x8x8xf32>
    %186 = "stablehlo.divide"(%178, %185) : (tensor<1x?x2x8x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %187 = "stablehlo.dot_general"(%146, %186) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<?x8x2x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<?x2x8x1x8xf32>
    %188 = "stablehlo.transpose"(%187) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<?x2x8x1x8xf32>) -> tensor<1x?x8x2x8xf32>
    %189 = "stablehlo.transpose"(%188) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x?x8x2x8xf32>) -> tensor<?x8x2x1x8xf32>
    %190 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %191 = "stablehlo.concatenate"(%190, %81, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %192 = "stablehlo.dynamic_reshape"(%189, %191) : (tensor<?x8x2x1x8xf32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %193 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %194 = "stablehlo.concatenate"(%193, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %195 = "stablehlo.dynamic_reshape"(%192, %194) : (tensor<?x8x2x8xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %196 = "stablehlo.dot_general"(%195, %arg20) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x16xf32>) -> tensor<?x8x16xf32>
    %197 = "stablehlo.add"(%100, %196) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %198 = "stablehlo.reduce"(%197, %77) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg39: tensor<f32>, %arg40: tensor<f32>):
      %403 = "stablehlo.add"(%arg39, %arg40) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%403) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %199 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %200 = "stablehlo.concatenate"(%199, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %201 = "stablehlo.dynamic_broadcast_in_dim"(%198, %200) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %202 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %203 = "stablehlo.concatenate"(%202, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %204 = "stablehlo.dynamic_broadcast_in_dim"(%76, %203) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %205 = "stablehlo.divide"(%201, %204) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %206 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %207 = "stablehlo.concatenate"(%206, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %208 = "stablehlo.dynamic_broadcast_in_dim"(%205, %207) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %209 = "stablehlo.subtract"(%197, %208) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %210 = "func.call"(%arg17, %197, %82) <{callee = @_var}> : (tensor<i32>, tensor<?x8x16xf32>, tensor<i32>) -> tensor<?x8x1xf32>
    %211 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %212 = "stablehlo.concatenate"(%211, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %213 = "stablehlo.dynamic_broadcast_in_dim"(%75, %212) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %214 = "stablehlo.add"(%210, %213) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %215 = "stablehlo.rsqrt"(%214) : (tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %216 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %217 = "stablehlo.concatenate"(%216, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %218 = "stablehlo.dynamic_broadcast_in_dim"(%215, %217) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %219 = "stablehlo.multiply"(%209, %218) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %220 = "stablehlo.broadcast_in_dim"(%arg22) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %221 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %222 = "stablehlo.concatenate"(%221, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %223 = "stablehlo.dynamic_broadcast_in_dim"(%220, %222) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %224 = "stablehlo.multiply"(%219, %223) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %225 = "stablehlo.dot_general"(%224, %arg23) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x64xf32>) -> tensor<?x8x64xf32>
    %226 = "stablehlo.multiply"(%225, %225) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %227 = "stablehlo.multiply"(%226, %225) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %228 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %229 = "stablehlo.concatenate"(%228, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %230 = "stablehlo.dynamic_broadcast_in_dim"(%67, %229) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %231 = "stablehlo.multiply"(%230, %227) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %232 = "stablehlo.add"(%225, %231) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %233 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %234 = "stablehlo.concatenate"(%233, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %235 = "stablehlo.dynamic_broadcast_in_dim"(%65, %234) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %236 = "stablehlo.multiply"(%235, %232) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %237 = "stablehlo.tanh"(%236) : (tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %238 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %239 = "stablehlo.concatenate"(%238, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %240 = "stablehlo.dynamic_broadcast_in_dim"(%64, %239) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %241 = "stablehlo.add"(%240, %237) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %242 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %243 = "stablehlo.concatenate"(%242, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %244 = "stablehlo.dynamic_broadcast_in_dim"(%63, %243) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %245 = "stablehlo.multiply"(%244, %241) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %246 = "stablehlo.multiply"(%225, %245) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %247 = "stablehlo.dot_general"(%246, %arg19) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x64xf32>, tensor<64x16xf32>) -> tensor<?x8x16xf32>
    %248 = "stablehlo.add"(%197, %247) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %249 = "stablehlo.reduce"(%248, %77) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg37: tensor<f32>, %arg38: tensor<f32>):
      %402 = "stablehlo.add"(%arg37, %arg38) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%402) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %250 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %251 = "stablehlo.concatenate"(%250, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %252 = "stablehlo.dynamic_broadcast_in_dim"(%249, %251) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %253 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %254 = "stablehlo.concatenate"(%253, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %255 = "stablehlo.dynamic_broadcast_in_dim"(%76, %254) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %256 = "stablehlo.divide"(%252, %255) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %257 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %258 = "stablehlo.concatenate"(%257, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %259 = "stablehlo.dynamic_broadcast_in_dim"(%256, %258) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %260 = "stablehlo.subtract"(%248, %259) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %261 = "func.call"(%arg17, %248, %82) <{callee = @_var}> : (tensor<i32>, tensor<?x8x16xf32>, tensor<i32>) -> tensor<?x8x1xf32>
    %262 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %263 = "stablehlo.concatenate"(%262, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %264 = "stablehlo.dynamic_broadcast_in_dim"(%75, %263) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %265 = "stablehlo.add"(%261, %264) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %266 = "stablehlo.rsqrt"(%265) : (tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %267 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %268 = "stablehlo.concatenate"(%267, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %269 = "stablehlo.dynamic_broadcast_in_dim"(%266, %268) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %270 = "stablehlo.multiply"(%260, %269) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %271 = "stablehlo.broadcast_in_dim"(%arg27) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %272 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %273 = "stablehlo.concatenate"(%272, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %274 = "stablehlo.dynamic_broadcast_in_dim"(%271, %273) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %275 = "stablehlo.multiply"(%270, %274) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %276 = "stablehlo.dot_general"(%275, %arg26) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x48xf32>) -> tensor<?x8x48xf32>
    %277 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %278 = "stablehlo.concatenate"(%277, %81, %74, %73) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %279 = "stablehlo.dynamic_reshape"(%276, %278) : (tensor<?x8x48xf32>, tensor<4xi32>) -> tensor<?x8x2x24xf32>
    %280 = "stablehlo.concatenate"(%72, %72, %72, %72) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %281 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %282 = "stablehlo.concatenate"(%281, %81, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %283 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %284 = "stablehlo.real_dynamic_slice"(%279, %280, %282, %283) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %285 = "stablehlo.concatenate"(%72, %72, %72, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %286 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %287 = "stablehlo.concatenate"(%286, %81, %74, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %288 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %289 = "stablehlo.real_dynamic_slice"(%279, %285, %287, %288) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %290 = "stablehlo.concatenate"(%72, %72, %72, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %291 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %292 = "stablehlo.concatenate"(%291, %81, %74, %73) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %293 = "stablehlo.concatenate"(%79, %79, %79, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %294 = "stablehlo.real_dynamic_slice"(%279, %290, %292, %293) : (tensor<?x8x2x24xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %295 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %296 = "stablehlo.concatenate"(%295, %81, %74, %79, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %297 = "stablehlo.dynamic_reshape"(%284, %296) : (tensor<?x8x2x8xf32>, tensor<5xi32>) -> tensor<?x8x2x1x8xf32>
    %298 = "stablehlo.dot_general"(%297, %289) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<?x8x2x1x8xf32>, tensor<?x8x2x8xf32>) -> tensor<?x2x8x1x8xf32>
    %299 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %300 = "stablehlo.concatenate"(%299, %74, %81, %79, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %301 = "stablehlo.dynamic_broadcast_in_dim"(%71, %300) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<5xi32>) -> tensor<?x2x8x1x8xf32>
    %302 = "stablehlo.multiply"(%298, %301) : (tensor<?x2x8x1x8xf32>, tensor<?x2x8x1x8xf32>) -> tensor<?x2x8x1x8xf32>
    %303 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %304 = "stablehlo.concatenate"(%303, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %305 = "stablehlo.dynamic_broadcast_in_dim"(%70, %304) <{broadcast_dimensions = array<i64>}> : (tensor<i1>, tensor<4xi32>) -> tensor<?x2x8x8xi1>
    %306 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<8x8xi1>
    %307 = "func.call"(%arg17, %306) <{callee = @tril}> : (tensor<i32>, tensor<8x8xi1>) -> tensor<8x8xi1>
    %308 = "stablehlo.broadcast_in_dim"(%307) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<8x8xi1>) -> tensor<1x1x8x8xi1>
    %309 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %310 = "stablehlo.concatenate"(%309, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %311 = "stablehlo.dynamic_broadcast_in_dim"(%308, %310) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x8x8xi1>, tensor<4xi32>) -> tensor<?x2x8x8xi1>
    %312 = "stablehlo.and"(%305, %311) : (tensor<?x2x8x8xi1>, tensor<?x2x8x8xi1>) -> tensor<?x2x8x8xi1>
    %313 = "func.call"(%arg17, %312, %302, %69) <{callee = @_where_0}> : (tensor<i32>, tensor<?x2x8x8xi1>, tensor<?x2x8x1x8xf32>, tensor<f32>) -> tensor<1x?x2x8x8xf32>
    %314 = "stablehlo.reduce"(%313, %68) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg35: tensor<f32>, %arg36: tensor<f32>):
      %401 = "stablehlo.maximum"(%arg35, %arg36) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%401) : (tensor<f32>) -> ()
    }) : (tensor<1x?x2x8x8xf32>, tensor<f32>) -> tensor<1x?x2x8xf32>
    %315 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %316 = "stablehlo.concatenate"(%79, %315, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %317 = "stablehlo.dynamic_broadcast_in_dim"(%68, %316) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<4xi32>) -> tensor<1x?x2x8xf32>
    %318 = "stablehlo.maximum"(%317, %314) : (tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>) -> tensor<1x?x2x8xf32>
    %319 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %320 = "stablehlo.concatenate"(%79, %319, %74, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %321 = "stablehlo.dynamic_broadcast_in_dim"(%318, %320) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x?x2x8xf32>, tensor<5xi32>) -> tensor<1x?x2x8x1xf32>
    %322 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %323 = "stablehlo.concatenate"(%79, %322, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %324 = "stablehlo.dynamic_broadcast_in_dim"(%321, %323) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x?x2x8x1xf32>, tensor<5xi32>) -> tensor<1x?x2x8x8xf32>
    %325 = "stablehlo.subtract"(%313, %324) : (tensor<1x?x2x8x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %326 = "stablehlo.exponential"(%325) : (tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %327 = "stablehlo.reduce"(%326, %77) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg33: tensor<f32>, %arg34: tensor<f32>):
      %400 = "stablehlo.add"(%arg33, %arg34) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%400) : (tensor<f32>) -> ()
    }) : (tensor<1x?x2x8x8xf32>, tensor<f32>) -> tensor<1x?x2x8xf32>
    %328 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %329 = "stablehlo.concatenate"(%79, %328, %74, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %330 = "stablehlo.dynamic_broadcast_in_dim"(%327, %329) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x?x2x8xf32>, tensor<5xi32>) -> tensor<1x?x2x8x1xf32>
    %331 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %332 = "stablehlo.concatenate"(%79, %331, %74, %81, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %333 = "stablehlo.dynamic_broadcast_in_dim"(%330, %332) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x?x2x8x1xf32>, tensor<5xi32>) -> tensor<1x?x2x8x8xf32>
    %334 = "stablehlo.divide"(%326, %333) : (tensor<1x?x2x8x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    %335 = "stablehlo.dot_general"(%294, %334) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<?x8x2x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<?x2x8x1x8xf32>
    %336 = "stablehlo.transpose"(%335) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<?x2x8x1x8xf32>) -> tensor<1x?x8x2x8xf32>
    %337 = "stablehlo.transpose"(%336) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x?x8x2x8xf32>) -> tensor<?x8x2x1x8xf32>
    %338 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %339 = "stablehlo.concatenate"(%338, %81, %74, %81) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %340 = "stablehlo.dynamic_reshape"(%337, %339) : (tensor<?x8x2x1x8xf32>, tensor<4xi32>) -> tensor<?x8x2x8xf32>
    %341 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %342 = "stablehlo.concatenate"(%341, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %343 = "stablehlo.dynamic_reshape"(%340, %342) : (tensor<?x8x2x8xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %344 = "stablehlo.dot_general"(%343, %arg25) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x16xf32>) -> tensor<?x8x16xf32>
    %345 = "stablehlo.add"(%248, %344) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %346 = "stablehlo.reduce"(%345, %77) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg31: tensor<f32>, %arg32: tensor<f32>):
      %399 = "stablehlo.add"(%arg31, %arg32) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%399) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %347 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %348 = "stablehlo.concatenate"(%347, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %349 = "stablehlo.dynamic_broadcast_in_dim"(%346, %348) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %350 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %351 = "stablehlo.concatenate"(%350, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %352 = "stablehlo.dynamic_broadcast_in_dim"(%76, %351) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %353 = "stablehlo.divide"(%349, %352) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %354 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %355 = "stablehlo.concatenate"(%354, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %356 = "stablehlo.dynamic_broadcast_in_dim"(%353, %355) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %357 = "stablehlo.subtract"(%345, %356) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %358 = "func.call"(%arg17, %345, %82) <{callee = @_var}> : (tensor<i32>, tensor<?x8x16xf32>, tensor<i32>) -> tensor<?x8x1xf32>
    %359 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %360 = "stablehlo.concatenate"(%359, %81, %79) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %361 = "stablehlo.dynamic_broadcast_in_dim"(%75, %360) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %362 = "stablehlo.add"(%358, %361) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %363 = "stablehlo.rsqrt"(%362) : (tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %364 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %365 = "stablehlo.concatenate"(%364, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %366 = "stablehlo.dynamic_broadcast_in_dim"(%363, %365) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %367 = "stablehlo.multiply"(%357, %366) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %368 = "stablehlo.broadcast_in_dim"(%arg27) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %369 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %370 = "stablehlo.concatenate"(%369, %81, %78) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %371 = "stablehlo.dynamic_broadcast_in_dim"(%368, %370) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %372 = "stablehlo.multiply"(%367, %371) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %373 = "stablehlo.dot_general"(%372, %arg28) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x64xf32>) -> tensor<?x8x64xf32>
    %374 = "stablehlo.multiply"(%373, %373) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %375 = "stablehlo.multiply"(%374, %373) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %376 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %377 = "stablehlo.concatenate"(%376, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %378 = "stablehlo.dynamic_broadcast_in_dim"(%67, %377) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %379 = "stablehlo.multiply"(%378, %375) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %380 = "stablehlo.add"(%373, %379) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %381 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %382 = "stablehlo.concatenate"(%381, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %383 = "stablehlo.dynamic_broadcast_in_dim"(%65, %382) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %384 = "stablehlo.multiply"(%383, %380) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %385 = "stablehlo.tanh"(%384) : (tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %386 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %387 = "stablehlo.concatenate"(%386, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %388 = "stablehlo.dynamic_broadcast_in_dim"(%64, %387) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %389 = "stablehlo.add"(%388, %385) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %390 = "stablehlo.reshape"(%arg17) : (tensor<i32>) -> tensor<1xi32>
    %391 = "stablehlo.concatenate"(%390, %81, %66) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %392 = "stablehlo.dynamic_broadcast_in_dim"(%63, %391) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x64xf32>
    %393 = "stablehlo.multiply"(%392, %389) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %394 = "stablehlo.multiply"(%373, %393) : (tensor<?x8x64xf32>, tensor<?x8x64xf32>) -> tensor<?x8x64xf32>
    %395 = "stablehlo.dot_general"(%394, %arg24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x64xf32>, tensor<64x16xf32>) -> tensor<?x8x16xf32>
    %396 = "stablehlo.add"(%345, %395) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %397 = "stablehlo.transpose"(%arg30) <{permutation = array<i64: 1, 0>}> : (tensor<11x16xf32>) -> tensor<16x11xf32>
    %398 = "stablehlo.dot_general"(%396, %397) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<?x8x16xf32>, tensor<16x11xf32>) -> tensor<?x8x11xf32>
    "func.return"(%398) : (tensor<?x8x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.global_constant = "b"}, {}, {}], function_type = (tensor<i32>, tensor<?x8x16xf32>, tensor<i32>) -> tensor<?x8x1xf32>, sym_name = "_var", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<i32>, %arg11: tensor<?x8x16xf32>, %arg12: tensor<i32>):
    %30 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %31 = "stablehlo.constant"() <{value = dense<16> : tensor<1xi32>}> : () -> tensor<1xi32>
    %32 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %33 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %34 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %35 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %36 = "stablehlo.reduce"(%arg11, %35) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg15: tensor<f32>, %arg16: tensor<f32>):
      %62 = "stablehlo.add"(%arg15, %arg16) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%62) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %37 = "stablehlo.reshape"(%arg10) : (tensor<i32>) -> tensor<1xi32>
    %38 = "stablehlo.concatenate"(%37, %34, %33) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %39 = "stablehlo.dynamic_broadcast_in_dim"(%36, %38) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %40 = "stablehlo.reshape"(%arg10) : (tensor<i32>) -> tensor<1xi32>
    %41 = "stablehlo.concatenate"(%40, %34, %33) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %42 = "stablehlo.dynamic_broadcast_in_dim"(%32, %41) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %43 = "stablehlo.divide"(%39, %42) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %44 = "stablehlo.reshape"(%arg10) : (tensor<i32>) -> tensor<1xi32>
    %45 = "stablehlo.concatenate"(%44, %34, %31) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %46 = "stablehlo.dynamic_broadcast_in_dim"(%43, %45) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x1xf32>, tensor<3xi32>) -> tensor<?x8x16xf32>
    %47 = "stablehlo.subtract"(%arg11, %46) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %48 = "stablehlo.multiply"(%47, %47) : (tensor<?x8x16xf32>, tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
    %49 = "stablehlo.convert"(%arg12) : (tensor<i32>) -> tensor<f32>
    %50 = "stablehlo.subtract"(%32, %49) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %51 = "stablehlo.reduce"(%48, %35) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      %61 = "stablehlo.add"(%arg13, %arg14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%61) : (tensor<f32>) -> ()
    }) : (tensor<?x8x16xf32>, tensor<f32>) -> tensor<?x8xf32>
    %52 = "stablehlo.reshape"(%arg10) : (tensor<i32>) -> tensor<1xi32>
    %53 = "stablehlo.concatenate"(%52, %34, %33) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %54 = "stablehlo.dynamic_broadcast_in_dim"(%51, %53) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %55 = "stablehlo.reshape"(%arg10) : (tensor<i32>) -> tensor<1xi32>
    %56 = "stablehlo.concatenate"(%55, %34, %33) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %57 = "stablehlo.dynamic_broadcast_in_dim"(%50, %56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %58 = "stablehlo.divide"(%54, %57) : (tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    %59 = "stablehlo.compare"(%50, %35) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %60 = "func.call"(%arg10, %59, %58, %30) <{callee = @_where}> : (tensor<i32>, tensor<i1>, tensor<?x8x1xf32>, tensor<f32>) -> tensor<?x8x1xf32>
    "func.return"(%60) : (tensor<?x8x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.global_constant = "b"}, {}, {}, {}], function_type = (tensor<i32>, tensor<i1>, tensor<?x8x1xf32>, tensor<f32>) -> tensor<?x8x1xf32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<i32>, %arg7: tensor<i1>, %arg8: tensor<?x8x1xf32>, %arg9: tensor<f32>):
    %23 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %24 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %25 = "stablehlo.convert"(%arg9) : (tensor<f32>) -> tensor<f32>
    %26 = "stablehlo.reshape"(%arg6) : (tensor<i32>) -> tensor<1xi32>
    %27 = "stablehlo.concatenate"(%26, %24, %23) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %28 = "stablehlo.dynamic_broadcast_in_dim"(%25, %27) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x8x1xf32>
    %29 = "stablehlo.select"(%arg7, %arg8, %28) : (tensor<i1>, tensor<?x8x1xf32>, tensor<?x8x1xf32>) -> tensor<?x8x1xf32>
    "func.return"(%29) : (tensor<?x8x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.global_constant = "b"}, {}], function_type = (tensor<i32>, tensor<8x8xi1>) -> tensor<8x8xi1>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<i32>, %arg5: tensor<8x8xi1>):
    %14 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %15 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %16 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8x8xi32>
    %17 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<8x8xi32>
    %18 = "stablehlo.add"(%16, %17) : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
    %19 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<8x8xi32>
    %20 = "stablehlo.compare"(%18, %19) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %21 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<8x8xi1>
    %22 = "stablehlo.select"(%20, %arg5, %21) : (tensor<8x8xi1>, tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
    "func.return"(%22) : (tensor<8x8xi1>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.global_constant = "b"}, {}, {}, {}], function_type = (tensor<i32>, tensor<?x2x8x8xi1>, tensor<?x2x8x1x8xf32>, tensor<f32>) -> tensor<1x?x2x8x8xf32>, sym_name = "_where_0", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<i32>, %arg1: tensor<?x2x8x8xi1>, %arg2: tensor<?x2x8x1x8xf32>, %arg3: tensor<f32>):
    %0 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %2 = "stablehlo.constant"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
    %3 = "stablehlo.reshape"(%arg0) : (tensor<i32>) -> tensor<1xi32>
    %4 = "stablehlo.concatenate"(%3, %2, %1, %1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %5 = "stablehlo.dynamic_broadcast_in_dim"(%arg3, %4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<4xi32>) -> tensor<?x2x8x8xf32>
    %6 = "stablehlo.reshape"(%arg0) : (tensor<i32>) -> tensor<1xi32>
    %7 = "stablehlo.concatenate"(%0, %6, %2, %1, %1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %8 = "stablehlo.dynamic_broadcast_in_dim"(%arg1, %7) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<?x2x8x8xi1>, tensor<5xi32>) -> tensor<1x?x2x8x8xi1>
    %9 = "stablehlo.reshape"(%arg0) : (tensor<i32>) -> tensor<1xi32>
    %10 = "stablehlo.concatenate"(%0, %9, %2, %1, %1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %11 = "stablehlo.dynamic_broadcast_in_dim"(%5, %10) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<?x2x8x8xf32>, tensor<5xi32>) -> tensor<1x?x2x8x8xf32>
    %12 = "stablehlo.transpose"(%arg2) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<?x2x8x1x8xf32>) -> tensor<1x?x2x8x8xf32>
    %13 = "stablehlo.select"(%8, %12, %11) : (tensor<1x?x2x8x8xi1>, tensor<1x?x2x8x8xf32>, tensor<1x?x2x8x8xf32>) -> tensor<1x?x2x8x8xf32>
    "func.return"(%13) : (tensor<1x?x2x8x8xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
