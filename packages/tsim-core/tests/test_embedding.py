"""The embedders: the real default model, callables, and the gate that checks what they return."""

from __future__ import annotations

import numpy as np
import pytest
from tsim_core.embedding import CallableEmbedder, MiniLMEmbedder, embed_checked, minilm, resolve_embedder
from tsim_core.errors import EmbedderError


@pytest.fixture(scope="module")
def model() -> MiniLMEmbedder:
    return MiniLMEmbedder()


def test_the_default_knows_meaning(model: MiniLMEmbedder) -> None:
    a, b, c = model.embed(["How do I feed a cat?", "What does a kitten eat?", "The rent is due on Monday."])
    assert a.shape == (384,)
    assert a.dtype == np.float32
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-5)
    assert a @ b > 0.5 > 0.2 > a @ c


def test_the_batch_does_not_change_a_vector(model: MiniLMEmbedder) -> None:
    texts = ["short", "a rather longer text about the weather in spring", "x"]
    together = model.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert model.embed([text])[0] @ vector > 0.999


def test_text_beyond_the_window_still_counts(model: MiniLMEmbedder) -> None:
    filler = "The weather was mild and nothing happened. " * 60
    tail = filler + "The password of the vault is swordfish. " * 20
    query = model.embed(["vault password"])[0]
    assert query @ model.embed([tail])[0] > query @ model.embed([filler])[0] + 0.1


def test_a_lone_surrogate_is_no_reason_to_fail(model: MiniLMEmbedder) -> None:
    assert np.isfinite(model.embed(["bad \ud83d text"])).all()


def test_weights_that_are_not_the_expected_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    with pytest.raises(EmbedderError, match=r"not the file expected.*reinstall"):
        MiniLMEmbedder().embed(["x"])


def test_a_function_is_an_embedder_named_after_itself() -> None:
    def pairs(texts: list[str]) -> list[list[float]]:
        return [[len(t), 1.0] for t in texts]

    embedder = resolve_embedder(pairs)
    assert embedder.name.endswith("pairs")
    assert embedder.dimension == 2
    np.testing.assert_allclose(embedder.embed(["abc"]), [[3 / 10**0.5, 1 / 10**0.5]], rtol=1e-6)


def test_equal_texts_go_to_the_model_once() -> None:
    seen: list[list[str]] = []

    def count(texts: list[str]) -> list[list[float]]:
        seen.append(texts)
        return [[1.0, len(t)] for t in texts]

    embedder = CallableEmbedder(count, "count", dimension=2)
    vectors = embed_checked(embedder, ["a", "bb", "a"])
    assert seen == [["a", "bb"]]
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_errors_of_a_model_name_it() -> None:
    def broken(texts: list[str]) -> object:
        raise ConnectionError("no route")

    with pytest.raises(EmbedderError, match="'broken' failed on 1 texts: no route"):
        embed_checked(CallableEmbedder(broken, "broken", dimension=3), ["x"])


@pytest.mark.parametrize("wrong", [7, object()])
def test_what_is_no_embedder_is_said(wrong: object) -> None:
    with pytest.raises(EmbedderError, match="is no embedder"):
        resolve_embedder(wrong)  # type: ignore[arg-type]


def test_an_embedder_needs_a_name() -> None:
    with pytest.raises(EmbedderError, match="non-empty name"):
        CallableEmbedder(lambda texts: [[1.0]], " ")
