import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from scale_qa.errors import SystemUnavailableError, UnknownSystemError
from scale_qa.systems import all_systems, built_in, find_system
from scale_qa.systems.base import MemorySystem, Resources, Unit
from scale_qa.systems.chunks import split_text
from tsim_core import Turn

# fmt: off
FIXED = [
    "tsim", "tsim-paper", "ladder-l0", "ladder-l1", "ladder-l2", "ladder-l3", "fixed-128", "fixed-256",
    "fixed-320", "bm25-128", "bm25-256", "bm25-320", "bm25-turn", "dense-turn", "sliding-3", "standard-rag",
    "hybrid-rrf", "hybrid-rerank", "raptor", "memgpt", "hipporag", "full-context", "sessions",
    "langgraph-store", "langchain-vectorstore-memory", "llamaindex-vector-block",
    "llamaindex-semantic-splitter", "mem0-raw",
]
# fmt: on
PEERS = {"langgraph-store", "langchain-vectorstore-memory", "llamaindex-vector-block", "llamaindex-semantic-splitter"}
# Marked for warnings that the peers' own packages raise.
RUNNABLE = [name for name in built_in() if name not in ("no-context", "mem0-raw", *PEERS)]
QUERY = "Which gate code holds at Marrowgate?"


def test_the_fixed_names_are_there():
    assert set(FIXED) <= set(built_in())


def built(name, embedder, turns):
    memory = find_system(name)(Resources(embedder))
    if memory.wants_gold:
        memory.take_gold([range(i, i + 3) for i in range(0, 12, 3)])
    memory.ingest(turns)
    return memory


def check_memory(memory, embedder, turns):
    """What every memory must do."""
    found = memory.retrieve(QUERY, 5)
    assert 1 <= len(found) <= 5
    assert {0, 2} & {i for unit in found for i in unit.turns}
    assert all(0 <= i < len(turns) for unit in found for i in unit.turns)
    # What comes later has the next positions, and is found.
    memory.ingest([Turn("assistant", "padding " * 260)])
    repeated = [Turn("assistant", "Good."), Turn("user", "Good."), Turn("assistant", "Good.")]
    memory.ingest([Turn("user", "The zeppelin hangar opens at noon."), *repeated])
    late = memory.retrieve("When does the zeppelin hangar open?", 5)
    assert 13 in {i for unit in late for i in unit.turns}
    assert memory.footprint().vectors >= 0
    memory.close()


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_system_finds_what_it_was_told(name, embedder, turns):
    check_memory(built(name, embedder, turns), embedder, turns)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", sorted(PEERS))
def test_every_peer_finds_what_it_was_told(name, embedder, turns):
    check_memory(built(name, embedder, turns), embedder, turns)


@pytest.mark.skipif(find_spec("mem0") is None, reason="mem0ai is installed by hand: it pins an older protobuf")
@pytest.mark.filterwarnings("ignore")
def test_mem0_finds_what_it_was_told(embedder, turns):
    check_memory(built("mem0-raw", embedder, turns), embedder, turns)


@pytest.mark.parametrize("name", RUNNABLE)
def test_an_empty_memory_finds_nothing(name, embedder):
    memory = find_system(name)(Resources(embedder))
    memory.ingest([])
    found = memory.retrieve(QUERY, 5)
    assert [i for unit in found for i in unit.turns] == []
    memory.close()


@pytest.mark.parametrize("name", RUNNABLE)
def test_blank_turns_and_single_turns_are_no_trouble(name, embedder):
    memory = find_system(name)(Resources(embedder))
    memory.ingest([Turn("user", "The gate code of Marrowgate is seven."), Turn("tool", "")])
    assert 0 in {i for unit in memory.retrieve(QUERY, 2) for i in unit.turns}
    memory.close()


@pytest.mark.parametrize("name", RUNNABLE)
def test_systems_are_deterministic(name, embedder, turns):
    first, second = (built(name, embedder, turns) for _ in range(2))
    assert [u.turns for u in first.retrieve(QUERY, 5)] == [u.turns for u in second.retrieve(QUERY, 5)]
    first.close()
    second.close()


def test_bm25_finds_words_and_windows_hold_whole_turns(embedder, turns):
    memory = built("bm25-turn", embedder, turns)
    assert memory.retrieve("sourdough starter", 1)[0].turns == (6,)
    window = built("bm25-256", embedder, turns).retrieve("sourdough starter", 1)[0].turns
    assert 6 in window
    assert window == tuple(range(window[0], window[-1] + 1))


def test_given_sessions_are_the_units(embedder, turns):
    assert built("sessions", embedder, turns).retrieve(QUERY, 1)[0].turns == (0, 1, 2)


def test_the_sliding_window_brings_the_neighbours(embedder, turns):
    units = built("sliding-3", embedder, turns).retrieve("Basalt columns form as lava cools.", 12)
    assert {10, 11} <= set(units[0].turns)
    assert sorted(unit.turns for unit in units)[5] == (4, 5, 6)


def test_nothing_and_everything(embedder, turns):
    assert built("no-context", embedder, turns).retrieve(QUERY, 5) == []
    assert built("full-context", embedder, turns).retrieve(QUERY, 5) == [Unit(tuple(range(12)))]


def test_tsim_tells_what_each_view_adds_and_holds_a_budget(embedder, turns):
    memory = built("tsim-paper", embedder, turns)
    unit = memory.retrieve(QUERY, 5)[0]
    assert set(unit.views) >= {"raw", "summary"}
    assert sum(unit.views.values()) == pytest.approx(unit.score)
    handed = memory.retrieve_budget(QUERY, 60)
    assert len(handed[0].text.split()) * 1.3 <= 60
    assert "Marrowgate" in handed[0].text
    assert memory.prompt(QUERY, []) is not None
    memory.close()


