"""Bad input: a clear error or a defined empty result, and one bad document never costs the batch."""

from __future__ import annotations

import json
import logging
import time

import pytest
from llama_index.core import Document, MockEmbedding
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.memory.tsim import TSIMMemory, TSIMMemoryBlock
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever
from tsim_core import EmbedderError, EpisodicMemory, InputError, StoreMismatchError

GOOD = "User: My cat is ill.\nAssistant: See the vet with the cat."
SURROGATE = "User: a broken emoji \ud83d here"

BAD = {
    "prose without speakers": ("It was a dark and stormy night.", "line 1: expected 'Speaker: text'"),
    "text before the first speaker": ("Log of Monday\nUser: hi", "line 1: expected 'Speaker: text'"),
    "broken JSON": ('[{"role": "user", "content": "hi"},\n {"role": ]', "line 2"),
    "JSON that is no message list": ('{"a": 1}', "holds no list of messages"),
    "JSON message without a role": ('[{"role": "user", "content": "a"}, {"content": "b"}]', "item 2"),
    "JSON message with a number as text": ('[{"role": "user", "content": 5}]', "item 1"),
    "broken JSON line": ('{"role": "user", "content": "a"}\n{"role": ', "line 2"),
    "lone surrogate": (SURROGATE, "turn 1 holds a lone surrogate at character 15"),
    "lone surrogate in JSON": (
        r'[{"role": "user", "content": "x\ud83d"}]',
        "turn 1 holds a lone surrogate at character 1",
    ),
    "time that is none": ("[yesterday] User: hi", "yesterday"),
}


