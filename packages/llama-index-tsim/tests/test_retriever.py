"""TSIMRetriever over a store and over nodes."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from llama_index.core import Document, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser import SentenceSplitter, get_leaf_nodes, get_root_nodes
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever
from llama_index.utils.tsim import LlamaIndexEmbedder, message_to_turn
from tsim_core import EmbedderError, EpisodicMemory, InputError, StoreFormatError, StoreNotFoundError, Turn


@pytest.fixture
def memory(embed_model, config, chat):
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(embed_model), config=config)
    memory.thread("alice", "main").extend(map(message_to_turn, chat))
    memory.thread("bob", "main").add("user", "My GPU is secret.")
    return memory


@pytest.fixture
def nodes(embed_model, config, transcript):
    return TSIMNodeParser.from_defaults(embed_model, config).get_nodes_from_documents([Document(text=transcript)])


def equal(key, value, operator=FilterOperator.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def test_class():
    assert BaseRetriever.__name__ in [b.__name__ for b in TSIMRetriever.__mro__]


# over a store


def test_whole_episodes_come_back_best_first(memory):
    found = TSIMRetriever(memory, ["alice"]).retrieve("Which CUDA driver?")
    assert found[0].node.text == (
        "user: Which GPU do I need?\nassistant: An RTX 4090 GPU.\n"
        "user: And which CUDA driver for the GPU?\nassistant: CUDA driver 550 for that GPU."
    )
    assert type(found[0].node) is TextNode
    assert all(type(n.score) is float for n in found)
    assert [n.score for n in found] == sorted((n.score for n in found), reverse=True)
    assert found[0].node.metadata["session_id"] == "main"
    assert json.loads(found[0].node.metadata["thread"]) == ["alice", "main"]
    assert found[0].node.node_id == memory.thread("alice", "main").recall("CUDA driver", k=1).episodes[0].id


def test_prefix_keeps_users_apart(memory):
    assert not any("secret" in n.text for n in TSIMRetriever(memory, ["alice"], 50).retrieve("secret GPU"))
    assert [n.text for n in TSIMRetriever(memory, ["bob"]).retrieve("Which GPU?")] == ["user: My GPU is secret."]


def test_top_k(memory):
    assert len(TSIMRetriever(memory, ["alice"], similarity_top_k=1).retrieve("cat GPU trip")) == 1
    assert len(TSIMRetriever(memory, ["alice"], similarity_top_k=9).retrieve("cat GPU trip")) == 3


def test_a_budget_leaves_turns_out_and_says_so(memory):
    whole = TSIMRetriever(memory, ["alice"], 1).retrieve("Which CUDA driver?")[0].node
    part = TSIMRetriever(memory, ["alice"], 1, max_tokens=25).retrieve("Which CUDA driver?")[0].node
    assert "CUDA driver" in part.text
    assert len(part.text.splitlines()) < len(whole.text.splitlines()) + 1
    assert "left out" in part.text


def test_results_are_fresh_and_the_next_call_sees_what_was_added_and_forgotten(memory):
    retriever = TSIMRetriever(memory, ["alice"], similarity_top_k=1)
    first = retriever.retrieve("the louvre")[0]
    first.score = -1.0
    first.node.text = "changed"
    again = retriever.retrieve("the louvre")[0]
    assert again.node is not first.node
    assert "Paris" in again.node.text
    assert again.score > 0
    memory.thread("alice", "late").add("user", "The louvre is closed on Tuesdays.")
    assert "closed" in retriever.retrieve("the louvre on Tuesdays")[0].text
    memory.thread("alice", "late").clear()
    assert "closed" not in retriever.retrieve("the louvre on Tuesdays")[0].text


def test_a_query_goes_through_the_query_embedding_once_stripped(memory, embed_model):
    texts = list(embed_model.texts)
    TSIMRetriever(memory, ["alice"]).retrieve("Which GPU?\n\n")
    assert embed_model.queries == ["Which GPU?"]
    assert embed_model.texts == texts


def test_the_bundles_embedding_is_honoured(memory, embed_model):
    retriever = TSIMRetriever(memory, ["alice"], similarity_top_k=1)
    vector = embed_model.get_text_embedding("cat vet tuna")
    found = retriever.retrieve(QueryBundle("zzz", embedding=[5 * x for x in vector]))
    assert "cat" in found[0].text
    assert embed_model.queries == []
    found = retriever.retrieve(QueryBundle("zzz", custom_embedding_strs=["paris", "louvre"]))
    assert "Paris" in found[0].text
    assert embed_model.queries == ["paris", "louvre"]


def test_embedding_strings_on_a_model_of_the_core():
    memory = EpisodicMemory()
    memory.thread("a", "1").add("user", "Our kitten must see the veterinarian.")
    memory.thread("a", "2").add("user", "The graphics card needs a new driver.")
    retriever = TSIMRetriever(memory, ["a"], similarity_top_k=1)
    found = retriever.retrieve(QueryBundle("zzz", custom_embedding_strs=["pet animal doctor"]))
    assert "kitten" in found[0].text
    assert "graphics" in retriever.retrieve("video adapter software")[0].text


def test_an_embedding_of_another_dimension_is_named(memory):
    with pytest.raises(EmbedderError, match=r"3 dimensions.*64"):
        TSIMRetriever(memory, ["alice"]).retrieve(QueryBundle("x", embedding=[1.0, 0.0, 0.0]))
    with pytest.raises(EmbedderError, match="empty, zero, NaN or infinite"):
        TSIMRetriever(memory, ["alice"]).retrieve(QueryBundle("x", embedding=[0.0] * 64))


async def test_async_awaits_the_model_and_gives_the_same(memory, embed_model):
    retriever = TSIMRetriever(memory, ["alice"])
    assert await retriever.aretrieve("Which GPU?") == retriever.retrieve("Which GPU?")
    assert embed_model.async_calls == 1
    results = await asyncio.gather(*(retriever.aretrieve(f"GPU {i}") for i in range(20)))
    assert all("GPU" in found[0].text for found in results)


def test_by_location(tmp_path, embed_model):
    path = tmp_path / "m.db"
    with pytest.raises(StoreNotFoundError):
        TSIMRetriever(path, ["alice"], embed_model=embed_model)
    assert not path.exists()
    with EpisodicMemory(path, embedder=LlamaIndexEmbedder(embed_model)) as memory:
        memory.thread("alice").add("user", "My cat is ill.")
    retriever = TSIMRetriever.from_defaults(path, ["alice"], embed_model=embed_model)
    assert [n.text for n in retriever.retrieve("cat")] == ["user: My cat is ill."]


# filters


@pytest.fixture
def tagged(embed_model, config):
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(embed_model), config=config)
    for year, team, text in [(2021, "red", "cat food"), (2022, "blue", "cat vet"), (2023, "red", "cat tuna")]:
        time = datetime(year, 5, 1, tzinfo=UTC)
        memory.thread("a", str(year)).add(Turn("user", text, None, time, {"year": year, "team": team}))
        memory.thread("a", str(year)).add("assistant", f"The cat in {year}.", metadata={"year": year, "team": "bot"})
    return memory


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([equal("team", "red")], {"cat food", "cat tuna"}),
        ([equal("team", "red"), equal("year", 2023)], {"cat tuna"}),
        ([equal("team", "green")], set()),
        ([equal("year", 2022, FilterOperator.GT), equal("team", "bot", FilterOperator.NE)], {"cat tuna"}),
        ([equal("year", [2021, 2022], FilterOperator.IN), equal("role", "user")], {"cat food", "cat vet"}),
        ([equal("timestamp", "2022", FilterOperator.GTE)], {"cat vet", "cat tuna"}),
        ([MetadataFilters(filters=[equal("team", "red")]), equal("year", 2021)], {"cat food"}),
    ],
)
@pytest.mark.parametrize("top_k", [2, 10])
def test_filters_are_about_turns(tagged, filters, expected, top_k):
    retriever = TSIMRetriever(tagged, ["a"], top_k, filters=MetadataFilters(filters=filters))
    found = retriever.retrieve("cat")
    lines = {line.removeprefix("user: ") for n in found for line in n.text.splitlines() if not line.startswith("[")}
    assert lines == expected if top_k >= len(expected) else lines < expected


@pytest.mark.parametrize(
    ("condition", "expected"), [(FilterCondition.OR, {"2021", "2023"}), (FilterCondition.NOT, {"2022"})]
)
def test_conditions(tagged, condition, expected):
    either = MetadataFilters(filters=[equal("year", 2021), equal("year", 2023)], condition=condition)
    found = TSIMRetriever(tagged, ["a"], filters=either).retrieve("cat")
    assert {n.metadata["session_id"] for n in found} == expected


def test_filters_on_nodes(embed_model, config, transcript):
    documents = [Document(text=transcript, metadata={"user": name}, id_=name) for name in ("ann", "bob")]
    nodes = TSIMNodeParser.from_defaults(embed_model, config).get_nodes_from_documents(documents)
    for operator, expected in [(FilterOperator.EQ, "ann"), (FilterOperator.NE, "bob")]:
        only = MetadataFilters(filters=[equal("user", "ann", operator)])
        found = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=2, filters=only).retrieve("GPU")
        assert [n.metadata["user"] for n in found] == [expected, expected]
        assert "GPU" in found[0].text


def test_a_budget_with_other_filters_than_equalities_is_refused(tagged):
    later = MetadataFilters(filters=[equal("year", 2021, FilterOperator.GT)])
    with pytest.raises(InputError, match="equalities"):
        TSIMRetriever(tagged, ["a"], max_tokens=100, filters=later)


# over nodes


def test_nodes_come_back_as_they_were_given(nodes, embed_model, config):
    retriever = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=2)
    found = retriever.retrieve("Does Whiskers get tuna?")
    assert found[0].node == nodes[0]
    assert found[0].node is not nodes[0]
    found[0].node.metadata.clear()
    assert retriever.retrieve("Does Whiskers get tuna?")[0].node == nodes[0]


def test_each_episode_node_is_an_episode_of_the_core(nodes, embed_model, config):
    retriever = TSIMRetriever.from_nodes(nodes, embed_model, config)
    episodes = [e for name in retriever.memory.threads() for e in retriever.memory.thread(*name).episodes()]
    assert [len(e.turns) for e in episodes] == [4, 4, 2]


def test_nodes_of_any_parser_are_episodes_of_their_own(embed_model):
    document = Document(text="The cat eats tuna. The GPU is a 4090. The train goes to Paris.")
    nodes = SentenceSplitter(chunk_size=12, chunk_overlap=0).get_nodes_from_documents([document])
    assert len(nodes) >= 3
    found = TSIMRetriever.from_nodes(nodes, embed_model, similarity_top_k=1).retrieve("Which GPU?")
    assert [n.node for n in found] == [n for n in nodes if "GPU" in n.text][:1]


def test_turn_nodes_can_be_retrieved_but_not_together_with_their_episodes(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    with pytest.raises(InputError, match="get_root_nodes"):
        TSIMRetriever.from_nodes(nodes, embed_model)
    assert len(TSIMRetriever.from_nodes(get_root_nodes(nodes), embed_model, config).retrieve("GPU")) == 3
    leaves = TSIMRetriever.from_nodes(get_leaf_nodes(nodes), embed_model, config, similarity_top_k=1)
    assert "Whiskers" in leaves.retrieve("Whiskers is ill")[0].text


def test_from_defaults_takes_an_index_or_a_docstore(nodes, embed_model, config):
    index = VectorStoreIndex(nodes, embed_model=embed_model)
    docstore = SimpleDocumentStore()
    docstore.add_documents(list(reversed(nodes)))
    for source in ({"index": index}, {"docstore": docstore}, {"nodes": nodes}):
        retriever = TSIMRetriever.from_defaults(**source, embed_model=embed_model, config=config, similarity_top_k=1)
        assert [n.node.node_id for n in retriever.retrieve("CUDA driver")] == [nodes[1].node_id]


def test_no_nodes_and_blank_nodes(embed_model):
    assert TSIMRetriever.from_nodes([], embed_model).retrieve("cat") == []
    assert TSIMRetriever.from_nodes([TextNode(text=" ")], embed_model).retrieve("cat") == []


def test_files_read_by_llama_index(tmp_path, transcript, embed_model, config):
    (tmp_path / "chat.txt").write_text(transcript, encoding="utf-8")
    documents = SimpleDirectoryReader(str(tmp_path)).load_data()
    nodes = TSIMNodeParser.from_defaults(embed_model, config).get_nodes_from_documents(documents)
    retriever = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=1)
    assert "CUDA" in retriever.retrieve("CUDA")[0].text


# saving


def test_persist_and_load(tmp_path, nodes, embed_model, config):
    only = MetadataFilters(filters=[equal("speakers", "user, assistant")])
    retriever = TSIMRetriever.from_nodes(nodes, embed_model, config, similarity_top_k=2, filters=only)
    retriever.persist(tmp_path / "saved")
    calls = len(embed_model.texts)
    again = TSIMRetriever.from_persist_dir(tmp_path / "saved", embed_model=embed_model)
    assert again.retrieve("Does Whiskers get tuna?") == retriever.retrieve("Does Whiskers get tuna?")
    assert len(embed_model.texts) <= calls + 1  # nothing but the question of its dimension
    assert (again.similarity_top_k, again.filters) == (2, only)
    retriever.persist(tmp_path / "saved")
    assert len(TSIMRetriever.from_persist_dir(tmp_path / "saved", similarity_top_k=1).retrieve("GPU")) == 1


def test_persist_and_load_a_store(tmp_path, memory):
    retriever = TSIMRetriever(memory, ["alice"])
    retriever.persist(tmp_path)
    again = TSIMRetriever.from_persist_dir(tmp_path)
    assert again.retrieve("Which GPU?") == retriever.retrieve("Which GPU?")
    assert again.memory.threads() == [("alice", "main")]


def test_loading_what_is_not_there_or_broken(tmp_path, memory):
    with pytest.raises(StoreNotFoundError, match="no saved retriever"):
        TSIMRetriever.from_persist_dir(tmp_path)
    TSIMRetriever(memory, ["alice"]).persist(tmp_path)
    (tmp_path / "retriever.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StoreFormatError, match="no retriever"):
        TSIMRetriever.from_persist_dir(tmp_path)
