"""Right values that are read where others should be: what hands them there."""

from __future__ import annotations

from hlotool.locate.blame import Blame, handing
from hlotool.locate.control import (
    alike_at_first,
    behind_forms,
    caller_of_parameter,
    carried_round,
    handed_through,
    is_call,
    is_handed_through,
    is_result,
    is_rewritten_loop,
    step_name,
)
from hlotool.locate.frames import Node, chain, iteration_of, made
from hlotool.locate.pairing import Pairing


def miswired(pairing: Pairing, one: Node, other: Node) -> Blame | None:
    """What hands on a right value instead of the one that should be read."""
    left, right = made(one), made(other)
    if not pairing.differ(left, right):
        return None
    # Passes add calls and tuples on the way: what counts is the last step that both sides take.
    common = {step_name(step) for step in behind_forms(one)}
    steps = list(chain(other))
    shared = [s for s in steps[:-1] if step_name(s) in common] or alike_at_first(one, other)
    if not shared or not pairing.is_right(right):
        # Results of the same loop or call are alike, whatever their names.
        is_alike = bool(shared) or (is_result(one) and is_result(other))
        return _handed_on(pairing, one, other) if is_alike or pairing.is_far else None
    last = shared[-1]
    if is_rewritten_loop(one, other) and (place := _carried_round(one, other)):
        return handing(left, pairing.twin_before(right), right, place)
    following = steps[steps.index(last) + 1 :]
    if last.instruction.opcode == "while" and len(following) > 1:
        # Both go round equally often: what the body hands on is another matter.
        last, *following = following
    if is_handed_through(following) or (len(following) > 1 and _is_cut_short(pairing, left, following[0])):
        last = following[0]
    return handing(left, pairing.twin_before(right), right, caller_of_parameter(last))


def _handed_on(pairing: Pairing, one: Node, other: Node) -> Blame | None:
    """What hands on another value than it should: a loop, or any step where names do not tell."""
    left, right = made(one), made(other)
    alike = pairing.equal_value(right, left)
    place = _carried_round(one, other)
    if pairing.is_far:
        is_like = alike is not None and alike.instruction.opcode == right.instruction.opcode
        tuples = (s for s in chain(other) if is_like and s.instruction.opcode == "tuple")
        place = place or handed_through(other) or next(tuples, None)
    return handing(left, alike, right, place) if place is not None else None


def _carried_round(one: Node, other: Node) -> Node | None:
    """What hands the state of a loop on as it was, where the right program computes a new one."""
    is_newer = len(iteration_of(made(one).frame)) > len(iteration_of(made(other).frame))
    return carried_round(chain(other)) if is_newer else None


def _is_cut_short(pairing: Pairing, one: Node, step: Node) -> bool:
    """Whether a pass made a call, and nothing computes the value that it should return."""
    is_new = is_call(step) and not pairing.is_far and pairing.is_new(step)
    return is_new and not pairing.is_computed(one)
