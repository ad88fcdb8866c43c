"""What the benchmark of instructions reads out of a disassembled kernel."""

from __future__ import annotations

from benchmarks.kernels.instructions import busiest_loop, loads_ahead, read

#: As cuobjdump prints it: a loop that sums two vectors at a time, with a smaller one behind it.
_LISTING = """
		Function : k
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                          /* 0x00000a00ff017b82 */
        /*0010*/               @P0 EXIT ;                                          /* 0x000000000000094d */
        /*0020*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;       /* 0x0000000402047981 */
        /*0030*/                   LDG.E.128.CONSTANT R8, desc[UR4][R2.64+0x200] ; /* 0x0000200402087981 */
        /*0040*/                   FADD R4, R4, R8 ;
        /*0050*/                   NOP;
        /*0060*/              @!P1 BRA 0x20 ;
        /*0070*/                   LDG.E.U16.CONSTANT R4, desc[UR4][R2.64] ;
        /*0080*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0090*/               @P2 BRA 0x70 ;
        /*00a0*/                   EXIT ;
        /*00b0*/                   BRA 0xb0;
"""


def test_instructions_of_a_listing() -> None:
    lines = read(_LISTING)
    assert [line.name for line in lines[:3]] == ["LDC", "EXIT", "LDG.E.128.CONSTANT"]
    assert not any(line.name == "NOP" for line in lines)
    assert [line.width for line in lines if line.width] == [16, 16, 2, 4]


def test_the_loop_that_moves_most() -> None:
    body = busiest_loop(read(_LISTING))
    assert (body[0].place, body[-1].place, len(body)) == (0x20, 0x60, 4)
    assert loads_ahead(body) == 2


def test_a_kernel_without_a_loop() -> None:
    lines = [line for line in read(_LISTING) if line.target is None]
    assert busiest_loop(lines) == lines
    assert loads_ahead(lines) == 3
