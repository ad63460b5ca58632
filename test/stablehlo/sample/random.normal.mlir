"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = () -> (tensor<4x5xf32>, tensor<6xi32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}], sym_name = "main", sym_visibility = "public"}> ({
    %402 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
    %403 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %404 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %405 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %406 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %407 = "stablehlo.constant"() <{value = dense<32> : tensor<i32>}> : () -> tensor<i32>
    %408 = "stablehlo.shift_right_logical"(%406, %407) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %409 = "stablehlo.convert"(%408) : (tensor<i32>) -> tensor<ui32>
    %410 = "stablehlo.broadcast_in_dim"(%409) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %411 = "stablehlo.and"(%406, %405) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %412 = "stablehlo.convert"(%411) : (tensor<i32>) -> tensor<ui32>
    %413 = "stablehlo.broadcast_in_dim"(%412) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %414 = "stablehlo.concatenate"(%410, %413) <{dimension = 0 : i64}> : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
    %415 = "func.call"(%414) <{callee = @_normal}> : (tensor<2xui32>) -> tensor<4x5xf32>
    %416 = "stablehlo.shift_right_logical"(%404, %407) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %417 = "stablehlo.convert"(%416) : (tensor<i32>) -> tensor<ui32>
    %418 = "stablehlo.broadcast_in_dim"(%417) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %419 = "stablehlo.and"(%404, %405) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %420 = "stablehlo.convert"(%419) : (tensor<i32>) -> tensor<ui32>
    %421 = "stablehlo.broadcast_in_dim"(%420) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %422 = "stablehlo.concatenate"(%418, %421) <{dimension = 0 : i64}> : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
    %423 = "func.call"(%422, %403, %402) <{callee = @_randint}> : (tensor<2xui32>, tensor<i32>, tensor<i32>) -> tensor<6xi32>
    "func.return"(%415, %423) : (tensor<4x5xf32>, tensor<6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>) -> tensor<4x5xf32>, sym_name = "_normal", sym_visibility = "private"}> ({
  ^bb0(%arg104: tensor<2xui32>):
    %401 = "func.call"(%arg104) <{callee = @_normal_real}> : (tensor<2xui32>) -> tensor<4x5xf32>
    "func.return"(%401) : (tensor<4x5xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>) -> tensor<4x5xf32>, sym_name = "_normal_real", sym_visibility = "private"}> ({
  ^bb0(%arg103: tensor<2xui32>):
    %333 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %334 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %335 = "stablehlo.constant"() <{value = dense<2.83297682> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %336 = "stablehlo.constant"() <{value = dense<1.50140941> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %337 = "stablehlo.constant"() <{value = dense<1.00167406> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %338 = "stablehlo.constant"() <{value = dense<0.246640727> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %339 = "stablehlo.constant"() <{value = dense<0.00943887047> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %340 = "stablehlo.constant"() <{value = dense<-0.00417768164> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %341 = "stablehlo.constant"() <{value = dense<-0.0076224613> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %342 = "stablehlo.constant"() <{value = dense<-0.00125372503> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %343 = "stablehlo.constant"() <{value = dense<0.00573950773> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %344 = "stablehlo.constant"() <{value = dense<2.1858087E-4> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %345 = "stablehlo.constant"() <{value = dense<-0.00367342844> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %346 = "stablehlo.constant"() <{value = dense<-4.39150654E-6> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %347 = "stablehlo.constant"() <{value = dense<0.00134934322> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %348 = "stablehlo.constant"() <{value = dense<-3.5233877E-6> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %349 = "stablehlo.constant"() <{value = dense<1.00950558E-4> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %350 = "stablehlo.constant"() <{value = dense<3.43273939E-7> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %351 = "stablehlo.constant"() <{value = dense<-2.00214257E-4> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %352 = "stablehlo.constant"() <{value = dense<2.81022636E-8> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %353 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %354 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %355 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<4x5xf32>}> : () -> tensor<4x5xf32>
    %356 = "stablehlo.constant"() <{value = dense<1.41421354> : tensor<f32>}> : () -> tensor<f32>
    %357 = "stablehlo.constant"() <{value = dense<-0.99999994> : tensor<f32>}> : () -> tensor<f32>
    %358 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %359 = "func.call"(%arg103, %357, %358) <{callee = @_uniform}> : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<4x5xf32>
    %360 = "stablehlo.negate"(%359) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %361 = "stablehlo.multiply"(%359, %360) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %362 = "stablehlo.log_plus_one"(%361) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %363 = "stablehlo.negate"(%362) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %364 = "stablehlo.compare"(%363, %355) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %365 = "stablehlo.subtract"(%363, %354) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %366 = "stablehlo.sqrt"(%363) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %367 = "stablehlo.subtract"(%366, %353) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %368 = "stablehlo.select"(%364, %365, %367) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %369 = "stablehlo.select"(%364, %352, %351) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %370 = "stablehlo.select"(%364, %350, %349) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %371 = "stablehlo.multiply"(%369, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %372 = "stablehlo.add"(%370, %371) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %373 = "stablehlo.select"(%364, %348, %347) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %374 = "stablehlo.multiply"(%372, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %375 = "stablehlo.add"(%373, %374) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %376 = "stablehlo.select"(%364, %346, %345) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %377 = "stablehlo.multiply"(%375, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %378 = "stablehlo.add"(%376, %377) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %379 = "stablehlo.select"(%364, %344, %343) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %380 = "stablehlo.multiply"(%378, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %381 = "stablehlo.add"(%379, %380) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %382 = "stablehlo.select"(%364, %342, %341) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %383 = "stablehlo.multiply"(%381, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %384 = "stablehlo.add"(%382, %383) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %385 = "stablehlo.select"(%364, %340, %339) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %386 = "stablehlo.multiply"(%384, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %387 = "stablehlo.add"(%385, %386) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %388 = "stablehlo.select"(%364, %338, %337) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %389 = "stablehlo.multiply"(%387, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %390 = "stablehlo.add"(%388, %389) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %391 = "stablehlo.select"(%364, %336, %335) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %392 = "stablehlo.multiply"(%390, %368) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %393 = "stablehlo.add"(%391, %392) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %394 = "stablehlo.multiply"(%393, %359) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %395 = "stablehlo.abs"(%359) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    %396 = "stablehlo.compare"(%395, %334) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xi1>
    %397 = "stablehlo.multiply"(%359, %333) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %398 = "stablehlo.select"(%396, %397, %394) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %399 = "stablehlo.broadcast_in_dim"(%356) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x5xf32>
    %400 = "stablehlo.multiply"(%399, %398) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    "func.return"(%400) : (tensor<4x5xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<4x5xf32>, sym_name = "_uniform", sym_visibility = "private"}> ({
  ^bb0(%arg100: tensor<2xui32>, %arg101: tensor<f32>, %arg102: tensor<f32>):
    %294 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %295 = "stablehlo.constant"() <{value = dense<1065353216> : tensor<ui32>}> : () -> tensor<ui32>
    %296 = "stablehlo.constant"() <{value = dense<9> : tensor<ui32>}> : () -> tensor<ui32>
    %297 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %298 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %299 = "stablehlo.constant"() <{value = dense<5> : tensor<ui64>}> : () -> tensor<ui64>
    %300 = "stablehlo.broadcast_in_dim"(%arg101) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x1xf32>
    %301 = "stablehlo.broadcast_in_dim"(%arg102) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x1xf32>
    %302 = "stablehlo.slice"(%arg100) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %303 = "stablehlo.reshape"(%302) : (tensor<1xui32>) -> tensor<ui32>
    %304 = "stablehlo.slice"(%arg100) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %305 = "stablehlo.reshape"(%304) : (tensor<1xui32>) -> tensor<ui32>
    %306 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4x5xui64>
    %307 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4x5xui64>
    %308 = "stablehlo.broadcast_in_dim"(%299) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<4x5xui64>
    %309 = "stablehlo.multiply"(%308, %306) : (tensor<4x5xui64>, tensor<4x5xui64>) -> tensor<4x5xui64>
    %310 = "stablehlo.broadcast_in_dim"(%298) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<4x5xui64>
    %311 = "stablehlo.multiply"(%310, %307) : (tensor<4x5xui64>, tensor<4x5xui64>) -> tensor<4x5xui64>
    %312 = "stablehlo.add"(%309, %311) : (tensor<4x5xui64>, tensor<4x5xui64>) -> tensor<4x5xui64>
    %313 = "stablehlo.broadcast_in_dim"(%297) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<4x5xui64>
    %314 = "stablehlo.shift_right_logical"(%312, %313) : (tensor<4x5xui64>, tensor<4x5xui64>) -> tensor<4x5xui64>
    %315 = "stablehlo.convert"(%312) : (tensor<4x5xui64>) -> tensor<4x5xui32>
    %316 = "stablehlo.convert"(%314) : (tensor<4x5xui64>) -> tensor<4x5xui32>
    %317:2 = "func.call"(%303, %305, %316, %315) <{callee = @threefry2x32}> : (tensor<ui32>, tensor<ui32>, tensor<4x5xui32>, tensor<4x5xui32>) -> (tensor<4x5xui32>, tensor<4x5xui32>)
    %318 = "stablehlo.xor"(%317#0, %317#1) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %319 = "stablehlo.broadcast_in_dim"(%296) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %320 = "stablehlo.shift_right_logical"(%318, %319) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %321 = "stablehlo.broadcast_in_dim"(%295) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %322 = "stablehlo.or"(%320, %321) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %323 = "stablehlo.bitcast_convert"(%322) : (tensor<4x5xui32>) -> tensor<4x5xf32>
    %324 = "stablehlo.broadcast_in_dim"(%294) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x5xf32>
    %325 = "stablehlo.subtract"(%323, %324) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %326 = "stablehlo.subtract"(%301, %300) : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
    %327 = "stablehlo.broadcast_in_dim"(%326) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<4x5xf32>
    %328 = "stablehlo.multiply"(%325, %327) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %329 = "stablehlo.broadcast_in_dim"(%300) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<4x5xf32>
    %330 = "stablehlo.add"(%328, %329) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    %331 = "stablehlo.broadcast_in_dim"(%300) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xf32>) -> tensor<4x5xf32>
    %332 = "stablehlo.maximum"(%331, %330) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
    "func.return"(%332) : (tensor<4x5xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<ui32>, tensor<ui32>, tensor<4x5xui32>, tensor<4x5xui32>) -> (tensor<4x5xui32>, tensor<4x5xui32>), sym_name = "threefry2x32", sym_visibility = "private"}> ({
  ^bb0(%arg78: tensor<ui32>, %arg79: tensor<ui32>, %arg80: tensor<4x5xui32>, %arg81: tensor<4x5xui32>):
    %278 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %279 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %280 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %281 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %282 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %283 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %284 = "stablehlo.xor"(%arg78, %arg79) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %285 = "stablehlo.xor"(%284, %281) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %286 = "stablehlo.broadcast_in_dim"(%arg78) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %287 = "stablehlo.add"(%arg80, %286) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %288 = "stablehlo.broadcast_in_dim"(%arg79) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %289 = "stablehlo.add"(%arg81, %288) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %290:9 = "stablehlo.while"(%280, %280, %287, %289, %arg79, %285, %arg78, %282, %283) ({
    ^bb0(%arg91: tensor<i32>, %arg92: tensor<i32>, %arg93: tensor<4x5xui32>, %arg94: tensor<4x5xui32>, %arg95: tensor<ui32>, %arg96: tensor<ui32>, %arg97: tensor<ui32>, %arg98: tensor<4xui32>, %arg99: tensor<4xui32>):
      %293 = "stablehlo.compare"(%arg91, %279) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%293) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg82: tensor<i32>, %arg83: tensor<i32>, %arg84: tensor<4x5xui32>, %arg85: tensor<4x5xui32>, %arg86: tensor<ui32>, %arg87: tensor<ui32>, %arg88: tensor<ui32>, %arg89: tensor<4xui32>, %arg90: tensor<4xui32>):
      %291:8 = "func.call"(%arg83, %arg84, %arg85, %arg86, %arg87, %arg88, %arg89, %arg90) <{callee = @closed_call}> : (tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %292 = "stablehlo.add"(%arg82, %278) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%292, %291#0, %291#1, %291#2, %291#3, %291#4, %291#5, %291#6, %291#7) : (tensor<i32>, tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i32>, tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%290#2, %290#3) : (tensor<4x5xui32>, tensor<4x5xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg70: tensor<i32>, %arg71: tensor<4x5xui32>, %arg72: tensor<4x5xui32>, %arg73: tensor<ui32>, %arg74: tensor<ui32>, %arg75: tensor<ui32>, %arg76: tensor<4xui32>, %arg77: tensor<4xui32>):
    %227 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %228 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %229 = "stablehlo.add"(%arg70, %228) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %230 = "stablehlo.slice"(%arg76) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %231 = "stablehlo.reshape"(%230) : (tensor<1xui32>) -> tensor<ui32>
    %232 = "stablehlo.add"(%arg71, %arg72) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %233 = "stablehlo.broadcast_in_dim"(%231) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %234 = "stablehlo.shift_left"(%arg72, %233) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %235 = "stablehlo.subtract"(%227, %231) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %236 = "stablehlo.broadcast_in_dim"(%235) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %237 = "stablehlo.shift_right_logical"(%arg72, %236) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %238 = "stablehlo.or"(%234, %237) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %239 = "stablehlo.xor"(%232, %238) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %240 = "stablehlo.slice"(%arg76) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %241 = "stablehlo.reshape"(%240) : (tensor<1xui32>) -> tensor<ui32>
    %242 = "stablehlo.add"(%232, %239) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %243 = "stablehlo.broadcast_in_dim"(%241) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %244 = "stablehlo.shift_left"(%239, %243) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %245 = "stablehlo.subtract"(%227, %241) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %246 = "stablehlo.broadcast_in_dim"(%245) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %247 = "stablehlo.shift_right_logical"(%239, %246) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %248 = "stablehlo.or"(%244, %247) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %249 = "stablehlo.xor"(%242, %248) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %250 = "stablehlo.slice"(%arg76) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %251 = "stablehlo.reshape"(%250) : (tensor<1xui32>) -> tensor<ui32>
    %252 = "stablehlo.add"(%242, %249) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %253 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %254 = "stablehlo.shift_left"(%249, %253) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %255 = "stablehlo.subtract"(%227, %251) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %256 = "stablehlo.broadcast_in_dim"(%255) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %257 = "stablehlo.shift_right_logical"(%249, %256) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %258 = "stablehlo.or"(%254, %257) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %259 = "stablehlo.xor"(%252, %258) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %260 = "stablehlo.slice"(%arg76) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %261 = "stablehlo.reshape"(%260) : (tensor<1xui32>) -> tensor<ui32>
    %262 = "stablehlo.add"(%252, %259) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %263 = "stablehlo.broadcast_in_dim"(%261) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %264 = "stablehlo.shift_left"(%259, %263) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %265 = "stablehlo.subtract"(%227, %261) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %266 = "stablehlo.broadcast_in_dim"(%265) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %267 = "stablehlo.shift_right_logical"(%259, %266) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %268 = "stablehlo.or"(%264, %267) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %269 = "stablehlo.xor"(%262, %268) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %270 = "stablehlo.broadcast_in_dim"(%arg73) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %271 = "stablehlo.add"(%262, %270) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %272 = "stablehlo.broadcast_in_dim"(%arg74) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %273 = "stablehlo.add"(%269, %272) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    %274 = "stablehlo.add"(%arg70, %228) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %275 = "stablehlo.convert"(%274) : (tensor<i32>) -> tensor<ui32>
    %276 = "stablehlo.broadcast_in_dim"(%275) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4x5xui32>
    %277 = "stablehlo.add"(%273, %276) : (tensor<4x5xui32>, tensor<4x5xui32>) -> tensor<4x5xui32>
    "func.return"(%229, %271, %277, %arg74, %arg75, %arg73, %arg77, %arg76) : (tensor<i32>, tensor<4x5xui32>, tensor<4x5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>, tensor<i32>, tensor<i32>) -> tensor<6xi32>, sym_name = "_randint", sym_visibility = "private"}> ({
  ^bb0(%arg67: tensor<2xui32>, %arg68: tensor<i32>, %arg69: tensor<i32>):
    %155 = "stablehlo.constant"() <{value = dense<65536> : tensor<ui32>}> : () -> tensor<ui32>
    %156 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
    %157 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %158 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %159 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %160 = "stablehlo.constant"() <{value = dense<-2147483648> : tensor<i32>}> : () -> tensor<i32>
    %161 = "func.call"(%159, %160, %159) <{callee = @clip}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %162 = "stablehlo.compare"(%arg69, %161) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %163 = "func.call"(%arg68, %160, %159) <{callee = @clip_0}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %164 = "stablehlo.convert"(%163) : (tensor<i32>) -> tensor<i32>
    %165 = "func.call"(%arg69, %160, %159) <{callee = @clip_0}> : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %166 = "stablehlo.convert"(%165) : (tensor<i32>) -> tensor<i32>
    %167 = "stablehlo.broadcast_in_dim"(%164) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %168 = "stablehlo.broadcast_in_dim"(%166) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %169 = "func.call"(%arg67) <{callee = @_threefry_split}> : (tensor<2xui32>) -> tensor<2x2xui32>
    %170 = "stablehlo.slice"(%169) <{limit_indices = array<i64: 1, 2>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x2xui32>) -> tensor<1x2xui32>
    %171 = "stablehlo.reshape"(%170) : (tensor<1x2xui32>) -> tensor<2xui32>
    %172 = "stablehlo.slice"(%169) <{limit_indices = array<i64: 2, 2>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 1>}> : (tensor<2x2xui32>) -> tensor<1x2xui32>
    %173 = "stablehlo.reshape"(%172) : (tensor<1x2xui32>) -> tensor<2xui32>
    %174 = "stablehlo.slice"(%171) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %175 = "stablehlo.reshape"(%174) : (tensor<1xui32>) -> tensor<ui32>
    %176 = "stablehlo.slice"(%171) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %177 = "stablehlo.reshape"(%176) : (tensor<1xui32>) -> tensor<ui32>
    %178 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6xui64>
    %179 = "stablehlo.broadcast_in_dim"(%158) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<6xui64>
    %180 = "stablehlo.multiply"(%179, %178) : (tensor<6xui64>, tensor<6xui64>) -> tensor<6xui64>
    %181 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<6xui64>
    %182 = "stablehlo.shift_right_logical"(%180, %181) : (tensor<6xui64>, tensor<6xui64>) -> tensor<6xui64>
    %183 = "stablehlo.convert"(%180) : (tensor<6xui64>) -> tensor<6xui32>
    %184 = "stablehlo.convert"(%182) : (tensor<6xui64>) -> tensor<6xui32>
    %185:2 = "func.call"(%175, %177, %184, %183) <{callee = @threefry2x32_3}> : (tensor<ui32>, tensor<ui32>, tensor<6xui32>, tensor<6xui32>) -> (tensor<6xui32>, tensor<6xui32>)
    %186 = "stablehlo.xor"(%185#0, %185#1) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %187 = "stablehlo.slice"(%173) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %188 = "stablehlo.reshape"(%187) : (tensor<1xui32>) -> tensor<ui32>
    %189 = "stablehlo.slice"(%173) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %190 = "stablehlo.reshape"(%189) : (tensor<1xui32>) -> tensor<ui32>
    %191 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6xui64>
    %192 = "stablehlo.broadcast_in_dim"(%158) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<6xui64>
    %193 = "stablehlo.multiply"(%192, %191) : (tensor<6xui64>, tensor<6xui64>) -> tensor<6xui64>
    %194 = "stablehlo.broadcast_in_dim"(%157) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<6xui64>
    %195 = "stablehlo.shift_right_logical"(%193, %194) : (tensor<6xui64>, tensor<6xui64>) -> tensor<6xui64>
    %196 = "stablehlo.convert"(%193) : (tensor<6xui64>) -> tensor<6xui32>
    %197 = "stablehlo.convert"(%195) : (tensor<6xui64>) -> tensor<6xui32>
    %198:2 = "func.call"(%188, %190, %197, %196) <{callee = @threefry2x32_3}> : (tensor<ui32>, tensor<ui32>, tensor<6xui32>, tensor<6xui32>) -> (tensor<6xui32>, tensor<6xui32>)
    %199 = "stablehlo.xor"(%198#0, %198#1) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %200 = "stablehlo.subtract"(%168, %167) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %201 = "stablehlo.convert"(%200) : (tensor<1xi32>) -> tensor<1xui32>
    %202 = "stablehlo.compare"(%168, %167) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %203 = "stablehlo.broadcast_in_dim"(%156) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %204 = "stablehlo.select"(%202, %203, %201) : (tensor<1xi1>, tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %205 = "stablehlo.compare"(%168, %167) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %206 = "stablehlo.broadcast_in_dim"(%162) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<1xi1>
    %207 = "stablehlo.and"(%206, %205) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %208 = "stablehlo.broadcast_in_dim"(%156) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %209 = "stablehlo.add"(%204, %208) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %210 = "stablehlo.select"(%207, %209, %204) : (tensor<1xi1>, tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %211 = "stablehlo.broadcast_in_dim"(%155) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1xui32>
    %212 = "stablehlo.remainder"(%211, %210) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %213 = "stablehlo.multiply"(%212, %212) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %214 = "stablehlo.remainder"(%213, %210) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %215 = "stablehlo.broadcast_in_dim"(%210) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<6xui32>
    %216 = "stablehlo.remainder"(%186, %215) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %217 = "stablehlo.broadcast_in_dim"(%214) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<6xui32>
    %218 = "stablehlo.multiply"(%216, %217) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %219 = "stablehlo.broadcast_in_dim"(%210) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<6xui32>
    %220 = "stablehlo.remainder"(%199, %219) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %221 = "stablehlo.add"(%218, %220) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %222 = "stablehlo.broadcast_in_dim"(%210) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<6xui32>
    %223 = "stablehlo.remainder"(%221, %222) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %224 = "stablehlo.convert"(%223) : (tensor<6xui32>) -> tensor<6xi32>
    %225 = "stablehlo.broadcast_in_dim"(%167) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xi32>) -> tensor<6xi32>
    %226 = "stablehlo.add"(%225, %224) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    "func.return"(%226) : (tensor<6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>, sym_name = "clip", sym_visibility = "private"}> ({
  ^bb0(%arg64: tensor<i32>, %arg65: tensor<i32>, %arg66: tensor<i32>):
    %153 = "stablehlo.maximum"(%arg65, %arg64) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %154 = "stablehlo.minimum"(%arg66, %153) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%154) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>, sym_name = "clip_0", sym_visibility = "private"}> ({
  ^bb0(%arg61: tensor<i32>, %arg62: tensor<i32>, %arg63: tensor<i32>):
    %151 = "stablehlo.maximum"(%arg62, %arg61) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %152 = "stablehlo.minimum"(%arg63, %151) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%152) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>) -> tensor<2x2xui32>, sym_name = "_threefry_split", sym_visibility = "private"}> ({
  ^bb0(%arg60: tensor<2xui32>):
    %134 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %135 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %136 = "stablehlo.slice"(%arg60) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %137 = "stablehlo.reshape"(%136) : (tensor<1xui32>) -> tensor<ui32>
    %138 = "stablehlo.slice"(%arg60) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1xui32>
    %139 = "stablehlo.reshape"(%138) : (tensor<1xui32>) -> tensor<ui32>
    %140 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xui64>
    %141 = "stablehlo.broadcast_in_dim"(%135) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<2xui64>
    %142 = "stablehlo.multiply"(%141, %140) : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
    %143 = "stablehlo.broadcast_in_dim"(%134) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<2xui64>
    %144 = "stablehlo.shift_right_logical"(%142, %143) : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
    %145 = "stablehlo.convert"(%142) : (tensor<2xui64>) -> tensor<2xui32>
    %146 = "stablehlo.convert"(%144) : (tensor<2xui64>) -> tensor<2xui32>
    %147:2 = "func.call"(%137, %139, %146, %145) <{callee = @threefry2x32_1}> : (tensor<ui32>, tensor<ui32>, tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>)
    %148 = "stablehlo.broadcast_in_dim"(%147#0) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xui32>) -> tensor<2x1xui32>
    %149 = "stablehlo.broadcast_in_dim"(%147#1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xui32>) -> tensor<2x1xui32>
    %150 = "stablehlo.concatenate"(%148, %149) <{dimension = 1 : i64}> : (tensor<2x1xui32>, tensor<2x1xui32>) -> tensor<2x2xui32>
    "func.return"(%150) : (tensor<2x2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<ui32>, tensor<ui32>, tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>), sym_name = "threefry2x32_1", sym_visibility = "private"}> ({
  ^bb0(%arg38: tensor<ui32>, %arg39: tensor<ui32>, %arg40: tensor<2xui32>, %arg41: tensor<2xui32>):
    %118 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %119 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %120 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %121 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %122 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %123 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %124 = "stablehlo.xor"(%arg38, %arg39) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %125 = "stablehlo.xor"(%124, %121) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %126 = "stablehlo.broadcast_in_dim"(%arg38) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %127 = "stablehlo.add"(%arg40, %126) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %128 = "stablehlo.broadcast_in_dim"(%arg39) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %129 = "stablehlo.add"(%arg41, %128) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %130:9 = "stablehlo.while"(%120, %120, %127, %129, %arg39, %125, %arg38, %122, %123) ({
    ^bb0(%arg51: tensor<i32>, %arg52: tensor<i32>, %arg53: tensor<2xui32>, %arg54: tensor<2xui32>, %arg55: tensor<ui32>, %arg56: tensor<ui32>, %arg57: tensor<ui32>, %arg58: tensor<4xui32>, %arg59: tensor<4xui32>):
      %133 = "stablehlo.compare"(%arg51, %119) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%133) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg42: tensor<i32>, %arg43: tensor<i32>, %arg44: tensor<2xui32>, %arg45: tensor<2xui32>, %arg46: tensor<ui32>, %arg47: tensor<ui32>, %arg48: tensor<ui32>, %arg49: tensor<4xui32>, %arg50: tensor<4xui32>):
      %131:8 = "func.call"(%arg43, %arg44, %arg45, %arg46, %arg47, %arg48, %arg49, %arg50) <{callee = @closed_call_2}> : (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %132 = "stablehlo.add"(%arg42, %118) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%132, %131#0, %131#1, %131#2, %131#3, %131#4, %131#5, %131#6, %131#7) : (tensor<i32>, tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i32>, tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%130#2, %130#3) : (tensor<2xui32>, tensor<2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call_2", sym_visibility = "private"}> ({
  ^bb0(%arg30: tensor<i32>, %arg31: tensor<2xui32>, %arg32: tensor<2xui32>, %arg33: tensor<ui32>, %arg34: tensor<ui32>, %arg35: tensor<ui32>, %arg36: tensor<4xui32>, %arg37: tensor<4xui32>):
    %67 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %68 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %69 = "stablehlo.add"(%arg30, %68) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %70 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %71 = "stablehlo.reshape"(%70) : (tensor<1xui32>) -> tensor<ui32>
    %72 = "stablehlo.add"(%arg31, %arg32) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %73 = "stablehlo.broadcast_in_dim"(%71) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %74 = "stablehlo.shift_left"(%arg32, %73) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %75 = "stablehlo.subtract"(%67, %71) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %76 = "stablehlo.broadcast_in_dim"(%75) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %77 = "stablehlo.shift_right_logical"(%arg32, %76) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %78 = "stablehlo.or"(%74, %77) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %79 = "stablehlo.xor"(%72, %78) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %80 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %81 = "stablehlo.reshape"(%80) : (tensor<1xui32>) -> tensor<ui32>
    %82 = "stablehlo.add"(%72, %79) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %83 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %84 = "stablehlo.shift_left"(%79, %83) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %85 = "stablehlo.subtract"(%67, %81) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %86 = "stablehlo.broadcast_in_dim"(%85) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %87 = "stablehlo.shift_right_logical"(%79, %86) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %88 = "stablehlo.or"(%84, %87) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %89 = "stablehlo.xor"(%82, %88) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %90 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %91 = "stablehlo.reshape"(%90) : (tensor<1xui32>) -> tensor<ui32>
    %92 = "stablehlo.add"(%82, %89) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %93 = "stablehlo.broadcast_in_dim"(%91) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %94 = "stablehlo.shift_left"(%89, %93) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %95 = "stablehlo.subtract"(%67, %91) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %96 = "stablehlo.broadcast_in_dim"(%95) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %97 = "stablehlo.shift_right_logical"(%89, %96) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %98 = "stablehlo.or"(%94, %97) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %99 = "stablehlo.xor"(%92, %98) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %100 = "stablehlo.slice"(%arg36) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %101 = "stablehlo.reshape"(%100) : (tensor<1xui32>) -> tensor<ui32>
    %102 = "stablehlo.add"(%92, %99) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %103 = "stablehlo.broadcast_in_dim"(%101) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %104 = "stablehlo.shift_left"(%99, %103) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %105 = "stablehlo.subtract"(%67, %101) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %107 = "stablehlo.shift_right_logical"(%99, %106) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %108 = "stablehlo.or"(%104, %107) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %109 = "stablehlo.xor"(%102, %108) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %110 = "stablehlo.broadcast_in_dim"(%arg33) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %111 = "stablehlo.add"(%102, %110) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %112 = "stablehlo.broadcast_in_dim"(%arg34) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %113 = "stablehlo.add"(%109, %112) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %114 = "stablehlo.add"(%arg30, %68) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %115 = "stablehlo.convert"(%114) : (tensor<i32>) -> tensor<ui32>
    %116 = "stablehlo.broadcast_in_dim"(%115) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<2xui32>
    %117 = "stablehlo.add"(%113, %116) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    "func.return"(%69, %111, %117, %arg34, %arg35, %arg33, %arg37, %arg36) : (tensor<i32>, tensor<2xui32>, tensor<2xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<ui32>, tensor<ui32>, tensor<6xui32>, tensor<6xui32>) -> (tensor<6xui32>, tensor<6xui32>), sym_name = "threefry2x32_3", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<ui32>, %arg9: tensor<ui32>, %arg10: tensor<6xui32>, %arg11: tensor<6xui32>):
    %51 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %52 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %53 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %54 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %55 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %56 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %57 = "stablehlo.xor"(%arg8, %arg9) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %58 = "stablehlo.xor"(%57, %54) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %59 = "stablehlo.broadcast_in_dim"(%arg8) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %60 = "stablehlo.add"(%arg10, %59) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %61 = "stablehlo.broadcast_in_dim"(%arg9) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %62 = "stablehlo.add"(%arg11, %61) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %63:9 = "stablehlo.while"(%53, %53, %60, %62, %arg9, %58, %arg8, %55, %56) ({
    ^bb0(%arg21: tensor<i32>, %arg22: tensor<i32>, %arg23: tensor<6xui32>, %arg24: tensor<6xui32>, %arg25: tensor<ui32>, %arg26: tensor<ui32>, %arg27: tensor<ui32>, %arg28: tensor<4xui32>, %arg29: tensor<4xui32>):
      %66 = "stablehlo.compare"(%arg21, %52) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%66) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg12: tensor<i32>, %arg13: tensor<i32>, %arg14: tensor<6xui32>, %arg15: tensor<6xui32>, %arg16: tensor<ui32>, %arg17: tensor<ui32>, %arg18: tensor<ui32>, %arg19: tensor<4xui32>, %arg20: tensor<4xui32>):
      %64:8 = "func.call"(%arg13, %arg14, %arg15, %arg16, %arg17, %arg18, %arg19, %arg20) <{callee = @closed_call_4}> : (tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %65 = "stablehlo.add"(%arg12, %51) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%65, %64#0, %64#1, %64#2, %64#3, %64#4, %64#5, %64#6, %64#7) : (tensor<i32>, tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i32>, tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%63#2, %63#3) : (tensor<6xui32>, tensor<6xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call_4", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<i32>, %arg1: tensor<6xui32>, %arg2: tensor<6xui32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>):
    %0 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.add"(%arg0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %4 = "stablehlo.reshape"(%3) : (tensor<1xui32>) -> tensor<ui32>
    %5 = "stablehlo.add"(%arg1, %arg2) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %6 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %7 = "stablehlo.shift_left"(%arg2, %6) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %8 = "stablehlo.subtract"(%0, %4) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %10 = "stablehlo.shift_right_logical"(%arg2, %9) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %11 = "stablehlo.or"(%7, %10) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %12 = "stablehlo.xor"(%5, %11) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %13 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %14 = "stablehlo.reshape"(%13) : (tensor<1xui32>) -> tensor<ui32>
    %15 = "stablehlo.add"(%5, %12) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %16 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %17 = "stablehlo.shift_left"(%12, %16) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %18 = "stablehlo.subtract"(%0, %14) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %20 = "stablehlo.shift_right_logical"(%12, %19) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %21 = "stablehlo.or"(%17, %20) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %22 = "stablehlo.xor"(%15, %21) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %23 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %24 = "stablehlo.reshape"(%23) : (tensor<1xui32>) -> tensor<ui32>
    %25 = "stablehlo.add"(%15, %22) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %26 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %27 = "stablehlo.shift_left"(%22, %26) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %28 = "stablehlo.subtract"(%0, %24) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %29 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %30 = "stablehlo.shift_right_logical"(%22, %29) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %31 = "stablehlo.or"(%27, %30) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %32 = "stablehlo.xor"(%25, %31) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %33 = "stablehlo.slice"(%arg6) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %34 = "stablehlo.reshape"(%33) : (tensor<1xui32>) -> tensor<ui32>
    %35 = "stablehlo.add"(%25, %32) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %36 = "stablehlo.broadcast_in_dim"(%34) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %37 = "stablehlo.shift_left"(%32, %36) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %38 = "stablehlo.subtract"(%0, %34) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %39 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %40 = "stablehlo.shift_right_logical"(%32, %39) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %41 = "stablehlo.or"(%37, %40) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %42 = "stablehlo.xor"(%35, %41) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %43 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %44 = "stablehlo.add"(%35, %43) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %45 = "stablehlo.broadcast_in_dim"(%arg4) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %46 = "stablehlo.add"(%42, %45) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %47 = "stablehlo.add"(%arg0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %48 = "stablehlo.convert"(%47) : (tensor<i32>) -> tensor<ui32>
    %49 = "stablehlo.broadcast_in_dim"(%48) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<6xui32>
    %50 = "stablehlo.add"(%46, %49) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    "func.return"(%2, %44, %50, %arg4, %arg5, %arg3, %arg7, %arg6) : (tensor<i32>, tensor<6xui32>, tensor<6xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
