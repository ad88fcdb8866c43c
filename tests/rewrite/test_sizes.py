"""Sizes as terms: what follows from equalities, products and sums, and what keeps its number."""

from __future__ import annotations

import random

import pytest

from hlotool.rewrite.scale.resize import kept
from hlotool.rewrite.scale.sizes import Sizes
from hlotool.rewrite.scale.terms import Form, Size


def new_ones(sizes: Sizes, *values: int) -> list[Size]:
    return [sizes.new(value) for value in values]


def test_one_and_zero_stay() -> None:
    sizes = Sizes()
    assert [size.why for size in new_ones(sizes, 0, 1)] == ["of size 0 or 1"] * 2


def test_heads_are_factors() -> None:
    """[batch, 4096] as [batch, 32, 128]: 4096 is what the heads and their width are."""
    sizes = Sizes()
    batch, wide = new_ones(sizes, 8, 4096)
    again, heads, width = new_ones(sizes, 8, 32, 128)
    sizes.same_product([batch, wide], [again, heads, width], "cannot be told")
    assert sizes.root(batch) is sizes.root(again)
    assert sizes.evaluate(wide, {sizes.root(heads): 3, sizes.root(width): 5}) == 15


def test_two_ways_of_cutting_are_refined() -> None:
    """4096 as 16 * 256 and as 128 * 32: 16 * 8 * 32 is both."""
    sizes = Sizes()
    (wide,) = new_ones(sizes, 4096)
    one, other = new_ones(sizes, 16, 256), new_ones(sizes, 128, 32)
    sizes.same_product([wide], one, "cannot be told")
    sizes.same_product([wide], other, "cannot be told")
    atoms = sizes.atoms(wide)
    assert sorted(atom.value for atom in atoms) == [8, 16, 32]
    chosen = dict(zip(atoms, (2, 3, 5)))
    assert sizes.evaluate(wide, chosen) == 30
    assert sizes.evaluate(one[0], chosen) * sizes.evaluate(one[1], chosen) == 30
    assert sizes.evaluate(other[0], chosen) * sizes.evaluate(other[1], chosen) == 30


def test_products_that_no_order_matches_share_common_factors() -> None:
    """3 heads of 16 as 2 shards of 24, whatever the 8 becomes that 16 and 24 have in common."""
    sizes = Sizes()
    one, other = new_ones(sizes, 3, 16), [sizes.fixed(2, "devices"), *new_ones(sizes, 24)]
    sizes.same_product(one, other, "cannot be told")
    assert not any(sizes.root(size).why for size in (one[1], other[1]))
    (shared,) = [atom for atom in sizes.atoms(one[1]) if atom.value == 8]
    assert sizes.evaluate(one[1], {shared: 5}) == 10
    assert sizes.evaluate(other[1], {shared: 5}) == 15


def test_what_is_no_product_of_the_same_factors_stays() -> None:
    """6 * 4 is no 5 * 5, whatever they have in common; what is beside them is free."""
    sizes = Sizes()
    one, other = new_ones(sizes, 6, 4), new_ones(sizes, 5, 5)
    sizes.same_product(one, other, "cannot be told")
    assert all(sizes.root(size).why == "cannot be told" for size in (*one, *other))


def test_devices_are_no_heads_by_chance() -> None:
    """8 heads, and 8 devices: what may change is matched with what may change, and the heads stay free."""
    sizes = Sizes()
    heads, width = new_ones(sizes, 8, 9)
    devices, part, again = sizes.fixed(8, "devices"), *new_ones(sizes, 6, 12)
    whole = sizes.fixed(8, "of something else")
    sizes.same_product([width, heads, whole], [part, devices, again], "cannot be told")
    assert not any(atom.why for atom in sizes.atoms(heads))
    chosen = dict.fromkeys(sizes.atoms(heads), 3)
    left = [sizes.evaluate(size, chosen) for size in (width, heads, whole)]
    right = [sizes.evaluate(size, chosen) for size in (part, devices, again)]
    assert left[0] * left[1] * left[2] == right[0] * right[1] * right[2]


