"""Check family files while they are written: ``python -m scale_qa.families FILE_OR_FOLDER...``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from scale_qa.errors import FamilyError
from scale_qa.families import Family, fields, load_family
from scale_qa.generate import draw_family, make_record
from scale_qa.records import LETTERS, OVERLAPS, Record
from scale_qa.rules import CJK, EVIDENCE, breaches
from scale_qa.similarity import overlap, rare_words

TURNS = (6, 10)
RECORDS = 15  # a family must yield this many: 300 records a domain, 20 families at least
SEEDS = 3
WORDINGS = 3
SLOT_VALUES = 6
ALIKE = 0.7  # two wordings that share more of their words are one wording


def check_family(family: Family) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with a family."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", family.id):
        yield f"id {family.id!r} is not kebab-case with a domain prefix, such as cs-freeze-exception"
    if family.path.parent.name != family.topic:
        yield f"topic is {family.topic}, but the file lies in {family.path.parent.name}/"
    yield from _check_turns(family)
    yield from _check_wordings(family)
    yield from _check_slots(family)


def check_draws(family: Family) -> Iterator[str]:
    """Draw records under several seeds and yield what is wrong with them, each sentence once."""
    seen: set[str] = set()
    for seed in range(SEEDS):
        for record in sample(family, seed):
            for _, text in breaches(record):
                key = re.sub(r"\d+|'.*", "", text)
                if key not in seen:
                    seen.add(key)
                    yield f"in a record drawn from it: {text}"


def hints(family: Family) -> Iterator[str]:
    """Yield hints about queries that do not look like their kind; the writer decides."""
    named = {word for value in record_values(family) for word in rare_words(value)}
    bare, repeated = 0, set[str]()
    for record in sample(family, 0):
        shared = rare_words(record.query) & set().union(*map(rare_words, record.expected_doc))
        bare += record.overlap == "lexical" and not shared
        repeated |= shared - named if record.overlap == "indirect" else set()
    if bare:
        yield f"{bare} lexical queries share no rare word with their evidence"
    if repeated:
        yield f"indirect queries repeat words of their evidence: {', '.join(sorted(repeated))}"


def record_values(family: Family) -> list[str]:
    """Every value that a slot or case of the family can take."""
    slots = [value for values in family.slots.values() for value in values]
    return slots + [value for case in family.cases for value in case.values()]


def sample(family: Family, seed: int) -> list[Record]:
    """`RECORDS` records of one family.

    Raises:
        FamilyError: If it yields fewer.
    """
    kinds = [OVERLAPS[i % len(OVERLAPS)] for i in range(RECORDS)]
    return [
        make_record(family, draw, f"lint-{seed}:{family.id}-{i}", LETTERS[i % len(LETTERS)], seed)
        for i, draw in enumerate(draw_family(family, kinds, seed))
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Check files; exit status 1 when one has an error."""
    parser = argparse.ArgumentParser(prog="python -m scale_qa.families", description="Check family files.")
    parser.add_argument("paths", nargs="+", type=Path, help="family files, or folders of them")
    parser.add_argument("--quiet", action="store_true", help="errors only, no hints")
    args = parser.parse_args(argv)
    files = [f for path in args.paths for f in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    ids: dict[str, Path] = {}
    errors = 0
    for path in files:
        try:
            family = load_family(path)
            found = list(check_family(family)) or list(check_draws(family))
            if family.id in ids:
                found.append(f"id {family.id!r} is already used by {ids[family.id]}")
            ids[family.id] = path
            advice = [] if found or args.quiet else list(hints(family))
        except FamilyError as error:
            found, advice = [str(error).removeprefix(f"{path}: ")], []
        errors += len(found)
        for text in found:
            print(f"{path}: error: {text}")
        for text in advice:
            print(f"{path}: hint: {text}")
    print(f"{len(files)} file(s), {errors} error(s)")
    return 1 if errors or not files else 0


def _check_turns(family: Family) -> Iterator[str]:
    for i, turn in enumerate(family.turns):
        if turn.role != ("user", "assistant")[i % 2]:
            yield f"turns[{i + 1}] is {turn.role}: turns alternate, and the first is user"
            return
    if not TURNS[0] <= len(family.turns) <= TURNS[1]:
        yield f"{len(family.turns)} turns; {TURNS[0]} to {TURNS[1]} are expected"
    evidence = family.evidence
    if not EVIDENCE[0] <= len(evidence) <= EVIDENCE[1]:
        yield f"{len(evidence)} evidence turns; mark {EVIDENCE[0]} to {EVIDENCE[1]} with 'evidence: true'"
    elif evidence[-1] - evidence[0] + 1 == len(evidence) > 1:
        yield "the evidence turns follow one another: put ordinary talk between them"


def _check_wordings(family: Family) -> Iterator[str]:
    groups = {f"turns[{i + 1}]": (turn.wordings, WORDINGS) for i, turn in enumerate(family.turns)}
    groups |= {f"queries.{kind}": (texts, WORDINGS) for kind, texts in family.queries.items()}
    groups |= {"answer": (family.answer, 2)}
    groups |= {f"wrong[{i + 1}]": (texts, 2) for i, texts in enumerate(family.wrong)}
    for where, (texts, least) in groups.items():
        if len(texts) < least:
            yield f"{where}: {len(texts)} wording(s); {least} or more are needed"
        if len(set(texts)) < len(texts):
            yield f"{where}: the same wording twice"
        elif where.startswith(("turns", "queries")):
            for i, a in enumerate(texts):
                for j in range(i):
                    if overlap(a, texts[j]) > ALIKE:
                        yield f"{where}: wordings {j + 1} and {i + 1} share nearly all words; reword one"


def _check_slots(family: Family) -> Iterator[str]:
    texts = [text for turn in family.turns for text in turn.wordings]
    texts += [text for wordings in family.queries.values() for text in wordings]
    texts += [*family.answer, *(text for option in family.wrong for text in option), family.reasoning]
    texts += [value for case in family.cases for value in case.values()]
    used = set().union(*map(fields, texts))
    known = set(family.slots) | set(family.cases[0])
    for name in sorted(used - known):
        yield f"{{{name}}} is used but is neither a slot nor a key of cases"
    for name in sorted(known - used):
        yield f"{name!r} is defined but never used"
    if len(family.cases) < 2:
        yield "cases: two or more are needed, with different right answers (contradicting near-duplicates)"
    if family.language not in CJK and not any(len(values) >= SLOT_VALUES for values in family.slots.values()):
        yield f"slots: at least one needs {SLOT_VALUES} or more made-up values"
