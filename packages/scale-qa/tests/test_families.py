import textwrap

import pytest
from scale_qa.errors import FamilyError
from scale_qa.families import fields, load_family, render, shipped_families
from scale_qa.family_lint import check_draws, check_family, main
from scale_qa.records import DOMAINS, LANGUAGES

FAMILY = """
    id: legal-gate-code
    topic: Legal
    language: en
    stress: [state_overwrite]
    slots:
      house: [Arden, Birkley, Corvane, Dunmere, Eskdell, Farrow, Garsby, Holtwick, Ingram, Jessop, Kelby, Lorne, Marlo,
        Norwick, Oakum, Pellam, Quarry]
      hour: {range: [1, 9]}
    cases:
      - {right: seven, old: nine}
      - {right: nine, old: seven}
    turns:
      - user: ["The gate of {house} opens with {old}, twice, and slowly at that, because the spring is tired. Keep it
          for me please, since I forget everything that has no melody and my sister laughs about it.",
          "Remember this about {house}: whoever wants in presses {old} two times. My memory is a sieve, and the paper
          on which I wrote it went through the wash yesterday together with a good pen.",
          "Note for {house}. You type {old} and again {old}, then push with the shoulder. I shall ask again, probably on
          a rainy evening with both hands full of shopping and no light."]
        evidence: true
      - assistant: ["I have it. Should the spring get worse, a drop of oil at the hinge usually helps for a year.",
          "Kept. I would tell a neighbour too, in case your telephone is empty some night.",
          "Noted, and I will bring it up when you ask about the entrance again."]
      - user: ["Thanks. Something else, how long do I boil an egg at {hour} in the morning, still asleep,
          with a kettle that hums?",
          "Good. Breakfast question: soft egg, cold from the fridge, clock says {hour}, how long do I leave it in?",
          "Fine. And please tell me how to get a yolk that still runs, it is {hour} already and nobody here knows."]
      - assistant: ["Six minutes from boiling water, then cold water over it for a moment so that it stops.",
          "Lower it into boiling water, wait six minutes, rinse it under the tap.",
          "Bring water to the boil first, then six minutes, and a cold bath at the end."]
      - user: ["Perfect. By the way, scrap what I told you at the start, they swapped it for {right} last night.",
          "It worked. Oh, and the first thing that I dictated is void: from today on it is {right}.",
          "Yum. One more: forget my opening remark, the caretaker made it {right} this week."]
        evidence: true
      - assistant: ["Done, the earlier note is crossed out and the new one stands.",
          "I replaced it, and I kept the date of the change as well.",
          "Understood, only the latest one counts from here."]
    queries:
      lexical: ["What do I press at the gate of {house}?", "{house}, gate: which digit do I type now?",
        "Tell me how one gets through the {house} gate."]
      paraphrase: ["Which key lets me into {house}?", "I need to get inside {house}, what was the digit?",
        "Entering {house}: remind me of the figure."]
      indirect: ["I stand in the rain outside {house} with a heavy bag.", "My aunt waits at {house} and cannot get in.",
        "A parcel for {house} is to be put behind the fence."]
    answer: ["{right}, twice", "press {right} two times"]
    wrong:
      - ["{old}, twice", "press {old} two times"]
      - ["eight, twice", "press eight two times"]
      - ["zero, twice", "press zero two times"]
    reasoning: "Turn 5 replaces the code of turn 1."
"""


@pytest.fixture
def write(tmp_path):
    def write(*changes: tuple[str, str]):
        text = textwrap.dedent(FAMILY)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "Legal" / "gate-code.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_family_is_read(write):
    family = load_family(write())
    assert family.id == "legal-gate-code"
    assert family.evidence == (0, 4)
    assert family.slots["hour"] == tuple("123456789")
    assert family.cases[1] == {"right": "nine", "old": "seven"}
    assert not list(check_family(family))
    assert not list(check_draws(family))


def test_slots_are_filled():
    values = {"team": "ospreys of Quill", "n": "3"}
    assert render("{team|cap}, {team|upper}: {{n}} is {n}", values) == "Ospreys of Quill, OSPREYS OF QUILL: {n} is 3"
    assert fields("{team|cap} {{no}} {n}") == {"team", "n"}


@pytest.mark.parametrize("text", ["{unknown}", "a { b", "a } b", "{team|title}"])
def test_what_cannot_be_filled_is_an_error(text):
    with pytest.raises(FamilyError, match=r"not defined|a lone"):
        render(text, {"team": "x"})