def test_a_sum_that_has_no_such_factor_keeps_what_is_near_it() -> None:
    """(3 + 5) * 21 is 4 * 42: the sum is four rows of two, the second of which is cut, and 21 may be any."""
    sizes = Sizes()
    three, five, whole, other = new_ones(sizes, 3, 5, 8, 21)
    sizes.same_sum(whole, [three, five], "cannot be told")
    four, rest = new_ones(sizes, 4, 42)
    sizes.same_product([whole, other], [four, rest], "cannot be told")
    free = [atom for atom in sizes.atoms(rest) if not atom.why]
    assert [atom.value for atom in free] == [21]
    chosen = {free[0]: 5} | {atom: 7 for atom in sizes.atoms(five) if not atom.why}
    assert sizes.evaluate(rest, chosen) == 2 * 5
    assert sizes.evaluate(other, chosen) == 5
    total = sizes.evaluate(three, chosen) + sizes.evaluate(five, chosen)
    assert total == sizes.evaluate(whole, chosen) == 2 * sizes.evaluate(four, chosen)


def test_a_product_is_cut_where_the_rest_is_in_the_part() -> None:
    """8 * 320 is 8 * 160 and 8 * 160: 320 is cut, and not the 8, which is a factor of both parts."""
    sizes = Sizes()
    shards, wide, whole = new_ones(sizes, 8, 320, 2560)
    sizes.same_product([whole], [shards, wide], "cannot be told")
    parts = []
    for _ in range(2):
        count, width, part = new_ones(sizes, 8, 160, 1280)
        sizes.same_product([part], [count, width], "cannot be told")
        parts.append(part)
    sizes.same_sum(whole, parts, "cannot be told")
    assert not sizes.root(whole).why
    assert sizes.root(shards).form is Form.ATOM
    assert sizes.root(wide).form is Form.SUM
    chosen = {sizes.root(shards): 3}
    assert sizes.evaluate(whole, chosen) == 3 * 320
    assert sum(sizes.evaluate(part, chosen) for part in parts) == 3 * 320


def test_a_half_of_heads_is_a_half_of_all() -> None:
    """(x + y) * m: a product that is cut at a multiple of its minor factor."""
    sizes = Sizes()
    whole, first, second = new_ones(sizes, 24, 16, 8)
    count, width = new_ones(sizes, 3, 8)
    sizes.same_product([whole], [count, width], "cannot be told")
    sizes.same_sum(whole, [first, second], "cannot be told")
    assert not sizes.root(whole).why
    chosen = {sizes.root(width): 5}
    assert [sizes.evaluate(size, chosen) for size in (whole, first, second)] == [15, 10, 5]


def test_a_place_within_a_row_cuts_the_rows() -> None:
    """4 * 6 at 15 is (2 + 1 + 1) * (3 + 3): two rows of six and half of the third."""
    sizes = Sizes()
    whole, first, rest = new_ones(sizes, 24, 15, 9)
    rows, row = new_ones(sizes, 4, 6)
    sizes.same_product([whole], [rows, row], "cannot be told")
    sizes.same_sum(whole, [first, rest], "cannot be told")
    assert sorted(atom.value for atom in sizes.atoms(whole)) == [1, 1, 2, 3, 3]
    chosen = dict.fromkeys(sizes.atoms(row), 2)
    assert [sizes.evaluate(size, chosen) for size in (rows, row, whole, first, rest)] == [4, 4, 16, 10, 6]
    kept_of_first = [position for position in kept(sizes, whole, chosen).tolist() if position < 15]
    assert len(kept_of_first) == 10


def test_what_was_cut_can_be_reshaped() -> None:
    """The other way round: a sum of 15 and 9 turns out to be 4 rows of 6."""
    sizes = Sizes()
    whole, first, rest = new_ones(sizes, 24, 15, 9)
    rows, row = new_ones(sizes, 4, 6)
    sizes.same_sum(whole, [first, rest], "cannot be told")
    sizes.same_product([whole], [rows, row], "cannot be told")
    assert not any(sizes.root(size).why for size in (whole, rows, row))
    chosen = dict.fromkeys(sizes.atoms(row), 2)
    assert sizes.evaluate(rows, chosen) * sizes.evaluate(row, chosen) == sizes.evaluate(whole, chosen) == 16
    assert sizes.evaluate(first, chosen) + sizes.evaluate(rest, chosen) == 16


def test_a_matrix_read_in_the_wrong_order_says_nothing_of_sizes() -> None:
    """[67, 61] as [61, 67] has as many elements whatever the two are; [67, 61] as [8, 3] * 61 would not."""
    sizes = Sizes()
    left, right = new_ones(sizes, 67, 61)
    one, other = new_ones(sizes, 61, 67)
    sizes.same_elements([left, right], [one, other], "cannot be told")
    sizes.unify(left, other)
    sizes.unify(right, one)
    sizes.settle()
    assert not any(sizes.root(size).why for size in (left, right))
    assert {sizes.root(left), sizes.root(right)} <= sizes.mixed_atoms()


