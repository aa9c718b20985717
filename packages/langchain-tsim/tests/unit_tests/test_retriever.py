"""Episodes as documents: by field, by call, by run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_tsim import ScopeError, TSIMRetriever
from pydantic import ValidationError
from tsim_core import EpisodicMemory, InputError, Turn

CAT = "The cat sleeps in the red basket by the window."
BOAT = "Our boat needs new sails before the summer regatta."


def day(n: int) -> datetime:
    return datetime(2026, 1, n, tzinfo=UTC)


@pytest.fixture
def stored(memory: EpisodicMemory) -> EpisodicMemory:
    memory.thread("alice", "pets").extend(
        [
            Turn("user", CAT, "c1", day(1), {"project": "home", "name": "Alice"}),
            Turn("assistant", "A warm place.", "c2", day(1)),
        ]
    )
    memory.thread("alice", "sea").extend([Turn("user", BOAT, "b1", day(2), {"project": "sail"})])
    memory.thread("bob", "pets").extend([Turn("user", "The cat of Bob sleeps in the garage.", "x1", day(3))])
    return memory


def text_of(documents: list[Any]) -> str:
    return "\n".join(document.page_content for document in documents)


def test_a_document_is_a_whole_episode(stored: EpisodicMemory) -> None:
    (document,) = TSIMRetriever(memory=stored, scope=("alice", "pets")).invoke("Where does the cat sleep?")
    assert document.page_content == f"Alice (2026-01-01 00:00): {CAT}\nassistant (2026-01-01 00:00): A warm place."
    assert document.id == stored.thread("alice", "pets").episodes()[0].id
    metadata = json.loads(json.dumps(document.metadata, allow_nan=False))
    assert metadata == document.metadata
    assert metadata["turn_ids"] == ["c1", "c2"]
    assert metadata["roles"] == ["user", "assistant"]
    assert metadata["timestamps"] == ["2026-01-01T00:00:00+00:00"] * 2
    assert metadata["thread"] == ["alice", "pets"]
    assert type(metadata["score"]) is float
    assert sum(metadata["evidence"].values()) == pytest.approx(metadata["score"])


def test_ids_are_stable(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("alice", "pets"))
    first = retriever.invoke("cat")[0].id
    stored.thread("alice", "pets").add("user", "And the cat likes that basket, she sleeps there.")
    assert retriever.invoke("cat")[0].id == first


def test_a_recall_over_one_user_finds_all_of_theirs_and_none_of_others(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("alice", "new"), recall_scope="alice")
    found = text_of(retriever.invoke("cat boat sails"))
    assert CAT in found
    assert BOAT in found
    assert "Bob" not in found


async def test_async_finds_the_same(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("alice", "new"), recall_scope="alice")
    assert await retriever.ainvoke("cat") == retriever.invoke("cat")


def test_filters_by_field_and_by_call(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("alice", "new"), recall_scope="alice", where={"project": "sail"})
    assert text_of(retriever.invoke("cat boat")).endswith(BOAT)
    assert CAT in text_of(retriever.invoke("cat boat", where={"project": "home"}))
    assert CAT in text_of(retriever.invoke("cat boat", where=None, before=day(2)))
    assert retriever.invoke("cat boat", after=day(9)) == []
    assert len(retriever.invoke("cat boat", where=None, k=1)) == 1
    assert len(retriever.invoke("cat boat", where=None, k=2)) == 2


def test_a_typo_in_a_call_or_a_field_is_an_error(stored: EpisodicMemory) -> None:
    with pytest.raises(TypeError, match="max_token"):
        TSIMRetriever(memory=stored, scope="alice").invoke("cat", max_token=3)
    with pytest.raises(ValidationError, match="top_k"):
        TSIMRetriever(memory=stored, scope="alice", top_k=3)


def test_configurable_fields(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("alice", "pets")).configurable_fields(
        scope=ConfigurableField(id="scope"), k=ConfigurableField(id="k")
    )
    assert CAT in text_of(retriever.invoke("cat"))
    config: Any = {"configurable": {"scope": ("bob", "pets"), "k": 1}}
    assert "Bob" in text_of(retriever.invoke("cat", config))


def test_ids_by_call_by_config_and_in_a_chain(stored: EpisodicMemory) -> None:
    retriever = TSIMRetriever(memory=stored, scope=("{user_id}", "pets"))
    config: Any = {"configurable": {"user_id": "bob"}}
    assert "Bob" in text_of(retriever.invoke("cat", ids={"user_id": "bob"}))
    assert "Bob" in text_of(retriever.invoke("cat", config))
    chain = RunnablePassthrough() | retriever | RunnableLambda(text_of)
    assert "Bob" in chain.invoke("cat", config)
    assert CAT in text_of(retriever.with_config(configurable={"user_id": "alice"}).invoke("cat"))
    with pytest.raises(ScopeError, match="user_id"):
        retriever.invoke("cat")
    with pytest.raises(ScopeError, match="user_id"):
        chain.invoke("cat")


@pytest.mark.parametrize("limits", [{"k": 0}, {"k": -1}, {"max_tokens": 0}])
def test_a_limit_of_nothing_is_an_error(stored: EpisodicMemory, limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        TSIMRetriever(memory=stored, scope="alice", **limits)
    with pytest.raises(InputError, match="at least 1"):
        TSIMRetriever(memory=stored, scope=("alice", "pets")).invoke("cat", **limits)


def test_nothing_to_find_is_an_empty_list(memory: EpisodicMemory) -> None:
    assert TSIMRetriever(memory=memory, scope="nobody").invoke("cat") == []
    assert TSIMRetriever(memory=memory, scope="nobody").invoke("  ") == []


def test_max_tokens_bounds_all_documents(memory: EpisodicMemory) -> None:
    memory.thread("a").extend(Turn("user", f"cat number {n} sleeps in basket {n}") for n in range(40))
    few = TSIMRetriever(memory=memory, scope="a", max_tokens=60).invoke("cat basket")
    whole = TSIMRetriever(memory=memory, scope="a").invoke("cat basket")
    assert 0 < len(text_of(few)) < len(text_of(whole))


def test_langsmith_parameters(stored: EpisodicMemory) -> None:
    params = TSIMRetriever(memory=stored, scope="alice")._get_ls_params(k=3)
    assert params["ls_retriever_name"] == "tsim"
    assert params.get("ls_embedding_provider") == "words"