BROKEN = {
    "a key missing": (("reasoning:", "reason:"), "missing keys: .'reasoning'.; unknown keys: .'reason'."),
    "a key twice": (("language: en", "language: en\nlanguage: de"), "the key 'language' comes twice"),
    "no such domain": (("topic: Legal", "topic: Law"), "topic: 'Law' is not one of CS-Software"),
    "no such cue": (("[state_overwrite]", "[hurry]"), "stress: 'hurry' is not one of"),
    "a range backwards": (("[1, 9]", "[9, 1]"), "slots.hour: the smaller bound of a range comes first"),
    "cases of different keys": (("{right: nine, old: seven}", "{right: nine}"), "mappings that all have the same keys"),
    "a slot and case of one name": (("hour: {range", "old: {range"), "'old' is both a slot and a key of cases"),
    "two wrong options": (('  - ["zero, twice", "press zero two times"]\n', ""), "wrong: expected exactly three lists"),
    "a query kind missing": (("indirect:", "oblique:"), "queries: expected exactly the keys lexical"),
    "a mapping for a text": (('["{right}, twice"', "[{right: twice}"), "answer, wording 1: expected text"),
    "evidence no truth value": (("evidence: true", "evidence: maybe"), "evidence must be true or false"),
    "optional no truth value": (("evidence: true", "optional: maybe"), "optional must be true or false"),
    "no such pool": (("hour: {range: [1, 9]}", "hour: {pool: nams}"), "slots.hour: no pool 'nams'; there are names"),
    "no YAML": (("slots:", "slots: ["), "not readable as YAML"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_an_error_that_names_it(write, name):
    change, message = BROKEN[name]
    path = write(change)
    with pytest.raises(FamilyError, match=message) as error:
        load_family(path)
    assert str(error.value).startswith(str(path))


LINTED = {
    "kebab": (("id: legal-gate-code", "id: GateCode"), "is not kebab-case"),
    "folder": (("topic: Legal", "topic: Finance"), "the file lies in Legal/"),
    "unused slot": (
        ("hour: {range: [1, 9]}", "hour: {range: [1, 9]}\n  year: {range: [1, 9]}"),
        "'year' is defined but never",
    ),
    "unknown slot": (("since I forget", "since {you} forget"), "{you} is used but is neither"),
    "one case": (("\n  - {right: nine, old: seven}", ""), "cases: two or more are needed"),
    "one wording": (
        ('answer: ["{right}, twice", "press {right} two times"]', 'answer: ["{right}"]'),
        "answer: 1 wording",
    ),
    "near wordings": (
        ("Entering {house}: remind me of the figure.", "Which key lets me into {house} please?"),
        "queries.paraphrase: wordings 1 and 3 share nearly all words",
    ),
    "few values": (("Eskdell, Farrow, Garsby, Holtwick, Ingram, ", ""), "12 of 15 records can be told apart"),
    "a long option": (
        ("eight, twice", "eight, but only after a long and thorough look around you"),
        "more than a third apart",
    ),
    "an emoji": (("Done, the earlier", "Done \U0001f600 the earlier"), "an emoji or control character"),
    "roles": (('  - assistant: ["Done', '  - user: ["Done'), "turns alternate, and the first is user"),
    "no evidence": (("\n    evidence: true", ""), "0 evidence turns"),
}


@pytest.mark.parametrize("name", LINTED)
def test_the_check_names_what_is_wrong(write, name, capsys):
    change, message = LINTED[name]
    assert main([str(write(change))]) == 1
    out = capsys.readouterr().out
    assert message in out
    assert "gate-code.yaml: error: " in out


def test_the_check_passes_a_good_file_and_a_folder_of_it(write, capsys):
    assert main([str(write().parent)]) == 0
    assert "1 file(s), 0 error(s)" in capsys.readouterr().out


def test_an_id_twice_is_an_error(write, tmp_path, capsys):
    path = write()
    twin = path.with_name("twin.yaml")
    twin.write_text(path.read_text())
    assert main([str(path), str(twin)]) == 1
    assert "id 'legal-gate-code' is already used by" in capsys.readouterr().out


def test_the_shipped_families_cover_domains_and_languages():
    families = shipped_families()
    for domain in DOMAINS:
        assert sum(family.topic == domain for family in families) >= 20
    assert {family.language for family in families} == set(LANGUAGES)
    assert not [text for family in families for text in check_family(family)]