def test_another_matrix_shares_its_factors() -> None:
    """[67, 61] as [61, 67]: nothing but the numbers says that these are the same sizes, which is enough."""
    sizes = Sizes()
    left, right = new_ones(sizes, 67, 61)
    one, other = new_ones(sizes, 61, 67)
    sizes.same_elements([left, right], [one, other], "cannot be told")
    sizes.unify(left, other)
    sizes.settle()
    assert sizes.root(right) is sizes.root(one)
    assert {sizes.root(left), sizes.root(right)} <= sizes.mixed_atoms()


def test_a_matrix_of_other_factors_shares_what_they_have_in_common() -> None:
    """[9, 16] as [12, 12] is 3 * 3 and 4 * 4 as 3 * 4 twice."""
    sizes = Sizes()
    left, right = new_ones(sizes, 9, 16)
    one, other = new_ones(sizes, 12, 12)
    sizes.same_elements([left, right], [one, other], "cannot be told")
    sizes.settle()
    chosen = dict(zip(sizes.atoms(left), (5, 7, 11)))
    assert not any(atom.why for atom in sizes.atoms(left))
    assert sizes.evaluate(left, chosen) * sizes.evaluate(right, chosen) == sizes.evaluate(
        one, chosen
    ) * sizes.evaluate(other, chosen)


def test_sums_of_sums() -> None:
    """A slice of a slice is a part of the whole."""
    sizes = Sizes()
    whole, a, b, c, d = new_ones(sizes, 100, 30, 70, 50, 20)
    sizes.same_sum(whole, [a, b], "cannot be told")
    sizes.same_sum(b, [c, d], "cannot be told")
    chosen = {sizes.root(a): 3, sizes.root(c): 5, sizes.root(d): 7}
    assert sizes.evaluate(whole, chosen) == 15


def test_frozen_is_frozen_to_the_last_part() -> None:
    sizes = Sizes()
    whole, a, b = new_ones(sizes, 12, 3, 4)
    sizes.freeze(whole, "so")
    sizes.same_product([whole], [a, b], "cannot be told")
    assert [sizes.root(size).why for size in (a, b)] == ["so", "so"]


def test_cutting_agrees_with_reshaping() -> None:
    """What stays of 6 * 4 elements is what stays of the 6 and of the 4."""
    sizes = Sizes()
    (whole,) = new_ones(sizes, 24)
    six, four = new_ones(sizes, 6, 4)
    sizes.same_product([whole], [six, four], "cannot be told")
    assert kept(sizes, whole, {sizes.root(six): 2, sizes.root(four): 3}).tolist() == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("seed", range(60))
def test_random_relations_hold_for_whatever_is_chosen(seed: int) -> None:
    """Every relation that was stated is true of the numbers that the terms give, whatever atoms become."""
    rng = random.Random(seed)
    sizes, stated = Sizes(), []
    dims = new_ones(sizes, *(rng.choice((6, 8, 12, 24, 48)) for _ in range(8)))
    for _ in range(12):
        whole = rng.choice(dims)
        divisor = rng.choice([d for d in range(1, whole.value + 1) if whole.value % d == 0])
        at = rng.randrange(whole.value + 1)
        factors, parts = (
            new_ones(sizes, divisor, whole.value // divisor),
            new_ones(sizes, at, whole.value - at),
        )
        if rng.random() < 0.5:
            sizes.same_product([whole], factors, "cannot be told")
            stated.append((Form.PRODUCT, whole, factors))
            dims += factors
        else:
            sizes.same_sum(whole, parts, "cannot be told")
            stated.append((Form.SUM, whole, parts))
            dims += [part for part in parts if part.value]
        same = [d for d in dims if d.value == whole.value]
        other = rng.choice(same)
        sizes.unify(whole, other)
        stated.append((Form.SUM, whole, [other]))
    atoms = [atom for size in dims for atom in sizes.atoms(size)]
    chosen = {atom: rng.randint(2, atom.value) for atom in atoms if atom.value > 1}
    for form, whole, parts in stated:
        numbers = [sizes.evaluate(part, chosen) for part in parts]
        made = sum(numbers) if form is Form.SUM else numbers[0] * numbers[1]
        assert sizes.evaluate(whole, chosen) == made
    for size in dims:
        positions = kept(sizes, size, chosen).tolist()
        assert len(positions) == sizes.evaluate(size, chosen)
        assert positions == sorted(set(positions))
        assert all(0 <= position < size.value for position in positions)