def test_leaving_the_raw_view_out_leaves_it_out(embedder, turns):
    memory = built("tsim-paper-no-raw", embedder, turns)
    assert all("raw" not in unit.views for unit in memory.retrieve(QUERY, 5))
    memory.close()


def test_stand_ins_are_named(embedder):
    for name in ("raptor", "memgpt", "hipporag", "hybrid-rerank"):
        assert find_system(name)(Resources(embedder)).notes
        lent = find_system(name)(Resources(embedder, complete=lambda prompt: "An answer."))
        assert not any("no LLM set" in note for note in lent.notes)


def test_a_lent_llm_writes_the_summaries(embedder, turns):
    asked = []

    def complete(prompt):
        asked.append(prompt)
        return "A hummingbird summary."

    memory = find_system("raptor")(Resources(embedder, complete=complete))
    memory.ingest([Turn("user", f"{turn.text} {'padding ' * 60}") for turn in turns * 2])
    assert any("Marrowgate" in prompt for prompt in asked)
    best = memory.retrieve("hummingbird summary", 1)[0]
    assert (best.turns, best.text) == ((), "A hummingbird summary.")


def test_triples_that_are_no_json_are_counted(embedder, turns):
    memory = find_system("hipporag")(Resources(embedder, complete=lambda prompt: "none that I see"))
    memory.ingest(turns)
    assert "took the stand-in" in memory.notes[0]
    good = '[["Marrowgate", "has", "gate code nine"]]'
    memory = find_system("hipporag")(Resources(embedder, complete=lambda prompt: f"Here: {good}"))
    memory.ingest(turns)
    assert memory.notes == ()
    assert memory.retrieve("Marrowgate", 1)


def test_memgpt_keeps_the_recent_and_pages_the_rest(embedder, turns):
    long = [Turn("user", f"Turn {i}: " + "word " * 50) for i in range(60)]
    memory = find_system("memgpt")(Resources(embedder))
    memory.ingest([*turns, *long])
    queue, *pages = memory.retrieve(QUERY, 5)
    assert queue.turns[-1] == 71
    assert len(pages) == 4
    assert 0 in {i for page in pages for i in page.turns}
    assert not set(queue.turns) & {i for page in pages for i in page.turns}


def test_long_messages_are_cut_with_overlap():
    text = " ".join(f"w{i}" for i in range(100))
    pieces = split_text(text, 40, 10)
    assert [piece.split()[0] for piece in pieces] == ["w0", "w30", "w60"]
    assert all(len(piece.split()) <= 40 for piece in pieces)
    assert pieces[-1].split()[-1] == "w99"
    assert split_text("门" * 50, 40, 10) == ["门" * 40, "门" * 20]
    assert split_text("short", 40, 10) == ["short"]


def test_a_chunk_of_a_cut_message_claims_no_whole_turn(embedder):
    memory = find_system("standard-rag")(Resources(embedder))
    memory.ingest([Turn("user", " ".join(f"w{i}" for i in range(400)))])
    assert all(unit.turns == () and unit.text for unit in memory.retrieve("w1", 5))


def test_an_unknown_system_is_told_the_names():
    with pytest.raises(UnknownSystemError, match=r"no system 'bm25-265' \(did you mean bm25-256\?\); there are tsim, "):
        find_system("bm25-265")


def test_a_missing_package_names_the_command(embedder, monkeypatch):
    monkeypatch.setitem(sys.modules, "mem0", None)
    with pytest.raises(SystemUnavailableError, match="pip install mem0ai"):
        find_system("mem0-raw")(Resources(embedder))


MINE = """
from scale_qa.systems import MemorySystem, Unit

class Mine(MemorySystem):
    '''The last turns.'''
    def __init__(self, resources): self.count = 0
    def ingest(self, turns): self.count += len(turns)
    def retrieve(self, query, k): return [Unit((i,)) for i in range(self.count)[::-1][:k]]

def not_a_memory(resources): return 7
"""


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(MINE)
    return path


def test_a_file_can_hold_a_system(own_file, embedder, turns):
    memory = find_system(f"{own_file}:Mine")(Resources(embedder))
    memory.ingest(turns)
    assert [unit.turns for unit in memory.retrieve("x", 2)] == [(11,), (10,)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}:Yours", "defines no 'Yours'"),
        ("{}:not_a_memory", "made a int"),
        ("missing.py:Mine", "missing.py"),
        ("no_such_module:Mine", "no_such_module"),
    ],
)
def test_a_file_without_one_is_an_error(own_file, embedder, name, message):
    with pytest.raises(UnknownSystemError, match=message):
        find_system(name.format(own_file))(Resources(embedder))


def install(folder: Path, name: str) -> None:
    """A distribution with one entry point, as pip would lay it."""
    (folder / "own_plugin.py").write_text(MINE)
    info = folder / "own_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[scale_qa.systems]\n{name} = own_plugin:Mine\n")


def test_an_installed_plug_in_is_found(tmp_path, monkeypatch, embedder, turns):
    install(tmp_path, "own-memory")
    monkeypatch.syspath_prepend(tmp_path)
    assert all_systems()["own-memory"].summary == "plug-in from own-plugin"
    memory = find_system("own-memory")(Resources(embedder))
    assert isinstance(memory, MemorySystem)
    memory.ingest(turns)
    assert memory.retrieve("x", 1)[0].turns == (11,)


def test_a_plug_in_cannot_take_a_built_in_name(tmp_path, monkeypatch):
    install(tmp_path, "tsim")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownSystemError, match="takes a built-in name"):
        all_systems()
