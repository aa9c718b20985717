from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tsim_core.embedding import MiniLMEmbedder, Vectors, unit_rows
from tsim_core.errors import EmbedderError
from tsim_core.scale import MINILM, REFERENCE, Scale, measure, scale_of

from .conftest import WordEmbedder


def test_the_bundled_scale_is_what_the_bundled_model_measures() -> None:
    found = measure(MiniLMEmbedder())
    assert found.unrelated == pytest.approx(MINILM.unrelated, abs=0.005)
    assert found.related == pytest.approx(MINILM.related, abs=0.005)


def test_measure_embeds_each_reference_text_once() -> None:
    embedder = WordEmbedder()
    scale = measure(embedder)
    assert sorted(embedder.texts) == sorted(t for dialogue in REFERENCE for exchange in dialogue for t in exchange)
    assert -1 <= scale.unrelated < scale.related <= 1


def test_an_embedder_with_a_common_component_has_a_higher_and_narrower_scale() -> None:
    class Shifted(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            return unit_rows(super().embed(texts) + np.float32(0.3))

    plain, shifted = measure(WordEmbedder()), measure(Shifted())
    assert shifted.unrelated > plain.unrelated + 0.3
    assert shifted.related - shifted.unrelated < plain.related - plain.unrelated


class Constant(WordEmbedder):
    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.eye(1, self.dimension, dtype=np.float32), (len(texts), 1))


class Closed(WordEmbedder):
    def embed(self, texts: Sequence[str]) -> Vectors:
        return unit_rows(np.array([{"cat": [1.0]}[text] for text in texts], dtype=np.float32))


@pytest.mark.parametrize("stand_in", [Constant(), Closed()])
def test_a_stand_in_has_no_scale_which_is_said(stand_in: WordEmbedder, caplog: pytest.LogCaptureFixture) -> None:
    assert measure(stand_in) == MINILM
    assert "its episodes will be poor" in caplog.text


def test_an_embedder_that_fails_is_an_error() -> None:
    class Down(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            raise ConnectionError("no route")

    with pytest.raises(EmbedderError, match="no route"):
        measure(Down())


def test_spread_maps_the_unit_scale_to_likenesses() -> None:
    assert Scale(0.8, 0.9).spread((0.5, 0.2)) == (pytest.approx(0.85), pytest.approx(0.02))


def test_only_the_bundled_model_is_known_without_a_look() -> None:
    class Named(WordEmbedder):
        name = MiniLMEmbedder.name

    named, other = Named(), WordEmbedder()
    assert scale_of(named) == MINILM
    assert named.texts == []
    assert scale_of(other) == measure(WordEmbedder())
