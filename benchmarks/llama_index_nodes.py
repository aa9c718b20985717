"""Episode nodes beside LlamaIndex's own, on one LoCoMo conversation, in one run.

    TSIM_LOCOMO=locomo.json python benchmarks/llama_index_nodes.py [--conversation 0] [--questions 200] [--json]

For the nodes of TSIMNodeParser, SemanticSplitterNodeParser and SentenceSplitter (256 and 128 tokens), made from one
transcript with one embedding model:

- dense: share of questions all of whose evidence turns are in the best nodes of a VectorStoreIndex under 1,300 tokens
  (taken by rank, what does not fit is skipped);
- tsim: the same with TSIMRetriever over these nodes;
- parse: time to make the nodes, over the time to embed every turn once;
- ingest: time to make the nodes and to index them for the dense search, over the same.

The last row is TSIMRetriever over a store with its own assembly under that budget; its ingest is `Thread.extend`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import NodeParser, SemanticSplitterNodeParser, SentenceSplitter
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.settings import Settings
from llama_index.node_parser.tsim import TSIMNodeParser
from llama_index.retrievers.tsim import TSIMRetriever
from llama_index.utils.tsim import LlamaIndexEmbedder
from pydantic import PrivateAttr
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tsim_core import EpisodicMemory, MiniLMEmbedder, Turn
from tsim_core.tokens import universal

BUDGET = 1300
FORMATS = {"dense": "{:.3f}", "tsim": "{:.3f}", "parse": "{:.2f}", "ingest": "{:.2f}"}


class MiniLM(BaseEmbedding):
    """The core's embedded model as a LlamaIndex one, so that every parser works with the same."""

    model_name: str = "all-MiniLM-L6-v2"
    _embedder: MiniLMEmbedder = PrivateAttr(default_factory=MiniLMEmbedder)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


@dataclass(frozen=True)
class Conversation:
    """A transcript, the turns in it with their spans, and questions with the ids of their evidence."""

    text: str
    turns: list[Turn]
    spans: dict[str, tuple[int, int]]
    questions: list[tuple[str, frozenset[str]]]


