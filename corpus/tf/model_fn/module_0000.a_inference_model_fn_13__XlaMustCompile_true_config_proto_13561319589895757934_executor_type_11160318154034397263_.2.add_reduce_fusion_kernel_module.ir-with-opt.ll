; ModuleID = '__compute_module_add_reduce_fusion_kernel_module'
source_filename = "__compute_module_add_reduce_fusion_kernel_module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nofree norecurse nosync nounwind memory(readwrite, target_mem0: none, target_mem1: none) uwtable
define noalias noundef ptr @add_reduce_fusion(ptr readonly captures(none) %0) local_unnamed_addr #0 {
vector.ph:
  tail call void @llvm.experimental.noalias.scope.decl(metadata !3)
  tail call void @llvm.experimental.noalias.scope.decl(metadata !6)
  tail call void @llvm.experimental.noalias.scope.decl(metadata !8)
  tail call void @llvm.experimental.noalias.scope.decl(metadata !10)
  %1 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %2 = load ptr, ptr %1, align 8, !invariant.load !12
  %3 = load ptr, ptr %2, align 8, !invariant.load !12, !dereferenceable !13
  %wide.vec15 = load <24 x float>, ptr %3, align 4, !invariant.load !12, !alias.scope !3, !noalias !14
  %4 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %5 = load ptr, ptr %4, align 8, !invariant.load !12, !dereferenceable !13
  %wide.vec = load <24 x float>, ptr %5, align 4, !invariant.load !12, !alias.scope !6, !noalias !15
  %6 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %7 = load ptr, ptr %6, align 8, !invariant.load !12, !dereferenceable !13
  %wide.vec8 = load <24 x float>, ptr %7, align 4, !invariant.load !12, !alias.scope !8, !noalias !16
  %8 = fmul <24 x float> %wide.vec, %wide.vec8
  %9 = fadd <24 x float> %wide.vec15, %8
  %10 = shufflevector <24 x float> %9, <24 x float> poison, <4 x i32> <i32 0, i32 6, i32 12, i32 18>
  %11 = fadd reassoc <4 x float> %10, <float 0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>
  %12 = fmul <24 x float> %wide.vec, %wide.vec8
  %13 = fadd <24 x float> %wide.vec15, %12
  %14 = shufflevector <24 x float> %13, <24 x float> poison, <4 x i32> <i32 1, i32 7, i32 13, i32 19>
  %15 = fadd reassoc <4 x float> %11, %14
  %16 = fmul <24 x float> %wide.vec, %wide.vec8
  %17 = fadd <24 x float> %wide.vec15, %16
  %18 = shufflevector <24 x float> %17, <24 x float> poison, <4 x i32> <i32 2, i32 8, i32 14, i32 20>
  %19 = fadd reassoc <4 x float> %15, %18
  %20 = fmul <24 x float> %wide.vec, %wide.vec8
  %21 = fadd <24 x float> %wide.vec15, %20
  %22 = shufflevector <24 x float> %21, <24 x float> poison, <4 x i32> <i32 3, i32 9, i32 15, i32 21>
  %23 = fadd reassoc <4 x float> %19, %22
  %24 = fmul <24 x float> %wide.vec, %wide.vec8
  %25 = fadd <24 x float> %wide.vec15, %24
  %26 = shufflevector <24 x float> %25, <24 x float> poison, <4 x i32> <i32 4, i32 10, i32 16, i32 22>
  %27 = fadd reassoc <4 x float> %23, %26
  %28 = fmul <24 x float> %wide.vec, %wide.vec8
  %29 = fadd <24 x float> %wide.vec15, %28
  %30 = shufflevector <24 x float> %29, <24 x float> poison, <4 x i32> <i32 5, i32 11, i32 17, i32 23>
  %31 = fadd reassoc <4 x float> %27, %30
  %32 = tail call reassoc float @llvm.vector.reduce.fadd.v4f32(float -0.000000e+00, <4 x float> %31)
  %33 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %34 = load ptr, ptr %33, align 8, !invariant.load !12, !dereferenceable !17
  store float %32, ptr %34, align 4, !alias.scope !10, !noalias !18
  ret ptr null
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite)
declare void @llvm.experimental.noalias.scope.decl(metadata) #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>) #2

attributes #0 = { nofree norecurse nosync nounwind memory(readwrite, target_mem0: none, target_mem1: none) uwtable "frame-pointer"="all" "prefer-vector-width"="256" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite) }
attributes #2 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0, !1}
!xla_cpu_memory_region_name = !{!2}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = !{i32 1, !"xla_dylib_index", i64 0}
!2 = !{!"xla_cpu_emitter__loop_fusion_kernel_emitter__hlo_opcode__fusion"}
!3 = !{!4}
!4 = distinct !{!4, !5, !"add_reduce_fusion_wrapped: argument 0"}
!5 = distinct !{!5, !"add_reduce_fusion_wrapped"}
!6 = !{!7}
!7 = distinct !{!7, !5, !"add_reduce_fusion_wrapped: argument 1"}
!8 = !{!9}
!9 = distinct !{!9, !5, !"add_reduce_fusion_wrapped: argument 2"}
!10 = !{!11}
!11 = distinct !{!11, !5, !"add_reduce_fusion_wrapped: argument 3"}
!12 = !{}
!13 = !{i64 96}
!14 = !{!7, !9, !11}
!15 = !{!4, !9, !11}
!16 = !{!4, !7, !11}
!17 = !{i64 4}
!18 = !{!4, !7, !9}
