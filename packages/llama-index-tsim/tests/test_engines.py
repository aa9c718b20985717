"""TSIMRetriever and TSIMMemory in the real engines, with models that record what they were given."""

from __future__ import annotations

import pytest
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever, RouterRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool
from llama_index.memory.tsim import TSIMMemory
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever

# All tests are async: called without a running loop, LlamaIndex makes one and leaves it open.
# LlamaIndex looks at every attribute of an agent, deprecated ones included
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


@pytest.fixture
def nodes(embed_model, config, transcript):
    document = Document(text=transcript, id_="chat.txt")
    return TSIMNodeParser.from_defaults(embed_model, config).get_nodes_from_documents([document])


@pytest.fixture
def retriever(nodes, embed_model, config):
    return TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=1)


def check_gpu_and_nothing_else(prompt: str) -> None:
    assert "CUDA driver 550" in prompt
    assert "Whiskers" not in prompt
    assert "Paris" not in prompt


def test_class():
    assert BaseRetriever.__name__ in [b.__name__ for b in TSIMRetriever.__mro__]


async def test_retriever_query_engine(retriever, make_llm):
    llm = make_llm(["Driver 550."])
    response = RetrieverQueryEngine.from_args(retriever, llm=llm).query("Which CUDA driver?")
    assert str(response) == "Driver 550."
    assert [n.node.ref_doc_id for n in response.source_nodes] == ["chat.txt"]
    check_gpu_and_nothing_else(llm.last)


async def test_retriever_query_engine_async(retriever, make_llm, embed_model):
    llm = make_llm(["Driver 550."])
    response = await RetrieverQueryEngine.from_args(retriever, llm=llm).aquery("Which CUDA driver?")
    assert str(response) == "Driver 550."
    check_gpu_and_nothing_else(llm.last)
    assert embed_model.async_calls == 1


async def test_context_chat_engine_with_our_memory(retriever, make_llm, embed_model, config):
    llm = make_llm(["Driver 550.", "You asked for the driver."])
    memory = TSIMMemory.from_defaults(embed_model=embed_model, config=config, session_id="s")
    engine = ContextChatEngine.from_defaults(retriever=retriever, memory=memory, llm=llm)
    assert str(engine.chat("Which CUDA driver?")) == "Driver 550."
    check_gpu_and_nothing_else(llm.last)
    engine.chat("What did I ask?")
    assert [str(m) for m in llm.given[-1]][-3:] == [
        "user: Which CUDA driver?",
        "assistant: Driver 550.",
        "user: What did I ask?",
    ]
    stored = [turn.text for turn in memory.thread.turns()]
    assert stored == ["Which CUDA driver?", "Driver 550.", "What did I ask?", "You asked for the driver."]
    assert engine.chat_history == memory.get_all()
    engine.reset()
    assert memory.get_all() == []


async def test_condense_plus_context_chat_engine(retriever, make_llm, embed_model, config):
    llm = make_llm(["It is 550.", "Which CUDA driver for the GPU?", "Still 550."])
    memory = TSIMMemory.from_defaults(embed_model=embed_model, config=config, session_id="s")
    engine = CondensePlusContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)
    await engine.achat("Which CUDA driver?")
    check_gpu_and_nothing_else(llm.last)
    await engine.achat("Really?")
    assert "It is 550." in str(llm.given[1])  # the history is there to condense the question
    check_gpu_and_nothing_else(llm.last)
    assert [m.content for m in memory.get_all()] == ["Which CUDA driver?", "It is 550.", "Really?", "Still 550."]


async def test_simple_chat_engine_streams_into_our_memory(make_llm, embed_model, config):
    llm = make_llm(["Hello Kim."])
    memory = TSIMMemory.from_defaults(embed_model=embed_model, config=config, session_id="s")
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
    assert "".join(engine.stream_chat("I am Kim.").response_gen) == "Hello Kim."
    assert [m.content for m in memory.get_all()] == ["I am Kim.", "Hello Kim."]


async def test_a_chat_engine_with_our_memory_brings_back_an_earlier_episode(make_llm, embed_model, config, chat):
    llm = make_llm()
    memory = TSIMMemory.from_defaults(
        embed_model=embed_model, config=config, session_id="s", token_limit=30, similarity_top_k=1, chat_history=chat
    )
    SimpleChatEngine.from_defaults(llm=llm, memory=memory).chat("Which CUDA driver did we say?")
    assert "CUDA driver 550" in llm.last
    assert "Whiskers" not in llm.last


