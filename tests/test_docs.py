"""What the README and the site say runs, and prints what they say."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    """A script of the docs folder as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


blocks = load("blocks")
reference = load("reference")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", blocks.PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_print_what_the_page_says(page: Path) -> None:
    for outcome in blocks.run_page(page):
        said = outcome.said.code if outcome.said else ""
        assert outcome.agrees, f"line {outcome.block.first + 1} prints\n{outcome.printed}\nand the page says\n{said}"


@pytest.mark.parametrize("page", blocks.PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_has_a_known_language(page: Path) -> None:
    known = {"python", "sh", "text", "json", "toml", "yaml", "mermaid"}
    assert {block.language for block in blocks.blocks(page.read_text(encoding="utf-8"))} <= known


def test_a_difference_is_seen() -> None:
    assert blocks.same("a  1.50\n", "a 1.51")
    assert not blocks.same("a 1.5", "a 1.7")
    assert not blocks.same("12 turns", "13 turns")
    assert not blocks.same("", "12 turns")
    assert blocks.same("[2026-01-02] a", f"[{datetime.now(UTC):%Y-%m-%d}] a")
    assert not blocks.same("[2026-01-02] a", "[2026-01-03] a")


def test_output_is_written_where_it_belongs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```python\nprint(2)\n```\n\n```text\n3\n```\n")
    blocks.write(page, blocks.run_page(page))
    assert page.read_text() == (
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nprint(2)\n```\n\n```text\n2\n```\n"
    )
    assert all(outcome.agrees for outcome in blocks.run_page(page))


def test_what_sets_up_a_machine_names_what_is_there() -> None:
    (good,) = blocks.blocks("```sh\npip install langchain-tsim\nmake test\n```")
    blocks.check_set_up(good)
    (bad,) = blocks.blocks("```sh\nmake coffee\n```")
    with pytest.raises(ValueError, match="no target coffee"):
        blocks.check_set_up(bad)


OUTSIDE = [*ROOT.glob("*.md"), *sorted(ROOT.glob("packages/*/*.md"))]


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_outside_the_site_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    local = [target for pair in targets for target in pair if target and not re.match(r"https?:", target)]
    if page.name == "README.md" and page.parent != ROOT:
        assert not local, "a package's README is shown away from the repository"
    for target in local:
        assert (page.parent / target.split("#")[0]).exists(), target


def test_continuous_integration_runs_what_there_is() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    targets = {"test", *jobs["other"]["strategy"]["matrix"]["target"]}
    assert targets >= {"test", "docs", "release-check"}
    blocks.check_set_up(blocks.Block("sh", "make " + " ".join(targets), 0, 0, 0))
    assert [job["steps"][-1]["run"] for job in jobs.values()] == ["make test", "make ${{ matrix.target }}"]
    tested = {f"Programming Language :: Python :: {v}" for v in jobs["test"]["strategy"]["matrix"]["python"]}
    for project in ROOT.glob("packages/*/pyproject.toml"):
        claimed = re.findall(r"Programming Language :: Python :: 3\.\d+", project.read_text(encoding="utf-8"))
        assert set(claimed) == tested, project


@pytest.mark.parametrize("name", reference.MODULES)
def test_every_public_name_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    page = next(page for page in reference.pages().values() if f"::: {name}." in page)
    for public in module.__all__:
        if public == "__version__":
            continue
        assert re.search(rf"^::: {re.escape(name)}\.{public}$", page, re.MULTILINE), f"{name}.{public} is on no page"
        value = getattr(module, public)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue  # a type alias or a constant has no docstring that Python keeps
        assert inspect.getdoc(value), f"{name}.{public} has no docstring"
        members = vars(value).items() if inspect.isclass(value) else ()
        for member, function in members:
            if not member.startswith("_") and inspect.isfunction(function):
                assert inspect.getdoc(getattr(value, member)), f"{name}.{public}.{member} has no docstring"


def test_the_architecture_page_names_every_module_of_the_core() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    core = ROOT / "packages" / "tsim-core" / "src" / "tsim_core"
    modules = {path.name for path in core.glob("*.py") if not path.name.startswith("_")}
    assert modules <= set(re.findall(r"`(\w+\.py)`", page))


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("mkdocs", path=Path(sys.executable).parent) is None:
        pytest.fail("mkdocs is missing: pip install --group docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    assert len(html) > 20
    fetched = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)')
    outside = {link for page in html for link in fetched.findall(page)}
    assert not outside, "pages fetch from elsewhere"
