"""Memory in real agents, with models that record what they were given."""

from __future__ import annotations

import json

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, JsonSerializer
from llama_index.memory.tsim import TSIMMemory, TSIMMemoryBlock

# LlamaIndex looks at every attribute of an agent, deprecated ones included
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecationWarning", "ignore:is_running called from within a step"
)


def weigh(animal: str) -> str:
    """Weigh an animal."""
    return f"The {animal} weighs four kilos."


WEIGH = FunctionTool.from_defaults(weigh)


def call_weigh(text: str | None = None) -> ChatMessage:
    call = ToolCallBlock(tool_call_id="call-1", tool_name="weigh", tool_kwargs={"animal": "cat"})
    message = ChatMessage(role="assistant", content=text)
    message.blocks.append(call)
    return message


@pytest.fixture
def memory(embed_model, config):
    return TSIMMemory.from_defaults(
        session_id="s", embed_model=embed_model, config=config, token_limit=30, similarity_top_k=1
    )


def test_class():
    assert BaseMemory.__name__ in [b.__name__ for b in TSIMMemory.__mro__]


async def test_function_agent_gets_the_right_episode_and_not_the_wrong_one(memory, chat, make_llm):
    memory.put_messages(chat)
    llm = make_llm(["Driver 550."])
    agent = FunctionAgent(tools=[WEIGH], llm=llm, system_prompt="Be kind.")
    response = await agent.run("Which CUDA driver did I take?", memory=memory)
    assert str(response) == "Driver 550."
    assert "CUDA driver 550 for that GPU." in llm.last
    assert "Whiskers" not in llm.last
    assert [m.role.value for m in llm.given[0]][:3] == ["system", "system", "system"]
    stored = [turn.text for turn in memory.thread.turns()]
    assert stored[-2:] == ["Which CUDA driver did I take?", "Driver 550."]
    assert not any("Be kind" in text or "episodic_memory" in text for text in stored)


async def test_function_agent_stores_its_tool_messages_and_hands_them_over_again(memory, make_llm):
    memory.token_limit = 500
    llm = make_llm([call_weigh(), "Four kilos.", "You are welcome."])
    agent = FunctionAgent(tools=[WEIGH], llm=llm)
    await agent.run("Weigh the cat.", memory=memory)
    kept = memory.get_all()
    assert [(m.role.value, m.content) for m in kept] == [
        ("user", "Weigh the cat."),
        ("assistant", None),
        ("tool", "The cat weighs four kilos."),
        ("assistant", "Four kilos."),
    ]
    assert kept[1].blocks[-1] == call_weigh().blocks[-1]
    assert kept[2].additional_kwargs == {"tool_call_id": "call-1"}
    await agent.run("Thanks.", memory=memory)
    assert llm.given[-1][:4] == kept


async def test_react_agent(memory, chat, make_llm):
    memory.put_messages(chat)
    llm = make_llm(
        [
            'Thought: I weigh it.\nAction: weigh\nAction Input: {"animal": "cat"}',
            "Thought: I can answer.\nAnswer: Four kilos.",
        ]
    )
    agent = ReActAgent(tools=[WEIGH], llm=llm)
    response = await agent.run("How heavy is my cat Whiskers?", memory=memory)
    assert str(response) == "Four kilos."
    first = "\n".join(str(m) for m in llm.given[0])
    assert "My cat Whiskers is ill." in first
    assert "RTX 4090" not in first
    assert "The cat weighs four kilos." in llm.last
    assert [turn.text for turn in memory.thread.turns()].count("How heavy is my cat Whiskers?") == 1


