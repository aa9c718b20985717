"""Build every distribution, install the built files into a clean environment, and look at what a user would get.

    python tests/release_check.py                        # check
    python tests/release_check.py --set-version 0.2.0    # write this version into all distributions

All distributions carry one version. Each builds as an sdist, and as a wheel out of that sdist; both hold what they
should. The wheels are installed one after another, each on those it needs, and used in an empty directory: the modules
import, are typed and bring their data, and the commands work.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION = re.compile(r'__version__ = "([^"]+)"')
SIBLING = re.compile(r'"(tsim-core|langchain-tsim|langgraph-tsim|llama-index-tsim|scale-qa)>=[^"]+"')

TALK = """User: The alarm code of the office changes on the first of each month.
Assistant: I will ask you for the new alarm code on the first.
"""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a distribution has to bring.

    Attributes:
        name: Its name, and that of its folder.
        modules: What is imported; each carries ``py.typed``.
        data: Files that are no code, by the end of their path.
        extras: What is installed with it.
        use: Commands that have to succeed once it is installed, and what they print.
    """

    name: str
    modules: tuple[str, ...]
    data: tuple[str, ...] = ()
    extras: str = ""
    use: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """Where its source is."""
        return ROOT / "packages" / self.name

    @property
    def stem(self) -> str:
        """How the names of its built files begin."""
        return self.name.replace("-", "_")

    @property
    def version_file(self) -> Path:
        """The file that holds its version."""
        text = (self.folder / "pyproject.toml").read_text(encoding="utf-8")
        return self.folder / re.findall(r'\[tool\.hatch\.version\]\s*path = "([^"]+)"', text)[0]

    @property
    def version(self) -> str:
        """Its version."""
        return VERSION.findall(self.version_file.read_text(encoding="utf-8"))[0]


DISTRIBUTIONS = (  # in an order in which each finds those it needs
    Distribution(
        "tsim-core",
        ("tsim_core",),
        ("embedding/minilm_tokenizer.json",),
        use=(
            ("tsim ingest talk.txt --store memory.db --thread alice/office", "2 turns added"),
            ("tsim recall 'When does the alarm code change?' --store memory.db --thread alice/office", "first of each"),
        ),
    ),
    Distribution("langchain-tsim", ("langchain_tsim",), extras="[memory,agents]"),
    Distribution("langgraph-tsim", ("langgraph_tsim",)),
    Distribution(
        "llama-index-tsim",
        (
            "llama_index.node_parser.tsim",
            "llama_index.retrievers.tsim",
            "llama_index.memory.tsim",
            "llama_index.utils.tsim",
        ),
    ),
    Distribution(
        "scale-qa",
        ("scale_qa",),
        ("data/noise/travel.yaml", "data/families/Legal/"),
        use=(
            ("scale-qa systems", "tsim-paper"),
            ("scale-qa generate --out records.jsonl --count 40 --seed 7", "40 records"),
            ("scale-qa build --records records.jsonl --target 8k --questions 4 --seed 7 --out package", "4 questions"),
        ),
    ),
)


def set_version(version: str) -> None:
    """Give all distributions a version, and have them ask for each other's of the same minor version."""
    major, minor = map(int, version.split(".")[:2])
    wanted = rf'"\1>={major}.{minor},<{major}.{minor + 1}"'
    for d in DISTRIBUTIONS:
        d.version_file.write_text(VERSION.sub(f'__version__ = "{version}"', d.version_file.read_text()))
        project = d.folder / "pyproject.toml"
        project.write_text(SIBLING.sub(wanted, project.read_text(encoding="utf-8")), encoding="utf-8")


def run(command: list[str | Path], directory: Path | None = None) -> str:
    """Run a command; its output, or an end with an error that shows it."""
    done = subprocess.run([str(part) for part in command], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def expect(holds: object, problem: str) -> None:
    """End with an error unless something holds."""
    if not holds:
        sys.exit(problem)


def build(d: Distribution, dist: Path) -> Path:
    """Build both files of a distribution and look into them. Returns the wheel."""
    run([sys.executable, "-m", "build", "--outdir", dist, d.folder])
    (wheel,), (sdist,) = dist.glob(f"{d.stem}-*.whl"), dist.glob(f"{d.stem}-*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        packed = file.namelist()
        metadata = Parser().parsestr(file.read(next(n for n in packed if n.endswith("/METADATA"))).decode())
    top = {name.split("/")[0] for name in packed if ".dist-info/" not in name}
    expect(top == {d.modules[0].split(".")[0]}, f"{wheel.name} holds more than its modules: {top}")
    expect("llama_index/__init__.py" not in packed, f"{wheel.name} would shadow the other packages of llama_index")
    wanted = [f"{module.replace('.', '/')}/py.typed" for module in d.modules] + ["licenses/LICENSE", *d.data]
    for end in wanted:
        expect(any(end in name for name in packed), f"{wheel.name} holds no {end}")
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "LICENSE", "pyproject.toml", "tests/conftest.py"):
        expect(name in sources, f"{sdist.name} holds no {name}")
    for field in ("Summary", "Author", "Keywords", "Requires-Python", "Project-URL", "License-Expression"):
        expect(metadata[field], f"{wheel.name} has no {field} in its metadata")
    expect(len(str(metadata.get_payload())) > 500, f"{wheel.name} has no description: README.md is all but empty")
    expect("Typing :: Typed" in metadata.get_all("Classifier", []), f"{wheel.name} does not say that it is typed")
    return wheel


def install(d: Distribution, wheel: Path, home: Path, directory: Path) -> None:
    """Install a wheel and use it, away from the source."""
    python = home / "bin" / "python"
    run([python, "-m", "pip", "install", "-q", "--no-compile", f"{wheel}{d.extras}"])
    run([python, "-m", "pip", "check"])
    for module in d.modules:
        run([python, "-W", "ignore", "-c", f"from {module} import *"], directory)
    for command, said in d.use:
        out = run(["bash", "-c", f'PATH="{home}/bin:$PATH" {command}'], directory)
        expect(said in out, f"{command} printed\n{out}\nand not {said!r}")


def main() -> None:
    """Check the release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set-version", metavar="V", help="write this version into all distributions, and stop")
    arguments = parser.parse_args()
    if arguments.set_version:
        set_version(arguments.set_version)
        return
    versions = {d.name: d.version for d in DISTRIBUTIONS}
    expect(len(set(versions.values())) == 1, f"the distributions differ in version: {versions}")
    with tempfile.TemporaryDirectory() as folder:
        home, directory = Path(folder, "venv"), Path(folder, "empty")
        directory.mkdir()
        (directory / "talk.txt").write_text(TALK, encoding="utf-8")
        venv.create(home, with_pip=True)
        for d in DISTRIBUTIONS:
            wheel = build(d, Path(folder, "dist"))
            print(f"{wheel.name}: built", end="", flush=True)
            install(d, wheel, home, directory)
            print(", installed, used")


if __name__ == "__main__":
    main()