def load(path: Path, number: int, most: int) -> Conversation:
    """One conversation of a LoCoMo file."""
    sample = json.loads(path.read_text(encoding="utf-8"))[number]
    talk = sample["conversation"]
    lines: list[str] = []
    turns: list[Turn] = []
    spans: dict[str, tuple[int, int]] = {}
    at = 0
    for session in range(1, len(talk)):
        for said in talk.get(f"session_{session}", []):
            text = " ".join(said["text"].split())
            when = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
            line = f"{said['speaker']}: {text}"
            spans[said["dia_id"]] = at + len(said["speaker"]) + 2, at + len(line)
            turns.append(Turn(said["speaker"], text, said["dia_id"], when))
            lines.append(line)
            at += len(line) + 1
    questions = [(qa["question"], frozenset(qa.get("evidence") or ())) for qa in sample["qa"]]
    known = [(q, evidence) for q, evidence in questions if evidence and evidence <= spans.keys()]
    return Conversation("\n".join(lines), turns, spans, known[:: max(1, len(known) // most)][:most])


def covered(nodes: Sequence[BaseNode], spans: dict[str, tuple[int, int]], evidence: frozenset[str]) -> bool:
    """Whether every evidence turn stands in the nodes, in one of them or across neighbours."""
    held = sorted((n.start_char_idx or 0, n.end_char_idx or 0) for n in nodes if isinstance(n, TextNode))
    for id_ in evidence:
        start, end = spans[id_]
        for first, last in held:
            if first <= start < last:
                start = last + 1  # the line break or blank between two nodes
        if start < end:
            return False
    return True


def fill(ranked: Sequence[NodeWithScore]) -> list[BaseNode]:
    """The best nodes that fit the budget; one that does not fit is skipped."""
    taken: list[BaseNode] = []
    left = float(BUDGET)
    for found in ranked:
        cost = universal(found.node.get_content())
        if cost <= left:
            taken.append(found.node)
            left -= cost
    return taken


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and what it returns."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


Answer = Callable[[QueryBundle], Sequence[NodeWithScore]]


def share(talk: Conversation, queries: Sequence[QueryBundle], answer: Answer) -> float:
    """Share of the questions whose evidence is all in what is retrieved."""
    asked = track(list(zip(queries, talk.questions, strict=True)), console=ERRORS)
    return sum(covered(fill(answer(query)), talk.spans, evidence) for query, (_, evidence) in asked) / len(queries)


ERRORS = Console(stderr=True)


def measure(talk: Conversation) -> dict[str, dict[str, float]]:
    """A row for each kind of node."""
    Settings.llm = MockLLM()
    model = MiniLM(embed_batch_size=64)
    texts = [turn.text for turn in talk.turns]
    model.get_text_embedding_batch(texts[:8])  # warm up
    queries = [QueryBundle(q, embedding=model.get_query_embedding(q)) for q, _ in talk.questions]
    floor, _ = seconds(lambda: model.get_text_embedding_batch(texts))
    parsers: dict[str, NodeParser] = {
        "TSIMNodeParser": TSIMNodeParser.from_defaults(model),
        "SemanticSplitterNodeParser": SemanticSplitterNodeParser.from_defaults(embed_model=model),
        "SentenceSplitter 256": SentenceSplitter(chunk_size=256, chunk_overlap=0),
        "SentenceSplitter 128": SentenceSplitter(chunk_size=128, chunk_overlap=0),
    }
    rows: dict[str, dict[str, float]] = {}
    for name, parser in parsers.items():
        ERRORS.print(name)
        parse, nodes = seconds(lambda p=parser: p.get_nodes_from_documents([Document(text=talk.text)]))  # type: ignore[misc]
        index_time, index = seconds(lambda n=nodes: VectorStoreIndex(n, embed_model=model))  # type: ignore[misc]
        dense = index.as_retriever(similarity_top_k=50)
        tsim = TSIMRetriever.from_nodes(nodes, model, similarity_top_k=50)
        rows[name] = {
            "nodes": len(nodes),
            "tokens a node": sum(universal(n.get_content()) for n in nodes) / len(nodes),
            "dense": share(talk, queries, dense.retrieve),
            "tsim": share(talk, queries, tsim.retrieve),
            "parse": parse / floor,
            "ingest": (parse + index_time) / floor,
        }
    ERRORS.print("TSIM store")
    memory = EpisodicMemory(embedder=LlamaIndexEmbedder(model))
    ingest, _ = seconds(lambda: memory.thread("locomo").extend(talk.turns))
    store = TSIMRetriever(memory, ["locomo"], similarity_top_k=50, max_tokens=BUDGET)
    hits = [
        evidence <= {id_ for n in store.retrieve(query) for id_ in json.loads(n.node.metadata["turn_ids"])}
        for query, (_, evidence) in zip(queries, talk.questions, strict=True)
    ]
    episodes = memory.thread("locomo").episodes()
    rows["TSIM store"] = {
        "nodes": len(episodes),
        "tokens a node": sum(universal(t.text) for t in talk.turns) / len(episodes),
        "tsim": sum(hits) / len(hits),
        "ingest": ingest / floor,
    }
    return rows


def main() -> int:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversation", type=int, default=0, help="which one of the file")
    parser.add_argument("--questions", type=int, default=200, help="most questions, spread evenly")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    path = os.environ.get("TSIM_LOCOMO")
    if not path:
        print("set TSIM_LOCOMO to a LoCoMo JSON file", file=sys.stderr)
        return 2
    logging.getLogger("llama_index").setLevel(logging.ERROR)
    talk = load(Path(path), arguments.conversation, arguments.questions)
    rows = measure(talk)
    if arguments.json:
        print(json.dumps(rows))
        return 0
    title = f"{len(talk.turns)} turns, {len(talk.questions)} questions, evidence recall under {BUDGET:,} tokens"
    table = Table(title=title)
    columns = list(rows["TSIMNodeParser"])
    for column in ("", *columns):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, row in rows.items():
        shown = [FORMATS.get(c, "{:.0f}").format(row[c]) if c in row else "" for c in columns]
        table.add_row(name, *shown)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
