"""The runtime builder: records and noise become a package, byte for byte the same everywhere.

*Full corpus* when all truth fits the target: all of it, and noise fills the rest. *Length-batched* otherwise: records
are packed best-fit, longest first, into batches whose truth stays under a cap, and noise fills each batch.
Lengths are counted in whole words (1.3 estimated tokens each), so nothing depends on rounding.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsim_core.types import Turn

from scale_qa.arrange import ARRANGEMENTS, Run, arrange
from scale_qa.dice import Dice
from scale_qa.errors import BuildError
from scale_qa.noise import NoisePool, PooledNoise
from scale_qa.package import GoldUnit, Package, PackageWriter, Question
from scale_qa.records import LETTERS, Message, Record, dump_line, record_to_dict
from scale_qa.tokens import words, words_to_tokens

TRUTH_CAP = 0.82
SLACK = 0.02  # share of the target that may stay empty when the noise is used up
COARSE = 0.1  # and when what is left of it is too long for the gap


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build.

    Attributes:
        target: Length of a batch in estimated tokens.
        seed: Order of truth and questions, and the arrangement.
        noise_seed: Order of the noise.
        arrangement: One of `scale_qa.arrange.ARRANGEMENTS`.
        truth_cap: Share of the target that truth may take in a length-batched package.
    """

    target: int
    seed: int = 7
    noise_seed: int = 7
    arrangement: str = "interleaved"
    truth_cap: float = TRUTH_CAP

    def __post_init__(self) -> None:
        if self.arrangement not in ARRANGEMENTS:
            raise BuildError(f"unknown arrangement {self.arrangement!r}; known: {', '.join(ARRANGEMENTS)}")
        if not 0 < self.truth_cap <= 1:
            raise BuildError(f"the truth cap is a share of the target, above 0 and at most 1; got {self.truth_cap}")
        if self.target < 1:
            raise BuildError(f"the target must be a positive number of tokens, got {self.target}")


def build(
    records: Sequence[Record],
    pool: NoisePool,
    plan: Plan,
    directory: Path,
    on_batch: Callable[[int, int], None] | None = None,
) -> Package:
    """Build a package.

    Args:
        records: The truth; each is used once.
        pool: The noise; a dialogue is used at most once a batch, and every batch draws from the whole pool.
        plan: Lengths, seeds, arrangement.
        directory: New or empty folder, or an older package that is replaced.
        on_batch: Called with (batches done, batches in all).

    Raises:
        BuildError: If there are no records, a dialogue is longer than a batch may hold, or there is too little noise;
            says how much is missing.
    """
    if not records:
        raise BuildError("no records to build from")
    room = plan.target * 10 // 13
    sizes = {record.id: sum(words(turn.text) for turn in record.dialogue) for record in records}
    full = sum(sizes.values()) <= room
    batches = [list(records)] if full else _pack(records, sizes, int(room * plan.truth_cap), plan)
    filled = [_fill(number, batch, sizes, pool, room, plan) for number, batch in enumerate(batches)]
    writer = PackageWriter(directory)
    for number, (batch, noise) in enumerate(zip(batches, filled, strict=True)):
        _write_batch(writer, number, batch, noise, pool, plan)
        if on_batch:
            on_batch(number + 1, len(batches))
    return writer.finish(
        name="scale-qa",
        mode="full-corpus" if full else "length-batched",
        target_tokens=plan.target,
        truth_cap=plan.truth_cap,
        arrangement=plan.arrangement,
        seeds={"build": plan.seed, "noise": plan.noise_seed},
        records={"count": len(records), "sha256": _digest(records)},
        noise=_noise_facts(filled),
    )


def select(records: Sequence[Record], count: int, seed: int) -> list[Record]:
    """Take ``count`` records, spread evenly over topics and letters.

    Raises:
        BuildError: If there are fewer.
    """
    if not 0 < count <= len(records):
        raise BuildError(f"cannot take {count} of {len(records)} records")
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in Dice(seed, "select").shuffled(records):
        groups.setdefault((record.topic, record.answer), []).append(record)
    topics = sorted({topic for topic, _ in groups})

    def rank(topic: str, answer: str) -> tuple[int, int]:
        """Every topic once with letters in turn, then every topic with the letter two further on, ..."""
        place = topics.index(topic)
        return (0, 2, 1, 3)[(LETTERS.index(answer) - place) % len(LETTERS)], place

    ranked = sorted(
        ((place, rank(*key), record) for key, members in groups.items() for place, record in enumerate(members)),
        key=lambda entry: entry[:2],
    )
    kept = {record.id for _, _, record in ranked[:count]}
    return [record for record in records if record.id in kept]


