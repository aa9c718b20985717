"""TSIMNodeParser: the four input forms, the nodes, and the parser as a component."""

from __future__ import annotations

import asyncio
import json
import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, MockEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import NodeParser, get_leaf_nodes, get_root_nodes
from llama_index.core.schema import MetadataMode, NodeRelationship
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from llama_index.node_parser.tsim import TSIMNodeParser
from tsim_core import TSIMConfig


def split_at_bars(text: str) -> list[tuple[str, str]]:
    parts = [part.strip() for part in text.split("|")]
    return [("user" if i % 2 == 0 else "assistant", part) for i, part in enumerate(parts)]


def number_id(i: int, doc: object) -> str:
    return f"node-{i}"


@pytest.fixture
def parser(embed_model, config):
    return TSIMNodeParser.from_defaults(embed_model=embed_model, config=config)


def episodes(nodes):
    return [n for n in nodes if n.parent_node is None]


def test_class():
    assert NodeParser.__name__ in [b.__name__ for b in TSIMNodeParser.__mro__]


# the four forms


def test_transcript_becomes_episodes_with_exact_spans(parser, transcript):
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    assert [n.text.splitlines()[0] for n in nodes] == [
        "User: My cat Whiskers is ill.",
        "User: Which GPU do I need?",
        "User: Let us plan the trip to Paris.",
    ]
    assert all(transcript[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert [(n.metadata["turn_start"], n.metadata["turn_end"]) for n in nodes] == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_json_messages_become_episodes_whose_spans_cover_the_messages(parser, transcript, chat, wrap, indent):
    messages = [{"role": m.role.value, "content": m.content} for m in chat]
    text = json.dumps({"title": "x", "messages": messages} if wrap else messages, indent=indent)
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    assert [n.text for n in nodes] == [
        block.replace("User:", "user:").replace("Assistant:", "assistant:").strip()
        for block in transcript.split("\n\n")
    ]
    for node in nodes:
        part = json.loads("[" + text[node.start_char_idx : node.end_char_idx] + "]")
        assert part == messages[node.metadata["turn_start"] : node.metadata["turn_end"]]


def test_json_lines_have_the_spans_of_their_lines(parser, chat):
    lines = [json.dumps({"role": m.role.value, "content": m.content}) for m in chat]
    text = "\n".join(lines) + "\n"
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    assert [text[n.start_char_idx : n.end_char_idx] for n in nodes] == [
        "\n".join(lines[:4]),
        "\n".join(lines[4:8]),
        "\n".join(lines[8:]),
    ]


def test_turn_documents_are_grouped_by_session_in_order_of_time(parser):
    def turn(session, minute, role, text):
        metadata = {"session_id": session, "role": role, "timestamp": f"2024-05-01T10:{minute:02}:00", "team": "blue"}
        return Document(text=text, metadata=metadata)

    documents = [
        turn("b", 3, "assistant", "An RTX 4090 GPU."),
        turn("a", 0, "user", "My cat is ill."),
        turn("b", 2, "user", "Which GPU?"),
        turn("a", 1, "assistant", "Take the cat to the vet."),
    ]
    nodes = parser.get_nodes_from_documents(documents)
    assert [(n.metadata["session_id"], n.text) for n in nodes] == [
        ("b", "user: Which GPU?\nassistant: An RTX 4090 GPU."),
        ("a", "user: My cat is ill.\nassistant: Take the cat to the vet."),
    ]
    assert nodes[1].metadata["start_time"] == "2024-05-01T10:00:00+00:00"
    assert nodes[1].metadata["end_time"] == "2024-05-01T10:01:00+00:00"
    assert nodes[1].metadata["team"] == "blue"
    assert "role" not in nodes[1].metadata
    assert nodes[1].ref_doc_id == documents[1].node_id


def test_messages_become_nodes_of_a_session(parser, chat):
    nodes = parser.get_nodes_from_messages(chat, session_id="support")
    assert [n.metadata["session_id"] for n in nodes] == ["support"] * 3
    assert nodes[1].text.startswith("user: Which GPU do I need?\nassistant: An RTX 4090 GPU.")
    written = "\n".join(f"{m.role.value}: {m.content}" for m in chat)
    assert all(written[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert [n.node_id for n in parser.get_nodes_from_messages(chat, session_id="support")] == [n.node_id for n in nodes]
    other = parser.get_nodes_from_messages(chat, session_id="sales")
    assert {n.node_id for n in other}.isdisjoint(n.node_id for n in nodes)


async def test_messages_async_twin_gives_the_same(parser, chat):
    assert await parser.aget_nodes_from_messages(chat, "s") == parser.get_nodes_from_messages(chat, "s")
    assert parser.get_nodes_from_messages([]) == []


def test_turn_pattern_says_where_turns_begin(embed_model, config):
    text = "<kim 2024-05-01T10:00:00> My cat is ill.\nReally ill.\n<bot> See the vet with the cat.\n<kim> Which GPU?"
    parser = TSIMNodeParser.from_defaults(
        embed_model, config, turn_pattern=r"^<(?P<role>\w+)(?: (?P<time>[^>]+))?>", include_turns=True
    )
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    turns = [n for n in nodes if n.parent_node]
    assert [t.text for t in turns] == [
        "<kim 2024-05-01T10:00:00> My cat is ill.\nReally ill.",
        "<bot> See the vet with the cat.",
        "<kim> Which GPU?",
    ]
    assert turns[0].metadata["start_time"] == "2024-05-01T10:00:00+00:00"
    assert "My cat is ill.\nReally ill." in embed_model.texts
    assert [t.metadata["speakers"] for t in turns] == ["kim", "assistant", "kim"]


def test_turn_splitter_gives_roles_and_texts(embed_model, config):
    text = "My cat is ill. | See the vet with the cat. | Which GPU? | An RTX 4090 GPU."
    parser = TSIMNodeParser.from_defaults(embed_model, config, turn_splitter=split_at_bars)
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    assert [n.text for n in nodes] == ["My cat is ill. | See the vet with the cat.", "Which GPU? | An RTX 4090 GPU."]
    assert [text[n.start_char_idx : n.end_char_idx] for n in nodes] == [n.text for n in nodes]


# the nodes


def test_previous_and_next_are_up_to_date_and_stay_within_a_document(parser, transcript):
    documents = [Document(text=transcript, id_="a"), Document(text=transcript, id_="b")]
    nodes = parser.get_nodes_from_documents(documents)
    for source in ("a", "b"):
        chain = [n for n in nodes if n.ref_doc_id == source]
        assert len(chain) == 3
        assert chain[0].prev_node is None
        assert chain[-1].next_node is None
        for node, following in pairwise(chain):
            assert node.next_node.node_id == following.node_id
            assert node.next_node.hash == following.hash
            assert node.next_node.metadata == following.metadata
            assert following.prev_node.hash == node.hash


def test_prev_next_can_be_left_out(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_prev_next_rel=False)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    assert all(n.prev_node is None and n.next_node is None for n in nodes)


def test_turn_nodes_are_children_with_their_own_spans_and_chain(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    roots, leaves = get_root_nodes(nodes), get_leaf_nodes(nodes)
    assert (len(roots), len(leaves)) == (3, 10)
    by_id = {n.node_id: n for n in nodes}
    for root in roots:
        children = [by_id[c.node_id] for c in root.child_nodes]
        assert all(c.parent_node.node_id == root.node_id and c.parent_node.hash == root.hash for c in children)
        assert root.text == "\n".join(c.text for c in children)
    assert all(transcript[n.start_char_idx : n.end_char_idx] == n.text for n in leaves)
    assert [n.next_node.node_id for n in leaves[:-1]] == [n.node_id for n in leaves[1:]]
    assert roots[0].next_node.node_id == roots[1].node_id


def test_metadata_is_flat_and_hidden_from_the_models(parser, transcript):
    nodes = parser.get_nodes_from_documents([Document(text=transcript, metadata={"topic": "mixed"})])
    for node in nodes:
        node_to_metadata_dict(node, flat_metadata=True)  # raises when it is nested
        assert node.get_content(MetadataMode.EMBED) == f"topic: mixed\n\n{node.text}"
        assert node.get_content(MetadataMode.LLM) == f"topic: mixed\n\n{node.text}"


def test_metadata_and_templates_of_the_document_are_taken_over(parser, transcript):
    document = Document(
        text=transcript,
        metadata={"topic": "mixed", "path": "x.txt"},
        excluded_embed_metadata_keys=["path"],
        excluded_llm_metadata_keys=["topic"],
        text_template="{metadata_str}|{content}",
        embedding=[1.0, 2.0],
    )
    node = parser.get_nodes_from_documents([document])[0]
    assert node.get_content(MetadataMode.EMBED) == f"topic: mixed|{node.text}"
    assert node.get_content(MetadataMode.LLM) == f"path: x.txt|{node.text}"
    assert node.embedding is None


def test_include_metadata_false_leaves_the_documents_out(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_metadata=False)
    node = parser.get_nodes_from_documents([Document(text=transcript, metadata={"topic": "mixed"})])[0]
    assert "topic" not in node.metadata


def test_ids_are_the_same_each_time_and_unique(parser, transcript):
    def ids():
        documents = [Document(text=transcript), Document(text=transcript), Document(text="User: hi\nBot: hello")]
        return [n.node_id for n in parser.get_nodes_from_documents(documents)]

    first = ids()
    assert ids() == first
    assert len(set(first)) == len(first)


def test_ids_of_finished_episodes_stay_when_a_named_document_grows(parser, transcript):
    before = parser.get_nodes_from_documents([Document(text=transcript, id_="log.txt")])
    longer = transcript + "User: One more about the cat and the vet?\n"
    after = parser.get_nodes_from_documents([Document(text=longer, id_="log.txt")])
    assert [n.node_id for n in after][:3] == [n.node_id for n in before]
    assert len(after) == 4


def test_own_id_function(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, id_func=number_id)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    assert [n.node_id for n in nodes] == ["node-0", "node-1", "node-2"]


def test_linked_runs_make_one_node_on_request(embed_model, config):
    text = (
        "User: My cat Whiskers is ill, the vet says no tuna.\nBot: Poor cat.\n"
        "User: Which GPU and CUDA driver?\nBot: RTX 4090 GPU.\n"
        "User: The cat, the vet, the tuna and Whiskers again.\nBot: The cat is well, says the vet.\n"
    )
    linked = config.replace(linking=TSIMConfig.default().linking)
    apart = TSIMNodeParser.from_defaults(embed_model, linked).get_nodes_from_documents([Document(text=text)])
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in apart)
    nodes = TSIMNodeParser.from_defaults(embed_model, linked, link=True).get_nodes_from_documents([Document(text=text)])
    runs = [n.text.split("\n...\n") for n in nodes]
    assert sorted(run for parts in runs for run in parts) == sorted(n.text for n in apart)
    for node in nodes:
        turns = json.loads(node.metadata["turns"])
        assert [node.text[t["start"] : t["end"]] in text for t in turns] == [True] * len(turns)


def test_node_of_a_node_keeps_the_original_source(parser, transcript):
    document = Document(text=transcript, id_="origin")
    whole = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4)).get_nodes_from_documents([document])
    nodes = parser.get_nodes_from_documents(whole)
    assert {n.ref_doc_id for n in nodes} == {"origin"}


# the parser as a component


@pytest.mark.parametrize("preset", ["default", "paper", "longmemeval"])
def test_every_preset_parses(embed_model, transcript, preset):
    parser = TSIMNodeParser.from_defaults(embed_model, preset)
    nodes = parser.get_nodes_from_documents([Document(text=transcript)])
    assert "\n\n".join(n.text for n in nodes).replace("\n", "") == transcript.replace("\n", "")


def test_to_dict_round_trip(embed_model, config):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True, turn_pattern="^(?P<role>.):")
    data = json.loads(json.dumps(parser.to_dict()))
    again = TSIMNodeParser.from_dict(data)
    assert json.loads(json.dumps(again.to_dict())) == data
    assert type(again.embed_model) is type(embed_model)
    assert again.config == parser.config
    assert TSIMNodeParser.from_json(parser.to_json()).to_dict() == again.to_dict()


def test_to_dict_holds_no_secret(embed_model):
    assert "very-secret" not in TSIMNodeParser.from_defaults(embed_model).to_json()


def test_functions_have_to_be_passed_again():
    data = TSIMNodeParser.from_defaults(turn_splitter=split_at_bars).to_dict()
    assert data["turn_splitter"].endswith("split_at_bars")
    with pytest.raises(ValueError, match="pass it again"):
        TSIMNodeParser.from_dict(data)
    assert TSIMNodeParser.from_dict(data, turn_splitter=split_at_bars).turn_splitter is split_at_bars


def test_unknown_embedding_class_is_named():
    data = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4)).to_dict()
    data["embed_model"]["qualified_name"] = "nowhere.Model"
    with pytest.raises(ValueError, match=r"nowhere\.Model.*not loaded"):
        TSIMNodeParser.from_dict(data)


