"""TSIM as LangGraph's store. LangGraph's own tests of its stores run on it too; these are what they leave open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph_tsim import TSIMStore
from langgraph_tsim.scope import STORE_ROOT
from tsim_core import EpisodicMemory, InputError, ReadOnlyError, StoreClosedError

from .conftest import Model, WordEmbedder, chat, run_of, said

NOTES = ("alice", "notes")


@pytest.fixture
def store() -> Iterator[TSIMStore]:
    with TSIMStore(index={"embed": WordEmbedder()}) as store:  # type: ignore[typeddict-item]
        yield store


class TestItems:
    def test_put_get_delete(self, store: TSIMStore) -> None:
        value = {"text": "blue", "n": 1, "deep": {"list": [1, None, True, "ü"]}}
        store.put(NOTES, "1", value)
        item = store.get(NOTES, "1")
        assert item is not None
        assert (item.namespace, item.key, item.value) == (NOTES, "1", value)
        store.delete(NOTES, "1")
        assert store.get(NOTES, "1") is None
        assert store.list_namespaces() == []
        assert store.memory.stats()["turns"] == 0

    def test_a_second_put_keeps_when_it_was_created_and_leaves_nothing_of_the_first(self, store: TSIMStore) -> None:
        store.put(NOTES, "1", {"text": "the boat is blue"})
        first = store.get(NOTES, "1")
        store.put(NOTES, "1", {"text": "the car is red"})
        second = store.get(NOTES, "1")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at
        hits = store.search(NOTES, query="the boat is blue")
        assert [hit.value["text"] for hit in hits] == ["the car is red"]
        assert hits[0].score is not None
        assert hits[0].score < 0.9
        assert store.memory.stats()["turns"] == 2
        assert store.memory.check() == []

    def test_what_is_returned_is_a_copy(self, store: TSIMStore) -> None:
        store.put(NOTES, "1", {"list": [1]})
        item = store.get(NOTES, "1")
        assert item is not None
        item.value["list"].append(2)
        again = store.get(NOTES, "1")
        assert again is not None
        assert again.value == {"list": [1]}

    @pytest.mark.parametrize("key", ["a.b", "a/b:c", "🦊", " ", "x" * 300])
    def test_any_text_is_a_key(self, store: TSIMStore, key: str) -> None:
        store.put(NOTES, key, {"a": 1})
        assert [item.key for item in store.search(NOTES)] == [key]

    def test_a_key_and_a_namespace_of_the_same_name_are_two_things(self, store: TSIMStore) -> None:
        store.put(("alice",), "notes", {"a": 1})
        store.put(NOTES, "1", {"a": 2})
        assert [item.value["a"] for item in store.search(NOTES)] == [2]
        assert sorted(item.value["a"] for item in store.search(("alice",), query="anything")) == [1, 2]
        store.delete(("alice",), "notes")
        assert store.get(NOTES, "1") is not None

    @pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": float("nan")}, {"a": object()}])
    def test_a_value_that_is_no_json_stores_nothing_of_its_batch(self, store: TSIMStore, value: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=r"'2'.*JSON"):
            store.batch([PutOp(NOTES, "1", {"a": 1}), PutOp(NOTES, "2", value)])
        assert store.search(()) == []

    @pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), (3,), ("langgraph",)])
    def test_a_namespace_that_is_none(self, store: TSIMStore, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "1", {"a": 1})

    def test_an_operation_that_is_none(self, store: TSIMStore) -> None:
        with pytest.raises(InputError, match="str is no operation"):
            store.batch(["get"])  # type: ignore[list-item]

    def test_a_batch_reads_before_it_writes_and_the_last_write_counts(self, store: TSIMStore) -> None:
        store.put(NOTES, "1", {"a": 1})
        results = store.batch(
            [PutOp(NOTES, "1", {"a": 2}), GetOp(NOTES, "1"), PutOp(NOTES, "1", {"a": 3}), SearchOp(NOTES)]
        )
        assert results[0] is None
        assert results[1].value == {"a": 1}  # type: ignore[union-attr]
        assert [item.value for item in results[3]] == [{"a": 1}]  # type: ignore[union-attr]
        assert store.get(NOTES, "1").value == {"a": 3}  # type: ignore[union-attr]


class TestSearch:
    def test_filters(self, store: TSIMStore) -> None:
        for i, (colour, size) in enumerate([("red", 1), ("red", 5), ("blue", 5)]):
            store.put(NOTES, str(i), {"colour": colour, "size": size, "deep": {"x": i}, "tags": ["a", i]})
        store.put(NOTES, "none", {})

        def keys(**conditions: Any) -> list[str]:
            return [item.key for item in store.search(NOTES, filter=conditions)]

        assert keys(colour="red") == ["0", "1"]
        assert keys(colour="red", size={"$gt": 1}) == ["1"]
        assert keys(size={"$gte": 1, "$lt": 5}) == ["0"]
        assert keys(size={"$lte": 1}) == ["0"]
        assert keys(colour={"$ne": "red"}) == ["2", "none"]
        assert keys(colour={"$eq": "blue"}) == ["2"]
        assert keys(deep={"x": 2}) == ["2"]
        assert keys(tags=["a", 1]) == ["1"]
        assert keys(colour={"$gt": 3}) == []
        with pytest.raises(InputError, match=r"\$near"):
            keys(size={"$near": 1})

    def test_pages_of_a_ranked_search_with_a_filter(self, store: TSIMStore) -> None:
        for i in range(10):
            store.put(NOTES, str(i), {"text": "boat " * (i + 1) + "x" * i, "even": i % 2 == 0})
        whole = store.search(NOTES, query="boat", filter={"even": True}, limit=10)
        pages = [store.search(NOTES, query="boat", filter={"even": True}, limit=2, offset=n) for n in (0, 2, 4)]
        assert [item.key for page in pages for item in page] == [item.key for item in whole]
        assert len(whole) == 5
        assert [item.score for item in whole] == sorted((item.score or 0 for item in whole), reverse=True)

    def test_what_is_not_indexed_comes_last_without_a_score(self, store: TSIMStore) -> None:
        store.put(NOTES, "hidden", {"text": "boat"}, index=False)
        store.put(NOTES, "far", {"text": "nothing alike"}, index=["text"])
        store.put(NOTES, "near", {"text": "boat"}, index=["text"])
        assert [(item.key, item.score is None) for item in store.search(NOTES, query="boat")] == [
            ("near", False),
            ("far", False),
            ("hidden", True),
        ]

    def test_the_query_is_embedded_as_a_query(self) -> None:
        class Asymmetric(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [[1.0, 0.0] if "x" in text else [0.0, 1.0] for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return [1.0, 0.0]

        with TSIMStore(index={"embed": Asymmetric(), "dims": 2, "fields": ["t"]}) as store:
            store.put(NOTES, "x", {"t": "x"})
            store.put(NOTES, "y", {"t": "y"})
            assert [item.key for item in store.search(NOTES, query="y")] == ["x", "y"]

    def test_with_the_packaged_model(self) -> None:
        with TSIMStore() as store:
            store.put(NOTES, "boat", {"text": "The boat was painted blue in May."}, index=["text"])
            store.put(NOTES, "tax", {"text": "The tax return is due on Friday."}, index=["text"])
            hits = store.search(NOTES, query="When do I have to declare my income?")
            assert [hit.key for hit in hits] == ["tax", "boat"]


class TestLife:
    def test_it_is_there_after_a_restart_and_for_another_process(self, tmp_path: Path) -> None:
        path = tmp_path / "ö 🦊" / "items.db"
        path.parent.mkdir()
        with TSIMStore(path, index={"embed": WordEmbedder()}) as store:  # type: ignore[typeddict-item]
            store.put(NOTES, "1", {"text": "boat"})
            with TSIMStore(path, index={"embed": WordEmbedder()}) as other:  # type: ignore[typeddict-item]
                other.put(NOTES, "2", {"text": "car"})
            assert sorted(item.key for item in store.search(NOTES, query="boat")) == ["1", "2"]
        with TSIMStore(path, index={"embed": WordEmbedder()}) as store:  # type: ignore[typeddict-item]
            assert [item.key for item in store.search(NOTES, query="car")] == ["2", "1"]
        with pytest.raises(StoreClosedError):
            store.get(NOTES, "1")

    def test_items_expire_are_swept_and_live_on_when_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from datetime import UTC, datetime, timedelta

        from langgraph_tsim import items

        now = datetime(2026, 1, 1, tzinfo=UTC)

        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return now

        monkeypatch.setattr(items, "datetime", Clock)
        with TSIMStore(index={"embed": WordEmbedder()}, ttl={"default_ttl": 10}) as store:  # type: ignore[typeddict-item]
            store.put(NOTES, "read", {"a": "boat"})
            store.put(NOTES, "left", {"a": "boat"})
            store.put(("keep",), "forever", {"a": "boat"}, ttl=None)
            now += timedelta(minutes=9)
            assert store.get(NOTES, "read") is not None
            assert store.get(NOTES, "left", refresh_ttl=False) is not None
            now += timedelta(minutes=2)
            assert [item.key for item in store.search(NOTES, query="boat", refresh_ttl=False)] == ["read"]
            assert store.get(NOTES, "left") is None
            now += timedelta(minutes=9)
            assert store.list_namespaces() == [("keep",)]
            assert store.sweep_ttl() == 2
            assert store.sweep_ttl() == 0
            assert store.memory.stats()["threads"] == 1

    def test_it_shares_a_memory_with_conversations_and_neither_sees_the_other(self, memory: EpisodicMemory) -> None:
        store = TSIMStore(memory)
        store.put(("alice", "notes"), "1", {"text": "My dog is called Bella"})
        model = Model()
        graph = chat(memory, model)
        graph.invoke(said("My dog is called Rex"), run_of("t1"))
        graph.invoke(said("How is my dog called?"), run_of("t2"))
        assert "Rex" in model.recalled()
        assert "Bella" not in model.prompt()
        assert [item.key for item in store.search((), query="dog")] == ["1"]
        assert memory.threads()[0] == (STORE_ROOT, "alice", "notes", "1")
        store.close()
        assert store.get(("alice", "notes"), "1") is not None, "the memory was not opened here"

    def test_a_memory_brings_its_own_embedder(self, memory: EpisodicMemory) -> None:
        with pytest.raises(InputError, match="embedder already"):
            TSIMStore(memory, index={"embed": WordEmbedder()})  # type: ignore[typeddict-item]

    def test_a_read_only_store_reads(self, tmp_path: Path) -> None:
        path = tmp_path / "items.db"
        with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
            TSIMStore(memory).put(NOTES, "1", {"a": 1}, ttl=5)
        with EpisodicMemory(path, embedder=WordEmbedder(), read_only=True) as memory:
            store = TSIMStore(memory)
            assert store.get(NOTES, "1") is not None
            with pytest.raises(ReadOnlyError):
                store.put(NOTES, "2", {"a": 1})

    def test_many_writers(self, store: TSIMStore) -> None:
        def work(i: int) -> None:
            for n in range(5):
                store.put(("shared",), "counter", {"writer": i, "n": n})
                store.put(("own", str(i)), str(n), {"n": n})

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(store.search(("own", str(i)))) for i in range(8)] == [5] * 8
        assert len(store.search(("shared",))) == 1
        assert store.memory.check() == []

    async def test_async_does_not_block_the_loop(self, store: TSIMStore) -> None:
        await asyncio.gather(*(store.aput(NOTES, str(i), {"text": f"boat {i}"}) for i in range(20)))
        assert len(await store.asearch(NOTES, query="boat", limit=50)) == 20
        await store.adelete(NOTES, "3")
        assert await store.aget(NOTES, "3") is None
        assert await store.alist_namespaces() == [NOTES]


class TestInGraphs:
    async def test_as_runtime_store(self, store: TSIMStore) -> None:
        def keep(state: MessagesState, config: RunnableConfig, runtime: Runtime[Any]) -> dict[str, Any]:
            assert runtime.store is store
            user = config["configurable"]["user_id"]
            text = str(state["messages"][-1].text)
            found = store.search(("users", user), query=text)
            store.put(("users", user), text, {"text": text})
            return {"messages": [AIMessage(" / ".join(item.key for item in found))]}

        builder = StateGraph(MessagesState)
        builder.add_node("keep", keep)
        builder.add_edge(START, "keep")
        graph = builder.compile(store=store)
        graph.invoke(said("the boat is blue"), run_of())
        answer = graph.invoke(said("which boat?"), run_of())["messages"][-1].text
        assert answer == "the boat is blue"
        assert (await graph.ainvoke(said("boat"), run_of(user="bob")))["messages"][-1].text == ""

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of langmem, as it is imported
    def test_langmem_tools(self, store: TSIMStore) -> None:
        from langmem import create_manage_memory_tool, create_search_memory_tool

        namespace = ("memories", "{langgraph_user_id}")
        manage = create_manage_memory_tool(namespace=namespace, store=store)
        search = create_search_memory_tool(namespace=namespace, store=store)

        def config(user: str) -> RunnableConfig:
            return {"configurable": {"langgraph_user_id": user}}

        said_ = manage.invoke({"content": "The boat is blue.", "action": "create"}, config("alice"))
        manage.invoke({"content": "The car is red.", "action": "create"}, config("alice"))
        key = said_.split()[-1]
        assert "The boat is blue." in search.invoke({"query": "boat"}, config("alice"))
        assert "The boat" not in search.invoke({"query": "boat"}, config("bob"))
        manage.invoke({"id": key, "content": "The boat is green.", "action": "update"}, config("alice"))
        found = search.invoke({"query": "boat"}, config("alice"))
        assert "green" in found
        assert "blue" not in found
        manage.invoke({"id": key, "action": "delete"}, config("alice"))
        assert "boat" not in search.invoke({"query": "boat"}, config("alice"))
