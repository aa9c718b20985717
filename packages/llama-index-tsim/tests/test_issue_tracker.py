"""Failures that users of LlamaIndex reported (run-llama/llama_index), each by its number."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime

import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemory, BaseMemoryBlock
from llama_index.core.node_parser import NodeParser, get_leaf_nodes
from llama_index.core.workflow import Context, JsonSerializer
from llama_index.memory.tsim import TSIMMemory, TSIMMemoryBlock
from llama_index.memory.tsim.window import message_tokens
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever
from llama_index.utils.tsim import LlamaIndexEmbedder
from tsim_core import EpisodicMemory

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str | None) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


@pytest.fixture
def parser(embed_model, config):
    return TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)


@pytest.fixture
def memory(embed_model, config):
    return TSIMMemory.from_defaults(
        session_id="s", embed_model=embed_model, config=config, token_limit=20, similarity_top_k=1
    )


def test_class():
    assert NodeParser.__name__ in [b.__name__ for b in TSIMNodeParser.__mro__]
    assert BaseMemory.__name__ in [b.__name__ for b in TSIMMemory.__mro__]
    assert BaseMemoryBlock.__name__ in [b.__name__ for b in TSIMMemoryBlock.__mro__]


# node parsers


def test_char_spans_of_repeated_text_20050(parser):
    text = "User: ok\nBot: yes\nUser: ok\nBot: yes\nUser: ok okay\nBot: ok"
    turns = get_leaf_nodes(parser.get_nodes_from_documents([Document(text=text)]))
    assert [(t.start_char_idx, t.end_char_idx) for t in turns] == [
        (0, 8), (9, 17), (18, 26), (27, 35), (36, 49), (50, 57),
    ]  # fmt: skip


def test_char_spans_are_never_none_9101(parser, chat):
    documents = [
        Document(text="User: hi\nBot: hello"),
        Document(text=json.dumps([{"role": "user", "content": "My cat"}])),
        Document(text="My cat", metadata={"role": "user", "session_id": "x"}),
    ]
    nodes = parser.get_nodes_from_documents(documents) + parser.get_nodes_from_messages(chat)
    assert len(nodes) > 8
    assert all(isinstance(n.start_char_idx, int) and n.end_char_idx > n.start_char_idx for n in nodes)


def test_previous_and_next_do_not_cross_documents_13095(parser, transcript):
    documents = [Document(text=transcript, id_=name) for name in "ab"]
    nodes = parser.get_nodes_from_documents(documents)
    source = {n.node_id: (n.ref_doc_id, n.parent_node is None) for n in nodes}
    for node in nodes:
        for other in (node.prev_node, node.next_node):
            assert other is None or source[other.node_id] == source[node.node_id]


def test_one_empty_document_does_not_kill_the_batch_17032(parser):
    documents = [Document(text=""), Document(text="User: my cat"), Document(text="   ")]
    assert {n.text for n in parser.get_nodes_from_documents(documents)} == {"User: my cat"}


def test_blank_text_is_never_embedded_22876(parser, embed_model):
    text = "User: my cat\nBot:\nUser:   \nBot: the vet"
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    assert sorted(embed_model.texts) == ["my cat", "the vet"]
    assert all(n.text.split(":", 1)[1].strip() for n in get_leaf_nodes(nodes))


@pytest.mark.parametrize(
    ("cat", "gpu"),
    [
        ("我的猫生病了。", "我需要新的显卡。"),
        ("My cat 🐈\u200d⬛ is ill 🤒", "Which GPU 🖥️?"),
        ("החתול שלי חולה cat", "איזה GPU?"),
        ("قطتي مريضة cat", "أي GPU؟"),
    ],
    ids=["Chinese", "emoji", "Hebrew", "Arabic"],
)
async def test_every_script_19761(parser, embed_model, config, cat, gpu):
    text = f"User: {cat}\nBot: cat 猫\nUser: {gpu}\nBot: GPU 显卡\n"
    nodes = [n for n in parser.get_nodes_from_documents([Document(text=text)]) if n.parent_node is None]
    assert [n.text for n in nodes] == [f"User: {cat}\nBot: cat 猫", f"User: {gpu}\nBot: GPU 显卡"]
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    retriever = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=1)
    assert (await retriever.aretrieve(gpu))[0].node.node_id == nodes[1].node_id


def test_metadata_longer_than_a_chunk_12200(parser, transcript):
    short = parser.get_nodes_from_documents([Document(text=transcript)])
    long = parser.get_nodes_from_documents([Document(text=transcript, metadata={"note": "x " * 5000})])
    assert [n.text for n in long] == [n.text for n in short]


# pickling with workers (14280) and their cache (21300): test_pipeline.py, test_workers_parse_alike_and_fill_the_cache
# progress bar (12182): test_pipeline.py, test_progress_bar_is_shown_on_request


async def test_async_retriever_does_not_block_the_loop_21159(embed_model, config, topic_vector):
    async def ticks_during(retriever):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.create_task(tick())
        found = await asyncio.gather(*(retriever.aretrieve(f"cat {i}") for i in range(5)))
        ticking.cancel()
        assert all("my cat" in results[0].text for results in found)
        return ticks

    def slow(texts):
        time.sleep(0.1)
        return [topic_vector(text) for text in texts]

    for embedder in (LlamaIndexEmbedder(embed_model), slow):
        memory = EpisodicMemory(embedder=embedder, config=config)
        memory.thread("a").add("user", "my cat")
        assert await ticks_during(TSIMRetriever(memory, ["a"])) >= (5 if embedder is slow else 1)
    assert embed_model.async_calls == 5


# memory


async def test_a_shared_block_keeps_no_sessions_filter_22701(embed_model, config):
    block = TSIMMemoryBlock(embed_model=embed_model, config=config)
    await block.aput([user("my cat Whiskers")], session_id="one")
    await block.aput([user("my cat Tom")], session_id="two")
    for session, name, other in [("one", "Whiskers", "Tom"), ("two", "Tom", "Whiskers"), ("one", "Whiskers", "Tom")]:
        text = str(await block.aget([user("cat")], session_id=session))
        assert name in text
        assert other not in text


def test_tool_tokens_are_counted_21950():
    call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={"query": "word " * 100})
    assert message_tokens(ChatMessage(role="assistant", blocks=[call]), str.split) > 99


async def test_putting_no_messages_is_fine_23185(memory, embed_model, config):
    await memory.aput_messages([])
    memory.put_messages([])
    await TSIMMemoryBlock(embed_model=embed_model, config=config).aput([], session_id="s")
    assert memory.get_all() == []


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_first_concurrent_reads_find_their_tables_23184(where, tmp_path, embed_model):
    store = ":memory:" if where == "memory" else str(tmp_path / "m.db")
    memory = TSIMMemory(store=store, embed_model=embed_model)
    assert await asyncio.gather(*(memory.aget("cat") for _ in range(20))) == [[]] * 20
    block = TSIMMemoryBlock(store=store, embed_model=embed_model)
    assert await asyncio.gather(*(block.aget([user("cat")]) for _ in range(20))) == [[]] * 20


def test_a_chat_message_as_input_is_the_query_23180(memory, chat):
    memory.put_messages(chat)
    given = memory.get(ChatMessage(role="user", content="CUDA driver"))
    assert "CUDA driver 550" in given[1].content
    assert given == memory.get("CUDA driver")


async def test_memory_survives_a_context_restore_19228(memory, make_llm):
    agent = FunctionAgent(tools=[], llm=make_llm())
    context = Context(agent)
    await agent.run("My cat is Whiskers.", ctx=context, memory=memory)
    data = context.to_dict(serializer=JsonSerializer())
    restored = Context.from_dict(agent, json.loads(json.dumps(data)), serializer=JsonSerializer())
    again = await restored.store.get("memory")
    assert isinstance(again, TSIMMemory)
    assert again.get_all() == memory.get_all()


def test_no_orphan_tool_messages_13715(memory):
    call = ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [{"id": "1"}]})
    result = ChatMessage(role="tool", content="four kilos " * 4, additional_kwargs={"tool_call_id": "1"})
    memory.put_messages([user("Weigh the cat."), call, result, assistant("Done."), user("And the GPU?")])
    for limit in range(1, 60):
        memory.token_limit = limit
        roles = [m.role.value for m in memory.get() if m.role != "system"]
        assert roles[0] == "user"
        assert ("tool" in roles) == (roles.count("assistant") == 2)


def test_null_content_before_tool_calls_12793(memory):
    memory.token_limit = 500
    call = ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [{"id": "1"}]})
    memory.put_messages([user("Weigh the cat."), call, ChatMessage(role="tool", content="")])
    kept = memory.get("cat")
    assert [m.content for m in kept] == ["Weigh the cat.", None, ""]
    assert kept[1].additional_kwargs == {"tool_calls": [{"id": "1"}]}


async def test_the_system_prompt_is_not_stored_19512(memory, make_llm):
    agent = FunctionAgent(tools=[], llm=make_llm(), system_prompt="You are a pirate.")
    await agent.run("My cat?", memory=memory)
    await agent.run("My GPU?", memory=memory)
    assert not any("pirate" in turn.text for turn in memory.thread.turns())
    assert not any("pirate" in str(m) for m in memory.get_all())


async def test_sync_memory_in_async_code_19032(memory):
    memory.put(user("my cat"))
    assert memory.get_all() == [user("my cat")]
    assert memory.get("cat") == await memory.aget("cat")
    memory.set([user("my GPU")])
    memory.reset()


def test_delete_and_reload_6250_11806(tmp_path, embed_model, config):
    path = tmp_path / "m.db"
    with EpisodicMemory(path, embedder=LlamaIndexEmbedder(embed_model), config=config) as store:
        ids = [store.thread("a").add("user", text) for text in ("my cat", "my GPU", "my cat Whiskers")]
        retriever = TSIMRetriever(store, ["a"])
        store.thread("a").forget([ids[0]])
        assert not any(n.text == "user: my cat" for n in retriever.retrieve("cat"))
        retriever.persist(tmp_path / "saved")
    for again in (
        TSIMRetriever(path, ["a"], embed_model=embed_model),
        TSIMRetriever.from_persist_dir(tmp_path / "saved", embed_model=embed_model),
    ):
        lines = {line for n in again.retrieve("cat GPU") for line in n.text.splitlines()}
        assert lines == {"user: my GPU", "user: my cat Whiskers"}


async def test_concurrent_puts_into_a_store_in_memory_lose_nothing(memory):
    """Five concurrent `Memory.aput` on SQLite in memory lost messages."""
    await asyncio.gather(*(memory.aput(user(f"message {i}")) for i in range(5)))
    assert len(memory.get_all()) == 5


def test_dates_come_with_what_is_recalled(memory, chat):
    memory.put_messages(chat)
    assert f"[{datetime.now(UTC):%Y-}" in memory.get("Whiskers")[1].content
