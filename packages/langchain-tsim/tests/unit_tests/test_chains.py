"""TSIMMemory as ``memory=`` of LangChain's own chains, unchanged, on LangChain 1.x and 0.3."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langchain_tsim import KeysError, ScopeError, TSIMMemory, TSIMRetriever
from tsim_core import EpisodicMemory, Turn

from ..helpers import ScriptedChat, calls, classic, scripted

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LangChain calls its chains deprecated

CAT = "The cat sleeps in the red basket by the window."
BOAT = "Our boat needs new sails before the summer regatta."


@pytest.fixture
def stored(memory: EpisodicMemory) -> EpisodicMemory:
    """Alice spoke of two things, Bob of one."""
    memory.thread("alice").extend([Turn("user", CAT), Turn("assistant", "A warm place for a cat.")])
    memory.thread("alice").extend([Turn("user", BOAT), Turn("assistant", "The sails of a boat wear out.")])
    memory.thread("bob").extend(
        [Turn("user", "The cat of Bob sleeps in the garage."), Turn("assistant", "Cold there.")]
    )
    return memory


class Library(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document("Cats sleep sixteen hours a day.")]


def conversation(model: ScriptedChat, memory: TSIMMemory) -> Any:
    return classic("chains").ConversationChain(llm=model, memory=memory)


class TestConversationChain:
    def test_the_model_is_given_the_right_episode_and_not_the_wrong_one(self, memory: EpisodicMemory) -> None:
        memory.thread("alice", "pets").add("user", CAT)
        memory.thread("alice", "sea").add("user", BOAT)
        memory.thread("bob", "pets").add("user", "The cat of Bob sleeps in the garage.")
        model = scripted("In the red basket.", "Sails.")
        chain = conversation(model, TSIMMemory(memory=memory, scope=("alice", "now"), recall_scope="alice", k=1))
        out = chain.invoke({"input": "Where does the cat sleep, in which basket?"})
        assert out["response"] == "In the red basket."
        assert CAT in model.seen()
        assert "regatta" not in model.seen()
        assert "Bob" not in model.seen()
        chain.invoke({"input": "What does our boat need before the regatta?"})
        assert BOAT in model.seen()
        assert "basket" not in model.seen()

    def test_what_was_asked_and_answered_is_stored_and_what_was_injected_is_not(self, stored: EpisodicMemory) -> None:
        chain = conversation(scripted("It does."), TSIMMemory(memory=stored, scope="alice"))
        chain.invoke({"input": "Does the cat sleep?"})
        assert [t.text for t in stored.thread("alice").turns()][4:] == ["Does the cat sleep?", "It does."]

    async def test_async(self, stored: EpisodicMemory) -> None:
        model = scripted("In the basket.")
        chain = conversation(model, TSIMMemory(memory=stored, scope="alice", k=1))
        await chain.ainvoke({"input": "Where does the cat sleep?"})
        assert CAT in model.seen()
        assert stored.thread("alice").turns()[-1].text == "In the basket."

    def test_stream(self, stored: EpisodicMemory) -> None:
        chain = conversation(scripted("Yes."), TSIMMemory(memory=stored, scope="alice"))
        assert [part["response"] for part in chain.stream({"input": "Does the cat sleep?"})] == ["Yes."]
        assert stored.thread("alice").turns()[-1].text == "Yes."

    def test_a_model_that_fails_stores_nothing_and_the_chain_goes_on(self, stored: EpisodicMemory) -> None:
        chain = conversation(scripted(RuntimeError("overloaded"), "Yes."), TSIMMemory(memory=stored, scope="alice"))
        with pytest.raises(RuntimeError, match="overloaded"):
            chain.invoke({"input": "Does the cat sleep?"})
        assert len(stored.thread("alice").turns()) == 4
        chain.invoke({"input": "Does the cat sleep?"})
        assert len(stored.thread("alice").turns()) == 6

    def test_recent_turns_make_it_a_buffer_too(self, memory: EpisodicMemory) -> None:
        model = scripted("one", "two", "three")
        chain = conversation(model, TSIMMemory(memory=memory, scope="alice", recent_turns=2))
        for text in ("My name is Ann.", "I like figs.", "And dates."):
            chain.invoke({"input": text})
        assert "Human: I like figs.\nAI: two" in model.seen()

    def test_a_memory_that_cannot_work_stops_the_chain(self, memory: EpisodicMemory) -> None:
        model = scripted("never")
        chain = classic("chains").LLMChain(
            llm=model,
            prompt=PromptTemplate.from_template("{history} {input}"),
            memory=TSIMMemory(memory=memory, scope="{user_id}"),
        )
        with pytest.raises(ScopeError):
            chain.invoke({"input": "hello"})
        memory.close()
        assert model.prompts == []


class TestLLMChain:
    def test_several_inputs(self, stored: EpisodicMemory) -> None:
        model = scripted("Im Korb.")
        chain = classic("chains").LLMChain(
            llm=model,
            prompt=PromptTemplate.from_template("{past}\nAnswer in {language}: {question}"),
            memory=TSIMMemory(memory=stored, scope="alice", memory_key="past", k=1),
        )
        assert chain.invoke({"question": "Where does the cat sleep?", "language": "German"})["text"] == "Im Korb."
        assert CAT in model.seen()
        assert [t.text for t in stored.thread("alice").turns()][4:] == ["Where does the cat sleep?", "Im Korb."]

    def test_messages_for_a_placeholder_and_the_user_by_input(self, stored: EpisodicMemory) -> None:
        model = scripted("In the garage.")
        prompt = ChatPromptTemplate.from_messages(
            [("system", "Be brief."), MessagesPlaceholder("past"), ("human", "{input}")]
        )
        memory = TSIMMemory(memory=stored, scope="{user_id}", memory_key="past", return_messages=True, recent_turns=1)
        chain = classic("chains").LLMChain(llm=model, prompt=prompt, memory=memory)
        chain.invoke({"input": "Where does the cat sleep?", "user_id": "bob"})
        assert [m.type for m in model.prompts[0]] == ["system", "system", "ai", "human"]
        assert "garage" in str(model.prompts[0][1].content)
        assert "basket" not in model.seen()
        assert stored.thread("bob").turns()[-1].text == "In the garage."

    def test_an_unclear_input_says_what_to_set(self, memory: EpisodicMemory) -> None:
        chain = classic("chains").LLMChain(
            llm=scripted("never"),
            prompt=PromptTemplate.from_template("{history}{one}{two}"),
            memory=TSIMMemory(memory=memory, scope="a"),
        )
        with pytest.raises(KeysError, match="Set input_key"):
            chain.invoke({"one": "1", "two": "2"})


class TestConversationalRetrievalChain:
    def test_with_sources_and_a_rewritten_question(self, stored: EpisodicMemory) -> None:
        model = scripted("Where does Alice's cat sleep?", "In the basket, sixteen hours.")
        chain = classic("chains").ConversationalRetrievalChain.from_llm(
            model,
            Library(),
            return_source_documents=True,
            return_generated_question=True,
            memory=TSIMMemory(memory=stored, scope="alice", memory_key="chat_history", return_messages=True, k=1),
        )
        out = chain.invoke({"question": "Where does the cat sleep, and how long?"})
        assert out["answer"] == "In the basket, sixteen hours."
        assert CAT in model.seen(0), "the question is rewritten with what is remembered"
        assert [t.text for t in stored.thread("alice").turns()][4:] == [
            "Where does the cat sleep, and how long?",
            "In the basket, sixteen hours.",
        ]

    async def test_the_first_question_async(self, memory: EpisodicMemory) -> None:
        model = scripted("Sixteen hours.")
        ours = TSIMMemory(memory=memory, scope="alice", memory_key="chat_history", return_messages=True)
        chain = classic("chains").ConversationalRetrievalChain.from_llm(model, Library(), memory=ours)
        assert (await chain.ainvoke({"question": "How long do cats sleep?"}))["answer"] == "Sixteen hours."
        assert len(memory.thread("alice").turns()) == 2


class TestRetrievalQA:
    def test_memory_of_the_chain(self, stored: EpisodicMemory) -> None:
        chain = classic("chains").RetrievalQA.from_chain_type(
            scripted("Sixteen."),
            retriever=Library(),
            return_source_documents=True,
            memory=TSIMMemory(memory=stored, scope="alice"),
        )
        assert chain.invoke({"query": "How long do cats sleep?"})["result"] == "Sixteen."
        assert [t.text for t in stored.thread("alice").turns()][4:] == ["How long do cats sleep?", "Sixteen."]

    def test_memory_of_the_inner_chain_reaches_the_prompt(self, stored: EpisodicMemory) -> None:
        model = scripted("In the basket.")
        chain = classic("chains").RetrievalQA.from_chain_type(
            model,
            retriever=Library(),
            chain_type_kwargs={
                "prompt": PromptTemplate.from_template("{history}\n{context}\n{question}"),
                "memory": TSIMMemory(memory=stored, scope="alice", k=1),
            },
        )
        chain.invoke({"query": "Where does the cat sleep?"})
        assert CAT in model.seen()
        assert "sixteen hours" in model.seen()
        assert stored.thread("alice").turns()[-1].text == "In the basket."

    def test_episodes_as_its_documents(self, stored: EpisodicMemory) -> None:
        model = scripted("In the red basket.")
        retriever = TSIMRetriever(memory=stored, scope="alice", k=1)
        chain = classic("chains").RetrievalQA.from_chain_type(model, retriever=retriever, return_source_documents=True)
        out = chain.invoke({"query": "Where does the cat sleep?"})
        assert CAT in model.seen()
        assert CAT in out["source_documents"][0].page_content


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"the {at} is asleep"


def executor(model: ScriptedChat, memory: TSIMMemory, **options: Any) -> Any:
    agents = classic("agents")
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Help."),
            MessagesPlaceholder("chat_history"),
            ("human", "{input}"),
            MessagesPlaceholder("agent_scratchpad"),
        ]
    )
    agent = agents.create_tool_calling_agent(model, [look], prompt)
    return agents.AgentExecutor(agent=agent, tools=[look], memory=memory, **options)


def agent_memory(memory: EpisodicMemory) -> TSIMMemory:
    return TSIMMemory(
        memory=memory, scope="alice", memory_key="chat_history", return_messages=True, recent_turns=4, k=1
    )


class TestAgentExecutor:
    def test_run(self, stored: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.")
        out = executor(model, agent_memory(stored)).invoke({"input": "What does the cat do?"})
        assert out["output"] == "It sleeps."
        assert CAT in model.seen(0)
        assert [t.text for t in stored.thread("alice").turns()][4:] == ["What does the cat do?", "It sleeps."]

    async def test_async(self, stored: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.")
        await executor(model, agent_memory(stored)).ainvoke({"input": "What does the cat do?"})
        assert stored.thread("alice").turns()[-1].text == "It sleeps."

    def test_stream_and_a_stream_that_is_broken_off(self, stored: EpisodicMemory) -> None:
        model = scripted(calls(("look", {"at": "cat"})), "It sleeps.", calls(("look", {"at": "dog"})), "It barks.")
        agent = executor(model, agent_memory(stored))
        assert list(agent.stream({"input": "What does the cat do?"}))[-1]["output"] == "It sleeps."
        assert len(stored.thread("alice").turns()) == 6
        next(iter(agent.stream({"input": "And the dog?"})))
        assert len(stored.thread("alice").turns()) == 6, "a run that never answered leaves no half exchange"
        agent.invoke({"input": "And the dog?"})
        assert [t.text for t in stored.thread("alice").turns()][6:] == ["And the dog?", "It barks."]

    def test_tool_steps_that_the_chain_returns_are_kept(self, stored: EpisodicMemory) -> None:
        """Issue langchain 22357: tool steps dropped."""
        both = calls(("look", {"at": "cat"}), ("look", {"at": "dog"}))
        model = scripted(both, "Both sleep.", "As I said.")
        agent = executor(model, agent_memory(stored), return_intermediate_steps=True)
        agent.invoke({"input": "What do they do?"})
        assert [(t.role, t.text) for t in stored.thread("alice").turns()][4:] == [
            ("user", "What do they do?"),
            ("assistant", ""),
            ("tool", "the cat is asleep"),
            ("tool", "the dog is asleep"),
            ("assistant", "Both sleep."),
        ]
        agent.invoke({"input": "Really?"})
        given = model.prompts[-1][2:-1]
        assert isinstance(given[0], AIMessage)
        assert [c["id"] for c in given[0].tool_calls] == [m.tool_call_id for m in given[1:3]]  # type: ignore[attr-defined]

    def test_steps_of_an_agent_without_tool_calls(self, memory: EpisodicMemory) -> None:
        from langchain_core.agents import AgentAction

        steps = [(AgentAction("look", "cat", "I should look.\nAction: look"), "asleep")]
        TSIMMemory(memory=memory, scope="a").save_context(
            {"input": "cat?"}, {"output": "asleep", "intermediate_steps": steps}
        )
        turns = memory.thread("a").turns()
        assert [t.text for t in turns] == ["cat?", "I should look.\nAction: look", "asleep", "asleep"]


def test_lcel_loads_and_saves(stored: EpisodicMemory) -> None:
    from langchain_core.runnables import RunnablePassthrough

    model = scripted("In the basket.")
    ours = TSIMMemory(memory=stored, scope="alice", k=1)
    prompt = ChatPromptTemplate.from_messages([("system", "{history}"), ("human", "{input}")])
    chain = RunnablePassthrough.assign(history=lambda x: ours.load_memory_variables(x)["history"]) | prompt | model
    question = {"input": "Where does the cat sleep?"}
    answer: BaseMessage = chain.invoke(question)
    ours.save_context(question, {"output": answer})
    assert CAT in model.seen()
    assert isinstance(model.prompts[0][1], HumanMessage)
    assert stored.thread("alice").turns()[-1].text == "In the basket."
