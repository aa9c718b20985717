from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from scale_qa.audit import Report, audit, bm25_shares, complete_set, hard_for_bm25
from scale_qa.build import Plan, build
from scale_qa.families import shipped_families
from scale_qa.generate import generate
from scale_qa.records import LETTERS, Message, Record

Mutation = Callable[[Sequence[Record]], list[Record]]


def first(change: Callable[[Record], Record]) -> Mutation:
    """Change one record."""
    return lambda records: [change(records[0]), *records[1:]]


def every(change: Callable[[Record], Record]) -> Mutation:
    """Change all of them."""
    return lambda records: [change(record) for record in records]


def with_turn(record: Record, place: int, text: str) -> Record:
    """Another text at one place, in the evidence too."""
    old = record.dialogue[place]
    dialogue = (*record.dialogue[:place], Message(old.role, text), *record.dialogue[place + 1 :])
    return replace(
        record, dialogue=dialogue, expected_doc=tuple(text if t == old.text else t for t in record.expected_doc)
    )


def with_options(record: Record, right: str, wrong: Sequence[str]) -> Record:
    options = list(wrong)
    options.insert(LETTERS.index(record.answer), right)
    return replace(record, options=tuple(options))


def twin_of_family(records: Sequence[Record]) -> list[Record]:
    """A second record of a family in the same words, but for the names."""
    one = next(r for r in records if r.language == "en")
    other = replace(
        one,
        id="our:twin",
        query=one.query + " Today.",
        dialogue=tuple(Message(t.role, t.text + " Thanks.") for t in one.dialogue),
        expected_doc=tuple(text + " Thanks." for text in one.expected_doc),
    )
    return [*records, other]


MUTATIONS: dict[str, tuple[str, Mutation]] = {
    "a role": (
        "turns_alternate",
        first(lambda r: replace(r, dialogue=r.dialogue[1:], expected_doc=r.expected_doc[-1:])),
    ),
    "too few turns": ("turns_alternate", first(lambda r: replace(r, dialogue=r.dialogue[:2]))),
    "a lecture": ("dialogue_length", first(lambda r: with_turn(r, 1, "word " * 400))),
    "a snippet": (
        "dialogue_length",
        first(lambda r: replace(r, dialogue=tuple(Message(t.role, "x") for t in r.dialogue))),
    ),
    "evidence cut short": ("evidence_exact", first(lambda r: replace(r, expected_doc=(r.expected_doc[0][:-1],)))),
    "evidence twice in the dialogue": ("evidence_exact", first(lambda r: with_turn(r, 1, r.expected_doc[0]))),
    "evidence everywhere": (
        "evidence_exact",
        first(lambda r: replace(r, expected_doc=tuple(turn.text for turn in r.dialogue[:4]))),
    ),
    "options alike": (
        "one_valid_option",
        first(lambda r: with_options(r, r.answer_text, [r.answer_text + "!", "b", "c"])),
    ),
    "no options": ("one_valid_option", first(lambda r: replace(r, options=()))),
    "the answer in the query": ("one_valid_option", first(lambda r: replace(r, query=f"{r.query} {r.answer_text}?"))),
    "a long option": ("options_alike", first(lambda r: with_options(r, "yes " * 40, ["no", "or", "if"]))),
    "markup": ("clean_text", first(lambda r: replace(r, query=f"<b>{r.query}</b>"))),
    "an emoji": ("clean_text", first(lambda r: with_turn(r, 1, f"{r.dialogue[1].text} \U0001f600"))),
    "an unfilled slot": ("clean_text", first(lambda r: replace(r, query=f"{r.query} {{team}}"))),
    "no stress cue": ("labelled", first(lambda r: replace(r, stress=()))),
    "no overlap kind": ("labelled", first(lambda r: replace(r, overlap=None))),
    "a language": ("labelled", first(lambda r: replace(r, language="xx"))),
    "no reasoning": ("labelled", first(lambda r: replace(r, reasoning=""))),
    "an id twice": ("unique_ids", lambda records: [*records[:-1], replace(records[-1], id=records[0].id)]),
    "letters": ("letters_balanced", every(lambda r: replace(r, answer="A") if r.answer == "B" else r)),
    "letters of a domain": (
        "letters_balanced",
        every(lambda r: replace(r, answer="ABCD"[("ABCD".index(r.answer) + (r.topic == "Legal")) % 3])),
    ),
    "a domain short": (
        "domains_balanced",
        lambda records: [r for r in records if r.id[-3:] > "004" or r.topic != "Legal"],
    ),
    "an unknown domain": ("domains_balanced", first(lambda r: replace(r, topic="Cooking"))),
    "kinds of overlap": ("overlaps_balanced", every(lambda r: replace(r, overlap="indirect"))),
    "one evidence turn each": ("evidence_spread", every(lambda r: replace(r, expected_doc=r.expected_doc[:1]))),
    "evidence side by side": (
        "evidence_spread",
        every(lambda r: replace(r, expected_doc=(r.dialogue[0].text, r.dialogue[1].text))),
    ),
    "a cue missing": ("stress_cues", every(lambda r: replace(r, stress=("long_range_bridge",)))),
    "a lexical query in other words": (
        "lexical_has_rare_word",
        every(lambda r: replace(r, query="And what about this?")),
    ),
    "a dialogue twice": ("no_duplicates", lambda records: [*records, replace(records[0], id="x", query="Or so?")]),
    "a query twice": ("no_duplicates", first(lambda r: replace(r, query="Is it so?"))),
    "a family in the same words": ("no_duplicates", twin_of_family),
    "the right option is longest": (
        "options_give_nothing_away",
        every(lambda r: with_options(r, "a longer text here", ["shorter one", "shorter two", "shorter six"])),
    ),
    "the right option repeats the query": (
        "options_give_nothing_away",
        every(lambda r: with_options(r, " ".join(r.query.split()[1:4]), ["ak bk ck", "dk ek fk", "gk hk ik"])),
    ),
}