async def test_agent_workflow_with_a_handoff(memory, chat, make_llm):
    memory.put_messages(chat)
    handoff = ToolCallBlock(
        tool_call_id="h",
        tool_name="handoff",
        tool_kwargs={"to_agent": "expert", "reason": "the GPU's CUDA driver"},
    )
    llm = make_llm([ChatMessage(role="assistant", blocks=[handoff]), "Driver 550."])
    desk = FunctionAgent(name="desk", description="Desk", tools=[], llm=llm, can_handoff_to=["expert"])
    expert = FunctionAgent(name="expert", description="Expert", tools=[], llm=llm)
    workflow = AgentWorkflow(agents=[desk, expert], root_agent="desk")
    response = await workflow.run(user_msg="Which CUDA driver did I take?", memory=memory)
    assert str(response) == "Driver 550."
    assert len(llm.given) == 2
    for prompt in llm.given:
        assert "CUDA driver 550 for that GPU." in str(prompt)
    stored = [turn.text for turn in memory.thread.turns()]
    assert stored.count("Which CUDA driver did I take?") == 1


async def test_the_user_message_in_history_and_beside_it_counts_once(memory, make_llm):
    llm = make_llm()
    agent = FunctionAgent(tools=[], llm=llm)
    history = [ChatMessage(role="user", content="Hello"), ChatMessage(role="assistant", content="Hi")]
    question = ChatMessage(role="user", content="My cat?")
    await agent.run(question, chat_history=[*history, question], memory=memory)
    assert [m.content for m in llm.given[-1]] == ["Hello", "Hi", "My cat?"]
    assert [m.content for m in memory.get_all()] == ["Hello", "Hi", "My cat?", "noted"]


async def test_a_history_handed_over_again_and_again_is_stored_once(memory, make_llm):
    agent = FunctionAgent(tools=[], llm=make_llm(["one", "two", "three"]))
    history: list[ChatMessage] = []
    for question in ("My cat?", "My GPU?", "My trip?"):
        response = await agent.run(question, chat_history=history, memory=memory)
        history += [ChatMessage(role="user", content=question), response.response]
    assert [turn.text for turn in memory.thread.turns()] == ["My cat?", "one", "My GPU?", "two", "My trip?", "three"]


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_context_is_restored_with_its_memory(where, tmp_path, embed_model, config, make_llm):
    store = ":memory:" if where == "memory" else str(tmp_path / "m.db")
    memory = TSIMMemory(
        store=store, session_id="s", embed_model=embed_model, config=config, token_limit=30, similarity_top_k=1
    )
    llm = make_llm()
    agent = FunctionAgent(tools=[], llm=llm)
    context = Context(agent)
    await agent.run("My cat Whiskers eats no tuna.", ctx=context, memory=memory)
    await agent.run("My GPU is an RTX 4090.", ctx=context)
    saved = json.loads(json.dumps(context.to_dict(serializer=JsonSerializer())))
    assert "very-secret" not in json.dumps(saved)

    restored = Context.from_dict(agent, saved, serializer=JsonSerializer())
    await agent.run("What may the cat Whiskers not eat?", ctx=restored)
    assert "eats no tuna" in llm.last
    assert (await restored.store.get("memory")).get_all()[-1].content == "noted"
    if where == "file":
        assert [m.content for m in memory.get_all()][-2] == "What may the cat Whiskers not eat?"


async def test_agent_with_llama_indexs_memory_and_our_block(embed_model, config, make_llm, make_memory):
    block = TSIMMemoryBlock(embed_model=embed_model, config=config, similarity_top_k=1)
    memory = make_memory(block)
    llm = make_llm()
    agent = FunctionAgent(tools=[], llm=llm)
    for text in ("My cat Whiskers eats no tuna.", "My GPU is an RTX 4090.", "We go to Paris by train."):
        await agent.run(text, memory=memory)
    await agent.run("What may the cat Whiskers not eat?", memory=memory)
    assert "eats no tuna" in llm.last
    assert "4090" not in llm.last
    texts = embed_model.texts + embed_model.queries
    assert texts.count("What may the cat Whiskers not eat?") >= 1
    assert not any("eat?\nWhat may" in text for text in texts)
    stored = [turn.text for turn in block.memory.thread("llama-index", "s").turns()]
    assert len(stored) == len(set(stored)) + stored.count("noted") - 1
