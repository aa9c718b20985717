from hypothesis import given
from hypothesis import strategies as st
from scale_qa.measure import Reader, capped
from scale_qa.systems.base import Unit
from tsim_core import Turn


def reader(*sizes):
    return Reader([Turn("user", " ".join([f"w{i}"] * size)) for i, size in enumerate(sizes)])


def test_shared_turns_are_read_once():
    two = [Unit((0, 1)), Unit((1, 2))]
    assert reader(10, 10, 10).tokens(two) == 39.0


def test_filling_skips_what_does_not_fit_and_goes_on():
    units = [Unit((0,)), Unit((1,)), Unit((2,))]
    assert reader(10, 100, 10).fill(units, 30) == [units[0], units[2]]


def test_a_unit_costs_only_its_new_turns():
    units = [Unit((0, 1)), Unit((1, 2)), Unit((0, 2))]
    assert reader(10, 10, 10).fill(units, 39) == units[:2]


def test_a_budget_that_is_met_exactly_fits():
    assert reader(10).fill([Unit((0,))], 13) == [Unit((0,))]
    assert reader(10).fill([Unit((0,))], 12.9) == []


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=4), max_size=12),
    st.integers(1, 150),
)
def test_a_fill_never_passes_its_budget_and_leaves_nothing_that_fits(sizes, spans, budget):
    ruler = reader(*sizes)
    units = [Unit(tuple(sorted({i % len(sizes) for i in span}))) for span in spans]
    taken = ruler.fill(units, budget)
    assert ruler.tokens(taken) <= budget
    held = {i for unit in taken for i in unit.turns}
    for unit in units:
        if not set(unit.turns) <= held:
            assert ruler.tokens([*taken, unit]) > budget


def test_a_text_counts_only_for_turns_that_it_holds():
    ruler = Reader([Turn("user", "The gate is\nseven."), Turn("user", "Tea?")])
    unit = Unit((0, 1), text="user: The gate is seven. And more.")
    assert ruler.found([unit], [0, 1]) == {0}
    assert ruler.unbacked([unit], [0, 1]) == 1
    assert ruler.tokens([unit]) == 7 * 1.3


def test_what_is_not_claimed_is_not_found():
    ruler = Reader([Turn("user", "Seven."), Turn("user", "Nine.")])
    assert ruler.found([Unit((1,), text="Seven. Nine.")], [0]) == set()


def test_prompts_hold_each_turn_once_in_rank_order():
    ruler = Reader([Turn("user", "One."), Turn("assistant", "Two."), Turn("user", "Three.")])
    text = ruler.write([Unit((2,)), Unit((1, 2)), Unit((), text="A summary."), Unit((1,))])
    assert text == "user: Three.\n\nassistant: Two.\n\nA summary."


def test_a_cap_cuts_the_context():
    ruler = reader(10, 10, 10)
    units = [Unit((0,)), Unit((1,)), Unit((2,))]
    assert capped(ruler, units, None) == units
    assert capped(ruler, units, 26) == units[:2]
