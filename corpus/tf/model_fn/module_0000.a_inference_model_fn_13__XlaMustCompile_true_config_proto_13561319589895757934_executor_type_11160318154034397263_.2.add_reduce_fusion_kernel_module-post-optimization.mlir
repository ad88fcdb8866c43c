module @add_reduce_fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>, xla.cpu_memory_region_name = "xla_cpu_emitter__loop_fusion_kernel_emitter__hlo_opcode__fusion"} {
  func.func @add_reduce_fusion(%arg0: tensor<24xf32> {llvm.align = 64 : index, llvm.dereferenceable = 96 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<24xf32> {llvm.align = 64 : index, llvm.dereferenceable = 96 : index, xla.invariant, xla.slice_index = 1 : index}, %arg2: tensor<24xf32> {llvm.align = 64 : index, llvm.dereferenceable = 96 : index, xla.invariant, xla.slice_index = 2 : index}, %arg3: tensor<f32> {llvm.align = 64 : index, llvm.dereferenceable = 4 : index, xla.slice_index = 3 : index}) -> tensor<f32> attributes {xla.backend_kind = #xla.backend_kind<cpu>, xla.entry} {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %0 = scf.for %arg4 = %c0 to %c4 step %c1 iter_args(%arg5 = %cst) -> (f32) {
      %1 = scf.for %arg6 = %c0 to %c6 step %c1 iter_args(%arg7 = %arg5) -> (f32) {
        %2 = xla.apply_indexing #xla.indexing_map<"(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 3], d1 in [0, 5]">(%arg4, %arg6)
        %extracted = tensor.extract %arg1[%2] : tensor<24xf32>
        %extracted_0 = tensor.extract %arg2[%2] : tensor<24xf32>
        %extracted_1 = tensor.extract %arg0[%2] : tensor<24xf32>
        %3 = arith.mulf %extracted, %extracted_0 : f32
        %4 = arith.addf %extracted_1, %3 : f32
        %5 = arith.addf %arg7, %4 fastmath<reassoc> : f32
        scf.yield %5 : f32
      }
      scf.yield %1 : f32
    } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
    %inserted = tensor.insert %0 into %arg3[] : tensor<f32>
    return %inserted : tensor<f32>
  }
}