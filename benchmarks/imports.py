"""How light the imports are: seconds in a fresh interpreter, and how much each adds to ``import langchain_core``'s.

A plugin that is imported by a web worker or a command line should not drag in what it does not use yet. Each statement
is run in a new process several times; the least counts, for the rest is the machine's noise.

    python benchmarks/imports.py [--repeat 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.util import find_spec

BASE = "from langchain_core.messages import HumanMessage"
STATEMENTS = {
    "langchain_core": "import langchain_core",
    "langchain_core.messages": BASE,
    "langchain_core.retrievers": "from langchain_core.retrievers import BaseRetriever",
    "tsim_core": "import tsim_core",
    "langchain_tsim": "import langchain_tsim",
    "langchain_tsim.TSIMRetriever": "from langchain_tsim import TSIMRetriever",
    "langchain_classic.base_memory": "from langchain_classic.base_memory import BaseMemory",
    "langchain_tsim.TSIMMemory": "from langchain_tsim import TSIMMemory",
    "langchain.agents": "import langchain.agents",
    "langchain_tsim.TSIMMiddleware": "from langchain_tsim import TSIMMiddleware",
}
AGAINST = {  # what a user of the name imports anyway
    "langchain_tsim": "langchain_core",
    "langchain_tsim.TSIMRetriever": "langchain_core.retrievers",
    "langchain_tsim.TSIMMemory": "langchain_classic.base_memory",
    "langchain_tsim.TSIMMiddleware": "langchain.agents",
}


def seconds(statement: str, repeat: int) -> float:
    """Least time of a statement in a fresh interpreter."""
    code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
    runs = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(repeat)
    )
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Import times of the LangChain plugin as ratios.")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each statement, the least counts")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    present = {name: s for name, s in STATEMENTS.items() if find_spec(name.split(".")[0])}
    times = {name: seconds(statement, arguments.repeat) for name, statement in present.items()}
    ratios = {name: times[name] / times[base] for name, base in AGAINST.items() if {name, base} <= times.keys()}
    if arguments.json:
        print(json.dumps({"seconds": times, "ratios": ratios}))
        return
    for name, value in times.items():
        ratio = f"   {ratios[name]:.2f} x {AGAINST[name]}" if name in ratios else ""
        print(f"{name:32} {1000 * value:7.0f} ms{ratio}")


if __name__ == "__main__":
    main()
