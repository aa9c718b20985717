"""Runs the code blocks of the documentation and compares what they print with what the pages say they print.

    python docs/blocks.py [PAGE.md ...]            # run, and show where a page and its code disagree
    python docs/blocks.py --write [PAGE.md ...]    # write what the code prints into the pages

The blocks of a page run in order, in one namespace and one empty directory that sees the repository's ``examples``. A
``text`` block right behind a ``python`` or ``sh`` block is what that one prints; a block that prints needs one.
Decimal numbers may differ a little, as they do between processors. Blocks that only set a machine up (``pip install``,
``make``, ``git clone``) are not run here; what they name has to exist.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("packages/*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}) *(?P<language>[\w+-]*)(?P<rest>.*)$")
SETS_UP = re.compile(r"(pip install|make|git clone|cd|export|source|\. |python3? -m venv)\b")
OURS = re.compile(r"(?<![\w-])((?:\w+-)*tsim(?:-core)?|scale-qa)(?:\[([\w,-]+)\])?")
DECIMAL = re.compile(r"-?\d+\.\d+")
DAY = r"\d{4}-\d\d-\d\d"
TODAY = "<today>"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: The word behind the fence.
        code: What is in it, without the page's indentation.
        first: Index of the line of its opening fence.
        last: Index of the line of its closing fence.
        indent: Spaces before its fences.
    """

    language: str
    code: str
    first: int
    last: int
    indent: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a block printed, beside what the page says.

    Attributes:
        block: The block that ran.
        said: The block that holds its output; None where there is none.
        printed: What it printed.
    """

    block: Block
    said: Block | None
    printed: str

    @property
    def agrees(self) -> bool:
        """Whether the page says what the code printed."""
        return same(self.said.code if self.said else "", self.printed)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    opened: tuple[int, re.Match[str]] | None = None
    lines = text.splitlines()
    for i, line in enumerate(lines):
        match = FENCE.match(line)
        if opened is None:
            opened = (i, match) if match else None
        elif match and match["ticks"] == opened[1]["ticks"] and not match["language"]:
            indent = len(opened[1]["indent"])
            code = "\n".join(line[indent:] for line in lines[opened[0] + 1 : i])
            found.append(Block(opened[1]["language"], code, opened[0], i, indent))
            opened = None
    if opened is not None:
        raise ValueError(f"line {opened[0] + 1}: a block is not closed")
    return found


def same(said: str, printed: str) -> bool:
    """Whether two outputs are the same but for white space, last digits of decimals, and today's date."""
    for day in {datetime.now(UTC).date(), datetime.now().date()}:  # what is stored today is dated today
        printed = printed.replace(day.isoformat(), TODAY)
    words = DECIMAL.sub("#", said).split(), DECIMAL.sub("#", printed).split()
    if len(words[0]) != len(words[1]):
        return False
    if not all(re.fullmatch(re.escape(b).replace(re.escape(TODAY), DAY), a) for a, b in zip(*words, strict=True)):
        return False
    pairs = zip(map(float, DECIMAL.findall(said)), map(float, DECIMAL.findall(printed)), strict=True)
    return all(abs(a - b) <= 0.05 + 0.02 * abs(b) for a, b in pairs)


def run_page(page: Path) -> list[Outcome]:
    """Run the blocks of a page.

    Raises:
        Exception: Whatever a block raises; its traceback shows the line of the page.
        ValueError: If a block of commands to set up a machine names what does not exist.
        RuntimeError: If a command fails.
    """
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    between = text.splitlines()
    outcomes: list[Outcome] = []
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    module.__file__ = str(page)
    with workspace(module) as directory:
        for i, block in enumerate(found):
            following = found[i + 1] if i + 1 < len(found) else None
            said = None
            if following is not None and following.language == "text":
                gap = between[block.last + 1 : following.first]
                said = following if not any(line.strip() for line in gap) else None
            if block.language == "python":
                outcomes.append(Outcome(block, said, run_python(page, block, module)))
            elif block.language == "sh":
                if sets_up(block):
                    check_set_up(block)
                else:
                    outcomes.append(Outcome(block, said, run_shell(block, directory)))
    return outcomes


