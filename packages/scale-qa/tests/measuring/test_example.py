from pathlib import Path

from scale_qa.cli import main
from scale_qa.results import read_results

EXAMPLE = Path(__file__).parents[4] / "examples" / "scale_qa_your_memory.py"


def test_a_memory_of_ones_own_takes_one_short_file(package, tmp_path):
    assert len(EXAMPLE.read_text().splitlines()) < 40
    name = f"{EXAMPLE}:Recent"
    assert main(["run", str(package.directory), "--system", name, "--out", str(tmp_path / "r.json")]) == 0
    assert read_results(tmp_path / "r.json")["systems"][name]["evidence_found"] == 1.0
