"""Every rule of the data set as a whole; `scale_qa.rules` holds those of a single record.

The audit reports breaches (it fails on them) and figures (for the reader).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from scale_qa.build import Plan, build
from scale_qa.lexical import BM25Index, analyse, top
from scale_qa.noise import NoisePool, own_noise
from scale_qa.package import Package
from scale_qa.records import DOMAINS, LETTERS, OVERLAPS, STRESS_CUES, Record
from scale_qa.rules import breaches
from scale_qa.similarity import overlap, terms
from scale_qa.systems.spans import span_terms, windows
from scale_qa.tokens import estimate_tokens

COUNT, PER_DOMAIN, PER_LETTER = 3000, 300, 750
FAMILIES_PER_DOMAIN = 20
OTHER_LANGUAGES = 200
MULTI_EVIDENCE = 0.5
STRESS_SHARE = 0.15
SAME_WORDING = 0.6  # word overlap from which two turns count as the same wording
RARE = 0.05  # share of the dialogues that may hold a word for it to count as rare
GIVEAWAY_SIGMAS = 3.5  # how far above chance a rule of thumb over the options may score
BM25_DEPTH1 = 0.55
BM25_RECALL5 = 0.80


@dataclass
class Report:
    """What an audit found.

    Attributes:
        breaches: (rule, sentence); a data set that passes has none.
        figures: Name to value, for the reader.
    """

    breaches: list[tuple[str, str]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def breach(self, rule: Callable[..., object], text: str) -> None:
        """Note one breach."""
        self.breaches.append((rule.__name__, text))


def audit(records: Sequence[Record], full: bool = False) -> Report:
    """Check every rule.

    Args:
        records: The data set.
        full: Also the counts of the complete set, and its hardness on a 128k package.
    """
    report = Report()
    for record in records:
        for rule, text in breaches(record):
            report.breaches.append((rule, f"{record.id}: {text}"))
    for check in (*_SET_RULES, *(_FULL_RULES if full else ())):
        check(records, report)
    return report


def unique_ids(records: Sequence[Record], report: Report) -> None:
    """No id comes twice."""
    for id, count in Counter(record.id for record in records).items():
        if count > 1:
            report.breach(unique_ids, f"{id}: used {count} times")


def letters_balanced(records: Sequence[Record], report: Report) -> None:
    """The right letters differ by one at most, overall and within a domain."""
    groups = {"overall": list(records)}
    for record in records:
        groups.setdefault(record.topic, []).append(record)
    for name, group in groups.items():
        counts = [sum(record.answer == letter for record in group) for letter in LETTERS]
        if max(counts) - min(counts) > 1:
            report.breach(letters_balanced, f"{name}: answers A to D come {counts} times")


def domains_balanced(records: Sequence[Record], report: Report) -> None:
    """The ten domains differ by one record at most, and there is no other."""
    counts = Counter(record.topic for record in records)
    for topic in sorted(set(counts) - set(DOMAINS)):
        report.breach(domains_balanced, f"unknown domain {topic!r}")
    sizes = [counts[domain] for domain in DOMAINS]
    if max(sizes) - min(sizes) > 1:
        report.breach(domains_balanced, f"records a domain: {dict(zip(DOMAINS, sizes, strict=True))}")


def overlaps_balanced(records: Sequence[Record], report: Report) -> None:
    """A third each of lexical, paraphrase and indirect queries, give or take two in a hundred."""
    for kind in OVERLAPS:
        share = sum(record.overlap == kind for record in records) / len(records)
        report.figures[f"share of {kind} queries"] = share
        if abs(share - 1 / 3) > 0.02:
            report.breach(overlaps_balanced, f"{share:.1%} of the queries are {kind}; a third is expected")


def evidence_spread(records: Sequence[Record], report: Report) -> None:
    """At least half of the questions need two or three turns, most of them apart."""
    several = [
        r for r in records if len(r.expected_doc) > 1 and {t.text for t in r.dialogue}.issuperset(r.expected_doc)
    ]
    apart = [r for r in several if len(r.expected_doc) < 1 + max(r.evidence_turns()) - min(r.evidence_turns())]
    report.figures["share with several evidence turns"] = len(several) / len(records)
    report.figures["share of these with other turns between"] = len(apart) / max(len(several), 1)
    if len(several) < MULTI_EVIDENCE * len(records):
        report.breach(evidence_spread, f"only {len(several)} of {len(records)} questions need several turns")
    if len(apart) < len(several) * 0.9:
        report.breach(evidence_spread, f"in {len(several) - len(apart)} records the evidence turns stand side by side")


def stress_cues(records: Sequence[Record], report: Report) -> None:
    """Each of the three cues comes often enough to be measured."""
    for cue in STRESS_CUES:
        share = sum(cue in record.stress for record in records) / len(records)
        report.figures[f"share of {cue}"] = share
        if share < STRESS_SHARE:
            report.breach(stress_cues, f"{cue}: {share:.1%} of the records; {STRESS_SHARE:.0%} are expected")


def lexical_has_rare_word(records: Sequence[Record], report: Report) -> None:
    """A lexical query shares a word with its evidence that few dialogues hold."""
    held: Counter[str] = Counter()
    for record in records:
        held.update({term for turn in record.dialogue for term in terms(turn.text)})
    limit = max(RARE * len(records), 16)  # a family of a small set may hold a word more often than the share says
    for record in records:
        if record.overlap == "lexical":
            shared = set(terms(record.query)) & {term for text in record.expected_doc for term in terms(text)}
            if not any(held[term] <= limit for term in shared):
                report.breach(lexical_has_rare_word, f"{record.id}: no rare word of the evidence in a lexical query")


def no_duplicates(records: Sequence[Record], report: Report) -> None:
    """No two records say the same; those of one family do not share the wording of all their turns."""
    for what, key in (
        ("dialogue", lambda record: tuple(" ".join(terms(turn.text)) for turn in record.dialogue)),
        ("query", lambda record: " ".join(terms(record.query))),
    ):
        seen: dict[object, str] = {}
        for record in records:
            other = seen.setdefault(key(record), record.id)
            if other != record.id:
                report.breach(no_duplicates, f"{record.id}: the same {what} as {other}")
    families: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.family is not None:
            families[record.family].append(record)
    least = 1.0
    for members in families.values():
        for a, b in combinations(members, 2):
            differing = sum(all(overlap(x.text, y.text) < SAME_WORDING for y in b.dialogue) for x in a.dialogue) / len(
                a.dialogue
            )
            least = min(least, differing)
            if differing == 0:
                report.breach(no_duplicates, f"{a.id} and {b.id} of family {a.family} have the same wording throughout")
    report.figures["least share of turns that two of a family word otherwise"] = least


def options_give_nothing_away(records: Sequence[Record], report: Report) -> None:
    """Without the dialogue no rule of thumb picks the right option more often than chance."""
    answered = [record for record in records if len(record.options) == len(LETTERS)]
    if not answered:
        return
    chance = 1 / len(LETTERS)
    limit = chance + GIVEAWAY_SIGMAS * math.sqrt(chance * (1 - chance) / len(answered))
    for name, score in _THUMBS.items():
        hits = 0.0
        for record in answered:
            scores = [score(record, option) for option in record.options]
            best = max(scores)
            if score(record, record.answer_text) == best:
                hits += 1 / scores.count(best)
        share = hits / len(answered)
        report.figures[f"right by picking the {name}"] = share
        if share > limit:
            report.breach(
                options_give_nothing_away, f"picking the {name} is right in {share:.1%}; at most {limit:.1%} is chance"
            )


def complete_set(records: Sequence[Record], report: Report) -> None:
    """The published counts: 3,000 records, 300 a domain, 750 a letter, 20 families a domain, other languages too."""
    _expect(report, "records", len(records), COUNT)
    for domain in DOMAINS:
        members = [record for record in records if record.topic == domain]
        _expect(report, f"records of {domain}", len(members), PER_DOMAIN)
        families = len({record.family for record in members})
        if families < FAMILIES_PER_DOMAIN:
            report.breach(complete_set, f"{domain}: {families} families; {FAMILIES_PER_DOMAIN} are expected")
    for letter in LETTERS:
        _expect(report, f"answers {letter}", sum(record.answer == letter for record in records), PER_LETTER)
    languages = Counter(record.language for record in records)
    for language, count in sorted(languages.items()):
        report.figures[f"records in {language}"] = count
    others = sum(count for language, count in languages.items() if language != "en")
    if others < OTHER_LANGUAGES or len(languages) < 5:
        report.breach(
            complete_set, f"{others} records in other languages; {OTHER_LANGUAGES} in zh, es, de, ja are expected"
        )


def hard_for_bm25(records: Sequence[Record], report: Report) -> None:
    """On the 128k interleaved package BM25 over 256-token windows settles few questions at once, not all in five."""
    with NoisePool() as pool, TemporaryDirectory() as folder:
        pool.add(own_noise(7))
        package = build(records, pool, Plan(target=128_000), Path(folder) / "package")
        depth1, recall5 = bm25_shares(package)
    report.figures["settled by BM25-256 at depth 1"] = depth1
    report.figures["all-evidence recall@5 of BM25-256"] = recall5
    if depth1 > BM25_DEPTH1:
        report.breach(hard_for_bm25, f"BM25-256 settles {depth1:.1%} at depth 1; at most {BM25_DEPTH1:.0%} is allowed")
    if recall5 > BM25_RECALL5:
        report.breach(hard_for_bm25, f"BM25-256 reaches recall@5 {recall5:.3f}; at most {BM25_RECALL5} is allowed")


def bm25_shares(package: Package) -> tuple[float, float]:
    """All-evidence recall of BM25 over 256-token windows at depth 1 and at depth 5."""
    questions = first = five = 0
    for batch in package:
        texts = [turn.text for turn in batch.turns]
        spans = windows(256)([estimate_tokens(text) for text in texts])
        index = BM25Index(span_terms([analyse(text) for text in texts], spans))
        for question in batch.questions:
            ranked = [set(spans[i]) for i in top(index.scores(question.query), 5)]
            evidence = set(question.evidence)
            questions += 1
            first += evidence <= ranked[0]
            five += evidence <= set().union(*ranked)
    return first / questions, five / questions


_ABSOLUTE = re.compile(r"\b(always|never|all|none|only|every|must|any|not|no)\b", re.IGNORECASE)
_THUMBS: dict[str, Callable[[Record, str], float]] = {
    "longest option": lambda record, option: len(option),
    "shortest option": lambda record, option: -len(option),
    "option most like the query": lambda record, option: overlap(record.query, option),
    "option least like the query": lambda record, option: -overlap(record.query, option),
    "option with most absolute words": lambda record, option: len(_ABSOLUTE.findall(option)),
    "option with most digits": lambda record, option: sum(map(str.isdigit, option)),
    "option most like the others": lambda record, option: sum(overlap(option, other) for other in record.options),
}
_SET_RULES: tuple[Callable[[Sequence[Record], Report], None], ...] = (
    unique_ids,
    letters_balanced,
    domains_balanced,
    overlaps_balanced,
    evidence_spread,
    stress_cues,
    lexical_has_rare_word,
    no_duplicates,
    options_give_nothing_away,
)
_FULL_RULES: tuple[Callable[[Sequence[Record], Report], None], ...] = (complete_set, hard_for_bm25)


def _expect(report: Report, what: str, count: int, expected: int) -> None:
    if count != expected:
        report.breach(complete_set, f"{what}: {count}; {expected} are expected")
