import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest
from scale_qa.errors import BuildError
from scale_qa.families import shipped_families
from scale_qa.generate import draw_family, generate
from scale_qa.records import DOMAINS, LETTERS, OVERLAPS, dump_line, record_to_dict


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
