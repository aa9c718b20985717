import json

import pytest
from scale_qa.cli import main
from scale_qa.errors import GoldError
from scale_qa.segmentation_eval import GoldDialogue, assign_roles, evaluate, read_gold

TOPICS = (
    ["the gate code lock seven", "gate code lock seven then", "gate lock code nine", "gate code nine lock then"],
    ["rye flour starter bread oven", "bread oven rye flour now", "oven bread flour rye", "flour rye bread oven now"],
)


def gold_file(path, *dialogues):
    path.write_text(json.dumps(list(dialogues)))
    return path


def test_a_gold_file_is_read(tmp_path):
    path = gold_file(tmp_path / "g.json", {"utterances": ["a", "b", "c"], "segments": [2, 1], "dial_id": 7})
    assert read_gold(path) == [GoldDialogue(("a", "b", "c"), (2, 1))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not JSON"),
        ("{}", "non-empty JSON list"),
        ("[]", "non-empty JSON list"),
        ("[3]", "dialogue 0: expected an object"),
        ('[{"utterances": ["a", "b"]}]', '"segments"'),
        ('[{"utterances": "ab", "segments": [2]}]', "list of strings"),
        ('[{"utterances": ["a", 3], "segments": [2]}]', "list of strings"),
        ('[{"utterances": ["a", "b"], "segments": [2, 0]}]', "positive whole numbers"),
        ('[{"utterances": ["a", "b"], "segments": [true, 1]}]', "positive whole numbers"),
        ('[{"utterances": ["a", "b"], "segments": [1]}]', "add up to 1 turns, there are 2"),
        ('[{"utterances": ["a"], "segments": [1]}]', "cannot be segmented"),
    ],
)
def test_a_malformed_gold_file_names_the_dialogue(tmp_path, content, message):
    path = tmp_path / "g.json"
    path.write_text(content)
    with pytest.raises(GoldError, match=message):
        read_gold(path)


def test_alternating_speakers_are_recognised_without_the_segments(embedder):
    talk = []
    for word in ("gate", "flour", "granite", "zeppelin", "tide", "violin", "ledger", "comet"):
        talk += [f"what of the {word} today", f"what the {word} does today is fine"]
    dialogues = [GoldDialogue(tuple(talk), (16,))]
    assert assign_roles(dialogues, embedder)[0][:3] == ["user", "assistant", "user"]


def test_speakers_on_a_par_are_left_alone(embedder):
    talk = [f"word{i} word{i + 1} shared" for i in range(16)]
    assert set(assign_roles([GoldDialogue(tuple(talk), (16,))], embedder)[0]) == {"speaker"}


def test_roles_can_be_said(embedder):
    dialogue = GoldDialogue(("a", "b", "c"), (3,))
    assert assign_roles([dialogue], embedder, "alternate") == [["user", "assistant", "user"]]
    assert assign_roles([dialogue], embedder, "none") == [["speaker"] * 3]


@pytest.mark.parametrize("system", ["tsim", "tsim-paper"])
def test_every_dialogue_is_tiled_and_scored(embedder, system):
    talk = [text for topic in TOPICS for text in topic]
    seen = []
    scores, roles = evaluate([GoldDialogue(tuple(talk), (4, 4))] * 2, system, embedder, "alternate", seen.append)
    assert (scores.dialogues, scores.gold_segments, roles, seen) == (2, 4, "alternate", [1, 2])
    # The published rule cannot cut below 120 tokens.
    assert scores.found_segments == (2 if system == "tsim-paper" else scores.found_segments)


def test_the_command_prints_one_document(tmp_path, capsys):
    talk = [text for topic in TOPICS for text in topic]
    path = gold_file(tmp_path / "g.json", {"utterances": talk, "segments": [4, 4]})
    assert main(["segment-eval", str(path), "--system", "tsim-paper", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"pk", "windowdiff", "f1", "score", "purity", "coverage"} <= set(document)
    assert (document["system"], document["found_segments"], document["f1"]) == ("tsim-paper", 1, 0.0)
    assert main(["segment-eval", str(path)]) == 0
    assert "windowdiff" in capsys.readouterr().out
