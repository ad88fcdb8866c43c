INSERT INTO programs VALUES (1, 'HloModule jit_model_fn, entry_computation_layout={(f32[8,16]{1,0}, f32[8,16]{1,0}, f32[8,16]{1,0})->f32[]}, allow_spmd_sharding_propagation_to_parameters={true,true,true}, allow_spmd_sharding_propagation_to_output={true}

FileNames
1 "corpus/generate/run_program.py"
2 "corpus/generate/jax_programs.py"

FunctionNames
1 "<module>"
2 "main"
3 "model_fn.<locals>.model_fn"

FileLocations
1 {file_name_id=1 function_name_id=1 line=57 end_line=57 column=4 end_column=10}
2 {file_name_id=1 function_name_id=2 line=41 end_line=41 column=18 end_column=38}
3 {file_name_id=2 function_name_id=3 line=25 end_line=25 column=15 end_column=33}
4 {file_name_id=2 function_name_id=3 line=25 end_line=25 column=27 end_column=32}
5 {file_name_id=2 function_name_id=3 line=25 end_line=25 column=23 end_column=32}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=3}
5 {file_location_id=5 parent_frame_id=3}


%region_0.1 (reduce_sum.3: f32[], reduce_sum.4: f32[]) -> f32[] {
  %reduce_sum.3 = f32[] parameter(0), metadata={op_name="reduce_sum"}
  %reduce_sum.4 = f32[] parameter(1), metadata={op_name="reduce_sum"}
  ROOT %reduce_sum.5 = f32[] add(%reduce_sum.3, %reduce_sum.4), metadata={op_name="jit(model_fn)/reduce_sum" stack_frame_id=3}
}

ENTRY %main.2 (x.1: f32[8,16], y.1: f32[8,16], z.1: f32[8,16]) -> f32[] {
  %x.1 = f32[8,16]{1,0} parameter(0), metadata={op_name="x"}
  %y.1 = f32[8,16]{1,0} parameter(1), metadata={op_name="y"}
  %z.1 = f32[8,16]{1,0} parameter(2), metadata={op_name="z"}
  %mul.1 = f32[8,16]{1,0} multiply(%y.1, %z.1), metadata={op_name="jit(model_fn)/mul" stack_frame_id=4}
  %add.1 = f32[8,16]{1,0} add(%x.1, %mul.1), metadata={op_name="jit(model_fn)/add" stack_frame_id=5}
  %constant.1 = f32[] constant(0)
  ROOT %reduce_sum.7 = f32[] reduce(%add.1, %constant.1), dimensions={0,1}, to_apply=%region_0.1, metadata={op_name="jit(model_fn)/reduce_sum" stack_frame_id=3}
}
');
