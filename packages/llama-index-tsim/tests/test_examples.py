"""The examples do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(name: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "TSIM_MODEL"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "llamaindex_ingest.py",
            [
                "   0-284  User: New projects run on a single consumer GPU",
                "nodes from the cache, the same: True",
                "Assistant: Understood: one RTX 4090 for each new project",
            ],
        ),
        (
            "llamaindex_chat_engine.py",
            [
                "user: New projects run on a single consumer GPU, an RTX 4090.",
                "It answered: A single RTX 4090, by your rule.",
                "The memory keeps all 10 messages.",
            ],
        ),
        (
            "llamaindex_agent.py",
            [
                "user: My cat Luna is allergic to tuna, says the vet.",
                "No tuna: she is allergic.",
                "kept tool results: ['The cat weighs 4.2 kg.']",
            ],
        ),
    ],
)
def test_example(name, lines):
    shown = run(name)
    for line in lines:
        assert line in shown
