"""Thread and user of a run: where they come from, and what is no id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

import pytest
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph_tsim import ScopeError, resolve
from langgraph_tsim.scope import NO_USER, STORE_ROOT, branch_of


@dataclass
class Context:
    user_id: str | None = None
    thread_id: str | None = None


def info(thread: str | None) -> ExecutionInfo:
    return ExecutionInfo(checkpoint_id="c", checkpoint_ns="", task_id="t", thread_id=thread)


class TestPrecedence:
    CONFIG: ClassVar = {"configurable": {"user_id": "config user", "thread_id": "config thread"}}

    def test_an_argument_comes_first(self) -> None:
        runtime = Runtime(context=Context("context user", "context thread"), execution_info=info("own"))
        scope = resolve(self.CONFIG, runtime, user_id="u", thread_id="t")
        assert scope.name == ("u", "t")

    @pytest.mark.parametrize(
        "context",
        [Context("context user", "context thread"), {"user_id": "context user", "thread_id": "context thread"}],
    )
    def test_then_the_context_of_the_runtime(self, context: object) -> None:
        scope = resolve(self.CONFIG, Runtime(context=context, execution_info=info("own")))
        assert scope.name == ("context user", "context thread")

    def test_then_configurable(self) -> None:
        scope = resolve(self.CONFIG, Runtime(context=Context(), execution_info=info("own")))
        assert scope.name == ("config user", "config thread")

    def test_then_what_langgraph_knows(self) -> None:
        assert resolve(None, Runtime(execution_info=info("own")), user_id="u").name == ("u", "own")

    def test_each_id_is_looked_up_on_its_own(self) -> None:
        runtime = Runtime(context={"user_id": "context user"})
        assert resolve(self.CONFIG, runtime).name == ("context user", "config thread")


class TestIds:
    @pytest.mark.parametrize("text", ["a.b@example.com", "a:b", "a/b", "🦊", "日本", "a b", "a\nb", "x" * 500, "0"])
    def test_any_text_is_an_id(self, text: str) -> None:
        assert resolve({"configurable": {"user_id": text, "thread_id": text}}, None).name == (text, text)

    @pytest.mark.parametrize(("value", "text"), [(7, "7"), (0, "0"), (UUID(int=1), str(UUID(int=1)))])
    def test_numbers_and_uuids_become_text(self, value: object, text: str) -> None:
        assert resolve({"configurable": {"user_id": value, "thread_id": value}}, None).name == (text, text)

    @pytest.mark.parametrize("value", ["", True, 1.5, ["a"], b"a", object()])
    def test_anything_else_is_an_error_and_no_reason_to_look_further(self, value: object) -> None:
        config = {"configurable": {"user_id": "fallback", "thread_id": "fallback"}}
        with pytest.raises(ScopeError, match="user_id"):
            resolve(config, Runtime(context={"user_id": value}))
        with pytest.raises(ScopeError, match="thread_id"):
            _ = resolve(config, Runtime(context={"thread_id": value})).name

    @pytest.mark.parametrize("label", [NO_USER, STORE_ROOT])
    def test_labels_of_our_own_are_no_user(self, label: str) -> None:
        with pytest.raises(ScopeError, match="reserved"):
            resolve(None, None, user_id=label)


class TestMissing:
    def test_no_thread_is_an_error_that_says_where_it_looked(self) -> None:
        scope = resolve({"configurable": {"user_id": "u"}}, None)
        assert not scope.has_thread
        with pytest.raises(ScopeError, match=r"'thread_id'.*configurable"):
            _ = scope.name

    def test_no_user_is_an_error_where_one_is_needed(self) -> None:
        scope = resolve({"configurable": {"thread_id": "t"}}, None)
        with pytest.raises(ScopeError, match="'user_id'"):
            _ = scope.prefix

    def test_a_thread_without_a_user_is_under_no_users_name(self) -> None:
        assert resolve({"configurable": {"thread_id": "alice"}}, None).name == (NO_USER, "alice")


@pytest.mark.parametrize(
    ("namespace", "branch"),
    [("", ""), ("node:id", ""), ("sub:id|node:id2", "sub"), ("team:1|sub:2|node:3", "team|sub")],
)
def test_the_branch_is_the_path_of_subgraphs(namespace: str, branch: str) -> None:
    assert branch_of(namespace) == branch
    assert resolve({"configurable": {"checkpoint_ns": namespace}}, None).branch == branch
