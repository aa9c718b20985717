"""TSIMMemoryBlock in LlamaIndex's Memory."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemoryBlock, InsertMethod
from llama_index.core.utils import get_tokenizer
from llama_index.memory.tsim import TSIMMemoryBlock
from llama_index.utils.tsim import LlamaIndexEmbedder
from tsim_core import EpisodicMemory


def user(text: str, **kwargs: object) -> ChatMessage:
    return ChatMessage(role="user", content=text, additional_kwargs=kwargs)


def assistant(text: str | None) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


@pytest.fixture
def block(embed_model, config):
    return TSIMMemoryBlock(embed_model=embed_model, config=config)


async def talk(memory, *pairs):
    for question, answer in pairs:
        await memory.aput(user(question))
        await memory.aput(assistant(answer))


CAT = ("My cat Whiskers may not eat tuna.", "Noted, no tuna for the cat.")
GPU = ("My GPU is an RTX 4090.", "Noted, a 4090 GPU.")
TRIP = ("We take the train to Paris.", "Have a good trip.")


def test_class():
    assert BaseMemoryBlock.__name__ in [b.__name__ for b in TSIMMemoryBlock.__mro__]


async def test_what_the_queue_lets_go_of_comes_back_when_it_bears_on_the_message(block, make_memory):
    memory = make_memory(block)
    await talk(memory, CAT, GPU, TRIP)
    block.similarity_top_k = 1
    messages = await memory.aget(input="What may the cat eat?")
    assert messages[0].role == "system"
    assert "Whiskers may not eat tuna" in messages[0].content
    assert "4090" not in messages[0].content
    assert "<episodes>" in messages[0].content


async def test_sessions_are_kept_apart_by_one_shared_block(block, make_memory):
    first, second = make_memory(block, session="one"), make_memory(block, session="two")
    await talk(first, CAT, GPU)
    await talk(second, TRIP, GPU)
    assert sorted(name[-1] for name in block.memory.threads()) == ["one", "two"]
    found = await block.aget([user("cat tuna")], session_id="two")
    assert not any("Whiskers" in b.text for b in found)
    found = await block.aget([user("cat tuna")], session_id="one")
    assert any("Whiskers" in b.text for b in found)


async def test_recall_from_the_namespace_crosses_sessions_and_never_users(embed_model, config, tmp_path):
    store = str(tmp_path / "m.db")

    def block(user):
        return TSIMMemoryBlock(
            store=store, namespace=[user], recall_from="namespace", embed_model=embed_model, config=config
        )

    alice, bob = block("alice"), block("bob")
    await alice.aput([user(CAT[0])], session_id="monday")
    await bob.aput([user(GPU[0])], session_id="monday")
    assert "Whiskers" in (await alice.aget([user("cat")], session_id="friday"))[0].text
    assert all("Whiskers" not in b.text for b in await bob.aget([user("cat")], session_id="friday"))


async def test_the_session_is_read_and_never_popped(block):
    message = user("hello", other=1)
    await block.aput([message], session_id="s")
    assert message.additional_kwargs == {"other": 1, "session_id": "s"}
    assert block.memory.threads() == [("llama-index", "s")]
    await block.aput([user("no session")])
    assert block.memory.threads() == [("llama-index", "s"), ("llama-index", "default")]


async def test_the_users_message_handed_over_twice_is_one_query(block, embed_model):
    await block.aput([user(CAT[0])])
    await block.aget([user("Which cat?"), user("Which cat?")])
    assert (embed_model.queries + embed_model.texts).count("Which cat?") == 1
    block.query_messages = 2
    await block.aget([user("My GPU"), assistant("ok"), user("Which cat?"), user("Which cat?")])
    assert "My GPU\nWhich cat?" in embed_model.texts


@pytest.mark.parametrize("messages", [None, [], [assistant(None)], [user(" ")]])
async def test_nothing_to_ask_gives_nothing(block, messages, embed_model):
    assert await block.aget(messages, session_id="s") == []
    assert embed_model.texts == []


async def test_truncation_drops_whole_episodes_lowest_ranked_first(block):
    for session in (CAT, GPU, TRIP):
        await block.aput([user(session[0]), assistant(session[1])])
    content = await block.aget([user("cat tuna GPU trip Whiskers")])
    texts = {int(b.text[1]): b.text for b in content}
    assert sorted(texts) == [1, 2, 3]
    tokens = {rank: len(get_tokenizer()(text)) for rank, text in texts.items()}
    kept = await block.atruncate(content, 1)
    assert {b.text for b in kept} == {texts[1], texts[2]}
    kept = await block.atruncate(content, tokens[3] + 1)
    assert [b.text for b in kept] == [texts[1]]
    assert await block.atruncate(content, sum(tokens.values())) is None
    assert len(content) == 3


async def test_memory_stays_below_its_limit_and_keeps_the_best_episode(embed_model, config, make_memory):
    block = TSIMMemoryBlock(embed_model=embed_model, config=config)
    memory = make_memory(block, token_limit=90, chat_history_token_ratio=0.2)
    await talk(memory, CAT, GPU, TRIP, CAT, GPU, TRIP)
    messages = await memory.aget(input="Does Whiskers the cat eat tuna?")
    assert "Whiskers" in messages[0].content
    assert sum(len(get_tokenizer()(m.content)) for m in messages) <= 90 + 10  # the template counts extra


async def test_episodes_are_laid_out_oldest_first_with_their_ranks(block):
    await block.aput([user("The cat eats tuna.")])
    await block.aput([user(GPU[0])])
    await block.aput([user("The cat eats no tuna any more.")])
    content = await block.aget([user("tuna any more for the cat")])
    body = "\n".join(b.text for b in content)
    assert body.index("eats tuna") < body.index("4090") < body.index("no tuna any more")


async def test_system_prompts_and_injected_text_are_never_stored(block, make_memory):
    memory = make_memory(block, insert_method=InsertMethod.USER)
    await memory.aput(ChatMessage(role="system", content="You are a secret agent."))
    await talk(memory, CAT, GPU)
    given = await memory.aget(input="cat?")
    assert "<memory>" in str(given)
    await block.aput(given, session_id="s")
    stored = [turn.text for turn in block.memory.thread("llama-index", "s").turns()]
    assert not any("<memory>" in text or "secret agent" in text for text in stored)
    assert CAT[0] in stored


async def test_tool_messages_are_kept_whole(block):
    call = ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [{"id": "1", "name": "vet"}]})
    result = ChatMessage(role="tool", content="", additional_kwargs={"tool_call_id": "1"})
    await block.aput([user("Call the vet for the cat."), call, result, assistant("The vet will come.")])
    turns = block.memory.thread("llama-index", "default").turns()
    assert [(t.role, t.text) for t in turns][1:3] == [("assistant", ""), ("tool", "")]
    assert turns[1].metadata["llama_index_kwargs"] == {"tool_calls": [{"id": "1", "name": "vet"}]}
    content = await block.aget([user("vet")])
    assert "The vet will come." in content[0].text


async def test_an_open_memory_can_be_given(embed_model, config):
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(embed_model), config=config)
    block = TSIMMemoryBlock(memory, namespace=["alice"])
    await block.aput([user(CAT[0])], session_id="s")
    assert memory.threads() == [("alice", "s")]
    assert block.memory is memory


async def test_concurrent_puts_lose_nothing(block):
    await asyncio.gather(*(block.aput([user(f"message {i}")], session_id=f"s{i % 3}") for i in range(30)))
    stored = [turn.text for name in block.memory.threads() for turn in block.memory.thread(*name).turns()]
    assert sorted(stored) == sorted(f"message {i}" for i in range(30))


async def test_a_file_store_is_there_for_the_next_process(tmp_path, embed_model):
    store = str(tmp_path / "m.db")
    block = TSIMMemoryBlock(store=store, embed_model=embed_model)
    await block.aput([user(CAT[0])], session_id="s")
    block.memory.close()
    again = TSIMMemoryBlock(store=store, embed_model=embed_model)
    assert "Whiskers" in (await again.aget([user("cat")], session_id="s"))[0].text