class RaggedEmbedding(MockEmbedding):
    """Returns vectors of different dimensions."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [0.5] * (3 + len(text) % 2)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)


class BrokenEmbedding(MockEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        raise ConnectionError("no route to the model")

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)


class NaNEmbedding(MockEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return [float("nan")] * self.embed_dim


def test_class():
    assert NodeParser.__name__ in [b.__name__ for b in TSIMNodeParser.__mro__]
    assert BaseEmbedding.__name__ in [b.__name__ for b in RaggedEmbedding.__mro__]


@pytest.mark.parametrize(("text", "position"), BAD.values(), ids=BAD)
def test_a_bad_document_is_logged_with_its_position_and_costs_no_other(embed_model, caplog, text, position):
    parser = TSIMNodeParser.from_defaults(embed_model)
    with caplog.at_level(logging.ERROR):
        nodes = parser.get_nodes_from_documents([Document(text=text, id_="bad"), Document(text=GOOD, id_="good")])
    assert [n.ref_doc_id for n in nodes] == ["good"]
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert "'bad'" in caplog.text
    assert position in caplog.text


@pytest.mark.parametrize(("text", "position"), BAD.values(), ids=BAD)
def test_on_error_raise_names_the_position(embed_model, text, position):
    parser = TSIMNodeParser.from_defaults(embed_model, on_error="raise")
    with pytest.raises(InputError) as raised:
        parser.get_nodes_from_documents([Document(text=text, id_="bad")])
    assert position in str(raised.value)
    assert "'bad'" in str(raised.value)


def test_turn_pattern_that_does_not_match_names_the_line(embed_model, caplog):
    parser = TSIMNodeParser.from_defaults(embed_model, turn_pattern=r"^<(?P<role>\w+)>")
    assert parser.get_nodes_from_documents([Document(text="\n\nKim: hello\n<kim> hi")]) == []
    assert "line 3: no turn begins here" in caplog.text


def test_turn_splitter_that_makes_text_up_names_the_turn(embed_model, caplog):
    parser = TSIMNodeParser.from_defaults(embed_model, turn_splitter=lambda text: [("user", "hi"), ("user", "made up")])
    assert parser.get_nodes_from_documents([Document(text="hi there")]) == []
    assert "turn 2 of turn_splitter, 'made up'" in caplog.text
    parser = TSIMNodeParser.from_defaults(embed_model, turn_splitter=lambda text: ["hi"], on_error="raise")
    with pytest.raises(InputError, match=r"expected a \(role, text\) pair"):
        parser.get_nodes_from_documents([Document(text="hi there")])


def test_a_turn_document_with_a_bad_time_costs_only_itself(embed_model, caplog):
    documents = [
        Document(text="My cat is ill.", id_="a", metadata={"role": "user", "session_id": "s"}),
        Document(text="And the vet?", id_="b", metadata={"role": "user", "session_id": "s", "timestamp": "soon"}),
    ]
    nodes = TSIMNodeParser.from_defaults(embed_model).get_nodes_from_documents(documents)
    assert [n.text for n in nodes] == ["user: My cat is ill."]
    assert "document 'b': the time 'soon'" in caplog.text


@pytest.mark.parametrize("text", ["", " \n\t\n", "[]", "User:\nAssistant: \n"])
def test_blank_documents_give_no_nodes_and_no_embedding_call(embed_model, text):
    parser = TSIMNodeParser.from_defaults(embed_model)
    assert parser.get_nodes_from_documents([Document(text=text)]) == []
    assert parser.get_nodes_from_documents([]) == []
    assert embed_model.texts == []


async def test_blank_documents_give_no_nodes_and_no_embedding_call_async(embed_model):
    assert await TSIMNodeParser.from_defaults(embed_model).aget_nodes_from_documents([Document(text=" ")]) == []
    assert (embed_model.texts, embed_model.async_calls) == ([], 0)


def test_huge_documents_are_parsed_whole_and_in_time(config):
    turns = 4000
    text = "".join(f"{'User' if i % 2 == 0 else 'Bot'}: turn {i} about something\n" for i in range(turns))
    one_long_turn = "User: " + "word " * 200_000
    parser = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4), config)
    start = time.perf_counter()
    nodes = parser.get_nodes_from_documents([Document(text=text), Document(text=one_long_turn)])
    assert time.perf_counter() - start < 30
    assert sum(n.metadata["turn_end"] - n.metadata["turn_start"] for n in nodes) == turns + 1
    assert len(nodes[-1].text) == len(one_long_turn.strip())


def test_metadata_longer_than_the_text_does_no_harm(embed_model, config):
    document = Document(
        text=GOOD,
        metadata={"note": "word " * 2000},
        excluded_embed_metadata_keys=["note"],
        excluded_llm_metadata_keys=["note"],
    )
    node = TSIMNodeParser.from_defaults(embed_model, config).get_nodes_from_documents([document])[0]
    assert node.text == GOOD
    # what we add is hidden too, so a splitter behind us does not find it longer than a chunk
    assert [n.text for n in SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents([node])] == [GOOD]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RaggedEmbedding(embed_dim=3), r"different dimensions: \[3, 4\]"),
        (BrokenEmbedding(embed_dim=3), "no route to the model"),
        (NaNEmbedding(embed_dim=3), "NaN or infinity"),
    ],
)
def test_a_model_that_fails_is_named(model, message):
    parser = TSIMNodeParser.from_defaults(model)
    with pytest.raises(EmbedderError, match=message):
        parser.get_nodes_from_documents([Document(text="User: one\nBot: three\nUser: four\nBot: seven")])


@pytest.mark.parametrize("model", [RaggedEmbedding(embed_dim=3), BrokenEmbedding(embed_dim=3)])
async def test_a_model_that_fails_is_named_async(model):
    parser = TSIMNodeParser.from_defaults(model)
    with pytest.raises(EmbedderError, match=r"no route to the model|different dimensions"):
        await parser.aget_nodes_from_documents([Document(text="User: one\nBot: three\nUser: four\nBot: seven")])


def test_a_store_of_another_dimension_is_refused(tmp_path):
    store = tmp_path / "m.db"
    memory = TSIMMemory.from_defaults(store=str(store), embed_model=MockEmbedding(embed_dim=4))
    memory.put(ChatMessage(content="hi"))
    memory.memory.close()
    with pytest.raises(StoreMismatchError, match=r"4 dimensions.*\(5\)"):
        TSIMRetriever(store, ["llama-index"], embed_model=MockEmbedding(embed_dim=5))


@pytest.mark.parametrize("query", ["", " ", "\n\n"])
async def test_an_empty_query_finds_nothing(embed_model, query):
    memory = TSIMMemory.from_defaults(embed_model=embed_model)
    memory.put(ChatMessage(content="My cat is ill."))
    retriever = TSIMRetriever(memory.memory, ["llama-index"])
    assert retriever.retrieve(query) == []
    assert await retriever.aretrieve(query) == []
    assert embed_model.queries == []


def test_a_message_that_is_no_json_data_is_named():
    memory = TSIMMemory.from_defaults(embed_model=MockEmbedding(embed_dim=4))
    bad = ChatMessage(content="hi", additional_kwargs={"thing": object()})
    with pytest.raises(InputError, match="no JSON data"):
        memory.put(bad)
    assert memory.get_all() == []
    memory.put(ChatMessage(content="hi"))
    assert [m.content for m in memory.get_all()] == ["hi"]


@pytest.mark.parametrize("namespace", [[], [""], "alice", ["a", 3]])
def test_unusable_namespaces_are_refused(namespace):
    with pytest.raises(ValueError, match=r"namespace|valid"):
        TSIMMemory(namespace=namespace)


def test_retriever_refuses_what_has_no_meaning():
    memory = EpisodicMemory()
    with pytest.raises(InputError, match="prefix"):
        TSIMRetriever(memory, [])
    with pytest.raises(InputError, match="prefix"):
        TSIMRetriever(memory, "alice")
    with pytest.raises(InputError, match="similarity_top_k"):
        TSIMRetriever(memory, ["alice"], similarity_top_k=0)
    with pytest.raises(InputError, match="exactly one"):
        TSIMRetriever.from_defaults()
    with pytest.raises(InputError, match="max_tokens has no meaning"):
        TSIMRetriever.from_nodes([], max_tokens=100)


def test_json_text_is_never_evaluated(embed_model):
    text = json.dumps([{"role": "user", "content": "__import__('os').abort()"}])
    nodes = TSIMNodeParser.from_defaults(embed_model).get_nodes_from_documents([Document(text=text)])
    assert nodes[0].text == "user: __import__('os').abort()"


@pytest.mark.parametrize(
    ("make", "wrong", "meant"),
    [
        (TSIMMemory, "simlarity_top_k", "similarity_top_k"),
        (TSIMMemory.from_defaults, "token_limits", "token_limit"),
        (TSIMMemoryBlock, "namespce", "namespace"),
        (TSIMMemoryBlock, "prioriti", "priority"),
        (TSIMNodeParser, "lnik", "link"),
        (TSIMNodeParser.from_defaults, "include_meta_data", "include_metadata"),
    ],
)
def test_an_unknown_setting_is_an_error_that_names_the_nearest(make, wrong, meant):
    with pytest.raises(ValueError, match=f"has no setting '{wrong}'; did you mean '{meant}'"):
        make(**{wrong: 1})


def test_a_setting_like_no_other_is_answered_with_all_of_them():
    with pytest.raises(ValueError, match="TSIMNodeParser has no setting 'zzz'; known: callback_manager, config, "):
        TSIMNodeParser(zzz=1)


def test_settings_of_the_base_classes_and_of_subclasses_are_known(embed_model, config):
    class Own(TSIMMemoryBlock):
        colour: str = "red"

    block = Own(
        embed_model=embed_model, config=config, name="n", priority=0, accept_short_term_memory=False, colour="blue"
    )
    assert (block.priority, block.accept_short_term_memory, block.colour) == (0, False, "blue")
    parser = TSIMNodeParser(embed_model=embed_model, include_metadata=False, include_prev_next_rel=False)
    assert not parser.include_metadata
    assert TSIMMemoryBlock.model_validate(block.model_dump(exclude={"colour"})).priority == 0