@contextlib.contextmanager
def workspace(module: ModuleType) -> Iterator[Path]:
    """An empty directory to work in, with the module where typing looks for it."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        directory = Path(name)
        (directory / "examples").symlink_to(ROOT / "examples")
        sys.modules[module.__name__] = module
        os.chdir(directory)
        try:
            yield directory
        finally:
            os.chdir(here)
            del sys.modules[module.__name__]


def run_python(page: Path, block: Block, module: ModuleType) -> str:
    """Run a block in the page's namespace. Returns what it printed."""
    source = "\n" * (block.first + 1) + block.code
    code = compile(source, str(page), "exec", dont_inherit=True)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, module.__dict__)  # noqa: S102 - the project's own pages
    return out.getvalue()


def run_shell(block: Block, directory: Path) -> str:
    """Run a block of commands. Returns what they printed on stdout."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"line {block.first + 1}: status {done.returncode}\n{block.code}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def commands(block: Block) -> list[str]:
    """The commands of a block, without comments."""
    lines = (line.split(" #")[0].strip() for line in block.code.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def sets_up(block: Block) -> bool:
    """Whether a block only sets a machine up."""
    return all(SETS_UP.match(command) for command in commands(block))


def check_set_up(block: Block) -> None:
    """Check that the targets, packages and extras that a block names are there.

    Raises:
        ValueError: If one is not.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands(block):
        where = f"line {block.first + 1}: {command}"
        if command.startswith("make"):
            for target in command.split()[1:]:
                if "=" not in target and not re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE):
                    raise ValueError(f"{where}: the Makefile has no target {target}")
        if command.startswith("pip install"):
            for name, extras in re.findall(
                r"(?<![\w/-])((?:[\w]+-)*tsim(?:-core)?|scale-qa)(?:\[([\w,-]+)\])?", command
            ):
                project = ROOT / "packages" / name / "pyproject.toml"
                if not project.exists():
                    raise ValueError(f"{where}: there is no package {name}")
                for extra in filter(None, extras.split(",")):
                    if not re.search(rf"^{extra} = \[", project.read_text(encoding="utf-8"), re.MULTILINE):
                        raise ValueError(f"{where}: {name} has no extra {extra}")


def write(page: Path, outcomes: list[Outcome]) -> None:
    """Write what the blocks of a page printed into it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for outcome in reversed(outcomes):
        if outcome.agrees:
            continue
        indent = " " * outcome.block.indent
        printed = [(indent + line).rstrip() for line in outcome.printed.rstrip().splitlines()]
        if outcome.said is not None:
            lines[outcome.said.first + 1 : outcome.said.last] = printed
        else:
            lines[outcome.block.last + 1 : outcome.block.last + 1] = ["", f"{indent}```text", *printed, f"{indent}```"]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Run pages. Returns 1 where one disagrees with its code."""
    parser = argparse.ArgumentParser(description="Run the code blocks of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE.md")
    parser.add_argument("--write", action="store_true", help="write what the code prints into the pages")
    arguments = parser.parse_args()
    wrong = 0
    for page in [p.resolve() for p in arguments.pages] or PAGES:
        outcomes = run_page(page)
        differ = [outcome for outcome in outcomes if not outcome.agrees]
        print(f"{page.relative_to(ROOT)}: {len(outcomes)} blocks, {len(differ)} differ")
        if arguments.write:
            write(page, outcomes)
            continue
        for outcome in differ:
            wrong = 1
            said = outcome.said.code if outcome.said else "(nothing)"
            print(f"line {outcome.block.first + 1} prints\n{outcome.printed}\nand the page says\n{said}\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
