"""What the core costs, as ratios to the floor in the same run.

    python benchmarks/core.py [--turns 100000] [--real-turns 600]

- ingest: time of `Thread.extend` over that of embedding the same texts once, in batches, with the same model;
- recall: time of `Thread.recall` with the query's vector given over one exact FAISS search of the raw vectors;
- open: seconds from a closed file to the first answer, of a store of that many turns;
- bytes a turn on disk and in memory.

The scale part uses made-up vectors (there the model would only cost time); the ingest part uses the real model.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import faiss
import numpy as np
from tsim_core import EpisodicMemory, MiniLMEmbedder, TSIMConfig, Turn
from tsim_core.embedding import Vectors, unit_rows

TOPICS = 400
WORDS = 12_000


class MadeUpEmbedder:
    """A topic's direction plus noise, from the text alone: threads look like threads, at no cost."""

    name = "made-up"
    dimension = 384
    max_tokens: int | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `tsim_core.Embedder`."""
        topics = np.random.default_rng(0).standard_normal((TOPICS, self.dimension), dtype=np.float32)
        rows = []
        for text in texts:
            topic = topics[int(text.split(" ", 1)[0][1:]) % TOPICS]
            noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.dimension, dtype=np.float32)
            rows.append(topic + noise)
        return unit_rows(np.array(rows, dtype=np.float32))


def thread_of(count: int) -> list[Turn]:
    """Dialogues of 4 to 12 turns of about 25 words each, one topic each."""
    chance = random.Random(7)
    turns: list[Turn] = []
    while len(turns) < count:
        topic = chance.randrange(TOPICS)
        words = [f"w{topic}x{chance.randrange(40)}" for _ in range(12)]
        for i in range(chance.randrange(4, 13)):
            said = [f"c{topic}", *(chance.choice(words) for _ in range(8))]
            said += [f"g{int(WORDS * chance.random() ** 3)}" for _ in range(16)]
            turns.append(Turn("assistant" if i % 2 else "user", " ".join(said)))
    return turns[:count]


def prose(count: int) -> list[str]:
    """Texts of common English words, of the lengths that chats have."""
    chance = random.Random(3)
    words = "the plan for new projects is to run on one small machine until review after which we ask the lead".split()
    return [" ".join(chance.choice(words) for _ in range(chance.randrange(4, 60))) + f" {i}" for i in range(count)]


def seconds(call: Callable[[], object]) -> float:
    """Wall time of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bench_ingest(count: int) -> None:
    """Ingest against the embedding alone, interleaved three times so that noise hits both."""
    embedder = MiniLMEmbedder()
    embedder.embed(["warm up"])
    texts = prose(count)
    turns = [Turn("assistant" if i % 2 else "user", text) for i, text in enumerate(texts)]
    for name, config in (("default", TSIMConfig.default()), ("paper", TSIMConfig.paper())):
        floor, ours = [], []
        for _ in range(3 if name == "default" else 1):
            floor.append(seconds(lambda: embedder.embed(texts)))
            with tempfile.TemporaryDirectory() as folder:
                with EpisodicMemory(f"{folder}/m.db", embedder=embedder, config=config) as memory:
                    ours.append(seconds(lambda: memory.thread("t").extend(turns)))
        ratio = statistics.median(ours) / statistics.median(floor)
        print(f"ingest, {name:8} {ratio:6.2f} x embedding each turn once ({count} turns)")


def bench_scale(count: int) -> None:
    """Recall, opening and bytes at scale."""
    embedder = MadeUpEmbedder()
    turns = thread_of(count)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.db"
        with EpisodicMemory(path, embedder=embedder) as memory:
            memory.thread("t").extend(turns)
        size = sum(f.stat().st_size for f in Path(folder).iterdir())
        queries = [turns[i].text for i in range(0, count, max(1, count // 20))][:20]
        vectors = embedder.embed(queries)

        before = resident()
        start = time.perf_counter()
        memory = EpisodicMemory(path, embedder=embedder, read_only=True)
        thread = memory.thread("t")
        thread.recall(queries[0], query_vector=vectors[0])
        opened = time.perf_counter() - start
        used = resident() - before

        raw = faiss.IndexFlatIP(embedder.dimension)
        raw.add(memory._indices["t",].flat.rows)
        floor, ours = [], []
        for query, vector in zip(queries, vectors, strict=True):
            floor.append(seconds(lambda v=vector: raw.search(v[None], 28)))  # type: ignore[misc]
            ours.append(seconds(lambda q=query, v=vector: thread.recall(q, query_vector=v)))  # type: ignore[misc]
        memory.close()
    ratio = statistics.median(ours) / statistics.median(floor)
    print(f"recall           {ratio:6.2f} x one exact FAISS search ({count} turns)")
    print(f"open             {opened:6.2f} s from a closed file to the first answer ({count} turns)")
    print(f"on disk          {size / count:6.0f} bytes a turn, {size / count / (4 * embedder.dimension):.2f} x its vector")
    print(f"in memory        {used / count:6.0f} bytes a turn, {used / count / (4 * embedder.dimension):.2f} x its vector")


def resident() -> int:
    """Bytes of memory that the process holds."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the peak is the best there is
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--real-turns", type=int, default=600)
    arguments = parser.parse_args()
    bench_ingest(arguments.real_turns)
    bench_scale(arguments.turns)


if __name__ == "__main__":
    main()