def test_pickle_round_trip(config):
    parser = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4), config, turn_splitter=split_at_bars)
    again = pickle.loads(pickle.dumps(parser))  # noqa: S301
    assert again.to_dict() == parser.to_dict()


def test_pickling_a_lambda_is_an_error():
    parser = TSIMNodeParser.from_defaults(turn_splitter=lambda text: [("user", text)])
    with pytest.raises(TypeError, match=r"turn_splitter.*cannot be pickled"):
        pickle.dumps(parser)


def test_wrong_settings_are_errors():
    with pytest.raises(ValueError, match="unknown format"):
        TSIMNodeParser(format="yaml")
    with pytest.raises(ValueError, match="unknown preset"):
        TSIMNodeParser(config="fast")
    with pytest.raises(ValueError, match="expected a BaseEmbedding"):
        TSIMNodeParser(embed_model=3)


async def test_async_awaits_the_model_and_gives_the_same(parser, embed_model, transcript):
    documents = [Document(text=transcript, id_="a")]
    expected = parser.get_nodes_from_documents(documents)
    assert embed_model.async_calls == 0
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    nodes = await parser.aget_nodes_from_documents(documents)
    ticking.cancel()
    assert nodes == expected
    assert embed_model.async_calls == 10
    assert ticks > 2


