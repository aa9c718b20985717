import numpy as np
import pytest
from scale_qa.lexical import BM25Index, analyse, top, z_scores


def test_terms_are_stems_without_stopwords_and_letters():
    assert analyse("The releases of Quillon, a releasing B") == ["releas", "quillon", "releas"]


def test_digits_stay():
    assert analyse("gate 7") == ["gate", "7"]


def test_cjk_comes_in_pairs():
    assert analyse("门禁密码") == ["门禁", "禁密", "密码"]


def test_rare_words_count_more():
    index = BM25Index([analyse(t) for t in ("gate code", "gate rye", "gate flour", "gate basalt")])
    scores = index.scores("Which rye gate?")
    assert top(scores, 1) == [1]
    assert scores[1] > scores[0] > 0


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_an_empty_index_scores_zero(documents):
    assert BM25Index(documents).scores("anything").tolist() == [0.0] * len(documents)


@pytest.mark.parametrize("query", ["", "the", "unheard-of"])
def test_a_query_without_known_terms_scores_zero(query):
    assert BM25Index([["gate"], ["code"]]).scores(query).tolist() == [0.0, 0.0]


def test_ties_go_to_the_earlier():
    assert top(np.array([1.0, 2.0, 2.0, 1.0], dtype=np.float32), 3) == [1, 2, 0]


def test_z_scores_of_equal_values_are_zero():
    assert z_scores(np.full(4, 3.0, dtype=np.float32)).tolist() == [0.0] * 4
    spread = z_scores(np.array([1.0, 2.0, 6.0], dtype=np.float32))
    assert spread.mean() == pytest.approx(0.0, abs=1e-6)
    assert spread.std() == pytest.approx(1.0)
