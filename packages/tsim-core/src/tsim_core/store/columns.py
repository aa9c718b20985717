"""What is derived from turns, as columns: a store keeps it in blocks, and the indices in memory are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsim_core.embedding import Vectors
from tsim_core.labels import Labels, label_of
from tsim_core.lexical import hashed_terms
from tsim_core.types import Turn


@dataclass(frozen=True, slots=True)
class Columns:
    """Some turns of a thread, in order of position. Each field has a value for each of the n turns, or says of which.

    Attributes:
        positions: Their positions, shape (n,).
        labels: Who spoke.
        tokens: Estimated tokens, shape (n,).
        timestamps: Seconds since 1970, NaN where unknown, shape (n,).
        lengths: How many terms each has, shape (n,).
        terms: Hashed lexical terms of all, one turn after the other, shape (lengths.sum(),).
        embedded: Which have a vector, shape (n,); blank ones have none.
        vectors: Unit vectors of those, shape (embedded.sum(), d); d may be 0 where there is none.
    """

    positions: NDArray[np.int64]
    labels: Labels
    tokens: NDArray[np.float64]
    timestamps: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terms: NDArray[np.uint32]
    embedded: NDArray[np.bool_]
    vectors: Vectors

    @classmethod
    def of(cls, turns: Mapping[int, tuple[Turn, float]], vectors: Mapping[int, Vectors]) -> Columns:
        """Columns of turns.

        Args:
            turns: Turns with their estimated tokens, by ascending position.
            vectors: Unit vectors by position; those of other positions are passed over.
        """
        terms = [hashed_terms(turn.text) for turn, _ in turns.values()]
        known = [vectors[position] for position in turns if position in vectors]
        stamps = [turn.timestamp.timestamp() if turn.timestamp else np.nan for turn, _ in turns.values()]
        return cls(
            np.fromiter(turns, dtype=np.int64, count=len(turns)),
            Labels.of(label_of(turn) for turn, _ in turns.values()),
            np.array([tokens for _, tokens in turns.values()], dtype=np.float64),
            np.array(stamps, dtype=np.float64),
            np.fromiter(map(len, terms), dtype=np.int64, count=len(terms)),
            np.concatenate([np.zeros(0, dtype=np.uint32), *terms]),
            np.fromiter((position in vectors for position in turns), dtype=np.bool_, count=len(turns)),
            np.stack(known).astype(np.float32, copy=False) if known else np.zeros((0, 0), dtype=np.float32),
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """At least one part, one after the other."""
        return cls(
            np.concatenate([part.positions for part in parts]),
            Labels.joined([part.labels for part in parts]),
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.timestamps for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([part.terms for part in parts]),
            np.concatenate([part.embedded for part in parts]),
            np.concatenate([part.vectors for part in parts if len(part.vectors)] or [parts[0].vectors]),
        )

    def taken(self, rows: NDArray[np.int64]) -> Columns:
        """These rows of it, in the given order."""
        ends, vector = np.cumsum(self.lengths), np.cumsum(self.embedded) - 1
        lengths = self.lengths[rows]
        # Each term's place: where its turn's begin, and how many terms of the same turn come before it.
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Columns(
            self.positions[rows],
            self.labels.taken(rows),
            self.tokens[rows],
            self.timestamps[rows],
            lengths,
            self.terms[np.repeat(ends[rows] - lengths, lengths) + within],
            self.embedded[rows],
            self.vectors[vector[rows[self.embedded[rows]]]],
        )

    def __len__(self) -> int:
        return len(self.positions)

    def matrix(self, dimension: int) -> Vectors:
        """A vector for each, shape (n, dimension): zeros for blank turns."""
        if len(self.vectors) == len(self) > 0:
            return self.vectors
        matrix = np.zeros((len(self), dimension), dtype=np.float32)
        if len(self.vectors):
            matrix[self.embedded] = self.vectors
        return matrix
