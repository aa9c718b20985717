"""Any LlamaIndex embedding model serves the core."""

from __future__ import annotations

import numpy as np
import pytest
from llama_index.core import MockEmbedding
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.utils.tsim import LlamaIndexEmbedder
from llama_index.utils.tsim.embedding import aembed_texts, embed_texts, identity, restore
from tsim_core import Embedder, EmbedderError, EpisodicMemory


def test_class(embed_model):
    assert BaseEmbedding.__name__ in [b.__name__ for b in type(embed_model).__mro__]
    assert isinstance(LlamaIndexEmbedder(embed_model), Embedder)


def test_a_memory_on_a_llama_index_model(embed_model):
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(embed_model))
    thread = memory.thread("alice")
    thread.extend([])
    thread.add("user", "My cat is ill.")
    thread.add("user", "Which GPU do I need?")
    assert memory.stats()["embedder"] == "llama-index:TopicEmbedding:topics"
    assert memory.stats()["dimension"] == 64
    recalled = thread.recall("cuda driver", k=1).episodes[0].turns
    assert [turn.text for turn in recalled if "GPU" in turn.text] == ["Which GPU do I need?"]


def test_rows_are_unit_vectors_of_the_text_embedding(embed_model):
    embedder = LlamaIndexEmbedder(embed_model)
    rows = embedder.embed(["cat vet", "gpu"])
    assert rows.dtype == np.float32
    assert rows.shape == (2, 64)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert embed_model.texts == ["cat vet", "gpu"]
    assert embedder.embed_query("cat").shape == (64,)
    assert embed_model.queries == ["cat"]


def test_constant_model_works():
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(MockEmbedding(embed_dim=8)))
    memory.thread("a").add("user", "hello")
    assert memory.thread("a").recall("hello").episodes[0].turns[0].text == "hello"


async def test_equal_texts_are_embedded_once_and_batches_agree(embed_model):
    texts = ["cat", "gpu", "cat", "trip"]
    embedder = embed_texts(embed_model, texts)
    assert embed_model.texts == ["cat", "gpu", "trip"]
    again = await aembed_texts(embed_model, texts)
    np.testing.assert_array_equal(embedder.embed(texts), again.embed(texts))
    assert (embedder.name, embedder.dimension) == ("llama-index:TopicEmbedding:topics", 64)


class ShortEmbedding(MockEmbedding):
    def _get_text_embeddings(self, texts):
        return super()._get_text_embeddings(texts)[:-1]


def test_a_model_that_loses_a_text_is_an_error():
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        embed_texts(ShortEmbedding(embed_dim=4), ["a", "b"])


def test_identity_round_trip_without_secrets(embed_model):
    data = identity(embed_model)
    assert isinstance(data, dict)
    assert "api_key" not in data
    again = restore(data)
    assert type(again) is type(embed_model)
    assert identity(again) == data
    assert restore(identity("minilm")) == "minilm"
    assert restore(None) == "minilm"
