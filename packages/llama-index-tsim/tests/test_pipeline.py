"""TSIMNodeParser in an IngestionPipeline: cache, workers, progress, docstore."""

from __future__ import annotations

import pytest
from llama_index.core import Document, MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import NodeParser
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.node_parser.tsim import TSIMNodeParser
from tsim_core import TSIMConfig


def test_class():
    assert NodeParser.__name__ in [b.__name__ for b in TSIMNodeParser.__mro__]


def test_the_second_run_comes_from_the_cache(embed_model, config, transcript):
    pipeline = IngestionPipeline(transformations=[TSIMNodeParser.from_defaults(embed_model, config)])
    first = pipeline.run(documents=[Document(text=transcript, id_="a")])
    calls = len(embed_model.texts)
    assert calls == 10
    # a parser made anew from the same settings meets the same entry
    pipeline.transformations = [TSIMNodeParser.from_dict(pipeline.transformations[0].to_dict())]
    second = pipeline.run(documents=[Document(text=transcript, id_="a")])
    assert [n.to_dict() for n in second] == [n.to_dict() for n in first]
    fresh = pipeline.transformations[0].embed_model
    assert fresh.texts == []
    pipeline.run(documents=[Document(text=transcript + "User: And a trip to Paris?", id_="a")])
    assert len(fresh.texts) == 11


def changed_parsers():
    base = {"embed_model": MockEmbedding(embed_dim=4), "config": TSIMConfig.paper()}
    yield "nothing", base
    yield "theta_s", base | {"config": TSIMConfig.paper().replace(theta_s=0.6)}
    yield "l_min", base | {"config": TSIMConfig.paper().replace(l_min=100)}
    yield "preset", base | {"config": "default"}
    yield "dimension of the model", base | {"embed_model": MockEmbedding(embed_dim=5)}
    yield "name of the model", base | {"embed_model": MockEmbedding(embed_dim=4, model_name="other")}
    yield "kind of the model", base | {"embed_model": "minilm"}
    yield "include_turns", base | {"include_turns": True}
    yield "link", base | {"link": True}
    yield "turn_pattern", base | {"turn_pattern": "^(?P<role>.):"}
    yield "turn_splitter", base | {"turn_splitter": split_lines}
    yield "format", base | {"format": "json"}
    yield "role_key", base | {"role_key": "speaker"}
    yield "on_error", base | {"on_error": "raise"}
    yield "include_prev_next_rel", base | {"include_prev_next_rel": False}
    yield "include_metadata", base | {"include_metadata": False}
    yield "id_func", base | {"id_func": split_lines}


def split_lines(text: str) -> list[tuple[str, str]]:
    return [("user", line) for line in text.splitlines()]


def test_every_setting_is_in_the_cache_key(transcript, monkeypatch):
    documents = [Document(text=transcript)]
    keys = {
        name: get_transformation_hash(documents, TSIMNodeParser.from_defaults(**settings))
        for name, settings in changed_parsers()
    }
    assert len(set(keys.values())) == len(keys), keys
    monkeypatch.setattr("llama_index.node_parser.tsim.base.ALGORITHM", "tsim-core 99")
    newer = TSIMNodeParser.from_defaults(**dict(changed_parsers())["nothing"])
    assert get_transformation_hash(documents, newer) != keys["nothing"]


def test_a_field_of_the_model_is_in_the_cache_key_and_its_secret_is_not(embed_model, transcript):
    def key(**changes):
        model = type(embed_model)(**changes)
        return get_transformation_hash([Document(text=transcript)], TSIMNodeParser.from_defaults(model))

    assert key() == key(api_key="another")
    assert key() != key(flavour="sweet")


def test_workers_parse_alike_and_fill_the_cache(transcript):
    """The parser and its model are pickled to spawned processes (14280); their cache entries come back (21300)."""
    documents = [Document(text=transcript, id_="a"), Document(text=transcript + "User: bye", id_="b")]
    parser = TSIMNodeParser.from_defaults(MockEmbedding(embed_dim=4), "paper")
    pipeline = IngestionPipeline(transformations=[parser])
    alone = parser.get_nodes_from_documents(documents)
    nodes = pipeline.run(documents=documents, num_workers=2)
    assert [n.to_dict() for n in nodes] == [n.to_dict() for n in alone]
    keys = [get_transformation_hash([document], parser) for document in documents]
    assert all(pipeline.cache.get(key) is not None for key in keys)


async def test_async_pipeline(embed_model, config, transcript):
    pipeline = IngestionPipeline(transformations=[TSIMNodeParser.from_defaults(embed_model, config), embed_model])
    nodes = await pipeline.arun(documents=[Document(text=transcript, id_="a")])
    assert [len(n.embedding) for n in nodes] == [64, 64, 64]
    assert embed_model.async_calls > 0


def test_progress_bar_is_shown_on_request(embed_model, config, transcript, capsys):
    parser = TSIMNodeParser.from_defaults(embed_model, config)
    parser.get_nodes_from_documents([Document(text=transcript)])
    assert capsys.readouterr().err == ""
    parser.get_nodes_from_documents([Document(text=transcript)], show_progress=True)
    shown = capsys.readouterr().err
    assert "Parsing nodes" in shown
    assert "Generating embeddings" in shown


def test_upserts_replace_the_nodes_of_a_changed_document(embed_model, config, transcript):
    store = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[TSIMNodeParser.from_defaults(embed_model, config), embed_model],
        docstore=SimpleDocumentStore(),
        vector_store=store,
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    assert len(pipeline.run(documents=[Document(text=transcript, id_="a")])) == 3
    assert pipeline.run(documents=[Document(text=transcript, id_="a")]) == []
    shorter = transcript.split("\n\n")[0]
    assert len(pipeline.run(documents=[Document(text=shorter, id_="a")])) == 1
    assert len(store.data.embedding_dict) == 1


@pytest.mark.parametrize("cached", [True, False])
def test_lone_surrogates_in_a_pipeline(embed_model, caplog, cached):
    """With its cache on, LlamaIndex itself cannot hash such a text; with it off, we leave that document out."""
    documents = [Document(text="User: broken \ud83d"), Document(text="User: my cat is ill")]
    pipeline = IngestionPipeline(transformations=[TSIMNodeParser.from_defaults(embed_model)], disable_cache=not cached)
    if cached:
        with pytest.raises(UnicodeEncodeError):
            pipeline.run(documents=documents)
    else:
        assert [n.text for n in pipeline.run(documents=documents)] == ["User: my cat is ill"]
        assert "lone surrogate" in caplog.text
