"""What an embedder's cosines mean: how alike it finds unrelated exchanges, and exchanges of one dialogue."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from tsim_core.embedding import Embedder, MiniLMEmbedder, embed_checked
from tsim_core.errors import EmbedderError
from tsim_core.similarity import likeness

logger = logging.getLogger(__name__)

# Eight dialogues of three exchanges, each about something else. Written for this purpose; any language would do.
REFERENCE: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        (
            "My sourdough bread came out flat again.",
            "Sourdough goes flat when the dough proofs too long; let it rise less.",
        ),
        ("How long should the sourdough rise then?", "Let the bread dough rise four hours, then bake it."),
        ("At what heat do I bake the bread?", "Bake sourdough bread at 240 degrees and steam the oven first."),
    ),
    (
        (
            "The brakes of my car squeal.",
            "Worn brake pads squeal; have a mechanic look at the front brakes of the car.",
        ),
        ("What do new brake pads cost?", "Pads and discs for the front brakes cost about 250 with labour."),
        ("Can I still drive the car to the garage?", "A short drive is fine if the brakes still grip."),
    ),
    (
        (
            "My Python script fails with a KeyError on a JSON file.",
            "A record lacks that key; read it with dict.get in Python.",
        ),
        ("How does the script log which JSON record was bad?", "Catch the KeyError and log the index of the record."),
        ("Should my Python function raise or return None?", "Raise the error, so that the script cannot ignore it."),
    ),
    (
        ("We plan a week in Lisbon in May.", "Lisbon is lovely in May; book a flat in Alfama."),
        ("Is Sintra worth a day trip from Lisbon?", "Yes, the train from Lisbon to Sintra takes forty minutes."),
        ("What do we pack for a trip to Lisbon?", "Light clothes, as May in Lisbon is warm, and a jacket."),
    ),
    (
        ("The leaves of my tomato plants turn yellow.", "Tomato leaves turn yellow from too much water."),
        ("How often do I water tomatoes in July?", "Water tomato plants deeply every third day, in the morning."),
        ("Do I cut the side shoots of the plants?", "Yes, cut the side shoots of tall tomatoes once a week."),
    ),
    (
        (
            "Can I deduct a home office from my income tax?",
            "Yes, the tax office accepts a flat rate for a home office.",
        ),
        ("Which receipts does the tax office want?", "Keep receipts for the rent of the office and for furniture."),
        ("When is my tax return due?", "The income tax return is due at the end of July."),
    ),
    (
        ("My knee hurts after long runs.", "Knee pain in runners is mostly overload; run less for two weeks."),
        ("Would strength training help my knee?", "Yes, squats make the knee of a runner more stable."),
        ("When can I run long again?", "Add ten percent to your runs each week while the knee does not hurt."),
    ),
    (
        ("I want to learn the piano as an adult.", "Start the piano with a weighted keyboard and half an hour a day."),
        ("Do I need a piano teacher?", "A piano lesson every other week keeps bad habits away."),
        ("Which piano pieces suit beginners?", "Easy minuets by Bach suit adults who begin the piano."),
    ),
)


@dataclass(frozen=True)
class Scale:
    """How alike an embedder finds exchanges that share a topic and exchanges that do not (Chamfer similarity).

    Attributes:
        unrelated: Mean likeness of exchanges of different dialogues.
        related: Mean likeness of neighbouring exchanges of a dialogue.
    """

    unrelated: float
    related: float

    def spread(self, assumed: tuple[float, float]) -> tuple[float, float]:
        """A mean and a standard deviation on the scale from 0 (unrelated) to 1 (related) as likenesses."""
        width = self.related - self.unrelated
        return self.unrelated + assumed[0] * width, assumed[1] * width


MINILM = Scale(unrelated=0.068, related=0.487)  # `measure` of the bundled model


def scale_of(embedder: Embedder) -> Scale:
    """The scale of an embedder: known for the bundled one, else measured; see `measure`."""
    return MINILM if embedder.name == MiniLMEmbedder.name else measure(embedder)


def measure(embedder: Embedder) -> Scale:
    """Find the scale of an embedder from 48 short texts, embedded in one call.

    A stand-in as tests have it may find dialogues no more alike than unrelated texts, or know only certain texts: it
    has no scale. That is logged as a warning, and the bundled model's is assumed.

    Raises:
        EmbedderError: If the embedder fails otherwise.
    """
    texts = [text for dialogue in REFERENCE for exchange in dialogue for text in exchange]
    try:
        vectors = embed_checked(embedder, texts).reshape(len(REFERENCE), 3, 2, -1)
    except EmbedderError as error:
        if not isinstance(error.__cause__, LookupError):
            raise
        return _assumed(embedder, "knows only certain texts")
    related = [likeness(d[i], d[i + 1]) for d in vectors for i in (0, 1)]
    unrelated = [likeness(a, b) for i, d in enumerate(vectors) for other in vectors[i + 1 :] for a in d for b in other]
    scale = Scale(float(np.mean(unrelated)), float(np.mean(related)))
    if scale.related <= scale.unrelated:
        return _assumed(embedder, "finds exchanges of one dialogue no more alike than unrelated ones")
    return scale


def _assumed(embedder: Embedder, why: str) -> Scale:
    logger.warning("embedder %r %s: its episodes will be poor; use a sentence embedder", embedder.name, why)
    return MINILM
