"""BM25 over turns and over episodes, from one set of postings that grows with its thread.

A posting is one integer, ``term << 32 | row``, once for each occurrence. They are sorted; new ones wait in a small tail
until it is worth while to merge them in. Nothing is kept by episode: episodes change as a thread grows, and
their statistics are sums over their turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsim_core.index.growing import Growing

Keys = NDArray[np.uint64]
Scores = NDArray[np.float32]

_SHIFT = np.uint64(32)
_ROW = np.uint64(0xFFFFFFFF)
_LEAST_TAIL = 1 << 16  # postings; a smaller tail is not worth a merge


@dataclass(frozen=True, slots=True)
class Matches:
    """Where the terms of a query occur.

    Attributes:
        terms: The distinct terms, ascending.
        rows: Of each term the rows that hold it, ascending.
        counts: Of each term how often each of those rows holds it.
        lengths: Terms of every row, shape (n,).
    """

    terms: NDArray[np.uint32]
    rows: tuple[NDArray[np.int64], ...]
    counts: tuple[NDArray[np.float64], ...]
    lengths: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Matches]) -> Matches:
        """Those of one or more threads, for the same terms, as of one whose rows follow each other."""
        if len(parts) == 1:
            return parts[0]
        offsets = np.cumsum([0, *(len(part.lengths) for part in parts)])
        return cls(
            parts[0].terms,
            tuple(
                np.concatenate([rows + offset for rows, offset in zip(of_term, offsets[:-1], strict=True)])
                for of_term in zip(*(part.rows for part in parts), strict=True)
            ),
            tuple(np.concatenate(of_term) for of_term in zip(*(part.counts for part in parts), strict=True)),
            np.concatenate([part.lengths for part in parts]),
        )

    def restricted(self, allowed: NDArray[np.bool_]) -> Matches:
        """Those in the allowed rows, which are numbered anew. ``allowed`` has shape (n,)."""
        number = np.cumsum(allowed) - 1
        keep = [allowed[rows] for rows in self.rows]
        return Matches(
            self.terms,
            tuple(number[rows[kept]] for rows, kept in zip(self.rows, keep, strict=True)),
            tuple(counts[kept] for counts, kept in zip(self.counts, keep, strict=True)),
            self.lengths[allowed],
        )

    def of(self, term: np.uint32) -> NDArray[np.int64]:
        """Rows of one of the terms."""
        return self.rows[int(np.searchsorted(self.terms, term))]

    def without(self, terms: NDArray[np.uint32]) -> Matches:
        """Those of the terms that are not among the given ones."""
        keep = np.flatnonzero(~np.isin(self.terms, terms)).tolist()
        return Matches(
            self.terms[keep],
            tuple(self.rows[i] for i in keep),
            tuple(self.counts[i] for i in keep),
            self.lengths,
        )

    def by_unit(self, unit_of_row: NDArray[np.int64], units: int) -> Matches:
        """The same with rows summed into units, such as episodes. ``unit_of_row`` has shape (n,)."""
        rows, counts = [], []
        for of_term, times in zip(self.rows, self.counts, strict=True):
            total = np.bincount(unit_of_row[of_term], weights=times, minlength=units).astype(np.float64)
            rows.append(np.flatnonzero(total))
            counts.append(total[rows[-1]])
        lengths = np.bincount(unit_of_row, weights=self.lengths, minlength=units).astype(np.float64)
        return Matches(self.terms, tuple(rows), tuple(counts), lengths)

    def bm25(self, k1: float = 1.2, b: float = 0.75, idf_power: float = 1.0) -> Scores:
        """BM25 of every row.

        Args:
            k1: How slowly repeats of a term saturate.
            b: How much long rows are marked down, 0 to 1.
            idf_power: Exponent of the rarity of a term; above 1, common words count for less than in plain BM25.

        Returns:
            Scores of at least 0, shape (n,).
        """
        n = len(self.lengths)
        scores = np.zeros(n)
        mean = self.lengths.mean() if n else 0.0
        for rows, counts in zip(self.rows, self.counts, strict=True):
            idf = np.log1p((n - len(rows) + 0.5) / (len(rows) + 0.5)) ** idf_power
            norm = k1 * (1 - b + b * self.lengths[rows] / mean)
            scores[rows] += idf * (k1 + 1) * counts / (counts + norm)
        return scores.astype(np.float32)


class LexicalIndex:
    """Postings of the turns of one thread, appended and never rebuilt."""

    def __init__(self) -> None:
        self._sorted: Keys = np.zeros(0, dtype=np.uint64)
        self._tail: Keys = np.zeros(0, dtype=np.uint64)  # sorted too
        self._new: list[Keys] = []
        self._lengths = Growing(np.float64)

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, terms: NDArray[np.uint32], lengths: NDArray[np.int64]) -> None:
        """Append rows.

        Args:
            terms: Hashed terms of all, one row after the other, with repeats; within a row in any order.
            lengths: How many each row has, shape (n,). A row may have none.
        """
        keys = terms.astype(np.uint64)
        keys <<= _SHIFT
        keys |= np.repeat(np.arange(len(self), len(self) + len(lengths), dtype=np.uint64), lengths)
        self._new.append(keys)
        self._lengths.extend(lengths)

    def _sort(self) -> None:
        """Sort in what is new."""
        if self._new:
            new = self._new[0] if len(self._new) == 1 else np.concatenate(self._new)
            new.sort()
            self._tail = _merged([self._tail, new])
            self._new = []
        if len(self._tail) > max(_LEAST_TAIL, len(self._sorted) // 8):
            self._sorted = _merged([self._sorted, self._tail])
            self._tail = self._tail[:0]

    def matches(self, terms: NDArray[np.uint32]) -> Matches:
        """Where the distinct ones of some hashed terms occur; a term that is nowhere has no rows."""
        self._sort()
        unique = np.unique(terms).astype(np.uint64)
        least, most = unique << _SHIFT, unique << _SHIFT | _ROW
        bounds = [
            (np.searchsorted(keys, least).tolist(), np.searchsorted(keys, most, side="right").tolist())
            for keys in (self._sorted, self._tail)
        ]
        rows: list[NDArray[np.int64]] = []
        counts: list[NDArray[np.float64]] = []
        for start, end, tail_start, tail_end in zip(*bounds[0], *bounds[1], strict=True):
            # The rows of the tail come after those that are sorted in, so all of them ascend.
            occurrences = self._sorted[start:end]
            if tail_end > tail_start:
                occurrences = np.concatenate([occurrences, self._tail[tail_start:tail_end]])
            occurrences = occurrences & _ROW
            first_of_row = np.flatnonzero(np.diff(occurrences, prepend=occurrences[:1] + np.uint64(1)))
            rows.append(occurrences[first_of_row].astype(np.int64))
            counts.append(np.diff(first_of_row, append=len(occurrences)).astype(np.float64))
        return Matches(unique.astype(np.uint32), tuple(rows), tuple(counts), self.lengths)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Terms of each row, shape (n,)."""
        return self._lengths.rows


def _merged(runs: Sequence[Keys]) -> Keys:
    """Sorted arrays as one; the stable sort of numpy merges runs and does not sort them anew."""
    runs = [run for run in runs if len(run)]
    return runs[0] if len(runs) == 1 else np.sort(np.concatenate([np.zeros(0, np.uint64), *runs]), kind="stable")
