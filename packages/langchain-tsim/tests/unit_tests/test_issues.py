"""Failures from the issue trackers of LangChain's and other memories, each as a test. Numbers as in the design notes.

7 (a sync store in an async node), 13 and 23 (scopes) and 17 (trimming) are in test_concurrency, test_scope and
test_messages as well, where they are tested in more detail.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_tsim import (
    ScopeError,
    TSIMMemory,
    TSIMMiddleware,
    TSIMRetriever,
    create_tsim_search_tool,
    to_messages,
    to_turns,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from tsim_core import EpisodicMemory, Turn

from ..helpers import ScriptedChat, WordEmbedder, calls, classic, scripted

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LangChain calls its chains deprecated

CAT = "The cat sleeps in the red basket by the window."
RUN: Any = {"configurable": {"thread_id": "1"}}


def ask(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, **fields)]}


def texts(memory: EpisodicMemory, *name: str) -> list[str]:
    return [turn.text for turn in memory.thread(*name).turns()]


def agent(memory: EpisodicMemory, *replies: Any, tools: Any = (), **options: Any) -> Any:
    return create_agent(
        scripted(*replies), list(tools), middleware=[TSIMMiddleware(memory)], checkpointer=InMemorySaver(), **options
    )


def test_issue_01_several_prompt_inputs(memory: EpisodicMemory) -> None:
    """langchain 8710, 5434: several prompt inputs raise."""
    prompt = PromptTemplate.from_template("{history} {question} {language} {style}")
    chain = classic("chains").LLMChain(llm=scripted("ok"), prompt=prompt, memory=TSIMMemory(memory=memory, scope="a"))
    chain.invoke({"question": CAT, "language": "English", "style": "brief"})
    assert texts(memory, "a") == [CAT, "ok"]


def test_issue_02_several_outputs(memory: EpisodicMemory) -> None:
    """langchain 1171, 3091: several outputs break save."""
    TSIMMemory(memory=memory, scope="a").save_context(
        {"question": CAT}, {"answer": "ok", "source_documents": [Document("d")], "score": 0.5}
    )
    assert texts(memory, "a") == [CAT, "ok"]


def test_issue_03_tool_steps(memory: EpisodicMemory) -> None:
    """langchain 22357: tool steps dropped. In an agent they are messages; for AgentExecutor see test_chains."""
    search = create_tsim_search_tool(memory)
    agent(memory, calls(("search_memory", {"query": "cat"})), "No.", tools=[search]).invoke(ask("Any cat?"), RUN)
    assert [t.role for t in memory.thread("1").turns()] == ["user", "assistant", "tool", "assistant"]


def test_issue_04_tool_calls_and_ids_survive(memory: EpisodicMemory) -> None:
    """langchain-redis 51: tool_calls and tool_call_id lost on reload."""
    call = calls(("search", {"q": "cat"}))
    memory.thread("a").extend(to_turns([call, ToolMessage("one", tool_call_id=call.tool_calls[0]["id"])]))
    ai, answer = to_messages(memory.thread("a").turns())
    assert isinstance(ai, AIMessage)
    assert isinstance(answer, ToolMessage)
    assert ai.tool_calls[0]["id"] == answer.tool_call_id


async def test_issue_05_users_do_not_mix(memory: EpisodicMemory) -> None:
    """langchain 11650: threads and users mix. The concurrent runs are in test_concurrency."""
    for user in ("alice", "bob"):
        await TSIMMemory(memory=memory, scope=user).asave_context({"input": f"{user} has a cat"}, {"output": "ok"})
    text = (await TSIMMemory(memory=memory, scope="alice").aload_memory_variables({"input": "cat"}))["history"]
    assert "alice" in text
    assert "bob" not in text


def test_issue_08_chunks_on_the_second_streamed_turn(memory: EpisodicMemory) -> None:
    """langchain 14511: AIMessageChunk rejected on the second streamed turn."""
    ours = TSIMMemory(memory=memory, scope="a", recent_turns=4, return_messages=True)
    chunk = AIMessageChunk("It ") + AIMessageChunk("sleeps.")
    for question in ("What does the cat do?", "Sure?"):
        ours.load_memory_variables({"input": question})
        ours.save_context({"input": question}, {"output": chunk})
    assert texts(memory, "a") == ["What does the cat do?", "It sleeps.", "Sure?", "It sleeps."]


def test_issue_09_clear_leaves_nothing(tmp_path: Path) -> None:
    """langchain 5817: clear() leaves data, on disk too."""
    with EpisodicMemory(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        ours = TSIMMemory(memory=memory, scope="a")
        ours.save_context({"input": CAT}, {"output": "noted"})
        ours.clear()
        assert ours.load_memory_variables({"input": "cat"}) == {"history": ""}
        assert memory.threads() == []
    assert b"red basket" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_issue_10_list_content(memory: EpisodicMemory, embedder: WordEmbedder) -> None:
    """mem0 2286: list content crashes; no base64 gets embedded."""
    content: Any = [
        {"type": "text", "text": CAT},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]
    agent(memory, AIMessage([{"type": "text", "text": "A cat."}])).invoke({"messages": [HumanMessage(content)]}, RUN)
    assert texts(memory, "1") == [CAT, "A cat."]
    assert not any("QUJD" in text for text in embedder.texts)
    assert to_messages(memory.thread("1").turns())[0].content == content


def test_issue_11_scores_are_plain_numbers(memory: EpisodicMemory) -> None:
    """langgraph 8705: numpy scores break checkpoints."""
    memory.thread("a").add("user", CAT)
    (document,) = TSIMRetriever(memory=memory, scope="a").invoke("cat")
    numbers = [document.metadata["score"], *document.metadata["evidence"].values()]
    assert {type(number) for number in numbers} == {float}
    message = create_tsim_search_tool(memory, scope="a").invoke(
        {"type": "tool_call", "name": "search_memory", "id": "1", "args": {"query": "cat"}}
    )
    assert type(message.artifact[0]["score"]) is float


def test_issue_12_state_holds_json_types_only(memory: EpisodicMemory) -> None:
    """langgraph 7066, 7695: custom types become dicts in checkpoints."""
    memory.thread("1").add("user", CAT)
    search = create_tsim_search_tool(memory)
    ours = agent(memory, calls(("search_memory", {"query": "cat"})), "Yes.", tools=[search])
    ours.invoke(ask("cat?"), RUN)
    values = ours.get_state(RUN).values
    assert type(values["tsim_recall"]) is str
    artifact = values["messages"][2].artifact
    assert json.loads(json.dumps(artifact, allow_nan=False)) == artifact


def test_issue_14_replay_writes_once(memory: EpisodicMemory) -> None:
    """langchain-academy 40: replay writes twice."""
    ours = agent(memory, "A cat.", "A cat.")
    ours.invoke(ask("What is it?"), RUN)
    for snapshot in [s for s in ours.get_state_history(RUN) if s.next and "TSIM" in s.next[0]]:
        ours.invoke(None, snapshot.config) if snapshot.next[0].endswith("after_agent") else None
    assert texts(memory, "1") == ["What is it?", "A cat."]


def test_issue_15_a_fork_leaves_one_message(memory: EpisodicMemory) -> None:
    """langgraph 7593: a fork leaves old and new message."""
    ours = agent(memory, "A cat.", "A boat.")
    ours.invoke(ask("What is it?", id="q"), RUN)
    start = next(s for s in ours.get_state_history(RUN) if s.next and s.next[0].endswith("before_agent"))
    ours.invoke(
        None, ours.update_state(start.config, {"messages": [HumanMessage("What floats?", id="q")]}, as_node="__start__")
    )
    assert texts(memory, "1") == ["What floats?", "A boat."]


def test_issue_16_growth_is_linear(memory: EpisodicMemory, embedder: WordEmbedder) -> None:
    """microsoft agent-framework 7242: whole history appended on each call, superlinear growth."""
    ours = agent(memory, *[f"answer {n}" for n in range(12)])
    embedder.texts.clear()
    for n in range(12):
        ours.invoke(ask(f"question {n}"), RUN)
    assert len(texts(memory, "1")) == 24
    assert len(embedder.texts) <= 3 * 12, "each turn once, and each question once more as a query"


def test_issue_17_a_window_keeps_calls_and_answers_together(memory: EpisodicMemory) -> None:
    """langmem 112, langchain 38352: trimming orphans tool messages."""
    both = calls(("f", {}), ("f", {}))
    answers = [ToolMessage("x", tool_call_id=c["id"]) for c in both.tool_calls]
    memory.thread("a").extend(to_turns([HumanMessage("q"), both, *answers]))
    for n in (1, 2, 3):
        ours = TSIMMemory(memory=memory, scope="a", recent_turns=n, return_messages=True)
        recent = ours.load_memory_variables({"input": ""})["history"]
        assert [m.type for m in recent] == ["ai", "tool", "tool"]


def test_issue_18_what_was_written_is_read_at_once(memory: EpisodicMemory) -> None:
    """langmem 11: a background writer lags a turn."""
    ours = TSIMMemory(memory=memory, scope="a")
    for n in range(5):
        ours.save_context({"input": f"The code of door {n} is {n}{n}{n}."}, {"output": "ok"})
        assert f"{n}{n}{n}" in ours.load_memory_variables({"input": f"What is the code of door {n}?"})["history"]


def test_issue_19_recalled_text_says_who_and_when(memory: EpisodicMemory) -> None:
    """zep 131: recalled text does not say who spoke or when."""
    when = datetime(2026, 3, 1, tzinfo=UTC)
    memory.thread("a").extend([Turn("user", CAT, timestamp=when), Turn("assistant", "A warm place.", timestamp=when)])
    text = TSIMMemory(memory=memory, scope="a").load_memory_variables({"input": "cat"})["history"]
    assert f"user: {CAT}" in text
    assert "assistant: A warm place." in text
    assert "2026-03-01" in text
    (document,) = TSIMRetriever(memory=memory, scope="a").invoke("cat")
    assert document.page_content.startswith("user (2026-03-01")


@pytest.mark.parametrize("thread_id", ["only-here", 7])
def test_issue_20_a_thread_id_in_configurable_alone(memory: EpisodicMemory, thread_id: Any) -> None:
    """deer-flow 1428: memory silently skipped when thread_id sits only in ``configurable``."""
    ours = create_agent(scripted("ok"), middleware=[TSIMMiddleware(memory)])  # no checkpointer, no context
    ours.invoke(ask(CAT), {"configurable": {"thread_id": thread_id}})
    assert texts(memory, str(thread_id)) == [CAT, "ok"]
    with pytest.raises(ScopeError, match="thread_id"):
        ours.invoke(ask(CAT))


def test_issue_21_the_context_in_a_subgraph(memory: EpisodicMemory) -> None:
    """langgraph 5700: runtime context missing in a subgraph."""
    from langgraph.graph import START, MessagesState, StateGraph

    ours = create_agent(scripted("ok"), middleware=[TSIMMiddleware(memory, scope="{user_id}")], context_schema=dict)
    graph = StateGraph(MessagesState, context_schema=dict)
    graph.add_node("assistant", ours)
    graph.add_edge(START, "assistant")
    graph.compile().invoke(ask(CAT), context={"user_id": "alice"})
    assert texts(memory, "alice") == [CAT, "ok"]


def test_issue_22_recalled_text_is_not_stored_again(memory: EpisodicMemory) -> None:
    """mem0 2239: recalled text stored again as memory."""
    memory.thread("a").add("user", CAT)
    chain = classic("chains").ConversationChain(llm=scripted("ok"), memory=TSIMMemory(memory=memory, scope="a"))
    chain.invoke({"input": "cat?"})
    create_agent(scripted("ok"), middleware=[TSIMMiddleware(memory, scope="a")]).invoke(ask("a cat?"))
    assert sum("basket" in text for text in texts(memory, "a")) == 1


def test_issue_23_read_and_write_agree(memory: EpisodicMemory) -> None:
    """memory-template 15: write and read namespaces differ."""
    scope: dict[str, Any] = {"scope": ("{user_id}", "{thread_id}"), "recall_scope": "{user_id}"}
    model = ScriptedChat(answer=lambda _: "ok")
    ours = create_agent(model, middleware=[TSIMMiddleware(memory, **scope)])
    ours.invoke(ask(CAT), {"configurable": {"user_id": 5, "thread_id": 1}})
    ours.invoke(ask("Where does the cat sleep?"), {"configurable": {"user_id": "5", "thread_id": 2}})
    assert CAT in model.seen()


def test_issue_24_runs_on_one_thread_do_not_interleave(memory: EpisodicMemory) -> None:
    """deer-flow 1465: concurrent runs on one thread interleave."""
    from concurrent.futures import ThreadPoolExecutor

    ours = TSIMMemory(memory=memory, scope="a")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: ours.save_context({"input": f"q{n}"}, {"output": f"a{n}"}), range(40)))
    stored = texts(memory, "a")
    assert len(stored) == 80
    assert all(q[1:] == a[1:] for q, a in zip(stored[::2], stored[1::2], strict=True))


def test_issue_25_every_way_in_keeps_users_apart(memory: EpisodicMemory) -> None:
    """mem0 1805: user filter missing on one view."""
    memory.thread("alice", "1").add("user", "Alice has a cat and a boat.")
    memory.thread("bob", "1").add("user", "Bob has a cat and a boat.")
    memory.thread("al", "ice").add("user", "Al has a cat and a boat.")
    scope: dict[str, Any] = {"memory": memory, "scope": ("alice", "2"), "recall_scope": "alice"}
    found = [
        TSIMMemory(**scope).load_memory_variables({"input": "cat boat"})["history"],
        str([d.page_content for d in TSIMRetriever(**scope, k=50).invoke("cat boat")]),
        create_tsim_search_tool(**scope).invoke({"query": "cat boat"}),
    ]
    model = scripted("ok")
    create_agent(model, middleware=[TSIMMiddleware(**scope)]).invoke(ask("cat boat"))
    for text in [*found, model.seen()]:
        assert "Alice has" in text
        assert "Bob" not in text
        assert "Al has" not in text


def test_issue_26_paths_and_names_in_any_script(tmp_path: Path) -> None:
    """faiss 3073: non-ASCII paths."""
    path = tmp_path / "Gedächtnis 記憶.db"
    for again in (False, True):
        with EpisodicMemory(path, embedder=WordEmbedder()) as memory:
            ours = TSIMMemory(memory=memory, scope=("bob@example.com", "日記"))
            if not again:
                ours.save_context({"input": CAT}, {"output": "はい"})
            assert CAT in ours.load_memory_variables({"input": "cat"})["history"]


def test_a_trimmed_thread_is_still_remembered_in_the_next_run(memory: EpisodicMemory) -> None:
    """With a window over the messages, what fell out of it is what memory is for."""
    model = ScriptedChat(answer=lambda _: "ok")
    ours = create_agent(model, middleware=[TSIMMiddleware(memory)], checkpointer=InMemorySaver())
    ours.invoke(ask(CAT), RUN)
    ours.invoke({"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("Where does the cat sleep?")]}, RUN)
    assert CAT in str(model.prompts[-1][0].content)
