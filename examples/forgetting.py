"""Users kept apart, turns forgotten for good, a user's memory taken along.

Prints what a recall of each user finds, whether a forgotten text is left in the bytes of the store, and how much was
exported.

    python examples/forgetting.py

No model is asked: TSIM calls none.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tsim_core import EpisodicMemory


def main() -> None:
    """Store, forget, look into the file, export."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.db")
        with EpisodicMemory(path) as memory:
            memory.thread("alice", "health").add("user", "My blood group is A negative.")
            memory.thread("bob", "health").add("user", "My blood group is B positive.")
            for user in ("alice", "bob"):
                recall = memory.recall("Which blood group?", prefix=(user,))
                print(f"{user}: {recall.episodes[0].turns[0].text}")

            secret = memory.thread("alice", "work").add("user", "The safe opens with 4711-0815.")
            print("in the file before:", in_file(path, b"4711-0815"))
            memory.thread("alice", "work").forget([secret])
            print("in the file after forgetting:", in_file(path, b"4711-0815"))

            print("exported for alice:", memory.export(Path(folder, "alice.jsonl"), prefix=("alice",)), "turn")
            for name in memory.threads(("alice",)):
                memory.thread(*name).clear()
            print("threads left:", memory.threads())


def in_file(path: Path, text: bytes) -> bool:
    """Whether a text is in the store's bytes, its write-ahead log included."""
    return any(text in part.read_bytes() for part in path.parent.glob(f"{path.name}*"))


if __name__ == "__main__":
    main()