@pytest.mark.parametrize("mode", list(FUSION_MODES))
@pytest.mark.parametrize("use_async", [False, True])
async def test_query_fusion_retriever(retriever, nodes, embed_model, config, make_llm, mode, use_async):
    """It changes scores in place and tells nodes apart by their hash."""
    llm = make_llm()
    other = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=3)
    fusion = QueryFusionRetriever(
        [retriever, other], llm=llm, similarity_top_k=3, num_queries=1, mode=mode, use_async=False
    )
    query = "Which CUDA driver?"
    found = [await fusion.aretrieve(query) if use_async else fusion.retrieve(query) for _ in range(2)]
    assert [[n.node.node_id for n in f] for f in found] == [[n.node.node_id for n in found[0]]] * 2
    assert found[0] == found[1]
    assert found[0][0].node.node_id == nodes[1].node_id
    assert len({n.node.node_id for n in found[0]}) == len(found[0])


async def test_query_fusion_over_a_store(embed_model, config, chat, make_llm):
    memory = TSIMMemory.from_defaults(embed_model=embed_model, config=config, chat_history=chat)
    retrievers = [TSIMRetriever(memory.memory, ["llama-index"]) for _ in range(2)]
    fusion = QueryFusionRetriever(
        retrievers,
        llm=make_llm(),
        similarity_top_k=3,
        num_queries=1,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        use_async=False,
    )
    found = fusion.retrieve("Which CUDA driver?")
    assert "CUDA driver 550" in found[0].text
    assert len(found) == 3


async def test_router_retriever(retriever, embed_model, make_llm):
    other = TSIMRetriever.from_nodes([], embed_model)
    tools = [
        RetrieverTool.from_defaults(other, name="empty", description="Nothing."),
        RetrieverTool.from_defaults(retriever, name="chats", description="What was said."),
    ]
    llm = make_llm()
    selector = LLMSingleSelector.from_defaults(llm=llm)
    answer = '[{"choice": 2, "reason": "chats"}]'
    selector._llm.response_generator = lambda messages, **kwargs: ChatMessage(role="assistant", content=answer)
    object.__setattr__(llm, "predict", lambda *args, **kwargs: answer)
    found = RouterRetriever(selector=selector, retriever_tools=tools, llm=llm).retrieve("Which CUDA driver?")
    assert [n.node.ref_doc_id for n in found] == ["chat.txt"]


async def test_retriever_tool_strips_the_newlines_it_is_given(retriever, embed_model):
    output = RetrieverTool.from_defaults(retriever).call("Which CUDA driver?")
    check_gpu_and_nothing_else(output.content)
    assert embed_model.queries == ["Which CUDA driver?"]


async def test_retriever_tool_of_an_agent(retriever, make_llm):
    call = ToolCallBlock(tool_call_id="1", tool_name="chats", tool_kwargs={"input": "Which CUDA driver?"})
    llm = make_llm([ChatMessage(role="assistant", blocks=[call]), "Driver 550."])
    agent = FunctionAgent(tools=[RetrieverTool.from_defaults(retriever, name="chats")], llm=llm)
    assert str(await agent.run("Which CUDA driver did we take?")) == "Driver 550."
    check_gpu_and_nothing_else(llm.last)


async def test_retriever_evaluator(retriever, nodes):
    metrics = ["hit_rate", "mrr", "recall", "precision", "ndcg", "ap"]
    evaluator = RetrieverEvaluator.from_metric_names(metrics, retriever=retriever)
    right = await evaluator.aevaluate("Which CUDA driver?", expected_ids=[nodes[1].node_id])
    assert right.metric_vals_dict == dict.fromkeys(metrics, 1.0)
    wrong = await evaluator.aevaluate("Which CUDA driver?", expected_ids=[nodes[0].node_id])
    assert wrong.metric_vals_dict == dict.fromkeys(metrics, 0.0)


async def test_retriever_evaluator_finds_the_ids_again_after_a_reload(transcript, embed_model, config):
    def load():
        parser = TSIMNodeParser.from_defaults(embed_model, config)
        nodes = parser.get_nodes_from_documents([Document(text=transcript)])
        return nodes, TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=1)

    expected, _ = load()
    _, retriever = load()
    result = RetrieverEvaluator.from_metric_names(["hit_rate"], retriever=retriever).evaluate(
        "Which CUDA driver?", expected_ids=[expected[1].node_id]
    )
    assert result.metric_vals_dict == {"hit_rate": 1.0}


async def test_auto_merging_retriever_merges_turns_to_their_episode(transcript, embed_model, config):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    leaves = TSIMRetriever.from_nodes(get_leaf_nodes(nodes), embed_model, config, similarity_top_k=4)
    merging = AutoMergingRetriever(leaves, StorageContext.from_defaults(docstore=docstore), simple_ratio_thresh=0.4)
    found = merging.retrieve("Which CUDA driver for the GPU 4090?")
    assert nodes[1].node_id in [n.node.node_id for n in found]
