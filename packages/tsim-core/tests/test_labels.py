"""Names of speakers as a column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tsim_core.labels import Labels, label_of
from tsim_core.types import Turn

words = st.lists(st.sampled_from(["Ann", "Bob", "user", ""]), max_size=9)


@given(words, words, st.data())
def test_a_column_is_a_list(first: list[str], second: list[str], data: st.DataObject) -> None:
    joined = Labels.joined([Labels.of(first), Labels.of(second)])
    assert [joined[i] for i in range(len(joined))] == first + second
    chosen = data.draw(st.lists(st.integers(0, len(joined) - 1), max_size=9) if len(joined) else st.just([]))
    taken = joined.taken(np.array(chosen, dtype=np.int64))
    assert [taken[i] for i in range(len(taken))] == [joined[i] for i in chosen]
    assert set(taken.names) == {joined[i] for i in chosen}, "no name that nobody has"
    for name in taken.names:
        assert taken.rows(name).tolist() == [i for i in range(len(taken)) if taken[i] == name]


@pytest.mark.parametrize(
    ("metadata", "label"),
    [(None, "user"), ({}, "user"), ({"name": "Ann"}, "Ann"), ({"speaker": "Bob"}, "Bob"), ({"name": ""}, "user"),
     ({"name": "Ann", "speaker": "Bob"}, "Ann"), ({"name": 5}, "user"), ({"name": "", "speaker": "Bob"}, "Bob")],
)  # fmt: skip
def test_who_spoke_is_the_name_or_else_the_role(metadata: dict[str, object] | None, label: str) -> None:
    assert label_of(Turn("user", "hi", metadata=metadata)) == label
