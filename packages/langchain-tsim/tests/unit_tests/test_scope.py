"""Whose memory: ids are found or missed, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_tsim import ScopeError
from langchain_tsim.scope import check_recall_scope, check_scope, resolve_scope, run_sources, scope_fields
from tsim_core import InputError


@dataclass
class Context:
    user_id: Any = None


def resolve(scope: Any, **kwargs: Any) -> tuple[str, ...]:
    return resolve_scope(check_scope(scope), run_sources(**kwargs))


def test_literal_scopes() -> None:
    assert resolve("alice") == ("alice",)
    assert resolve(("bob@example.com", "a.b/ü")) == ("bob@example.com", "a.b/ü")
    assert resolve("{{literal}}") == ("{literal}",)


@pytest.mark.parametrize("context", [{"user_id": "a"}, Context("a"), SimpleNamespace(user_id="a")])
def test_the_context_may_be_a_mapping_a_dataclass_or_any_object(context: object) -> None:
    assert resolve("{user_id}", runtime=SimpleNamespace(context=context)) == ("a",)


def test_the_order_is_arguments_context_configurable_run() -> None:
    info = SimpleNamespace(thread_id="from-run")
    everywhere: dict[str, Any] = {
        "given": {"thread_id": "from-arguments"},
        "runtime": SimpleNamespace(context={"thread_id": "from-context"}, execution_info=info),
        "config": {"configurable": {"thread_id": "from-config"}},
    }
    assert resolve("{thread_id}", **everywhere) == ("from-arguments",)
    everywhere["given"] = None
    assert resolve("{thread_id}", **everywhere) == ("from-context",)
    everywhere["runtime"] = SimpleNamespace(context=None, execution_info=info)
    assert resolve("{thread_id}", **everywhere) == ("from-config",)
    everywhere["config"] = {}
    assert resolve("{thread_id}", **everywhere) == ("from-run",)


def test_issue_13_numbers_and_none_as_ids() -> None:
    """Issues langgraph 7427, 6240: int and None ids in namespaces."""
    assert resolve("{user_id}", given={"user_id": 7}) == ("7",)
    assert resolve("{user_id}", given={"user_id": UUID(int=1)}) == (str(UUID(int=1)),)
    with pytest.raises(ScopeError, match="user_id"):
        resolve("{user_id}", given={"user_id": None})


@pytest.mark.parametrize("value", ["", True, 1.5, ["a"], b"a"])
def test_what_is_no_id_is_an_error_even_where_another_source_has_one(value: object) -> None:
    with pytest.raises(ScopeError, match="user_id"):
        resolve("{user_id}", given={"user_id": value}, config={"configurable": {"user_id": "a"}})


def test_a_missing_id_says_what_is_missing_and_where_it_was_looked_for() -> None:
    with pytest.raises(ScopeError, match=r"'user_id'.*config\['configurable'\]") as caught:
        resolve(("{user_id}", "{thread_id}"), config={"configurable": {"thread_id": "t"}})
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize("scope", ["", (), ("a", ""), (None,), (3,)])
def test_unusable_scopes(scope: Any) -> None:
    with pytest.raises(ScopeError, match="scope="):
        check_scope(scope)


def test_issue_23_recall_reads_where_it_writes() -> None:
    """Issue memory-template 15: write and read namespaces differ."""
    scope = ("{user_id}", "{thread_id}")
    assert check_recall_scope(scope, "{user_id}") == ("{user_id}",)
    assert check_recall_scope(scope, scope) is None
    for other in ("{thread_id}", ("{user_id}", "other"), (*scope, "more")):
        with pytest.raises(ScopeError, match="no beginning"):
            check_recall_scope(scope, other)


@given(ids=st.dictionaries(st.sampled_from(["a", "b"]), st.text(min_size=1), min_size=2))
def test_any_text_is_an_id_and_is_never_expanded(ids: dict[str, str]) -> None:
    scope = check_scope(("{a}", "x-{b}"))
    assert resolve_scope(scope, run_sources(given=ids)) == (ids["a"], f"x-{ids['b']}")


def test_fields() -> None:
    assert scope_fields(("{a}-{b}", "{a}", "{{c}}")) == ["a", "b"]
