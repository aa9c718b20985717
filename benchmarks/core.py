"""What the core costs, as ratios to the floor in the same run.

    python benchmarks/core.py [--turns 100000] [--real-turns 240]

- ingest: time of `Thread.extend` over that of embedding the same texts once, in batches, with the same model;
- recall: time of `Thread.recall` with the query's vector given, over one exact FAISS search of the raw vectors;
- recall after an add: the same right after one turn more, so that whatever is derived had to follow;
- open: seconds from a closed file to the first answer;
- bytes a turn on disk, and of the process's own memory that an open store takes.

The ingest part uses the real model. The rest uses made-up vectors, for which the model would only cost time, and runs
in a process of its own, so that its memory is that of a store which was opened and not of one which was written. Of
each time the least of the repeats counts: what else runs on the machine only ever adds to it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from rich.console import Console
from rich.progress import Progress, track
from tsim_core import EpisodicMemory, MiniLMEmbedder, TSIMConfig, Turn
from tsim_core.embedding import Vectors, unit_rows

TOPICS = 400
WORDS = 12_000
QUERIES = 20
REPEATS = 5
STDERR = Console(stderr=True)


class MadeUpEmbedder:
    """The sum of a made-up vector for each word: threads look like threads, at no cost."""

    name = "made-up"
    dimension = 384
    max_tokens: int | None = None

    def __init__(self) -> None:
        self._words: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `tsim_core.Embedder`."""
        return unit_rows(np.array([np.sum([self._word(w) for w in text.split()], axis=0) for text in texts]))

    def _word(self, word: str) -> Vectors:
        if word not in self._words:
            chance = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = chance.standard_normal(self.dimension, dtype=np.float32)
        return self._words[word]


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
    words = "the plan for new projects is to run on one small machine until review after which we ask the lead"
    return [
        " ".join(chance.choice(words.split()) for _ in range(chance.randrange(4, 60))) + f" {i}" for i in range(count)
    ]


def seconds(call: Callable[[], object]) -> float:
    """Wall time of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bench_ingest(count: int) -> None:
    """Ingest against the embedding alone, by turns so that noise hits both."""
    embedder = MiniLMEmbedder()
    embedder.embed(["warm up"])
    texts = prose(count)
    turns = [Turn("assistant" if i % 2 else "user", text) for i, text in enumerate(texts)]
    floor: list[float] = []
    ours: dict[str, list[float]] = {"default": [], "paper": []}
    for repeat in track(range(REPEATS), "ingest", console=STDERR, transient=True):
        floor.append(seconds(lambda: embedder.embed(texts)))
        for name, config in (("default", TSIMConfig.default()), ("paper", TSIMConfig.paper()))[
            : 2 if repeat < 2 else 1
        ]:
            with (
                tempfile.TemporaryDirectory() as folder,
                EpisodicMemory(f"{folder}/m.db", embedder=embedder, config=config) as memory,
            ):
                ours[name].append(seconds(lambda: memory.thread("t").extend(turns)))
    for name, times in ours.items():
        print(f"ingest, {name:8} {min(times) / min(floor):6.2f} x embedding each turn once ({count} turns)", flush=True)


def bench_scale(count: int) -> None:
    """Recall, opening and bytes at scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.db"
        turns = thread_of(count)
        with EpisodicMemory(path, embedder=MadeUpEmbedder()) as memory, Progress(console=STDERR, transient=True) as bar:
            task = bar.add_task("writing the store", total=count)
            wrote = seconds(
                lambda: memory.thread("t").extend(turns, lambda done, total: bar.update(task, completed=done))
            )
        size = sum(f.stat().st_size for f in Path(folder).iterdir())
        with STDERR.status("reading it in another process"):
            reader = subprocess.run(
                [sys.executable, __file__, "--read", path, "--turns", str(count)], capture_output=True, text=True
            )
        if reader.returncode:
            raise SystemExit(reader.stderr)
        found = json.loads(reader.stdout)
    vector = 4 * MadeUpEmbedder.dimension
    print(f"write            {wrote / count * 1e3:6.2f} ms a turn beside the model ({count} turns in one go)")
    print(f"recall           {found['recall'] / found['search']:6.2f} x one exact FAISS search ({count} turns)")
    print(f"                 {found['recall'] * 1e3:6.1f} ms, the search {found['search'] * 1e3:.1f} ms")
    print(f"recall, k=None   {found['deep'] / found['search']:6.2f} x that search, with 8,000 tokens handed over")
    print(f"recall after add {found['after_add'] / found['recall']:6.2f} x recall; the add {found['add'] * 1e3:.1f} ms")
    print(
        f"open             {found['open']:6.3f} s, and {found['answer']:.2f} s from a closed file to the first answer"
    )
    for where, used in (("on disk", size), ("in memory", found["memory"])):
        print(f"{where:16} {used / count:6.0f} bytes a turn, {used / count / vector:.2f} x its vector")


def read(path: str, count: int) -> dict[str, Any]:
    """What the reading process measures of a store, in seconds and bytes."""
    embedder = MadeUpEmbedder()
    turns = thread_of(count)
    texts = [turns[i].text for i in range(0, count, max(1, count // QUERIES))][:QUERIES]
    queries = list(zip(texts, embedder.embed(texts), strict=True))
    more = turns[:QUERIES]
    embedder.embed([turn.text for turn in more])
    del turns
    before, used = own_memory(), 0
    opened: list[float] = []
    answered: list[float] = []
    memories: list[EpisodicMemory] = []
    for _ in range(3):
        if memories:
            memories.pop().close()
        start = time.perf_counter()
        memories.append(EpisodicMemory(path, embedder=embedder))
        opened.append(time.perf_counter() - start)
        memories[0].thread("t").recall(queries[0][0], query_vector=queries[0][1])
        answered.append(time.perf_counter() - start)
        used = used or own_memory() - before
    memory = memories[0]
    thread = memory.thread("t")
    found: dict[str, Any] = {"open": min(opened), "answer": min(answered), "memory": used}
    raw = faiss.IndexFlatIP(embedder.dimension)
    raw.add(memory._indices["t",].flat.rows)

    def least(call: Callable[[str, Vectors], object]) -> float:
        return float(np.median([min(seconds(lambda: call(q, v)) for _ in range(REPEATS)) for q, v in queries]))  # noqa: B023

    found["search"] = least(lambda _, v: raw.search(v[None], 28))
    found["recall"] = least(lambda q, v: thread.recall(q, query_vector=v))
    found["deep"] = least(lambda q, v: thread.recall(q, k=None, max_tokens=8000, query_vector=v))
    adds, after = [], []
    for turn, (query, vector) in zip(more, queries, strict=True):
        adds.append(seconds(lambda: thread.add(turn)))  # noqa: B023
        after.append(seconds(lambda: thread.recall(query, query_vector=vector)))  # noqa: B023
    found["add"], found["after_add"] = float(np.median(adds)), float(np.median(after))
    memory.close()
    return found


def own_memory() -> int:
    """Bytes of memory that the process holds for itself; pages of mapped files are not among them."""
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("RssAnon:"))
        return int(next(kilobytes)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # not Linux: the peak is the best there is


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--real-turns", type=int, default=240)
    parser.add_argument("--read", metavar="STORE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        json.dump(read(arguments.read, arguments.turns), sys.stdout)
        return
    bench_ingest(arguments.real_turns)
    bench_scale(arguments.turns)


if __name__ == "__main__":
    main()