def test_equal_texts_are_embedded_once(parser, embed_model, transcript):
    parser.get_nodes_from_documents([Document(text=transcript), Document(text=transcript)])
    assert len(embed_model.texts) == len(set(embed_model.texts)) == 10


LINES = st.lists(
    st.tuples(
        st.sampled_from(["User", "Assistant"]),
        st.sampled_from(["ok", "yes", "my cat is ill", "猫は元気です", "which GPU 🙂", "שלום עולם", "two\nlines"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=30)
@given(LINES)
def test_spans_tile_the_transcript(lines):
    text = "\n".join(f"{who}: {said}" for who, said in lines)
    parser = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4), "paper", include_turns=True)
    nodes = parser.get_nodes_from_documents([Document(text=text)])
    assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    turns = get_leaf_nodes(nodes)
    assert [t.text for t in turns] == [f"{who}: {said}" for who, said in lines]
    assert "\n".join(t.text for t in turns) == text
    assert "\n".join(n.text for n in episodes(nodes)) == text


def test_relations_are_plain_where_they_must_be(embed_model, config, transcript):
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)
    for node in parser.get_nodes_from_documents([Document(text=transcript)]):
        children = node.relationships.get(NodeRelationship.CHILD)
        assert children is None or isinstance(children, list)


def test_message_without_text_has_no_node_of_its_own(embed_model, config):
    chat = [ChatMessage(role="user", content="My cat is ill."), ChatMessage(role="assistant", content=None)]
    parser = TSIMNodeParser.from_defaults(embed_model, config, include_turns=True)
    nodes = parser.get_nodes_from_messages(chat)
    assert [n.text for n in nodes] == ["user: My cat is ill."] * 2
    assert nodes[0].metadata["turn_end"] == 2