def _pack(records: Sequence[Record], sizes: dict[str, int], cap: int, plan: Plan) -> list[list[Record]]:
    """Best fit, by descending truth words and then by name."""
    order = sorted(records, key=lambda record: (-sizes[record.id], record.id))
    if sizes[order[0].id] > cap:
        raise BuildError(
            f"target {plan.target} is too small: the dialogue of {order[0].id} has "
            f"{words_to_tokens(sizes[order[0].id]):.0f} tokens, a batch holds {words_to_tokens(cap):.0f} of truth "
            f"(truth cap {plan.truth_cap}); raise --target"
        )
    batches: list[list[Record]] = []
    rooms: list[int] = []
    for record in order:
        fitting = [i for i, room in enumerate(rooms) if room >= sizes[record.id]]
        if fitting:
            best = min(fitting, key=lambda i: (rooms[i], i))
        else:
            best = len(batches)
            batches.append([])
            rooms.append(cap)
        batches[best].append(record)
        rooms[best] -= sizes[record.id]
    return batches


def _fill(
    number: int, batch: Sequence[Record], sizes: dict[str, int], pool: NoisePool, room: int, plan: Plan
) -> list[PooledNoise]:
    """The noise of one batch: in shuffled order whatever still fits."""
    left = room - sum(sizes[record.id] for record in batch)
    chosen: list[PooledNoise] = []
    for entry in Dice(plan.noise_seed, "noise", number).shuffled(pool.entries):
        if entry.words <= left:
            chosen.append(entry)
            left -= entry.words
    exhausted = len(chosen) == len(pool.entries)
    if left > room * (SLACK if exhausted else COARSE):
        why = "every noise dialogue is placed" if exhausted else "each noise dialogue that is left is longer than that"
        raise BuildError(
            f"too little noise: batch {number} of {plan.target} tokens lacks {words_to_tokens(left):.0f} tokens, and "
            f"{why} (none is repeated within a batch); give more with --noise, or lower --target"
        )
    return chosen


def _write_batch(
    writer: PackageWriter,
    number: int,
    batch: Sequence[Record],
    noise: Sequence[PooledNoise],
    pool: NoisePool,
    plan: Plan,
) -> None:
    dialogues: list[Record | PooledNoise] = [*batch, *noise]
    dice = Dice(plan.seed, "arrangement", plan.arrangement, number)
    runs = arrange([len(record.dialogue) for record in batch], [entry.turns for entry in noise], plan.arrangement, dice)
    spans: list[list[tuple[int, int]]] = [[] for _ in dialogues]
    position = 0
    for run in runs:
        spans[run.dialogue].append((position, position + run.end - run.start))
        position += run.end - run.start
    questions = [
        _question(record, [i for start, end in spans[k] for i in range(start, end)]) for k, record in enumerate(batch)
    ]
    writer.write_batch(
        turns=_stream(runs, dialogues, pool),
        questions=Dice(plan.seed, "questions", number).shuffled(questions),
        gold=[_gold(dialogue, _joined(spans[k])) for k, dialogue in enumerate(dialogues)],
    )


def _stream(runs: Iterable[Run], dialogues: Sequence[Record | PooledNoise], pool: NoisePool) -> Iterator[Turn]:
    """The turns of a batch; holds only the noise dialogues that are running."""
    running: dict[int, tuple[Message, ...]] = {}
    for run in runs:
        if run.dialogue not in running:
            source = dialogues[run.dialogue]
            running[run.dialogue] = source.dialogue if isinstance(source, Record) else pool.load(source).turns
        messages = running[run.dialogue]
        for message in messages[run.start : run.end]:
            yield Turn(message.role, message.text)
        if run.end == len(messages):
            del running[run.dialogue]


def _gold(dialogue: Record | PooledNoise, spans: tuple[tuple[int, int], ...]) -> GoldUnit:
    if isinstance(dialogue, Record):
        return GoldUnit(dialogue.id, "truth", spans)
    return GoldUnit(f"{dialogue.source}:{dialogue.id}", "noise", spans)


def _question(record: Record, positions: Sequence[int]) -> Question:
    return Question(
        id=record.id,
        query=record.query,
        evidence=tuple(sorted(positions[i] for i in record.evidence_turns())),
        answer=record.answer,
        options=record.options,
        topic=record.topic,
        stress=record.stress,
        overlap=record.overlap,
        language=record.language,
        reasoning=record.reasoning,
    )


def _joined(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Neighbouring runs as one span."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def _digest(records: Iterable[Record]) -> str:
    digest = hashlib.sha256()
    for record in records:
        digest.update(dump_line(record_to_dict(record)).encode("utf-8"))
    return digest.hexdigest()


def _noise_facts(filled: Sequence[Sequence[PooledNoise]]) -> list[dict[str, object]]:
    """Per source: licence, dialogues and tokens placed, and how many placements repeat an earlier batch."""
    placed = Counter((entry.source, entry.id) for batch in filled for entry in batch)
    facts = []
    for source, licence in sorted({(entry.source, entry.licence) for batch in filled for entry in batch}):
        entries = [entry for batch in filled for entry in batch if entry.source == source]
        facts.append(
            {
                "source": source,
                "licence": licence,
                "dialogues": len(entries),
                "tokens": words_to_tokens(sum(entry.words for entry in entries)),
                "also_in_an_earlier_batch": sum(n - 1 for (name, _), n in placed.items() if name == source),
            }
        )
    return facts
