"""Published ranking, equations (4) to (8), and clusters, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tsim_core.clusters import Cluster, assign
from tsim_core.errors import ConfigError
from tsim_core.index.flat import FlatIndex
from tsim_core.ranking import PublishedRanking, rank_published
from tsim_core.views import PublishedViews

QUERY = np.array([1, 0, 0], dtype=np.float32)


def index(*rows: tuple[float, float, float]) -> FlatIndex:
    flat = FlatIndex(3)
    flat.add(np.array(rows, dtype=np.float32))
    return flat


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_equation_5_and_6_sum_the_hits_of_each_view() -> None:
    flat = index((0.9, 0.43589, 0), (0.8, 0.6, 0), (0.5, 0.86603, 0))
    summaries = np.array([[0.6, 0.8, 0], [0.3, 0.95394, 0]], dtype=np.float32)
    config = PublishedRanking(k_r=3, k_s=2, k_l=0, w_r=2, w_s=10, lambda_sem=0)
    ranked = rank_published(QUERY, flat, np.array([0, 0, 1]), summaries, [], config)
    assert [r.episode for r in ranked] == [0, 1]
    assert ranked[0].evidence == {"raw": pytest.approx(2 * 1.7), "summary": pytest.approx(6)}
    assert ranked[1].evidence["raw"] == pytest.approx(1.0)
    assert ranked[0].turn_scores == {0: pytest.approx(0.9), 1: pytest.approx(0.8)}


def test_hits_end_at_the_depth_of_the_view() -> None:
    flat = index((0.9, 0.43589, 0), (0.8, 0.6, 0), (0.5, 0.86603, 0))
    summaries = np.array([[0.6, 0.8, 0], [0.3, 0.95394, 0]], dtype=np.float32)
    config = PublishedRanking(k_r=1, k_s=1, k_l=0, w_r=1, w_s=1, lambda_sem=0)
    ranked = rank_published(QUERY, flat, np.array([0, 0, 1]), summaries, [], config)
    assert ranked[0].score == pytest.approx(0.9 + 0.6)


def test_equation_7_attenuates_by_rank_within_the_cluster() -> None:
    flat = index((0, 1, 0), (0, 0, 1), (0, 1, 0))
    summaries = np.array([unit(0.9, 1, 0), unit(0.5, 1, 0), unit(0.1, 1, 0)], dtype=np.float32)
    clusters = [([0, 1, 2], unit(0.8, 0.6, 0)), ([2], unit(0.1, 1, 0))]
    config = PublishedRanking(k_r=0, k_s=0, k_l=1, w_l=0.75, lambda_l=0.7, cluster_expansion=2, lambda_sem=0)
    ranked = rank_published(QUERY, flat, np.array([0, 1, 2]), summaries, clusters, config)
    # only the nearest cluster is hit, and of its three episodes the best two are expanded
    assert {r.episode: r.evidence["cluster"] for r in ranked} == {
        0: pytest.approx(0.75 * 0.8),
        1: pytest.approx(0.75 * 0.7 * 0.8),
    }


def test_equation_8_a_seed_lends_to_its_neighbours() -> None:
    flat = index((1, 0, 0), (0, 1, 0), (0, 0, 1))
    summaries = np.array([unit(0.8, 0.6, 0), unit(0.6, 0.8, 0), unit(0, 0, 1)], dtype=np.float32)
    config = PublishedRanking(k_r=1, k_s=0, k_l=0, w_r=1, lambda_sem=0.5, expansion=1)
    ranked = rank_published(QUERY, flat, np.array([0, 1, 2]), summaries, [], config)
    # seed 0: sim(q, e') = .8, sim(e', e) = .48 + .48
    assert ranked[1].episode == 1
    assert ranked[1].evidence == {"semantic": pytest.approx(0.5 * 0.8 * 0.96)}
    assert ranked[1].score == pytest.approx(0.384)


def test_temporal_neighbours_share_by_hop() -> None:
    flat = index((0.8, 0.6, 0), (0.6, 0.8, 0))
    summaries = np.eye(2, 3, dtype=np.float32)
    config = PublishedRanking(k_r=2, k_s=0, k_l=0, w_r=1, lambda_sem=0, temporal_hops=1, temporal_decay=0.5)
    ranked = rank_published(QUERY, flat, np.array([0, 1]), summaries, [], config)
    assert ranked[0].evidence["temporal"] == pytest.approx(0.5 * 0.6)
    assert ranked[1].evidence["temporal"] == pytest.approx(0.5 * 0.8)


def test_a_filter_keeps_every_view_out() -> None:
    flat = index((1, 0, 0), (0.9, 0.43589, 0))
    summaries = np.array([unit(1, 0, 0), unit(0.9, 0.4, 0)], dtype=np.float32)
    clusters = [([0, 1], unit(1, 0, 0))]
    ranked = rank_published(
        QUERY, flat, np.array([0, 1]), summaries, clusters, PublishedRanking(), np.array([False, True])
    )
    assert [r.episode for r in ranked] == [1]


def test_published_constants_of_table_18() -> None:
    c = PublishedRanking()
    assert (c.k_r, c.k_s, c.k_l, c.w_r, c.w_s, c.w_l) == (28, 20, 2, 1.15, 1.20, 0.75)
    assert (c.lambda_sem, c.lambda_l, c.cluster_expansion, c.expansion, c.temporal_hops) == (0.55, 0.70, 2, 2, 0)
    v = PublishedViews()
    assert (v.cluster_threshold, v.soft_margin, v.summary_chars) == (0.42, 0.08, 1200)


def test_a_ranking_that_sees_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="nothing would ever be found"):
        PublishedRanking(k_r=0, k_s=0, k_l=0)


VIEWS = PublishedViews(cluster_threshold=0.42, soft_margin=0.08, merge_threshold=1)


def test_an_episode_like_no_cluster_founds_one() -> None:
    clusters, changed = assign([Cluster(0, (0,), unit(1, 0, 0))], 5, unit(0.4, 0.9, 0), VIEWS)
    assert [(c.number, c.members) for c in clusters] == [(0, (0,)), (1, (5,))]
    assert changed == {1}


def test_an_episode_joins_all_clusters_within_the_soft_margin() -> None:
    # cosines .70, .64 and .5: the second lies within .08 of the best, the third does not
    clusters = [Cluster(n, (n,), unit(c, np.sqrt(1 - c * c), 0)) for n, c in enumerate((0.70, 0.64, 0.5))]
    after, changed = assign(clusters, 9, unit(1, 0, 0), VIEWS)
    assert [c.members for c in after] == [(0, 9), (1, 9), (2,)]
    assert changed == {0, 1}
    np.testing.assert_allclose(after[0].centroid, clusters[0].centroid + unit(1, 0, 0))


def test_clusters_that_have_become_one_merge() -> None:
    clusters = [Cluster(0, (0,), unit(1, 0.3, 0)), Cluster(1, (1,), unit(1, -0.3, 0))]
    after, changed = assign(clusters, 2, unit(1, 0, 0), PublishedViews(merge_threshold=0.9))
    assert [(c.number, c.members) for c in after] == [(0, (0, 1, 2))]
    assert changed == {0}
    # the episode that joined both counts once
    np.testing.assert_allclose(after[0].centroid, unit(1, 0.3, 0) + unit(1, -0.3, 0) + unit(1, 0, 0), rtol=1e-6)
