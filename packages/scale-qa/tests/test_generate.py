import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest
from scale_qa.errors import BuildError
from scale_qa.families import pools, reacting, shipped_families
from scale_qa.generate import draw_family, generate, make_record
from scale_qa.records import DOMAINS, LETTERS, OVERLAPS, Message, dump_line, record_to_dict


def digest(records):
    return hashlib.sha256("".join(dump_line(record_to_dict(r)) for r in records).encode()).hexdigest()


def test_the_same_seed_gives_the_same_bytes_in_another_process(small_set):
    code = (
        "import hashlib; from scale_qa.families import shipped_families; from scale_qa.generate import generate; "
        "from scale_qa.records import dump_line, record_to_dict; "
        "records = generate(shipped_families(), 120, 3); "
        "print(hashlib.sha256(''.join(dump_line(record_to_dict(r)) for r in records).encode()).hexdigest())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "99", "LC_ALL": "C"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.strip() == digest(small_set)


def test_another_seed_gives_others(small_set):
    other = generate(shipped_families(), 120, 4)
    assert {r.id for r in other} == {r.id for r in small_set}
    assert digest(other) != digest(small_set)


@pytest.mark.parametrize("count", [40, 119, 120, 203])
def test_any_count_is_balanced(count):
    records = generate(shipped_families(), count, 1)
    assert len(records) == len({record.id for record in records}) == count
    for group in (records, *([r for r in records if r.topic == domain] for domain in DOMAINS)):
        for field, values in (("answer", LETTERS), ("overlap", OVERLAPS)):
            counts = [sum(getattr(r, field) == value for r in group) for value in values]
            assert max(counts) - min(counts) <= 1
    sizes = Counter(record.topic for record in records)
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_too_few_to_balance_is_an_error():
    with pytest.raises(BuildError, match="ask for 40 records or more"):
        generate(shipped_families(), 39, 1)


def test_a_domain_without_families_is_an_error():
    with pytest.raises(BuildError, match="no family for Legal"):
        generate([f for f in shipped_families() if f.topic != "Legal"], 40, 1)


def test_records_of_a_family_differ_in_wording_and_cue():
    for family in shipped_families()[::20]:
        draws = draw_family(family, [OVERLAPS[i % 3] for i in range(15)], 7)
        for a, b in combinations(draws, 2):
            assert sum(x != y for x, y in zip(a.wordings, b.wordings, strict=True)) >= 1
            assert a.cue
            assert any(b.values[name].casefold() != value for name, value in a.cue.items()), (family.id, a.cue)


def test_every_case_of_a_family_comes_about_equally_often():
    family = shipped_families()[0]
    draws = draw_family(family, [OVERLAPS[i % 3] for i in range(12)], 7)
    key = next(iter(family.cases[0]))
    counts = Counter(draw.values[key] for draw in draws)
    assert max(counts.values()) - min(counts.values()) <= len(family.cases)


def test_the_four_options_are_worded_alike(small_set):
    family = next(f for f in shipped_families() if f.id == "cs-flag-colours")
    draws = draw_family(family, ["lexical"] * 4, 7)
    assert {draw.option for draw in draws} == {0, 1}
    records = [r for r in small_set if r.family == "cs-flag-colours"]
    assert all(len({option.split()[0] for option in record.options}) == 1 for record in records)


def test_records_not_in_english_say_so(small_set):
    assert {"zh", "es", "de", "ja"} & {record.language for record in small_set}


def test_asides_come_and_go_and_nothing_that_a_query_names_goes_with_them():
    families = {family.id: family for family in shipped_families()}
    left_out = kept = 0
    for name in ("eng-lock-tags", "biomed-rotor-ban", "net-lab-bios", "legal-time-entry-codes"):
        family = families[name]
        for draw in draw_family(family, [OVERLAPS[i % 3] for i in range(12)], 7):
            missing = {i for i, wording in enumerate(draw.wordings) if wording is None}
            assert missing <= {turn for run in family.asides for user in run for turn in (user, user + 1)}
            left_out, kept = left_out + bool(missing), kept + (not missing)
            record = make_record(family, draw, "our:x", "A", 7)
            assert len(record.dialogue) == len(family.turns) - len(missing)
            assert [turn.role for turn in record.dialogue[:2]] == ["user", "assistant"]
            assert "[" not in "".join(turn.text for turn in record.dialogue)
            for value in draw.cue.values():
                assert value in " ".join(turn.text for turn in record.dialogue).casefold()
    assert left_out > 0
    assert kept > 0


def test_a_reaction_to_an_aside_is_said_only_after_it():
    assert reacting("[Sent off.] By the way, it is blue.", to_reply=True) == "Sent off. By the way, it is blue."
    assert reacting("[Sent off.] by the way, it is blue.", to_reply=False) == "By the way, it is blue."
    assert reacting("[ok sent.] by the way, it is blue.", to_reply=False) == "by the way, it is blue."
    assert reacting("Nothing before [this].", to_reply=False) == "Nothing before [this]."


def test_a_detour_parts_the_evidence_and_changes_nothing_else():
    family = next(f for f in shipped_families() if f.id == "eng-lock-tags")
    draw = draw_family(family, ["lexical"], 7)[0]
    detour = (Message("user", "Nice weather."), Message("assistant", "Indeed."))
    plain, parted = (make_record(family, draw, "our:x", "B", 7, talk) for talk in ((), detour))
    place = parted.dialogue.index(detour[0])
    assert parted.dialogue[place : place + 2] == detour
    assert parted.evidence_turns()[0] < place < parted.evidence_turns()[-1]
    assert len(parted.dialogue) == len(plain.dialogue) + 2
    assert (parted.query, parted.options, parted.answer) == (plain.query, plain.options, plain.answer)


def test_only_an_indirect_query_names_its_matter():
    family = next(f for f in shipped_families() if f.id == "eng-lock-tags")
    for kind in OVERLAPS:
        record = make_record(family, draw_family(family, [kind], 7)[0], "our:x", "A", 7)
        assert record.query.endswith(family.about) == (kind == "indirect")


def test_names_recur_over_families(small_set):
    texts = {
        name: {r.family for r in small_set if any(name in turn.text for turn in r.dialogue)}
        for name in pools()["names"]
    }
    assert sum(len(families) > 1 for families in texts.values()) > len(texts) / 3
