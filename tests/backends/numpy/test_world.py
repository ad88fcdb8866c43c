"""Devices in lock-step: who meets whom, and what happens when somebody never comes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.devices import header, run_devices
from support.differential import parse

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.lockstep import Device, World
from hlotool.errors import BackendCrashed, BackendDeadlock, InputDataError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction
from hlotool.ir.types import TOKEN

FIRST = Instruction("first", "all-reduce", TOKEN, line=3)
SECOND = Instruction("second", "all-gather", TOKEN)
ALL = (0, 1, 2)


def total(values: Sequence[int]) -> list[int]:
    return [sum(values)] * len(values)


def on_three(body: Any) -> list[Any]:
    world = World(DeviceGrid(3))
    return world.run(lambda number: body(Device(world, number)))


def test_members_get_their_results_in_the_order_of_the_group() -> None:
    def body(device: Device) -> Any:
        return device.meet(FIRST, (2, 0, 1), device.number, lambda values: [10 * v for v in values])

    assert on_three(body) == [0, 10, 20]


def test_many_meetings() -> None:
    def body(device: Device) -> int:
        value = device.number
        for _ in range(300):
            value = device.meet(FIRST, ALL, value, total) % 7
        return value

    assert len(set(on_three(body))) == 1


def test_groups_go_their_own_way() -> None:
    def body(device: Device) -> int:
        if device.number == 2:
            return 0
        for _ in range(5):
            device.meet(FIRST, (0, 1), 1, total)
        return 1

    assert on_three(body) == [1, 1, 0]


def test_a_member_that_ended_is_named() -> None:
    def body(device: Device) -> None:
        if device.number != 1:
            device.meet(FIRST, ALL, 0, total)

    message = r"0, 2 wait at all-reduce %first \(line 3\) for 1 \(which has ended\)"
    with pytest.raises(BackendDeadlock, match=message):
        on_three(body)


def test_members_at_different_places_are_named() -> None:
    def body(device: Device) -> None:
        device.meet(SECOND if device.number == 1 else FIRST, ALL, 0, total)

    message = "0, 2 wait at all-reduce %first .* for 1; 1 waits at all-gather %second for 0, 2"
    with pytest.raises(BackendDeadlock, match=message):
        on_three(body)


def test_the_first_error_ends_all() -> None:
    def body(device: Device) -> None:
        if device.number == 1:
            time.sleep(0.05)
            raise ZeroDivisionError("device 1")
        device.meet(FIRST, ALL, 0, total)

    with pytest.raises(ZeroDivisionError, match="device 1"):
        on_three(body)


def test_an_error_in_the_exchange_ends_all() -> None:
    def combine(values: Sequence[int]) -> list[int]:
        raise ZeroDivisionError("exchange")

    with pytest.raises(ZeroDivisionError, match="exchange"):
        on_three(lambda device: device.meet(FIRST, ALL, 0, combine))


def test_messages_arrive_in_order_whoever_comes_first() -> None:
    def body(device: Device) -> Any:
        if device.number == 0:
            time.sleep(0.02)
            device.send(1, 2, "a")
            device.send(1, 2, "b")
        if device.number == 1:
            device.send(1, 2, "c")
        if device.number != 2:
            return None
        handles = [device.expect(1, sender) for sender in (0, 0, 1, None)]
        return [device.receive(handle, SECOND) for handle in reversed(handles)]

    assert on_three(body)[2] == [None, "c", "b", "a"]


def test_a_message_that_never_comes() -> None:
    def body(device: Device) -> None:
        if device.number == 2:
            device.receive(device.expect(1, 0), SECOND)

    with pytest.raises(BackendDeadlock, match=r"2 waits at all-gather %second for 0 \(which has ended\)"):
        on_three(body)


ADD = "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }"
GLOBAL = "use_global_device_ids=true, replica_groups"

LOOP = f"""{header((1, 4))}
{ADD}
body {{
 s = (s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = s32[] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] subtract(i, one)
 y = s32[] all-reduce(x), channel_id=1, {GLOBAL}={{{{0,1}},{{2,3}}}}, to_apply=add
 ROOT t = (s32[], s32[]) tuple(j, y)
}}
cond {{
 s = (s32[], s32[]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 zero = s32[] constant(0)
 ROOT p = pred[] compare(i, zero), direction=GT
}}
ENTRY e {{
 n = s32[] parameter(0)
 x = s32[] parameter(1)
 s = (s32[], s32[]) tuple(n, x)
 w = (s32[], s32[]) while(s), condition=cond, body=body
 ROOT r = s32[] get-tuple-element(w), index=1
}}"""


def test_groups_may_loop_differently_often() -> None:
    arguments = [[np.int32(2), np.int32(1)]] * 2 + [[np.int32(5), np.int32(1)]] * 2
    assert [int(result[0]) for result in run_devices(LOOP, arguments, (1, 4))] == [4, 4, 32, 32]


def test_members_may_not() -> None:
    arguments = [[np.int32(n), np.int32(1)] for n in (2, 3, 1, 1)]
    with pytest.raises(BackendDeadlock, match=r"1 waits at all-reduce %y.* for 0 \(which has ended\)"):
        run_devices(LOOP, arguments, (1, 4))


def test_operands_are_not_changed_under_a_neighbour() -> None:
    """The sender updates its buffer in place while the receiver still reads the old one."""
    text = f"""{header((2, 1))}
ENTRY e {{
 x = s32[4] parameter(0)
 i = s32[] constant(0)
 b = s32[4] add(x, x)
 p = s32[4] collective-permute(b), source_target_pairs={{{{0,1}},{{1,0}}}}
 v = s32[1] constant({{-1}})
 u = s32[4] dynamic-update-slice(b, v, i)
 q = s32[4] dynamic-update-slice(p, v, i)
 z = s32[4] collective-permute(q), source_target_pairs={{{{0,1}},{{1,0}}}}
 ROOT t = (s32[4], s32[4], s32[4]) tuple(u, z, p)
}}"""
    for _ in range(20):
        results = run_devices(text, [[np.int32([d] * 4)] for d in (1, 2)], (2, 1))
        assert [[leaf.tolist() for leaf in device] for device in results] == [
            [[-1, 2, 2, 2], [-1, 2, 2, 2], [4, 4, 4, 4]],
            [[-1, 4, 4, 4], [-1, 4, 4, 4], [2, 2, 2, 2]],
        ]


PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}"

SEND = f"""{header((1, 3))}
ENTRY e {{
 x = s32[2] parameter(0)
 t = token[] after-all()
 r = (s32[2], u32[], token[]) recv(t), channel_id=7, {PAIRS}
 s = (s32[2], u32[], token[]) send(x, t), channel_id=7, {PAIRS}
 d = (s32[2], token[]) recv-done(r), channel_id=7
 e = token[] send-done(s), channel_id=7
 ROOT y = s32[2] get-tuple-element(d), index=0
}}"""


def test_send_and_receive() -> None:
    results = run_devices(SEND, [[np.int32([d, d])] for d in (1, 2, 3)], (1, 3))
    assert [result[0].tolist() for result in results] == [[0, 0], [1, 1], [2, 2]]


def test_failures_name_the_instruction() -> None:
    text = f"{header((2, 1))}\nENTRY e {{\n x = s32[2] parameter(0)\n ROOT y = s32[2] add(x, x)\n}}"
    executable = NumpyBackend().compile_devices(parse(text), DeviceGrid(2))
    with pytest.raises(InputDataError, match="runs on 2 devices"):
        executable.run_devices([[np.int32([1, 2])]])

    def probe(instruction: Instruction, value: Any) -> None:
        raise KeyError(instruction.name)

    with pytest.raises(BackendCrashed, match=r"KeyError at add %y .*: 'y'"):
        executable.run_devices([[np.int32([1, 2])]] * 2, [None, probe])
