"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<5x7xf32>) -> (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<5x7xf32>, %arg1: tensor<5x7xf32>):
    %0 = "stablehlo.constant"() <{value = dense<2.19736814> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %1 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %2 = "stablehlo.constant"() <{value = dense<1.41421354> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %3 = "stablehlo.constant"() <{value = dense<1.553774> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %4 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %5 = "stablehlo.constant"() <{value = dense<6.500000e+01> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %6 = "stablehlo.constant"() <{value = dense<4.097000e+03> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %7 = "stablehlo.constant"() <{value = dense<9.99999968E+37> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %8 = "stablehlo.constant"() <{value = dense<0x4D000000> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %9 = "stablehlo.constant"() <{value = dense<3.40282347E+38> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %10 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %11 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %12 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %13 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<5x7xf32>}> : () -> tensor<5x7xf32>
    %14 = "stablehlo.constant"() <{value = dense<(5.000000e-01,1.000000e+00)> : tensor<complex<f32>>}> : () -> tensor<complex<f32>>
    %15 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %16 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.constant"() <{value = dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>}> : () -> tensor<complex<f32>>
    %18 = "stablehlo.convert"(%arg1) : (tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %19 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64>}> : (tensor<complex<f32>>) -> tensor<5x7xcomplex<f32>>
    %20 = "stablehlo.multiply"(%19, %18) : (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %21 = "stablehlo.convert"(%arg0) : (tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %22 = "stablehlo.add"(%21, %20) : (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %23 = "stablehlo.real"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %24 = "stablehlo.exponential"(%23) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %25 = "stablehlo.compare"(%24, %13) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %26 = "stablehlo.multiply"(%23, %12) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %27 = "stablehlo.exponential"(%26) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %28 = "stablehlo.imag"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %29 = "stablehlo.cosine"(%28) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %30 = "stablehlo.multiply"(%27, %29) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %31 = "stablehlo.multiply"(%30, %27) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %32 = "stablehlo.multiply"(%24, %29) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %33 = "stablehlo.select"(%25, %31, %32) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %34 = "stablehlo.compare"(%28, %11) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %35 = "stablehlo.sine"(%28) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %36 = "stablehlo.multiply"(%27, %35) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %37 = "stablehlo.multiply"(%36, %27) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %38 = "stablehlo.multiply"(%24, %35) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %39 = "stablehlo.select"(%25, %37, %38) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %40 = "stablehlo.select"(%34, %11, %39) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %41 = "stablehlo.complex"(%33, %40) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %42 = "stablehlo.real"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %43 = "stablehlo.imag"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %44 = "stablehlo.multiply"(%43, %43) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %45 = "stablehlo.multiply"(%42, %42) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %46 = "stablehlo.compare"(%44, %45) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %47 = "stablehlo.select"(%46, %44, %45) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %48 = "stablehlo.add"(%10, %47) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %49 = "stablehlo.select"(%46, %45, %44) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %50 = "stablehlo.add"(%48, %49) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %51 = "stablehlo.negate"(%44) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %52 = "stablehlo.compare"(%9, %13) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %53 = "stablehlo.compare"(%9, %7) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %54 = "stablehlo.select"(%53, %6, %5) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %55 = "stablehlo.select"(%52, %8, %54) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %56 = "stablehlo.multiply"(%55, %43) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %57 = "stablehlo.subtract"(%43, %56) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %58 = "stablehlo.add"(%56, %57) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %59 = "stablehlo.multiply"(%58, %58) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %60 = "stablehlo.add"(%51, %59) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %61 = "stablehlo.subtract"(%43, %58) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %62 = "stablehlo.multiply"(%58, %61) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %63 = "stablehlo.add"(%60, %62) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %64 = "stablehlo.add"(%63, %62) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %65 = "stablehlo.multiply"(%61, %61) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %66 = "stablehlo.add"(%64, %65) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %67 = "stablehlo.add"(%50, %66) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %68 = "stablehlo.negate"(%45) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %69 = "stablehlo.multiply"(%55, %42) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %70 = "stablehlo.subtract"(%42, %69) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %71 = "stablehlo.add"(%69, %70) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %72 = "stablehlo.multiply"(%71, %71) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %73 = "stablehlo.add"(%68, %72) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %74 = "stablehlo.subtract"(%42, %71) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %75 = "stablehlo.multiply"(%71, %74) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %76 = "stablehlo.add"(%73, %75) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %77 = "stablehlo.add"(%76, %75) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %78 = "stablehlo.multiply"(%74, %74) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %79 = "stablehlo.add"(%77, %78) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %80 = "stablehlo.add"(%67, %79) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %81 = "stablehlo.subtract"(%48, %10) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %82 = "stablehlo.subtract"(%47, %81) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %83 = "stablehlo.subtract"(%50, %48) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %84 = "stablehlo.subtract"(%49, %83) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %85 = "stablehlo.add"(%82, %84) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %86 = "stablehlo.subtract"(%67, %50) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %87 = "stablehlo.subtract"(%66, %86) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %88 = "stablehlo.add"(%85, %87) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %89 = "stablehlo.subtract"(%80, %67) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %90 = "stablehlo.subtract"(%79, %89) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %91 = "stablehlo.add"(%88, %90) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %92 = "stablehlo.add"(%80, %91) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %93 = "stablehlo.abs"(%92) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %94 = "stablehlo.compare"(%93, %12) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %95 = "stablehlo.log_plus_one"(%92) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %96 = "stablehlo.multiply"(%12, %95) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %97 = "stablehlo.abs"(%42) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %98 = "stablehlo.abs"(%43) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %99 = "stablehlo.maximum"(%97, %98) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %100 = "stablehlo.log"(%99) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %101 = "stablehlo.minimum"(%97, %98) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %102 = "stablehlo.compare"(%101, %99) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %103 = "stablehlo.divide"(%101, %99) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %104 = "stablehlo.select"(%102, %4, %103) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %105 = "stablehlo.multiply"(%104, %104) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %106 = "stablehlo.log_plus_one"(%105) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %107 = "stablehlo.multiply"(%12, %106) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %108 = "stablehlo.add"(%100, %107) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %109 = "stablehlo.select"(%94, %96, %108) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %110 = "stablehlo.atan2"(%43, %42) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %111 = "stablehlo.complex"(%109, %110) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %112 = "stablehlo.real"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %113 = "stablehlo.compare"(%112, %11) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %114 = "stablehlo.abs"(%112) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %115 = "stablehlo.imag"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %116 = "stablehlo.abs"(%115) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %117 = "stablehlo.compare"(%114, %116) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %118 = "stablehlo.sqrt"(%114) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %119 = "stablehlo.multiply"(%118, %3) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %120 = "stablehlo.divide"(%119, %2) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %121 = "stablehlo.maximum"(%114, %116) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %122 = "stablehlo.minimum"(%114, %116) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %123 = "stablehlo.compare"(%121, %122) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %124 = "stablehlo.multiply"(%2, %121) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %125 = "stablehlo.divide"(%122, %121) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %126 = "stablehlo.multiply"(%125, %125) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %127 = "stablehlo.add"(%4, %126) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %128 = "stablehlo.sqrt"(%127) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %129 = "stablehlo.compare"(%128, %4) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %130 = "stablehlo.compare"(%126, %11) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %131 = "stablehlo.and"(%129, %130) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %132 = "stablehlo.multiply"(%121, %126) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %133 = "stablehlo.divide"(%132, %1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %134 = "stablehlo.add"(%121, %133) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %135 = "stablehlo.multiply"(%121, %128) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %136 = "stablehlo.select"(%131, %134, %135) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %137 = "stablehlo.select"(%123, %124, %136) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %138 = "stablehlo.divide"(%137, %1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %139 = "stablehlo.divide"(%114, %1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %140 = "stablehlo.add"(%138, %139) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %141 = "stablehlo.sqrt"(%140) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %142 = "stablehlo.compare"(%141, %11) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %143 = "stablehlo.compare"(%141, %13) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %144 = "stablehlo.or"(%142, %143) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %145 = "stablehlo.compare"(%114, %116) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %146 = "stablehlo.compare"(%114, %116) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %147 = "stablehlo.divide"(%114, %116) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %148 = "stablehlo.divide"(%116, %114) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %149 = "stablehlo.select"(%146, %147, %148) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %150 = "stablehlo.select"(%117, %4, %149) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %151 = "stablehlo.abs"(%150) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %152 = "stablehlo.maximum"(%4, %151) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %153 = "stablehlo.minimum"(%4, %151) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %154 = "stablehlo.compare"(%152, %153) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %155 = "stablehlo.multiply"(%2, %152) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %156 = "stablehlo.divide"(%153, %152) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %157 = "stablehlo.multiply"(%156, %156) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %158 = "stablehlo.add"(%4, %157) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %159 = "stablehlo.sqrt"(%158) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %160 = "stablehlo.compare"(%159, %4) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %161 = "stablehlo.compare"(%157, %11) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %162 = "stablehlo.and"(%160, %161) : (tensor<5x7xi1>, tensor<5x7xi1>) -> tensor<5x7xi1>
    %163 = "stablehlo.multiply"(%152, %157) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %164 = "stablehlo.divide"(%163, %1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %165 = "stablehlo.add"(%152, %164) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %166 = "stablehlo.multiply"(%152, %159) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %167 = "stablehlo.select"(%162, %165, %166) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %168 = "stablehlo.select"(%154, %155, %167) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %169 = "stablehlo.add"(%4, %168) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %170 = "stablehlo.sqrt"(%169) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %171 = "stablehlo.divide"(%170, %2) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %172 = "stablehlo.multiply"(%118, %171) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %173 = "stablehlo.sqrt"(%116) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %174 = "stablehlo.add"(%150, %168) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %175 = "stablehlo.sqrt"(%174) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %176 = "stablehlo.divide"(%175, %2) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %177 = "stablehlo.multiply"(%173, %176) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %178 = "stablehlo.select"(%145, %172, %177) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %179 = "stablehlo.select"(%144, %178, %141) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %180 = "stablehlo.select"(%117, %120, %179) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %181 = "stablehlo.divide"(%173, %0) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %182 = "stablehlo.divide"(%118, %173) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %183 = "stablehlo.divide"(%173, %118) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %184 = "stablehlo.select"(%146, %182, %183) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %185 = "stablehlo.select"(%117, %4, %184) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %186 = "stablehlo.multiply"(%173, %185) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %187 = "stablehlo.multiply"(%170, %2) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %188 = "stablehlo.divide"(%186, %187) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %189 = "stablehlo.multiply"(%175, %2) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %190 = "stablehlo.divide"(%173, %189) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %191 = "stablehlo.select"(%145, %188, %190) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %192 = "stablehlo.multiply"(%141, %1) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %193 = "stablehlo.divide"(%116, %192) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %194 = "stablehlo.select"(%144, %191, %193) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %195 = "stablehlo.select"(%117, %181, %194) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %196 = "stablehlo.select"(%113, %180, %195) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %197 = "stablehlo.compare"(%112, %11) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %198 = "stablehlo.compare"(%115, %11) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %199 = "stablehlo.negate"(%180) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %200 = "stablehlo.select"(%198, %199, %180) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %201 = "stablehlo.negate"(%195) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %202 = "stablehlo.select"(%198, %201, %195) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %203 = "stablehlo.select"(%197, %200, %202) : (tensor<5x7xi1>, tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %204 = "stablehlo.complex"(%196, %203) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %205 = "stablehlo.real"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %206 = "stablehlo.imag"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %207 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %208 = "stablehlo.compare"(%205, %207) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %209 = "stablehlo.sine"(%205) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %210 = "stablehlo.cosine"(%205) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %211 = "stablehlo.exponential_minus_one"(%206) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %212 = "stablehlo.negate"(%206) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %213 = "stablehlo.exponential_minus_one"(%212) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %214 = "stablehlo.subtract"(%211, %213) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %215 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %216 = "stablehlo.divide"(%214, %215) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %217 = "stablehlo.add"(%211, %213) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %218 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %219 = "stablehlo.add"(%217, %218) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %220 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %221 = "stablehlo.divide"(%219, %220) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %222 = "stablehlo.multiply"(%209, %221) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %223 = "stablehlo.multiply"(%210, %216) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %224 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %225 = "stablehlo.complex"(%224, %223) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %226 = "stablehlo.complex"(%222, %223) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %227 = "stablehlo.select"(%208, %225, %226) : (tensor<5x7xi1>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %228 = "stablehlo.real"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %229 = "stablehlo.imag"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xf32>
    %230 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %231 = "stablehlo.compare"(%228, %230) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
    %232 = "stablehlo.sine"(%228) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %233 = "stablehlo.cosine"(%228) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %234 = "stablehlo.exponential_minus_one"(%229) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %235 = "stablehlo.negate"(%229) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %236 = "stablehlo.exponential_minus_one"(%235) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %237 = "stablehlo.subtract"(%234, %236) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %238 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %239 = "stablehlo.divide"(%237, %238) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %240 = "stablehlo.add"(%234, %236) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %241 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %242 = "stablehlo.add"(%240, %241) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %243 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %244 = "stablehlo.divide"(%242, %243) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %245 = "stablehlo.multiply"(%233, %244) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %246 = "stablehlo.negate"(%232) : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %247 = "stablehlo.multiply"(%246, %239) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %248 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x7xf32>
    %249 = "stablehlo.complex"(%245, %248) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %250 = "stablehlo.complex"(%245, %247) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xcomplex<f32>>
    %251 = "stablehlo.select"(%231, %249, %250) : (tensor<5x7xi1>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %252 = "stablehlo.tanh"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %253 = "stablehlo.multiply"(%22, %22) : (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %254 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<complex<f32>>) -> tensor<5x7xcomplex<f32>>
    %255 = "stablehlo.power"(%22, %254) : (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    %256 = "stablehlo.sign"(%22) : (tensor<5x7xcomplex<f32>>) -> tensor<5x7xcomplex<f32>>
    "func.return"(%41, %111, %204, %227, %251, %252, %253, %255, %256) : (tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>, tensor<5x7xcomplex<f32>>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
