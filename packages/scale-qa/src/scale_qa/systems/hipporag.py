"""HippoRAG (Gutierrez et al., NeurIPS 2024): passages and their phrases in a graph, ranked by personalised PageRank."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from tsim_core.types import Turn

from scale_qa.lexical import analyse
from scale_qa.systems import SystemSpec
from scale_qa.systems.base import Complete, Footprint, MemorySystem, Resources, Unit, embed_query, embed_texts
from scale_qa.systems.spans import windows
from scale_qa.tokens import estimate_tokens

PASSAGE_TOKENS = 128
DAMPING = 0.5
SYNONYM = 0.8
COMMON = 0.02  # a phrase in more than this share of the passages links everything and tells nothing
FEWEST_COMMON = 10  # in a small thread
_NAME = re.compile(r"(?:[A-Z][\w'-]*|\w*\d[\w-]*)(?: (?:[A-Z][\w'-]*|\w*\d[\w-]*))*")


class HippoRAG(MemorySystem):
    """Passages of 128 tokens; nodes are phrases, edges join phrases that a passage relates.

    With an LLM the phrases and edges are its triples; without one they are the names, numbers and content words of
    each turn, neighbours joined. Names are also joined to their near-synonyms (cosine of 0.8). A query seeds its own
    phrases, weighted by how rare they are, and a passage scores the PageRank of its phrases.
    """

    def __init__(self, resources: Resources) -> None:
        self._embedder = resources.embedder
        self._complete: Complete | None = resources.complete
        self._texts: list[str] = []
        self._tokens: list[float] = []
        self._passages: list[Sequence[int]] = []
        self._known: dict[str, list[list[str]]] = {}
        self._unparsed = 0
        self._clear()

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Stand-ins, and triples that no one could read."""
        if self._complete is None:
            return ("HippoRAG: names and content words stand in for an LLM's triples (no LLM set)",)
        if self._unparsed:
            return (f"HippoRAG: {self._unparsed} passages took the stand-in, their triples were no JSON",)
        return ()

    def ingest(self, turns: Sequence[Turn]) -> None:
        """Append turns and build the graph again; chains of known passages are kept."""
        if not turns:
            return
        self._texts += [turn.text for turn in turns]
        self._tokens += [estimate_tokens(turn.text) for turn in turns]
        self._passages = list(windows(PASSAGE_TOKENS)(self._tokens))
        self._build()

    def retrieve(self, query: str, k: int) -> list[Unit]:
        """The passages whose phrases the walk visits most."""
        seeds = self._seeds(query)
        if not seeds:
            return []
        reset = np.zeros(len(self._phrases))
        for phrase, weight in seeds.items():
            reset[phrase] = weight
        rank = np.array(
            self._graph.personalized_pagerank(directed=False, damping=DAMPING, reset=reset, weights="weight")
        )
        scores = self._mentions @ rank
        order = [int(i) for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        return [Unit(tuple(self._passages[i]), float(scores[i])) for i in order]

    def footprint(self) -> Footprint:
        """Vectors of the names; edges and mentions."""
        edges = self._graph.ecount() * 12 + self._mentions.nnz * 8
        return Footprint(len(self._names), self._name_vectors.nbytes + edges)

    def _clear(self) -> None:
        from igraph import Graph
        from scipy.sparse import csr_array

        self._phrases: dict[str, int] = {}
        self._names: list[str] = []
        self._name_vectors = np.zeros((0, self._embedder.dimension), dtype=np.float32)
        self._graph = Graph()
        self._mentions = csr_array((0, 0))
        self._frequency: Counter[str] = Counter()

    def _build(self) -> None:
        from igraph import Graph
        from scipy.sparse import coo_array

        chains = [self._chains(passage) for passage in self._passages]
        self._frequency = Counter(p for chain in chains for p in {p for link in chain for p in link})
        limit = max(FEWEST_COMMON, COMMON * len(self._passages))
        kept = sorted(phrase for phrase, count in self._frequency.items() if count <= limit)
        self._phrases = {phrase: i for i, phrase in enumerate(kept)}
        edges: dict[tuple[int, int], float] = defaultdict(float)
        mentions: Counter[tuple[int, int]] = Counter()
        for passage, chain in enumerate(chains):
            for link in chain:
                nodes = [self._phrases[phrase] for phrase in link if phrase in self._phrases]
                mentions.update((passage, node) for node in nodes)
                for a, b in pairwise(nodes):
                    if a != b:
                        edges[min(a, b), max(a, b)] += 1.0
        self._names = [phrase for phrase in kept if phrase.startswith("=")]
        self._name_vectors = embed_texts(self._embedder, [name[1:] for name in self._names])
        for a, b, cosine in self._synonyms():
            edges[min(a, b), max(a, b)] += cosine
        self._graph = Graph(n=len(kept), edges=list(edges))
        self._graph.es["weight"] = list(edges.values())
        rows, columns = np.array(list(mentions) or np.zeros((0, 2), dtype=int)).T
        self._mentions = coo_array(
            (np.fromiter(mentions.values(), dtype=float), (rows, columns)),
            shape=(len(self._passages), len(kept)),
        ).tocsr()

    def _synonyms(self) -> list[tuple[int, int, float]]:
        found = []
        for start in range(0, len(self._names), 1000):
            near = self._name_vectors[start : start + 1000] @ self._name_vectors.T
            for row, column in zip(*np.nonzero(near >= SYNONYM), strict=True):
                a, b = start + int(row), int(column)
                if a < b:
                    found.append((self._phrases[self._names[a]], self._phrases[self._names[b]], float(near[row, b])))
        return found

    def _seeds(self, query: str) -> dict[int, float]:
        """Query phrases in the graph, by node specificity; a name that is not there lends its nearest one."""
        seeds: dict[int, float] = {}
        for phrase in {p for link in chain_phrases(query) for p in link}:
            known = phrase
            if phrase not in self._phrases and phrase.startswith("=") and self._names:
                near = self._name_vectors @ embed_query(self._embedder, phrase[1:])
                best = int(np.argmax(near))
                known = self._names[best] if near[best] >= SYNONYM else phrase
            if known in self._phrases:
                seeds[self._phrases[known]] = 1 / self._frequency[known]
        return seeds

    def _chains(self, passage: Sequence[int]) -> list[list[str]]:
        text = "\n".join(self._texts[i] for i in passage)
        if text not in self._known:
            self._known[text] = self._triples(text) or [link for i in passage for link in chain_phrases(self._texts[i])]
        return self._known[text]

    def _triples(self, text: str) -> list[list[str]]:
        if self._complete is None:
            return []
        answer = self._complete(
            'Extract the relations of this text as a JSON list of ["subject", "relation", "object"]:\n' + text
        )
        try:
            triples = json.loads(answer[answer.index("[") : answer.rindex("]") + 1])
            return [[f"={subject}", f"={object_}"] for subject, _, object_ in triples]
        except (ValueError, TypeError):
            self._unparsed += 1
            return []


def chain_phrases(text: str) -> list[list[str]]:
    """The phrases of each sentence in order: names and numbers (marked ``=``), and stems of content words."""
    chains = []
    for sentence in re.split(r"(?<=[.!?。！？])\s*", text):
        names = [f"={match.group().casefold()}" for match in _NAME.finditer(sentence)]
        chain = [*names, *analyse(sentence)]
        if chain:
            chains.append(chain)
    return chains


SPECS = [SystemSpec("hipporag", "phrase graph with personalised PageRank over 128-token passages", HippoRAG)]
