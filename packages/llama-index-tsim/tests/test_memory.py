"""TSIMMemory as a chat memory."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import pytest
from llama_index.core.base.llms.types import ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import BaseMemory
from llama_index.core.workflow import JsonSerializer
from llama_index.memory.tsim import TSIMMemory
from llama_index.memory.tsim.window import message_tokens, window_start
from llama_index.utils.tsim import LlamaIndexEmbedder
from tsim_core import EpisodicMemory


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str | None, **kwargs: object) -> ChatMessage:
    return ChatMessage(role="assistant", content=text, additional_kwargs=kwargs)


def system(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=text)


CHAT = [
    user("My cat Whiskers may not eat tuna."),
    assistant("Noted, no tuna for the cat."),
    user("My GPU is an RTX 4090."),
    assistant("Noted, a 4090 GPU."),
    user("We take the train to Paris."),
    assistant("Have a good trip."),
]


@pytest.fixture
def memory(embed_model, config):
    return TSIMMemory.from_defaults(session_id="s", embed_model=embed_model, config=config, token_limit=20)


def test_class():
    assert BaseMemory.__name__ in [b.__name__ for b in TSIMMemory.__mro__]


def test_put_get_all_reset(memory):
    assert memory.get_all() == memory.get() == []
    memory.put_messages(CHAT)
    assert memory.get_all() == CHAT
    memory.reset()
    assert memory.get_all() == memory.get("cat") == []
    assert memory.memory.threads() == []


def test_an_empty_memory_is_true(memory):
    assert memory
    assert not hasattr(memory, "__len__")


def test_the_latest_messages_and_the_episode_that_bears_on_the_input(memory):
    memory.put_messages(CHAT)
    memory.similarity_top_k = 1
    given = memory.get("What may the cat eat?")
    assert given[2:] == CHAT[4:]
    assert [m.role.value for m in given[:3]] == ["system", "system", "user"]
    assert "Whiskers may not eat tuna" in given[1].content
    assert "4090" not in given[1].content
    assert given[1].content.startswith("<episodic_memory>")


def test_without_input_the_latest_user_message_is_the_query(memory):
    memory.put_messages([*CHAT, user("Which GPU?")])
    memory.similarity_top_k = 1
    given = memory.get()
    assert "RTX 4090" in given[1].content
    assert given[-1] == user("Which GPU?")


def test_what_the_prompt_holds_anyway_is_not_recalled(embed_model, config):
    memory = TSIMMemory(session_id="s", embed_model=embed_model, config=config, token_limit=1000)
    memory.put_messages(CHAT)
    assert memory.get("cat tuna") == CHAT


def test_the_window_does_not_eat_the_budget_of_the_episodes(embed_model, config):
    memory = TSIMMemory(session_id="s", embed_model=embed_model, config=config, token_limit=200, max_tokens=60)
    memory.put_messages([user("The vet said: Whiskers the cat may not eat tuna."), assistant("Noted for the cat.")])
    memory.put_messages([m for i in range(20) for m in (user(f"The cat and the vet, visit {i}"), assistant(f"ok {i}"))])
    given = memory.get("cat vet Whiskers tuna")
    assert "may not eat tuna" in given[1].content
    assert memory.memory.config.estimator(given[1].content) < 60 + 40


def test_budget_and_number_of_episodes_are_kept_to(embed_model, config):
    memory = TSIMMemory(session_id="s", embed_model=embed_model, config=config, token_limit=10, max_tokens=40)
    for i in range(8):
        memory.put_messages([user(f"cat {i} and tuna"), assistant("ok"), user(f"GPU {i} and CUDA"), assistant("fine")])
    text = memory.get("cat tuna")[1].content
    assert memory.memory.config.estimator(text) < 40 + 40
    memory.max_tokens, memory.similarity_top_k = None, 2
    assert "[2]" in memory.get("cat tuna")[1].content
    assert "[3]" not in memory.get("cat tuna")[1].content


def test_sessions_are_kept_apart_and_a_namespace_can_be_recalled_from(tmp_path, embed_model, config):
    store = str(tmp_path / "m.db")

    def memory(user, session, **settings):
        return TSIMMemory(
            store=store, namespace=[user], session_id=session, embed_model=embed_model, config=config, **settings
        )

    memory("alice", "monday").put_messages(CHAT[:2])
    memory("bob", "monday").put_messages(CHAT[2:4])
    assert memory("alice", "friday").get("cat") == []
    crossing = memory("alice", "friday", recall_from="namespace").get("cat GPU")
    assert "Whiskers" in crossing[1].content
    assert "4090" not in crossing[1].content


def test_a_user_message_handed_over_twice_counts_once(memory):
    memory.put(user("Which GPU?"))
    memory.put(user("Which GPU?"))
    memory.put_messages([user("Which GPU?"), assistant("yes"), user("ok"), user("ok"), assistant("yes"), user("ok")])
    assert [m.content for m in memory.get_all()] == ["Which GPU?", "yes", "ok", "yes", "ok"]


def test_a_message_that_failed_is_no_double_of_its_second_try(embed_model, config, monkeypatch):
    memory = TSIMMemory(embed_model=embed_model, config=config)
    memory.put(user("one"))
    monkeypatch.setattr(type(embed_model), "_get_text_embedding", lambda self, text: 1 / 0)
    with pytest.raises(Exception, match="division"):
        memory.put(user("two"))
    monkeypatch.undo()
    memory.put(user("two"))
    assert [m.content for m in memory.get_all()] == ["one", "two"]


def test_injected_text_is_never_stored(memory):
    memory.put_messages(CHAT)
    given = memory.get("cat")
    assert "<episodic_memory>" in given[1].content
    memory.put_messages(given)
    memory.set(memory.get("cat GPU"))
    assert "episodic_memory" not in json.dumps(memory.to_dict())
    assert [m for m in memory.get_all() if m.role == "system"] == []


def test_system_messages_are_handed_over_first_and_never_recalled(memory):
    memory.put(system("Be brief about cats."))
    memory.put_messages(CHAT)
    memory.put(system("Be brief about cats."))
    given = memory.get("cat")
    assert [m.role.value for m in given[:3]] == ["system", "system", "user"]
    assert given[0] == system("Be brief about cats.")
    assert "Whiskers" in given[1].content
    assert memory.get_all()[0] == system("Be brief about cats.")
    assert all(turn.role != "system" for turn in memory.thread.turns())
    memory.put_messages(memory.get("GPU"))
    assert memory.get_all()[0] == system("Be brief about cats.")


# set


def test_set_is_the_chat_history_and_what_is_older_stays_remembered(memory):
    memory.put_messages(CHAT)
    memory.set(CHAT[2:])
    assert memory.get_all() == CHAT[2:]
    assert "Whiskers" in memory.get("cat tuna")[1].content
    memory.set(CHAT)
    assert memory.get_all() == CHAT
    assert len(memory.thread.turns()) == 6


def test_set_twice_and_with_more_stores_each_message_once(memory):
    memory.set(CHAT[:4])
    memory.set(CHAT[:4])
    memory.set(CHAT)
    assert memory.get_all() == CHAT
    assert len(memory.thread.turns()) == 6


def test_set_of_other_messages_and_of_none(memory):
    memory.put_messages(CHAT[:2])
    memory.set([user("Hello"), assistant("Hi")])
    assert memory.get_all() == [user("Hello"), assistant("Hi")]
    assert "Whiskers" in memory.get("cat")[1].content
    memory.set([])
    assert memory.get_all() == []
    memory.put(user("Hello again"))
    assert memory.get_all() == [user("Hello again")]
    assert "Whiskers" in memory.get("cat")[1].content


def test_set_takes_a_contradicted_tail_out_of_recall(memory):
    memory.put_messages(CHAT)
    memory.set([*CHAT[:2], user("My GPU is a CUDA one from the attic."), assistant("ok")])
    assert "4090" not in str(memory.get("Which GPU RTX 4090?"))
    assert [m.content for m in memory.get_all()][2:] == ["My GPU is a CUDA one from the attic.", "ok"]


def test_set_then_the_same_user_message(memory):
    memory.set([user("Which GPU?")])
    memory.put(user("Which GPU?"))
    assert [m.content for m in memory.get_all()] == ["Which GPU?"]


# the window


def words(text: str) -> list[str]:
    return text.split()


def test_window_begins_with_a_user_and_holds_the_last_exchange():
    call = assistant(None, tool_calls=[{"id": "1"}])
    result = ChatMessage(role="tool", content="four")
    messages = [user("a b c"), call, result, assistant("d"), user("e f"), call, result, assistant("g")]
    for limit in range(1, 40):
        start = window_start(messages, limit, words)
        assert messages[start].role == "user"
        assert start <= 4
    assert window_start(messages, 1000, words) == 0
    assert window_start([], 5, words) == 0
    assert window_start([assistant("hello"), user("hi")], 1000, words) == 0
    assert window_start([result, assistant("hello")], 1000, words) == 1
    assert window_start([assistant("hello")], 1000, words) == 0


def test_tool_calls_and_media_are_counted():
    plain = message_tokens(assistant("hi there"), words)
    call = ToolCallBlock(tool_call_id="1", tool_name="vet", tool_kwargs={"cat": "Whiskers likes tuna a lot"})
    assert plain == 2
    assert message_tokens(ChatMessage(role="assistant", blocks=[call]), words) == 5
    assert message_tokens(assistant(None, tool_calls=[{"args": "a b c d"}]), words) >= 4
    picture = ImageBlock(url="https://example.org/cat.png")
    assert message_tokens(ChatMessage(role="user", blocks=[TextBlock(text="see"), picture]), words) == 257


def test_initial_token_count_makes_the_window_smaller(embed_model, config):
    memory = TSIMMemory(embed_model=embed_model, config=config, token_limit=100)
    memory.put_messages(CHAT)
    assert len(memory.get("hello", initial_token_count=0)) == 6
    assert memory.get("hello", initial_token_count=99)[2:] == CHAT[4:]


# serialisation, copies and threads


@pytest.mark.parametrize("where", ["memory", "file"])
def test_to_dict_round_trip(where, tmp_path, embed_model, config):
    store = ":memory:" if where == "memory" else str(tmp_path / "m.db")
    memory = TSIMMemory(store=store, session_id="s", embed_model=embed_model, config=config, token_limit=20)
    memory.put(system("Be brief."))
    memory.put_messages(CHAT)
    memory.set(CHAT[2:])
    data = json.loads(json.dumps(memory.to_dict()))
    assert ("turns" in data) == (where == "memory")
    again = TSIMMemory.from_dict(data)
    assert again.get_all() == memory.get_all()
    assert again.get("cat") == memory.get("cat")
    assert again.to_dict() == memory.to_dict()
    serializer = JsonSerializer()
    assert serializer.deserialize(serializer.serialize(memory)).get_all() == memory.get_all()
    assert pickle.loads(pickle.dumps(memory)).get_all() == memory.get_all()  # noqa: S301
    assert copy.deepcopy(memory).get_all() == memory.model_copy().get_all() == memory.get_all()


def test_an_open_memory_can_be_given_and_its_model_is_noted(tmp_path, embed_model):
    store = EpisodicMemory(tmp_path / "m.db", embedder=LlamaIndexEmbedder(embed_model))
    memory = TSIMMemory.from_defaults(store, session_id="s", chat_history=CHAT)
    assert memory.memory is store
    assert memory.embed_model is embed_model
    assert TSIMMemory.from_dict(memory.to_dict()).get_all() == CHAT


def test_the_stores_own_configuration_is_taken_when_none_is_given(tmp_path, embed_model):
    store = str(tmp_path / "m.db")
    TSIMMemory(store=store, session_id="s", embed_model=embed_model, config="paper").put_messages(CHAT)
    memory = TSIMMemory.from_dict(TSIMMemory(store=store, session_id="s", embed_model=embed_model).to_dict())
    assert memory.memory.config.tokens == "published"
    assert memory.get_all() == CHAT


def test_the_models_context_sets_the_window():
    llm = MockLLM()
    assert TSIMMemory.from_defaults(llm=llm).token_limit == llm.metadata.context_window // 2
    assert TSIMMemory.from_defaults(llm=llm, token_limit=7).token_limit == 7
    assert TSIMMemory.from_defaults(max_tokens=None).max_tokens is None


async def test_async_twins(memory):
    await memory.aput(CHAT[0])
    await memory.aput_messages(CHAT[1:])
    assert await memory.aget_all() == CHAT
    assert "Whiskers" in (await memory.aget("cat"))[1].content
    await memory.aset(CHAT[:2])
    assert await memory.aget_all() == CHAT[:2]
    await memory.areset()
    assert await memory.aget() == []


async def test_concurrent_puts_lose_nothing(memory):
    await asyncio.gather(*(memory.aput(user(f"message {i}")) for i in range(40)))
    assert sorted(m.content for m in memory.get_all()) == sorted(f"message {i}" for i in range(40))


def test_with_the_embedded_model():
    memory = TSIMMemory(token_limit=20, similarity_top_k=1)
    memory.put_messages([user("Our kitten is allergic to fish."), assistant("I will remember that.")])
    memory.put_messages([user("The printer in the office is broken."), assistant("Call the technician.")])
    memory.put_messages([user("What is the capital of Peru?"), assistant("Lima.")])
    given = memory.get("Can I feed salmon to my pet cat?")
    assert "allergic to fish" in given[1].content
    assert given[2:] == [user("What is the capital of Peru?"), assistant("Lima.")]