def broken(records: Sequence[Record]) -> set[str]:
    return {rule for rule, _ in audit(records).breaches}


@pytest.fixture(scope="module")
def clean(small_set):
    assert not audit(small_set).breaches
    return small_set


def test_the_draft_set_passes(clean):
    report = audit(clean)
    assert report.figures["share with several evidence turns"] > 0.5
    assert 0.2 < report.figures["right by picking the longest option"] < 0.3 + 0.1


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_rule_bites(clean, name):
    rule, mutate = MUTATIONS[name]
    mutated = mutate(clean)
    if name == "a query twice":
        mutated = [*mutated[:-1], replace(mutated[-1], query="is it so")]
    assert rule in broken(mutated)


def test_every_rule_has_a_mutation():
    from scale_qa import audit as module
    from scale_qa.rules import RECORD_RULES

    rules = {rule.__name__ for rule in (*RECORD_RULES, *module._SET_RULES)}
    assert rules == {rule for rule, _ in MUTATIONS.values()}


def test_the_counts_of_the_complete_set_bite(clean):
    sentences = [text for rule, text in audit(clean, full=False).breaches if rule == complete_set.__name__]
    assert sentences == []
    report = Report()
    complete_set(clean, report)
    texts = [text for _, text in report.breaches]
    assert "records: 120; 3000 are expected" in texts
    assert any(text.startswith("answers A: 30; 750") for text in texts)
    assert any("families; 20 are expected" in text for text in texts)


def test_an_easy_package_is_found_easy(tmp_path, own_pool, make_record):
    """Dialogues of one window with the query's own rare word: BM25 settles all of them."""
    records = []
    for n, letter in zip(range(40), itertools.cycle("ABCD"), strict=False):
        base = make_record(id=f"r{n}", answer=letter)
        records.append(
            with_turn(with_turn(base, 0, f"The zq{n} code is seven."), 4, f"Scrap the zq{n} code, it is nine.")
        )
    records = [replace(r, query=f"zq{r.id[1:]} code?") for r in records]
    package = build(records, own_pool, Plan(target=16_000, seed=1), tmp_path / "p")
    depth1, recall5 = bm25_shares(package)
    assert recall5 > 0.95
    assert depth1 > 0.55
    report = Report()
    hard_for_bm25(records, report)
    assert [text.split(" ")[1] for _, text in report.breaches] == ["settles", "reaches"]


def test_the_shipped_set_passes_the_full_audit():
    records = generate(shipped_families(), 3000, 7)
    report = audit(records, full=True)
    assert report.breaches == []
    assert report.figures["settled by BM25-256 at depth 1"] <= 0.55
