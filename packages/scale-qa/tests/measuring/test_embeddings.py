import time

import numpy as np
import pytest
from scale_qa.embeddings import CachedEmbedder


class Slow:
    name = "slow"
    dimension = 2
    max_tokens = None

    def __init__(self, name="slow", seconds=0.02):
        self.name = name
        self.calls = []
        self.seconds = seconds

    def embed(self, texts):
        self.calls.append(list(texts))
        time.sleep(self.seconds * len(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def embedded(model):
    return [text for call in model.calls[1:] for text in call]  # the first call warms the model up


def test_a_text_is_embedded_once_over_calls_and_runs(tmp_path):
    model = Slow(seconds=0)
    cache = CachedEmbedder(model, tmp_path / "e.sqlite")
    first = cache.embed(["a", "bb", "a"])
    assert np.array_equal(first[0], first[2])
    cache.embed(["bb", "ccc"])
    cache.close()
    assert embedded(model) == ["a", "bb", "ccc"]
    again = Slow(seconds=0)
    reopened = CachedEmbedder(again, tmp_path / "e.sqlite")
    assert np.array_equal(reopened.embed(["a", "bb", "a"]), first)
    assert again.calls == []
    reopened.close()


def test_models_do_not_share_vectors(tmp_path):
    one, other = Slow("one", 0), Slow("other", 0)
    for model in (one, other):
        cache = CachedEmbedder(model, tmp_path / "e.sqlite")
        cache.embed(["a"])
        cache.close()
    assert embedded(other) == ["a"]


def test_what_comes_from_the_cache_is_charged_at_its_price():
    cache = CachedEmbedder(Slow())
    with cache.timed() as fresh:
        cache.embed(["a", "b", "c"])
    start = time.perf_counter()
    with cache.timed() as cached:
        cache.embed(["a", "b", "c"])
    assert time.perf_counter() - start < 0.05
    assert fresh.seconds >= 0.06
    assert cached.seconds == pytest.approx(fresh.seconds, rel=0.3)


def test_other_work_is_timed_as_it_is():
    cache = CachedEmbedder(Slow())
    cache.embed(["a"])
    with cache.timed() as watch:
        time.sleep(0.03)
        cache.embed(["a"])
    assert 0.05 <= watch.seconds < 0.2


def test_loading_the_model_is_charged_to_no_text():
    class Lazy(Slow):
        def embed(self, texts):
            if not self.calls:
                time.sleep(0.3)
            return super().embed(texts)

    cache = CachedEmbedder(Lazy(seconds=0))
    with cache.timed() as watch:
        cache.embed(["a"])
    assert watch.seconds < 0.2


def test_progress_counts_only_what_the_model_did():
    seen = []
    cache = CachedEmbedder(Slow(seconds=0), on_progress=seen.append)
    cache.embed([str(i) for i in range(300)])
    cache.embed(["0", "new"])
    assert seen == [256, 44, 1]


def test_a_lone_surrogate_has_a_key():
    assert CachedEmbedder(Slow(seconds=0)).embed(["\ud800"]).shape == (1, 2)
