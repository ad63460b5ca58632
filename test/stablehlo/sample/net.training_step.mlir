"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<2x8xi32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>) -> (tensor<f32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]['layer0']['down']"}, {jax.result_info = "result[1]['layer0']['out']"}, {jax.result_info = "result[1]['layer0']['qkv']"}, {jax.result_info = "result[1]['layer0']['scale']"}, {jax.result_info = "result[1]['layer0']['up']"}, {jax.result_info = "result[1]['layer1']['down']"}, {jax.result_info = "result[1]['layer1']['out']"}, {jax.result_info = "result[1]['layer1']['qkv']"}, {jax.result_info = "result[1]['layer1']['scale']"}, {jax.result_info = "result[1]['layer1']['up']"}, {jax.result_info = "result[1]['places']"}, {jax.result_info = "result[1]['table']"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg47: tensor<2x8xi32>, %arg48: tensor<64x16xf32>, %arg49: tensor<16x16xf32>, %arg50: tensor<16x48xf32>, %arg51: tensor<16xf32>, %arg52: tensor<16x64xf32>, %arg53: tensor<64x16xf32>, %arg54: tensor<16x16xf32>, %arg55: tensor<16x48xf32>, %arg56: tensor<16xf32>, %arg57: tensor<16x64xf32>, %arg58: tensor<8x16xf32>, %arg59: tensor<11x16xf32>):
    %119 = "stablehlo.constant"() <{value = dense<1.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %120 = "stablehlo.constant"() <{value = dense<1.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %121 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %122 = "stablehlo.constant"() <{value = dense<0.797884583> : tensor<f32>}> : () -> tensor<f32>
    %123 = "stablehlo.constant"() <{value = dense<4.471500e-02> : tensor<f32>}> : () -> tensor<f32>
    %124 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %125 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %126 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %127 = "stablehlo.constant"() <{value = dense<-2.38197633E+38> : tensor<f32>}> : () -> tensor<f32>
    %128 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %129 = "stablehlo.constant"() <{value = dense<0.353553385> : tensor<f32>}> : () -> tensor<f32>
    %130 = "stablehlo.constant"() <{value = dense<-5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %131 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %132 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %133 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %134 = "stablehlo.constant"() <{value = dense<11> : tensor<i32>}> : () -> tensor<i32>
    %135 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %136 = "stablehlo.slice"(%arg47) <{limit_indices = array<i64: 2, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x8xi32>) -> tensor<2x7xi32>
    %137 = "stablehlo.broadcast_in_dim"(%135) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x7xi32>
    %138 = "stablehlo.compare"(%136, %137) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x7xi32>, tensor<2x7xi32>) -> tensor<2x7xi1>
    %139 = "stablehlo.broadcast_in_dim"(%134) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x7xi32>
    %140 = "stablehlo.add"(%136, %139) : (tensor<2x7xi32>, tensor<2x7xi32>) -> tensor<2x7xi32>
    %141 = "stablehlo.select"(%138, %140, %136) : (tensor<2x7xi1>, tensor<2x7xi32>, tensor<2x7xi32>) -> tensor<2x7xi32>
    %142 = "stablehlo.broadcast_in_dim"(%141) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xi32>) -> tensor<2x7x1xi32>
    %143 = "stablehlo.gather"(%arg59, %142) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<11x16xf32>, tensor<2x7x1xi32>) -> tensor<2x7x16xf32>
    %144 = "stablehlo.slice"(%arg58) <{limit_indices = array<i64: 7, 16>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<8x16xf32>) -> tensor<7x16xf32>
    %145 = "stablehlo.broadcast_in_dim"(%144) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<7x16xf32>) -> tensor<1x7x16xf32>
    %146 = "stablehlo.broadcast_in_dim"(%145) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x7x16xf32>) -> tensor<2x7x16xf32>
    %147 = "stablehlo.add"(%143, %146) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %148 = "stablehlo.reduce"(%147, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg130: tensor<f32>, %arg131: tensor<f32>):
      %640 = "stablehlo.add"(%arg130, %arg131) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%640) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %149 = "stablehlo.broadcast_in_dim"(%148) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %150 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %151 = "stablehlo.divide"(%149, %150) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %152 = "stablehlo.broadcast_in_dim"(%151) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %153 = "stablehlo.subtract"(%147, %152) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %154:4 = "func.call"(%147, %135) <{callee = @_var}> : (tensor<2x7x16xf32>, tensor<i32>) -> (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>)
    %155 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %156 = "stablehlo.add"(%154#0, %155) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %157 = "stablehlo.rsqrt"(%156) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %158 = "stablehlo.divide"(%157, %156) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %159 = "stablehlo.broadcast_in_dim"(%130) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %160 = "stablehlo.multiply"(%159, %158) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %161 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %162 = "stablehlo.multiply"(%153, %161) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %163 = "stablehlo.broadcast_in_dim"(%arg51) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %164 = "stablehlo.broadcast_in_dim"(%163) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %165 = "stablehlo.multiply"(%162, %164) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %166 = "stablehlo.dot_general"(%165, %arg50) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x48xf32>) -> tensor<2x7x48xf32>
    %167 = "stablehlo.reshape"(%166) : (tensor<2x7x48xf32>) -> tensor<2x7x2x24xf32>
    %168 = "stablehlo.slice"(%167) <{limit_indices = array<i64: 2, 7, 2, 8>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %169 = "stablehlo.slice"(%167) <{limit_indices = array<i64: 2, 7, 2, 16>, start_indices = array<i64: 0, 0, 0, 8>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %170 = "stablehlo.slice"(%167) <{limit_indices = array<i64: 2, 7, 2, 24>, start_indices = array<i64: 0, 0, 0, 16>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %171 = "stablehlo.reshape"(%168) : (tensor<2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %172 = "stablehlo.dot_general"(%171, %169) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<2x7x2x1x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x7x1x7xf32>
    %173 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x2x7x1x7xf32>
    %174 = "stablehlo.multiply"(%172, %173) : (tensor<2x2x7x1x7xf32>, tensor<2x2x7x1x7xf32>) -> tensor<2x2x7x1x7xf32>
    %175 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<2x2x7x7xi1>
    %176 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<7x7xi1>
    %177 = "func.call"(%176) <{callee = @tril}> : (tensor<7x7xi1>) -> tensor<7x7xi1>
    %178 = "stablehlo.broadcast_in_dim"(%177) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<7x7xi1>) -> tensor<1x1x7x7xi1>
    %179 = "stablehlo.broadcast_in_dim"(%178) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x7x7xi1>) -> tensor<2x2x7x7xi1>
    %180 = "stablehlo.and"(%175, %179) : (tensor<2x2x7x7xi1>, tensor<2x2x7x7xi1>) -> tensor<2x2x7x7xi1>
    %181:2 = "func.call"(%180, %174, %127) <{callee = @_where_0}> : (tensor<2x2x7x7xi1>, tensor<2x2x7x1x7xf32>, tensor<f32>) -> (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xi1>)
    %182 = "stablehlo.reduce"(%181#0, %126) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg128: tensor<f32>, %arg129: tensor<f32>):
      %639 = "stablehlo.maximum"(%arg128, %arg129) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%639) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %183 = "stablehlo.broadcast_in_dim"(%126) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x2x7xf32>
    %184 = "stablehlo.maximum"(%183, %182) : (tensor<1x2x2x7xf32>, tensor<1x2x2x7xf32>) -> tensor<1x2x2x7xf32>
    %185 = "stablehlo.broadcast_in_dim"(%184) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %186 = "stablehlo.broadcast_in_dim"(%185) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %187 = "stablehlo.subtract"(%181#0, %186) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %188 = "stablehlo.exponential"(%187) : (tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %189 = "stablehlo.reduce"(%188, %133) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg126: tensor<f32>, %arg127: tensor<f32>):
      %638 = "stablehlo.add"(%arg126, %arg127) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%638) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %190 = "stablehlo.broadcast_in_dim"(%189) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %191 = "stablehlo.broadcast_in_dim"(%190) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %192 = "stablehlo.divide"(%188, %191) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %193 = "stablehlo.multiply"(%190, %190) : (tensor<1x2x2x7x1xf32>, tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %194 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x2x7x1xf32>
    %195 = "stablehlo.divide"(%194, %193) : (tensor<1x2x2x7x1xf32>, tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %196 = "stablehlo.dot_general"(%170, %192) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<2x7x2x8xf32>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x8x1x7xf32>
    %197 = "stablehlo.transpose"(%196) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<2x2x8x1x7xf32>) -> tensor<1x2x7x2x8xf32>
    %198 = "stablehlo.transpose"(%197) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %199 = "stablehlo.reshape"(%198) : (tensor<2x7x2x1x8xf32>) -> tensor<2x7x2x8xf32>
    %200 = "stablehlo.reshape"(%199) : (tensor<2x7x2x8xf32>) -> tensor<2x7x16xf32>
    %201 = "stablehlo.dot_general"(%200, %arg49) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x16xf32>) -> tensor<2x7x16xf32>
    %202 = "stablehlo.add"(%147, %201) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %203 = "stablehlo.reduce"(%202, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg124: tensor<f32>, %arg125: tensor<f32>):
      %637 = "stablehlo.add"(%arg124, %arg125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%637) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %204 = "stablehlo.broadcast_in_dim"(%203) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %205 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %206 = "stablehlo.divide"(%204, %205) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %207 = "stablehlo.broadcast_in_dim"(%206) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %208 = "stablehlo.subtract"(%202, %207) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %209:4 = "func.call"(%202, %135) <{callee = @_var}> : (tensor<2x7x16xf32>, tensor<i32>) -> (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>)
    %210 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %211 = "stablehlo.add"(%209#0, %210) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %212 = "stablehlo.rsqrt"(%211) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %213 = "stablehlo.divide"(%212, %211) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %214 = "stablehlo.broadcast_in_dim"(%130) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %215 = "stablehlo.multiply"(%214, %213) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %216 = "stablehlo.broadcast_in_dim"(%212) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %217 = "stablehlo.multiply"(%208, %216) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %218 = "stablehlo.broadcast_in_dim"(%arg51) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %219 = "stablehlo.broadcast_in_dim"(%218) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %220 = "stablehlo.multiply"(%217, %219) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %221 = "stablehlo.dot_general"(%220, %arg52) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x64xf32>) -> tensor<2x7x64xf32>
    %222 = "stablehlo.multiply"(%221, %221) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %223 = "stablehlo.multiply"(%222, %221) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %224 = "stablehlo.multiply"(%221, %221) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %225 = "stablehlo.broadcast_in_dim"(%124) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %226 = "stablehlo.multiply"(%225, %224) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %227 = "stablehlo.broadcast_in_dim"(%123) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %228 = "stablehlo.multiply"(%227, %223) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %229 = "stablehlo.add"(%221, %228) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %230 = "stablehlo.broadcast_in_dim"(%122) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %231 = "stablehlo.multiply"(%230, %229) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %232 = "stablehlo.tanh"(%231) : (tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %233 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %234 = "stablehlo.subtract"(%233, %232) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %235 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %236 = "stablehlo.add"(%235, %232) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %237 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %238 = "stablehlo.multiply"(%237, %236) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %239 = "stablehlo.multiply"(%221, %238) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %240 = "stablehlo.dot_general"(%239, %arg48) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x64xf32>, tensor<64x16xf32>) -> tensor<2x7x16xf32>
    %241 = "stablehlo.add"(%202, %240) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %242 = "stablehlo.reduce"(%241, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg122: tensor<f32>, %arg123: tensor<f32>):
      %636 = "stablehlo.add"(%arg122, %arg123) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%636) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %243 = "stablehlo.broadcast_in_dim"(%242) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %244 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %245 = "stablehlo.divide"(%243, %244) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %246 = "stablehlo.broadcast_in_dim"(%245) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %247 = "stablehlo.subtract"(%241, %246) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %248:4 = "func.call"(%241, %135) <{callee = @_var}> : (tensor<2x7x16xf32>, tensor<i32>) -> (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>)
    %249 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %250 = "stablehlo.add"(%248#0, %249) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %251 = "stablehlo.rsqrt"(%250) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %252 = "stablehlo.divide"(%251, %250) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %253 = "stablehlo.broadcast_in_dim"(%130) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %254 = "stablehlo.multiply"(%253, %252) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %255 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %256 = "stablehlo.multiply"(%247, %255) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %257 = "stablehlo.broadcast_in_dim"(%arg56) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %258 = "stablehlo.broadcast_in_dim"(%257) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %259 = "stablehlo.multiply"(%256, %258) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %260 = "stablehlo.dot_general"(%259, %arg55) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x48xf32>) -> tensor<2x7x48xf32>
    %261 = "stablehlo.reshape"(%260) : (tensor<2x7x48xf32>) -> tensor<2x7x2x24xf32>
    %262 = "stablehlo.slice"(%261) <{limit_indices = array<i64: 2, 7, 2, 8>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %263 = "stablehlo.slice"(%261) <{limit_indices = array<i64: 2, 7, 2, 16>, start_indices = array<i64: 0, 0, 0, 8>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %264 = "stablehlo.slice"(%261) <{limit_indices = array<i64: 2, 7, 2, 24>, start_indices = array<i64: 0, 0, 0, 16>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x7x2x24xf32>) -> tensor<2x7x2x8xf32>
    %265 = "stablehlo.reshape"(%262) : (tensor<2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %266 = "stablehlo.dot_general"(%265, %263) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [3]>}> : (tensor<2x7x2x1x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x7x1x7xf32>
    %267 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x2x7x1x7xf32>
    %268 = "stablehlo.multiply"(%266, %267) : (tensor<2x2x7x1x7xf32>, tensor<2x2x7x1x7xf32>) -> tensor<2x2x7x1x7xf32>
    %269 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<2x2x7x7xi1>
    %270 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<7x7xi1>
    %271 = "func.call"(%270) <{callee = @tril}> : (tensor<7x7xi1>) -> tensor<7x7xi1>
    %272 = "stablehlo.broadcast_in_dim"(%271) <{broadcast_dimensions = array<i64: 2, 3>}> : (tensor<7x7xi1>) -> tensor<1x1x7x7xi1>
    %273 = "stablehlo.broadcast_in_dim"(%272) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x7x7xi1>) -> tensor<2x2x7x7xi1>
    %274 = "stablehlo.and"(%269, %273) : (tensor<2x2x7x7xi1>, tensor<2x2x7x7xi1>) -> tensor<2x2x7x7xi1>
    %275:2 = "func.call"(%274, %268, %127) <{callee = @_where_0}> : (tensor<2x2x7x7xi1>, tensor<2x2x7x1x7xf32>, tensor<f32>) -> (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xi1>)
    %276 = "stablehlo.reduce"(%275#0, %126) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg120: tensor<f32>, %arg121: tensor<f32>):
      %635 = "stablehlo.maximum"(%arg120, %arg121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%635) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %277 = "stablehlo.broadcast_in_dim"(%126) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x2x7xf32>
    %278 = "stablehlo.maximum"(%277, %276) : (tensor<1x2x2x7xf32>, tensor<1x2x2x7xf32>) -> tensor<1x2x2x7xf32>
    %279 = "stablehlo.broadcast_in_dim"(%278) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %280 = "stablehlo.broadcast_in_dim"(%279) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %281 = "stablehlo.subtract"(%275#0, %280) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %282 = "stablehlo.exponential"(%281) : (tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %283 = "stablehlo.reduce"(%282, %133) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg118: tensor<f32>, %arg119: tensor<f32>):
      %634 = "stablehlo.add"(%arg118, %arg119) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%634) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %284 = "stablehlo.broadcast_in_dim"(%283) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %285 = "stablehlo.broadcast_in_dim"(%284) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %286 = "stablehlo.divide"(%282, %285) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %287 = "stablehlo.multiply"(%284, %284) : (tensor<1x2x2x7x1xf32>, tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %288 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x2x7x1xf32>
    %289 = "stablehlo.divide"(%288, %287) : (tensor<1x2x2x7x1xf32>, tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %290 = "stablehlo.dot_general"(%264, %286) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [4]>}> : (tensor<2x7x2x8xf32>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x8x1x7xf32>
    %291 = "stablehlo.transpose"(%290) <{permutation = array<i64: 3, 0, 4, 1, 2>}> : (tensor<2x2x8x1x7xf32>) -> tensor<1x2x7x2x8xf32>
    %292 = "stablehlo.transpose"(%291) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %293 = "stablehlo.reshape"(%292) : (tensor<2x7x2x1x8xf32>) -> tensor<2x7x2x8xf32>
    %294 = "stablehlo.reshape"(%293) : (tensor<2x7x2x8xf32>) -> tensor<2x7x16xf32>
    %295 = "stablehlo.dot_general"(%294, %arg54) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x16xf32>) -> tensor<2x7x16xf32>
    %296 = "stablehlo.add"(%241, %295) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %297 = "stablehlo.reduce"(%296, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg116: tensor<f32>, %arg117: tensor<f32>):
      %633 = "stablehlo.add"(%arg116, %arg117) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%633) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %298 = "stablehlo.broadcast_in_dim"(%297) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %299 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %300 = "stablehlo.divide"(%298, %299) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %301 = "stablehlo.broadcast_in_dim"(%300) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %302 = "stablehlo.subtract"(%296, %301) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %303:4 = "func.call"(%296, %135) <{callee = @_var}> : (tensor<2x7x16xf32>, tensor<i32>) -> (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>)
    %304 = "stablehlo.broadcast_in_dim"(%131) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %305 = "stablehlo.add"(%303#0, %304) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %306 = "stablehlo.rsqrt"(%305) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %307 = "stablehlo.divide"(%306, %305) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %308 = "stablehlo.broadcast_in_dim"(%130) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %309 = "stablehlo.multiply"(%308, %307) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %310 = "stablehlo.broadcast_in_dim"(%306) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %311 = "stablehlo.multiply"(%302, %310) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %312 = "stablehlo.broadcast_in_dim"(%arg56) <{broadcast_dimensions = array<i64: 2>}> : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %313 = "stablehlo.broadcast_in_dim"(%312) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %314 = "stablehlo.multiply"(%311, %313) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %315 = "stablehlo.dot_general"(%314, %arg57) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x64xf32>) -> tensor<2x7x64xf32>
    %316 = "stablehlo.multiply"(%315, %315) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %317 = "stablehlo.multiply"(%316, %315) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %318 = "stablehlo.multiply"(%315, %315) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %319 = "stablehlo.broadcast_in_dim"(%124) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %320 = "stablehlo.multiply"(%319, %318) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %321 = "stablehlo.broadcast_in_dim"(%123) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %322 = "stablehlo.multiply"(%321, %317) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %323 = "stablehlo.add"(%315, %322) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %324 = "stablehlo.broadcast_in_dim"(%122) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %325 = "stablehlo.multiply"(%324, %323) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %326 = "stablehlo.tanh"(%325) : (tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %327 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %328 = "stablehlo.subtract"(%327, %326) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %329 = "stablehlo.broadcast_in_dim"(%125) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %330 = "stablehlo.add"(%329, %326) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %331 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %332 = "stablehlo.multiply"(%331, %330) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %333 = "stablehlo.multiply"(%315, %332) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %334 = "stablehlo.dot_general"(%333, %arg53) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x64xf32>, tensor<64x16xf32>) -> tensor<2x7x16xf32>
    %335 = "stablehlo.add"(%296, %334) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %336 = "stablehlo.transpose"(%arg59) <{permutation = array<i64: 1, 0>}> : (tensor<11x16xf32>) -> tensor<16x11xf32>
    %337 = "stablehlo.dot_general"(%335, %336) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x7x16xf32>, tensor<16x11xf32>) -> tensor<2x7x11xf32>
    %338:3 = "func.call"(%337) <{callee = @log_softmax}> : (tensor<2x7x11xf32>) -> (tensor<2x7x11xf32>, tensor<2x7x11xf32>, tensor<2x7x1xf32>)
    %339 = "stablehlo.slice"(%arg47) <{limit_indices = array<i64: 2, 8>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<2x8xi32>) -> tensor<2x7xi32>
    %340 = "stablehlo.broadcast_in_dim"(%339) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xi32>) -> tensor<2x7x1xi32>
    %341:2 = "func.call"(%338#0, %340) <{callee = @take_along_axis}> : (tensor<2x7x11xf32>, tensor<2x7x1xi32>) -> (tensor<2x7x1xf32>, tensor<2x7x1x1xi32>)
    %342 = "stablehlo.reduce"(%341#0, %133) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg114: tensor<f32>, %arg115: tensor<f32>):
      %632 = "stablehlo.add"(%arg114, %arg115) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%632) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<f32>
    %343 = "stablehlo.divide"(%342, %120) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %344 = "stablehlo.negate"(%343) : (tensor<f32>) -> tensor<f32>
    %345 = "stablehlo.negate"(%125) : (tensor<f32>) -> tensor<f32>
    %346 = "stablehlo.divide"(%345, %120) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %347 = "stablehlo.broadcast_in_dim"(%346) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %348 = "func.call"(%341#1, %347) <{callee = @take_along_axis_1}> : (tensor<2x7x1x1xi32>, tensor<2x7x1xf32>) -> tensor<2x7x11xf32>
    %349 = "func.call"(%338#1, %338#2, %348) <{callee = @log_softmax_2}> : (tensor<2x7x11xf32>, tensor<2x7x1xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    %350 = "stablehlo.dot_general"(%349, %335) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x11xf32>, tensor<2x7x16xf32>) -> tensor<11x16xf32>
    %351 = "stablehlo.transpose"(%350) <{permutation = array<i64: 1, 0>}> : (tensor<11x16xf32>) -> tensor<16x11xf32>
    %352 = "stablehlo.dot_general"(%349, %336) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x11xf32>, tensor<16x11xf32>) -> tensor<2x7x16xf32>
    %353 = "stablehlo.transpose"(%351) <{permutation = array<i64: 1, 0>}> : (tensor<16x11xf32>) -> tensor<11x16xf32>
    %354 = "stablehlo.dot_general"(%352, %333) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x16xf32>, tensor<2x7x64xf32>) -> tensor<16x64xf32>
    %355 = "stablehlo.transpose"(%354) <{permutation = array<i64: 1, 0>}> : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %356 = "stablehlo.dot_general"(%352, %arg53) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x16xf32>, tensor<64x16xf32>) -> tensor<2x7x64xf32>
    %357 = "stablehlo.multiply"(%315, %356) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %358 = "stablehlo.multiply"(%356, %332) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %359 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %360 = "stablehlo.multiply"(%359, %357) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %361 = "stablehlo.multiply"(%360, %328) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %362 = "stablehlo.multiply"(%361, %326) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %363 = "stablehlo.add"(%361, %362) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %364 = "stablehlo.broadcast_in_dim"(%122) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %365 = "stablehlo.multiply"(%364, %363) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %366 = "stablehlo.add"(%358, %365) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %367 = "stablehlo.broadcast_in_dim"(%123) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %368 = "stablehlo.multiply"(%367, %365) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %369 = "stablehlo.multiply"(%368, %320) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %370 = "stablehlo.add"(%366, %369) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %371 = "stablehlo.dot_general"(%370, %314) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x64xf32>, tensor<2x7x16xf32>) -> tensor<64x16xf32>
    %372 = "stablehlo.transpose"(%371) <{permutation = array<i64: 1, 0>}> : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %373 = "stablehlo.dot_general"(%370, %arg57) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x64xf32>, tensor<16x64xf32>) -> tensor<2x7x16xf32>
    %374 = "stablehlo.multiply"(%311, %373) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %375 = "stablehlo.reduce"(%374, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg112: tensor<f32>, %arg113: tensor<f32>):
      %631 = "stablehlo.add"(%arg112, %arg113) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%631) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<16xf32>
    %376 = "stablehlo.reshape"(%375) : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %377 = "stablehlo.broadcast_in_dim"(%312) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %378 = "stablehlo.multiply"(%373, %377) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %379 = "stablehlo.reduce"(%376, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg110: tensor<f32>, %arg111: tensor<f32>):
      %630 = "stablehlo.add"(%arg110, %arg111) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%630) : (tensor<f32>) -> ()
    }) : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %380 = "stablehlo.multiply"(%302, %378) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %381 = "stablehlo.reduce"(%380, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg108: tensor<f32>, %arg109: tensor<f32>):
      %629 = "stablehlo.add"(%arg108, %arg109) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%629) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %382 = "stablehlo.reshape"(%381) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %383 = "stablehlo.broadcast_in_dim"(%306) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %384 = "stablehlo.multiply"(%378, %383) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %385 = "stablehlo.multiply"(%382, %309) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %386 = "func.call"(%303#1, %303#2, %303#3, %385) <{callee = @_var_3}> : (tensor<2x7x16xf32>, tensor<f32>, tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %387 = "stablehlo.add"(%352, %386) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %388 = "stablehlo.negate"(%384) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %389 = "stablehlo.reduce"(%388, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg106: tensor<f32>, %arg107: tensor<f32>):
      %628 = "stablehlo.add"(%arg106, %arg107) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%628) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %390 = "stablehlo.reshape"(%389) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %391 = "stablehlo.add"(%387, %384) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %392 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %393 = "stablehlo.divide"(%390, %392) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %394 = "stablehlo.reduce"(%393, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg104: tensor<f32>, %arg105: tensor<f32>):
      %627 = "stablehlo.add"(%arg104, %arg105) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%627) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %395 = "stablehlo.broadcast_in_dim"(%394) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %396 = "stablehlo.add"(%391, %395) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %397 = "stablehlo.dot_general"(%396, %294) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<16x16xf32>
    %398 = "stablehlo.transpose"(%397) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %399 = "stablehlo.dot_general"(%396, %arg54) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x16xf32>, tensor<16x16xf32>) -> tensor<2x7x16xf32>
    %400 = "stablehlo.reshape"(%399) : (tensor<2x7x16xf32>) -> tensor<2x7x2x8xf32>
    %401 = "stablehlo.reshape"(%400) : (tensor<2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %402 = "stablehlo.transpose"(%401) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<2x7x2x1x8xf32>) -> tensor<1x2x7x2x8xf32>
    %403 = "stablehlo.transpose"(%402) <{permutation = array<i64: 1, 3, 4, 0, 2>}> : (tensor<1x2x7x2x8xf32>) -> tensor<2x2x8x1x7xf32>
    %404 = "stablehlo.dot_general"(%403, %264) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [3]>}> : (tensor<2x2x8x1x7xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x1x7x7xf32>
    %405 = "stablehlo.transpose"(%404) <{permutation = array<i64: 2, 0, 1, 3, 4>}> : (tensor<2x2x1x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %406 = "stablehlo.dot_general"(%403, %286) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [3, 4], rhs_contracting_dimensions = [0, 3]>}> : (tensor<2x2x8x1x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x8x7xf32>
    %407 = "stablehlo.transpose"(%406) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x2x8x7xf32>) -> tensor<2x7x2x8xf32>
    %408 = "stablehlo.broadcast_in_dim"(%289) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %409 = "stablehlo.multiply"(%405, %408) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %410 = "stablehlo.multiply"(%409, %282) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %411 = "stablehlo.reduce"(%410, %133) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg102: tensor<f32>, %arg103: tensor<f32>):
      %626 = "stablehlo.add"(%arg102, %arg103) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%626) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %412 = "stablehlo.reshape"(%411) : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %413 = "stablehlo.negate"(%412) : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %414 = "stablehlo.broadcast_in_dim"(%284) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %415 = "stablehlo.divide"(%405, %414) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %416 = "stablehlo.reduce"(%413, %133) <{dimensions = array<i64: 0, 4>}> ({
    ^bb0(%arg100: tensor<f32>, %arg101: tensor<f32>):
      %625 = "stablehlo.add"(%arg100, %arg101) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%625) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x1xf32>, tensor<f32>) -> tensor<2x2x7xf32>
    %417 = "stablehlo.broadcast_in_dim"(%416) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<2x2x7xf32>) -> tensor<1x2x2x7xf32>
    %418 = "stablehlo.broadcast_in_dim"(%417) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x7xf32>
    %419 = "stablehlo.add"(%415, %418) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %420 = "stablehlo.multiply"(%419, %282) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %421 = "func.call"(%275#1, %420) <{callee = @_where_5}> : (tensor<1x2x2x7x7xi1>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x7x1x7xf32>
    %422 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x2x7x1x7xf32>
    %423 = "stablehlo.multiply"(%421, %422) : (tensor<2x2x7x1x7xf32>, tensor<2x2x7x1x7xf32>) -> tensor<2x2x7x1x7xf32>
    %424 = "stablehlo.dot_general"(%423, %265) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 3]>}> : (tensor<2x2x7x1x7xf32>, tensor<2x7x2x1x8xf32>) -> tensor<2x2x7x8xf32>
    %425 = "stablehlo.transpose"(%424) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x2x7x8xf32>) -> tensor<2x7x2x8xf32>
    %426 = "stablehlo.dot_general"(%423, %263) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [1]>}> : (tensor<2x2x7x1x7xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x7x1x8xf32>
    %427 = "stablehlo.transpose"(%426) <{permutation = array<i64: 0, 2, 1, 3, 4>}> : (tensor<2x2x7x1x8xf32>) -> tensor<2x7x2x1x8xf32>
    %428 = "stablehlo.reshape"(%427) : (tensor<2x7x2x1x8xf32>) -> tensor<2x7x2x8xf32>
    %429 = "stablehlo.concatenate"(%428, %425, %407) <{dimension = 3 : i64}> : (tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x7x2x24xf32>
    %430 = "stablehlo.reshape"(%429) : (tensor<2x7x2x24xf32>) -> tensor<2x7x48xf32>
    %431 = "stablehlo.dot_general"(%430, %259) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x48xf32>, tensor<2x7x16xf32>) -> tensor<48x16xf32>
    %432 = "stablehlo.transpose"(%431) <{permutation = array<i64: 1, 0>}> : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %433 = "stablehlo.dot_general"(%430, %arg55) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x48xf32>, tensor<16x48xf32>) -> tensor<2x7x16xf32>
    %434 = "stablehlo.multiply"(%256, %433) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %435 = "stablehlo.reduce"(%434, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg98: tensor<f32>, %arg99: tensor<f32>):
      %624 = "stablehlo.add"(%arg98, %arg99) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%624) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<16xf32>
    %436 = "stablehlo.reshape"(%435) : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %437 = "stablehlo.broadcast_in_dim"(%257) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %438 = "stablehlo.multiply"(%433, %437) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %439 = "stablehlo.reduce"(%436, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg96: tensor<f32>, %arg97: tensor<f32>):
      %623 = "stablehlo.add"(%arg96, %arg97) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%623) : (tensor<f32>) -> ()
    }) : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %440 = "stablehlo.add"(%379, %439) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %441 = "stablehlo.multiply"(%247, %438) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %442 = "stablehlo.reduce"(%441, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg94: tensor<f32>, %arg95: tensor<f32>):
      %622 = "stablehlo.add"(%arg94, %arg95) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%622) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %443 = "stablehlo.reshape"(%442) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %444 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %445 = "stablehlo.multiply"(%438, %444) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %446 = "stablehlo.multiply"(%443, %254) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %447 = "func.call"(%248#1, %248#2, %248#3, %446) <{callee = @_var_3}> : (tensor<2x7x16xf32>, tensor<f32>, tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %448 = "stablehlo.add"(%396, %447) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %449 = "stablehlo.negate"(%445) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %450 = "stablehlo.reduce"(%449, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg92: tensor<f32>, %arg93: tensor<f32>):
      %621 = "stablehlo.add"(%arg92, %arg93) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%621) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %451 = "stablehlo.reshape"(%450) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %452 = "stablehlo.add"(%448, %445) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %453 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %454 = "stablehlo.divide"(%451, %453) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %455 = "stablehlo.reduce"(%454, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg90: tensor<f32>, %arg91: tensor<f32>):
      %620 = "stablehlo.add"(%arg90, %arg91) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%620) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %456 = "stablehlo.broadcast_in_dim"(%455) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %457 = "stablehlo.add"(%452, %456) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %458 = "stablehlo.dot_general"(%457, %239) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x16xf32>, tensor<2x7x64xf32>) -> tensor<16x64xf32>
    %459 = "stablehlo.transpose"(%458) <{permutation = array<i64: 1, 0>}> : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %460 = "stablehlo.dot_general"(%457, %arg48) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x16xf32>, tensor<64x16xf32>) -> tensor<2x7x64xf32>
    %461 = "stablehlo.multiply"(%221, %460) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %462 = "stablehlo.multiply"(%460, %238) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %463 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %464 = "stablehlo.multiply"(%463, %461) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %465 = "stablehlo.multiply"(%464, %234) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %466 = "stablehlo.multiply"(%465, %232) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %467 = "stablehlo.add"(%465, %466) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %468 = "stablehlo.broadcast_in_dim"(%122) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %469 = "stablehlo.multiply"(%468, %467) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %470 = "stablehlo.add"(%462, %469) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %471 = "stablehlo.broadcast_in_dim"(%123) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x64xf32>
    %472 = "stablehlo.multiply"(%471, %469) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %473 = "stablehlo.multiply"(%472, %226) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %474 = "stablehlo.add"(%470, %473) : (tensor<2x7x64xf32>, tensor<2x7x64xf32>) -> tensor<2x7x64xf32>
    %475 = "stablehlo.dot_general"(%474, %220) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x64xf32>, tensor<2x7x16xf32>) -> tensor<64x16xf32>
    %476 = "stablehlo.transpose"(%475) <{permutation = array<i64: 1, 0>}> : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %477 = "stablehlo.dot_general"(%474, %arg52) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x64xf32>, tensor<16x64xf32>) -> tensor<2x7x16xf32>
    %478 = "stablehlo.multiply"(%217, %477) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %479 = "stablehlo.reduce"(%478, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg88: tensor<f32>, %arg89: tensor<f32>):
      %619 = "stablehlo.add"(%arg88, %arg89) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%619) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<16xf32>
    %480 = "stablehlo.reshape"(%479) : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %481 = "stablehlo.broadcast_in_dim"(%218) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %482 = "stablehlo.multiply"(%477, %481) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %483 = "stablehlo.reduce"(%480, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg86: tensor<f32>, %arg87: tensor<f32>):
      %618 = "stablehlo.add"(%arg86, %arg87) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%618) : (tensor<f32>) -> ()
    }) : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %484 = "stablehlo.multiply"(%208, %482) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %485 = "stablehlo.reduce"(%484, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg84: tensor<f32>, %arg85: tensor<f32>):
      %617 = "stablehlo.add"(%arg84, %arg85) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%617) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %486 = "stablehlo.reshape"(%485) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %487 = "stablehlo.broadcast_in_dim"(%212) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %488 = "stablehlo.multiply"(%482, %487) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %489 = "stablehlo.multiply"(%486, %215) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %490 = "func.call"(%209#1, %209#2, %209#3, %489) <{callee = @_var_3}> : (tensor<2x7x16xf32>, tensor<f32>, tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %491 = "stablehlo.add"(%457, %490) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %492 = "stablehlo.negate"(%488) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %493 = "stablehlo.reduce"(%492, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg82: tensor<f32>, %arg83: tensor<f32>):
      %616 = "stablehlo.add"(%arg82, %arg83) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%616) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %494 = "stablehlo.reshape"(%493) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %495 = "stablehlo.add"(%491, %488) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %496 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %497 = "stablehlo.divide"(%494, %496) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %498 = "stablehlo.reduce"(%497, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg80: tensor<f32>, %arg81: tensor<f32>):
      %615 = "stablehlo.add"(%arg80, %arg81) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%615) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %499 = "stablehlo.broadcast_in_dim"(%498) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %500 = "stablehlo.add"(%495, %499) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %501 = "stablehlo.dot_general"(%500, %200) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<16x16xf32>
    %502 = "stablehlo.transpose"(%501) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %503 = "stablehlo.dot_general"(%500, %arg49) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x16xf32>, tensor<16x16xf32>) -> tensor<2x7x16xf32>
    %504 = "stablehlo.reshape"(%503) : (tensor<2x7x16xf32>) -> tensor<2x7x2x8xf32>
    %505 = "stablehlo.reshape"(%504) : (tensor<2x7x2x8xf32>) -> tensor<2x7x2x1x8xf32>
    %506 = "stablehlo.transpose"(%505) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<2x7x2x1x8xf32>) -> tensor<1x2x7x2x8xf32>
    %507 = "stablehlo.transpose"(%506) <{permutation = array<i64: 1, 3, 4, 0, 2>}> : (tensor<1x2x7x2x8xf32>) -> tensor<2x2x8x1x7xf32>
    %508 = "stablehlo.dot_general"(%507, %170) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [3]>}> : (tensor<2x2x8x1x7xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x1x7x7xf32>
    %509 = "stablehlo.transpose"(%508) <{permutation = array<i64: 2, 0, 1, 3, 4>}> : (tensor<2x2x1x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %510 = "stablehlo.dot_general"(%507, %192) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [1, 2], lhs_contracting_dimensions = [3, 4], rhs_contracting_dimensions = [0, 3]>}> : (tensor<2x2x8x1x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x8x7xf32>
    %511 = "stablehlo.transpose"(%510) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x2x8x7xf32>) -> tensor<2x7x2x8xf32>
    %512 = "stablehlo.broadcast_in_dim"(%195) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %513 = "stablehlo.multiply"(%509, %512) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %514 = "stablehlo.multiply"(%513, %188) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %515 = "stablehlo.reduce"(%514, %133) <{dimensions = array<i64: 4>}> ({
    ^bb0(%arg78: tensor<f32>, %arg79: tensor<f32>):
      %614 = "stablehlo.add"(%arg78, %arg79) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%614) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x7xf32>, tensor<f32>) -> tensor<1x2x2x7xf32>
    %516 = "stablehlo.reshape"(%515) : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x1xf32>
    %517 = "stablehlo.negate"(%516) : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x1xf32>
    %518 = "stablehlo.broadcast_in_dim"(%190) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4>}> : (tensor<1x2x2x7x1xf32>) -> tensor<1x2x2x7x7xf32>
    %519 = "stablehlo.divide"(%509, %518) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %520 = "stablehlo.reduce"(%517, %133) <{dimensions = array<i64: 0, 4>}> ({
    ^bb0(%arg76: tensor<f32>, %arg77: tensor<f32>):
      %613 = "stablehlo.add"(%arg76, %arg77) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%613) : (tensor<f32>) -> ()
    }) : (tensor<1x2x2x7x1xf32>, tensor<f32>) -> tensor<2x2x7xf32>
    %521 = "stablehlo.broadcast_in_dim"(%520) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<2x2x7xf32>) -> tensor<1x2x2x7xf32>
    %522 = "stablehlo.broadcast_in_dim"(%521) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x2x2x7xf32>) -> tensor<1x2x2x7x7xf32>
    %523 = "stablehlo.add"(%519, %522) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %524 = "stablehlo.multiply"(%523, %188) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %525 = "func.call"(%181#1, %524) <{callee = @_where_5}> : (tensor<1x2x2x7x7xi1>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x7x1x7xf32>
    %526 = "stablehlo.broadcast_in_dim"(%129) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x2x7x1x7xf32>
    %527 = "stablehlo.multiply"(%525, %526) : (tensor<2x2x7x1x7xf32>, tensor<2x2x7x1x7xf32>) -> tensor<2x2x7x1x7xf32>
    %528 = "stablehlo.dot_general"(%527, %171) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 3]>}> : (tensor<2x2x7x1x7xf32>, tensor<2x7x2x1x8xf32>) -> tensor<2x2x7x8xf32>
    %529 = "stablehlo.transpose"(%528) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x2x7x8xf32>) -> tensor<2x7x2x8xf32>
    %530 = "stablehlo.dot_general"(%527, %169) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [4], rhs_contracting_dimensions = [1]>}> : (tensor<2x2x7x1x7xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x7x1x8xf32>
    %531 = "stablehlo.transpose"(%530) <{permutation = array<i64: 0, 2, 1, 3, 4>}> : (tensor<2x2x7x1x8xf32>) -> tensor<2x7x2x1x8xf32>
    %532 = "stablehlo.reshape"(%531) : (tensor<2x7x2x1x8xf32>) -> tensor<2x7x2x8xf32>
    %533 = "stablehlo.concatenate"(%532, %529, %511) <{dimension = 3 : i64}> : (tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x7x2x24xf32>
    %534 = "stablehlo.reshape"(%533) : (tensor<2x7x2x24xf32>) -> tensor<2x7x48xf32>
    %535 = "stablehlo.dot_general"(%534, %165) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x7x48xf32>, tensor<2x7x16xf32>) -> tensor<48x16xf32>
    %536 = "stablehlo.transpose"(%535) <{permutation = array<i64: 1, 0>}> : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %537 = "stablehlo.dot_general"(%534, %arg50) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x7x48xf32>, tensor<16x48xf32>) -> tensor<2x7x16xf32>
    %538 = "stablehlo.multiply"(%162, %537) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %539 = "stablehlo.reduce"(%538, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg74: tensor<f32>, %arg75: tensor<f32>):
      %612 = "stablehlo.add"(%arg74, %arg75) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%612) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<16xf32>
    %540 = "stablehlo.reshape"(%539) : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %541 = "stablehlo.broadcast_in_dim"(%163) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x16xf32>) -> tensor<2x7x16xf32>
    %542 = "stablehlo.multiply"(%537, %541) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %543 = "stablehlo.reduce"(%540, %133) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg72: tensor<f32>, %arg73: tensor<f32>):
      %611 = "stablehlo.add"(%arg72, %arg73) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%611) : (tensor<f32>) -> ()
    }) : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %544 = "stablehlo.add"(%483, %543) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %545 = "stablehlo.multiply"(%153, %542) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %546 = "stablehlo.reduce"(%545, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg70: tensor<f32>, %arg71: tensor<f32>):
      %610 = "stablehlo.add"(%arg70, %arg71) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%610) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %547 = "stablehlo.reshape"(%546) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %548 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %549 = "stablehlo.multiply"(%542, %548) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %550 = "stablehlo.multiply"(%547, %160) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %551 = "func.call"(%154#1, %154#2, %154#3, %550) <{callee = @_var_3}> : (tensor<2x7x16xf32>, tensor<f32>, tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %552 = "stablehlo.add"(%500, %551) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %553 = "stablehlo.negate"(%549) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %554 = "stablehlo.reduce"(%553, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg68: tensor<f32>, %arg69: tensor<f32>):
      %609 = "stablehlo.add"(%arg68, %arg69) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%609) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %555 = "stablehlo.reshape"(%554) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %556 = "stablehlo.add"(%552, %549) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %557 = "stablehlo.broadcast_in_dim"(%132) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %558 = "stablehlo.divide"(%555, %557) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %559 = "stablehlo.reduce"(%558, %133) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg66: tensor<f32>, %arg67: tensor<f32>):
      %608 = "stablehlo.add"(%arg66, %arg67) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%608) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %560 = "stablehlo.broadcast_in_dim"(%559) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %561 = "stablehlo.add"(%556, %560) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %562 = "stablehlo.reduce"(%561, %133) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg64: tensor<f32>, %arg65: tensor<f32>):
      %607 = "stablehlo.add"(%arg64, %arg65) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%607) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<7x16xf32>
    %563 = "stablehlo.reshape"(%562) : (tensor<7x16xf32>) -> tensor<1x7x16xf32>
    %564 = "stablehlo.reduce"(%563, %133) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg62: tensor<f32>, %arg63: tensor<f32>):
      %606 = "stablehlo.add"(%arg62, %arg63) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%606) : (tensor<f32>) -> ()
    }) : (tensor<1x7x16xf32>, tensor<f32>) -> tensor<7x16xf32>
    %565 = "stablehlo.pad"(%564, %133) <{edge_padding_high = array<i64: 1, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<7x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %566 = "stablehlo.broadcast_in_dim"(%133) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<11x16xf32>
    %567 = "stablehlo.scatter"(%566, %142, %561) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%arg60: tensor<f32>, %arg61: tensor<f32>):
      %605 = "stablehlo.add"(%arg60, %arg61) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%605) : (tensor<f32>) -> ()
    }) : (tensor<11x16xf32>, tensor<2x7x1xi32>, tensor<2x7x16xf32>) -> tensor<11x16xf32>
    %568 = "stablehlo.add"(%353, %567) : (tensor<11x16xf32>, tensor<11x16xf32>) -> tensor<11x16xf32>
    %569 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %570 = "stablehlo.multiply"(%569, %459) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %571 = "stablehlo.subtract"(%arg48, %570) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %572 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x16xf32>
    %573 = "stablehlo.multiply"(%572, %502) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %574 = "stablehlo.subtract"(%arg49, %573) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %575 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x48xf32>
    %576 = "stablehlo.multiply"(%575, %536) : (tensor<16x48xf32>, tensor<16x48xf32>) -> tensor<16x48xf32>
    %577 = "stablehlo.subtract"(%arg50, %576) : (tensor<16x48xf32>, tensor<16x48xf32>) -> tensor<16x48xf32>
    %578 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %579 = "stablehlo.multiply"(%578, %544) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %580 = "stablehlo.subtract"(%arg51, %579) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %581 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x64xf32>
    %582 = "stablehlo.multiply"(%581, %476) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %583 = "stablehlo.subtract"(%arg52, %582) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %584 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %585 = "stablehlo.multiply"(%584, %355) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %586 = "stablehlo.subtract"(%arg53, %585) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %587 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x16xf32>
    %588 = "stablehlo.multiply"(%587, %398) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %589 = "stablehlo.subtract"(%arg54, %588) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %590 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x48xf32>
    %591 = "stablehlo.multiply"(%590, %432) : (tensor<16x48xf32>, tensor<16x48xf32>) -> tensor<16x48xf32>
    %592 = "stablehlo.subtract"(%arg55, %591) : (tensor<16x48xf32>, tensor<16x48xf32>) -> tensor<16x48xf32>
    %593 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %594 = "stablehlo.multiply"(%593, %440) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %595 = "stablehlo.subtract"(%arg56, %594) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %596 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x64xf32>
    %597 = "stablehlo.multiply"(%596, %372) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %598 = "stablehlo.subtract"(%arg57, %597) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
    %599 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x16xf32>
    %600 = "stablehlo.multiply"(%599, %565) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %601 = "stablehlo.subtract"(%arg58, %600) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %602 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<11x16xf32>
    %603 = "stablehlo.multiply"(%602, %568) : (tensor<11x16xf32>, tensor<11x16xf32>) -> tensor<11x16xf32>
    %604 = "stablehlo.subtract"(%arg59, %603) : (tensor<11x16xf32>, tensor<11x16xf32>) -> tensor<11x16xf32>
    "func.return"(%344, %571, %574, %577, %580, %583, %586, %589, %592, %595, %598, %601, %604) : (tensor<f32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<8x16xf32>, tensor<11x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x16xf32>, tensor<i32>) -> (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>), sym_name = "_var", sym_visibility = "private"}> ({
  ^bb0(%arg41: tensor<2x7x16xf32>, %arg42: tensor<i32>):
    %96 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %97 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %98 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %99 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %100 = "stablehlo.reduce"(%arg41, %99) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg45: tensor<f32>, %arg46: tensor<f32>):
      %118 = "stablehlo.add"(%arg45, %arg46) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%118) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %101 = "stablehlo.broadcast_in_dim"(%100) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %102 = "stablehlo.broadcast_in_dim"(%98) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %103 = "stablehlo.divide"(%101, %102) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %104 = "stablehlo.broadcast_in_dim"(%103) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %105 = "stablehlo.subtract"(%arg41, %104) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %106 = "stablehlo.multiply"(%105, %105) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %107 = "stablehlo.broadcast_in_dim"(%97) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x16xf32>
    %108 = "stablehlo.multiply"(%107, %105) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %109 = "stablehlo.convert"(%arg42) : (tensor<i32>) -> tensor<f32>
    %110 = "stablehlo.subtract"(%98, %109) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %111 = "stablehlo.reduce"(%106, %99) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg43: tensor<f32>, %arg44: tensor<f32>):
      %117 = "stablehlo.add"(%arg43, %arg44) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%117) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %112 = "stablehlo.broadcast_in_dim"(%111) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %113 = "stablehlo.broadcast_in_dim"(%110) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %114 = "stablehlo.divide"(%112, %113) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %115 = "stablehlo.compare"(%110, %99) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %116 = "func.call"(%115, %114, %96) <{callee = @_where}> : (tensor<i1>, tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7x1xf32>
    "func.return"(%116, %108, %110, %115) : (tensor<2x7x1xf32>, tensor<2x7x16xf32>, tensor<f32>, tensor<i1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7x1xf32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg38: tensor<i1>, %arg39: tensor<2x7x1xf32>, %arg40: tensor<f32>):
    %93 = "stablehlo.convert"(%arg40) : (tensor<f32>) -> tensor<f32>
    %94 = "stablehlo.broadcast_in_dim"(%93) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %95 = "stablehlo.select"(%arg38, %arg39, %94) : (tensor<i1>, tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    "func.return"(%95) : (tensor<2x7x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<7x7xi1>) -> tensor<7x7xi1>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg37: tensor<7x7xi1>):
    %84 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %85 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %86 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<7x7xi32>
    %87 = "stablehlo.broadcast_in_dim"(%85) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<7x7xi32>
    %88 = "stablehlo.add"(%86, %87) : (tensor<7x7xi32>, tensor<7x7xi32>) -> tensor<7x7xi32>
    %89 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<7x7xi32>
    %90 = "stablehlo.compare"(%88, %89) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<7x7xi32>, tensor<7x7xi32>) -> tensor<7x7xi1>
    %91 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<7x7xi1>
    %92 = "stablehlo.select"(%90, %arg37, %91) : (tensor<7x7xi1>, tensor<7x7xi1>, tensor<7x7xi1>) -> tensor<7x7xi1>
    "func.return"(%92) : (tensor<7x7xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x2x7x7xi1>, tensor<2x2x7x1x7xf32>, tensor<f32>) -> (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xi1>), sym_name = "_where_0", sym_visibility = "private"}> ({
  ^bb0(%arg34: tensor<2x2x7x7xi1>, %arg35: tensor<2x2x7x1x7xf32>, %arg36: tensor<f32>):
    %79 = "stablehlo.broadcast_in_dim"(%arg36) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x2x7x7xf32>
    %80 = "stablehlo.broadcast_in_dim"(%arg34) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<2x2x7x7xi1>) -> tensor<1x2x2x7x7xi1>
    %81 = "stablehlo.broadcast_in_dim"(%79) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> : (tensor<2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %82 = "stablehlo.transpose"(%arg35) <{permutation = array<i64: 3, 0, 1, 2, 4>}> : (tensor<2x2x7x1x7xf32>) -> tensor<1x2x2x7x7xf32>
    %83 = "stablehlo.select"(%80, %82, %81) : (tensor<1x2x2x7x7xi1>, tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    "func.return"(%83, %80) : (tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x11xf32>) -> (tensor<2x7x11xf32>, tensor<2x7x11xf32>, tensor<2x7x1xf32>), sym_name = "log_softmax", sym_visibility = "private"}> ({
  ^bb0(%arg29: tensor<2x7x11xf32>):
    %63 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %64 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %65 = "stablehlo.reduce"(%arg29, %64) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg32: tensor<f32>, %arg33: tensor<f32>):
      %78 = "stablehlo.maximum"(%arg32, %arg33) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%78) : (tensor<f32>) -> ()
    }) : (tensor<2x7x11xf32>, tensor<f32>) -> tensor<2x7xf32>
    %66 = "stablehlo.broadcast_in_dim"(%64) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7xf32>
    %67 = "stablehlo.maximum"(%66, %65) : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
    %68 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %69 = "stablehlo.broadcast_in_dim"(%68) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x11xf32>
    %70 = "stablehlo.subtract"(%arg29, %69) : (tensor<2x7x11xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    %71 = "stablehlo.exponential"(%70) : (tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    %72 = "stablehlo.reduce"(%71, %63) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg30: tensor<f32>, %arg31: tensor<f32>):
      %77 = "stablehlo.add"(%arg30, %arg31) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%77) : (tensor<f32>) -> ()
    }) : (tensor<2x7x11xf32>, tensor<f32>) -> tensor<2x7xf32>
    %73 = "stablehlo.broadcast_in_dim"(%72) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %74 = "stablehlo.log"(%73) : (tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %75 = "stablehlo.broadcast_in_dim"(%74) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x7x1xf32>) -> tensor<2x7x11xf32>
    %76 = "stablehlo.subtract"(%70, %75) : (tensor<2x7x11xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    "func.return"(%76, %71, %73) : (tensor<2x7x11xf32>, tensor<2x7x11xf32>, tensor<2x7x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x11xf32>, tensor<2x7x1xi32>) -> (tensor<2x7x1xf32>, tensor<2x7x1x1xi32>), sym_name = "take_along_axis", sym_visibility = "private"}> ({
  ^bb0(%arg25: tensor<2x7x11xf32>, %arg26: tensor<2x7x1xi32>):
    %41 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %42 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %43 = "stablehlo.constant"() <{value = dense<10> : tensor<1xi32>}> : () -> tensor<1xi32>
    %44 = "stablehlo.constant"() <{value = dense<11> : tensor<i32>}> : () -> tensor<i32>
    %45 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %46 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x7x1xi32>
    %47 = "stablehlo.compare"(%arg26, %46) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x7x1xi32>, tensor<2x7x1xi32>) -> tensor<2x7x1xi1>
    %48 = "stablehlo.broadcast_in_dim"(%44) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x7x1xi32>
    %49 = "stablehlo.add"(%arg26, %48) : (tensor<2x7x1xi32>, tensor<2x7x1xi32>) -> tensor<2x7x1xi32>
    %50 = "stablehlo.select"(%47, %49, %arg26) : (tensor<2x7x1xi1>, tensor<2x7x1xi32>, tensor<2x7x1xi32>) -> tensor<2x7x1xi32>
    %51 = "stablehlo.reshape"(%50) : (tensor<2x7x1xi32>) -> tensor<2x7x1x1xi32>
    %52 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x7x1x1xi32>
    %53 = "stablehlo.compare"(%51, %52) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<2x7x1x1xi32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1x1xi1>
    %54 = "stablehlo.broadcast_in_dim"(%43) <{broadcast_dimensions = array<i64: 3>}> : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %55 = "stablehlo.broadcast_in_dim"(%54) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x1x1xi32>) -> tensor<2x7x1x1xi32>
    %56 = "stablehlo.compare"(%51, %55) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<2x7x1x1xi32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1x1xi1>
    %57 = "stablehlo.and"(%53, %56) : (tensor<2x7x1x1xi1>, tensor<2x7x1x1xi1>) -> tensor<2x7x1x1xi1>
    %58 = "stablehlo.reduce"(%57, %42) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg27: tensor<i1>, %arg28: tensor<i1>):
      %62 = "stablehlo.and"(%arg27, %arg28) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%62) : (tensor<i1>) -> ()
    }) : (tensor<2x7x1x1xi1>, tensor<i1>) -> tensor<2x7x1xi1>
    %59 = "stablehlo.gather"(%arg25, %51) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x7x11xf32>, tensor<2x7x1x1xi32>) -> tensor<2x7x1xf32>
    %60 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %61 = "stablehlo.select"(%58, %59, %60) : (tensor<2x7x1xi1>, tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    "func.return"(%61, %51) : (tensor<2x7x1xf32>, tensor<2x7x1x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x1x1xi32>, tensor<2x7x1xf32>) -> tensor<2x7x11xf32>, sym_name = "take_along_axis_1", sym_visibility = "private"}> ({
  ^bb0(%arg21: tensor<2x7x1x1xi32>, %arg22: tensor<2x7x1xf32>):
    %37 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %38 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x11xf32>
    %39 = "stablehlo.scatter"(%38, %arg21, %arg22) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>}> ({
    ^bb0(%arg23: tensor<f32>, %arg24: tensor<f32>):
      %40 = "stablehlo.add"(%arg23, %arg24) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%40) : (tensor<f32>) -> ()
    }) : (tensor<2x7x11xf32>, tensor<2x7x1x1xi32>, tensor<2x7x1xf32>) -> tensor<2x7x11xf32>
    "func.return"(%39) : (tensor<2x7x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x11xf32>, tensor<2x7x1xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>, sym_name = "log_softmax_2", sym_visibility = "private"}> ({
  ^bb0(%arg14: tensor<2x7x11xf32>, %arg15: tensor<2x7x1xf32>, %arg16: tensor<2x7x11xf32>):
    %26 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %27 = "stablehlo.negate"(%arg16) : (tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    %28 = "stablehlo.reduce"(%27, %26) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg19: tensor<f32>, %arg20: tensor<f32>):
      %36 = "stablehlo.add"(%arg19, %arg20) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%36) : (tensor<f32>) -> ()
    }) : (tensor<2x7x11xf32>, tensor<f32>) -> tensor<2x7xf32>
    %29 = "stablehlo.reshape"(%28) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %30 = "stablehlo.divide"(%29, %arg15) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %31 = "stablehlo.reduce"(%30, %26) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg17: tensor<f32>, %arg18: tensor<f32>):
      %35 = "stablehlo.add"(%arg17, %arg18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%35) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %32 = "stablehlo.broadcast_in_dim"(%31) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x11xf32>
    %33 = "stablehlo.multiply"(%32, %arg14) : (tensor<2x7x11xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    %34 = "stablehlo.add"(%arg16, %33) : (tensor<2x7x11xf32>, tensor<2x7x11xf32>) -> tensor<2x7x11xf32>
    "func.return"(%34) : (tensor<2x7x11xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x7x16xf32>, tensor<f32>, tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x16xf32>, sym_name = "_var_3", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<2x7x16xf32>, %arg5: tensor<f32>, %arg6: tensor<i1>, %arg7: tensor<2x7x1xf32>):
    %7 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "func.call"(%arg6, %arg7) <{callee = @_where_4}> : (tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %10 = "stablehlo.broadcast_in_dim"(%arg5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %11 = "stablehlo.divide"(%9, %10) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %12 = "stablehlo.reduce"(%11, %8) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %25 = "stablehlo.add"(%arg12, %arg13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %14 = "stablehlo.multiply"(%13, %arg4) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %15 = "stablehlo.negate"(%14) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    %16 = "stablehlo.reduce"(%15, %8) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      %24 = "stablehlo.add"(%arg10, %arg11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%24) : (tensor<f32>) -> ()
    }) : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %17 = "stablehlo.reshape"(%16) : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %18 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %19 = "stablehlo.divide"(%17, %18) : (tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    %20 = "stablehlo.reduce"(%19, %8) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %23 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%23) : (tensor<f32>) -> ()
    }) : (tensor<2x7x1xf32>, tensor<f32>) -> tensor<2x7xf32>
    %21 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x7xf32>) -> tensor<2x7x16xf32>
    %22 = "stablehlo.add"(%14, %21) : (tensor<2x7x16xf32>, tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
    "func.return"(%22) : (tensor<2x7x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>, sym_name = "_where_4", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<i1>, %arg3: tensor<2x7x1xf32>):
    %4 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x7x1xf32>
    %6 = "stablehlo.select"(%arg2, %arg3, %5) : (tensor<i1>, tensor<2x7x1xf32>, tensor<2x7x1xf32>) -> tensor<2x7x1xf32>
    "func.return"(%6) : (tensor<2x7x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<1x2x2x7x7xi1>, tensor<1x2x2x7x7xf32>) -> tensor<2x2x7x1x7xf32>, sym_name = "_where_5", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<1x2x2x7x7xi1>, %arg1: tensor<1x2x2x7x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x2x2x7x7xf32>
    %2 = "stablehlo.select"(%arg0, %arg1, %1) : (tensor<1x2x2x7x7xi1>, tensor<1x2x2x7x7xf32>, tensor<1x2x2x7x7xf32>) -> tensor<1x2x2x7x7xf32>
    %3 = "stablehlo.transpose"(%2) <{permutation = array<i64: 1, 2, 3, 0, 4>}> : (tensor<1x2x2x7x7xf32>) -> tensor<2x2x7x1x7xf32>
    "func.return"(%3) : (tensor<2x2x7x1x7xf32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
