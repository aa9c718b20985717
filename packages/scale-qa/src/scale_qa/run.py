"""Runs systems over a package: ingest, ask, measure, write back; a run that is broken off goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tsim_core.types import Turn

from scale_qa.answers import Answer, Answerer, options_text
from scale_qa.embeddings import CachedEmbedder
from scale_qa.errors import AnswerError, RunError
from scale_qa.fingerprint import fingerprint
from scale_qa.journal import Journal
from scale_qa.measure import Reader, capped
from scale_qa.package import Batch, Package, Question
from scale_qa.results import assemble, label, read_results, write_results
from scale_qa.systems import SystemSpec, find_system
from scale_qa.systems.base import MemorySystem, Resources, Unit

OTHER_DEPTHS = (1, 3, 10)
FAILURES_IN_A_ROW = 5  # then the backend is down, and asking on would only burn the questions


@dataclass(frozen=True)
class RunSettings:
    """What decides the figures of a run, apart from the package and the systems.

    Attributes:
        k: Units handed over.
        budgets: Token budgets, in estimated tokens.
        write_back: Whether questions and answers become turns of the thread.
        query_form: "query", or "options" to append the four options to it.
        answer: Name of the answer model; None measures evidence only.
        llm: Name of the model lent to memories that want one.
        cross_encoder: Name of the cross-encoder lent to memories that want one.
        embedder: Name of the embedding model.
    """

    embedder: str
    k: int = 5
    budgets: tuple[int, ...] = (600, 1300, 2600)
    write_back: bool = False
    query_form: str = "query"
    answer: str | None = None
    llm: str | None = None
    cross_encoder: str | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise RunError(f"k {self.k}: expected at least 1")
        if not self.budgets or min(self.budgets) < 1:
            raise RunError(f"budgets {self.budgets}: expected one or more positive token counts")
        if self.query_form not in ("query", "options"):
            raise RunError(f"query form {self.query_form!r}: expected 'query' or 'options'")


class Progress(Protocol):
    """Told how far a run is."""

    def start(self, system: str, batch: str, step: str) -> None:
        """A step begins."""

    def advance(self, questions: int) -> None:
        """Questions are done."""

    def note(self, text: str) -> None:
        """Something to tell the user."""


class _Silent:
    def start(self, system: str, batch: str, step: str) -> None: ...

    def advance(self, questions: int) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass
class Runner:
    """One run of some systems over one package.

    Args:
        package: The verified package.
        settings: What decides the figures.
        embedder: Shared by all systems.
        answerer: The answer model; None where ``settings.answer`` is.
        complete: The LLM lent to memories; None where ``settings.llm`` is.
        progress: Told how far the run is.
    """

    package: Package
    settings: RunSettings
    embedder: CachedEmbedder
    answerer: Answerer | None = None
    llm: Answerer | None = None
    progress: Progress = field(default_factory=_Silent)

    def run(self, names: Sequence[str], out: Path, fresh: bool = False) -> dict[str, Any]:
        """Measure the systems and write ``out``.

        Systems that ``out`` already holds under the same settings are kept, so a run can be extended. Each answered
        question is kept in ``out`` + ``.partial`` until the end. What other code has measured is measured anew, which
        the progress is told.

        Args:
            names: Systems; see `scale_qa.systems.find_system`.
            out: The results file.
            fresh: Start over instead of going on.

        Returns:
            The results, as written.

        Raises:
            UnknownSystemError: If a name is none.
            RunError: If ``out`` or its partial file holds a run of another package or other settings.
            AnswerError: If the answer model does not answer any more; what was answered is kept.
        """
        if not names:
            raise RunError("no system named; pass --system NAME (scale-qa systems lists them)")
        specs = {name: find_system(name) for name in names}
        identity = {"package": self.package.digest, "settings": json.loads(json.dumps(asdict(self.settings)))}
        code = {name: fingerprint(spec) for name, spec in specs.items()}
        done = {} if fresh or not out.exists() else self._kept(out, identity, code)
        labels = {batch.name: self._labels(batch) for batch in self.package}
        with Journal.open(out.with_name(out.name + ".partial"), identity, fresh) as journal:
            for spec in specs.values():
                if spec.name in done:
                    self.progress.advance(sum(map(len, labels.values())))
                    continue
                if journal.begin(spec.name, code[spec.name]):
                    self.progress.note(f"{spec.name}: its code has changed since the run broke off; measured anew")
                for batch in self.package:
                    self._run_batch(spec, batch, journal)
            measured = {name: code[name] for name in specs if name not in done}
            results = assemble(self.package, self.settings, labels, done, measured, journal)
            write_results(out, results)
            journal.remove()
        return results

    def _kept(self, out: Path, identity: Mapping[str, Any], code: Mapping[str, str]) -> dict[str, Any]:
        """Systems of an earlier run, without those that are asked for and whose code is another now."""
        old = read_results(out)
        if old["package"]["digest"] != identity["package"] or old["run"]["settings"] != identity["settings"]:
            raise RunError(
                f"{out} holds a run of another package or with other settings; choose another --out or pass --fresh"
            )
        kept: dict[str, Any] = {}
        for name, figures in old["systems"].items():
            if name in code and figures.get("code") != code[name]:
                self.progress.note(f"{name}: its code has changed since {out.name} was written; measured anew")
            else:
                kept[name] = figures
        return kept

    def _labels(self, batch: Batch) -> dict[str, dict[str, Any]]:
        """Strata of every question; *hard* is what BM25 over 256-token windows at depth 1 does not settle."""
        judge = find_system("bm25-256")(Resources(self.embedder))
        judge.ingest(batch.turns)
        reader = Reader(batch.turns)
        return {
            question.id: label(
                question,
                batch.name,
                hard=len(reader.found(judge.retrieve(question.query, 1), question.evidence)) < len(question.evidence),
            )
            for question in batch.questions
        }

    def _run_batch(self, spec: SystemSpec, batch: Batch, journal: Journal) -> None:
        rows = journal.rows(spec.name, batch.name)
        self.progress.advance(len(rows))
        if journal.finished(spec.name, batch.name):
            return
        self.progress.start(spec.name, batch.name, "ingest")
        memory = spec(self._resources())
        try:
            if memory.wants_gold:
                memory.take_gold([unit.turns for unit in batch.gold])
            with self.embedder.timed() as watch:
                memory.ingest(batch.turns)
            reader = Reader(batch.turns)
            failures = 0
            for question, row in self._asked(batch, rows):
                if row is None:
                    self.progress.start(spec.name, batch.name, "ask")
                    row = self._ask(memory, reader, question)
                    journal.add_row(spec.name, batch.name, row)
                    self.progress.advance(1)
                    failures = failures + 1 if row.get("answer", {}).get("failure") == "error" else 0
                    if failures == FAILURES_IN_A_ROW:
                        raise AnswerError(
                            f"{self.settings.answer} failed on {failures} questions in a row "
                            f"({row['answer']['detail']}); mend it and run the same command again: it goes on"
                        )
                if self.settings.write_back:
                    written = written_turns(question, row.get("answer"))
                    memory.ingest(written)
                    reader.extend(written)
            footprint = memory.footprint()
            journal.finish_batch(
                spec.name,
                batch.name,
                {
                    "turns": len(batch.turns),
                    "ingest_seconds": watch.seconds,
                    "vectors": footprint.vectors,
                    "bytes": footprint.bytes,
                    "notes": list(memory.notes),
                },
            )
        finally:
            memory.close()

    def _resources(self) -> Resources:
        return Resources(
            embedder=self.embedder,
            complete=None if self.llm is None else self.llm.complete,
            cross_encoder=self.settings.cross_encoder,
        )

    @staticmethod
    def _asked(batch: Batch, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[Question, dict[str, Any] | None]]:
        """The questions in order, with the row of those that were asked before the run broke off."""
        for i, question in enumerate(batch.questions):
            yield question, rows[i] if i < len(rows) else None

    def _ask(self, memory: MemorySystem, reader: Reader, question: Question) -> dict[str, Any]:
        settings, evidence = self.settings, question.evidence
        query = question.query
        if settings.query_form == "options" and question.options:
            query = f"{query}\n{options_text(question.options)}"
        with self.embedder.timed() as watch:
            top_units = list(memory.retrieve(query, settings.k))
        units = capped(reader, top_units, memory.context_cap)
        found = reader.found(units, evidence)
        row: dict[str, Any] = {
            "id": question.id,
            "covered": len(found) == len(evidence),
            "found": len(found),
            "co_contained": None
            if len(evidence) < 2
            else any(len(reader.held(unit, evidence)) == len(evidence) for unit in units),
            "units": len(units),
            "context_tokens": round(reader.tokens(units), 1),
            "retrieval_ms": round(watch.seconds * 1000, 3),
            "unbacked": reader.unbacked(units, evidence),
        }
        if self.answerer is not None and question.options:
            context = memory.prompt(query, units)
            row["answer"] = self._answer(question, reader.write(units) if context is None else context)
        ranked = memory.retrieve(query, memory.depth)
        row["recall_at"] = {str(k): len(reader.found(ranked[:k], evidence)) == len(evidence) for k in OTHER_DEPTHS}
        row["covered_at_tokens"] = {}
        for budget in settings.budgets:
            own = memory.retrieve_budget(query, budget)
            handed = reader.fill(ranked, budget) if own is None else own
            row["covered_at_tokens"][str(budget)] = len(reader.found(handed, evidence)) == len(evidence)
        row["views"] = view_hits(reader, ranked, evidence)
        return row

    def _answer(self, question: Question, context: str) -> dict[str, Any]:
        assert self.answerer is not None
        answer: Answer = self.answerer.answer(question.query, question.options, context)
        similarity = None
        if answer.rationale.strip() and question.reasoning.strip():
            first, second = self.embedder.embed([answer.rationale, question.reasoning])
            similarity = round(float(first @ second), 4)
        return {
            "letter": answer.letter,
            "right": answer.letter == question.answer,
            "failure": answer.failure,
            "detail": answer.detail,
            "rationale": answer.rationale,
            "rationale_similarity": similarity,
            "seconds": round(answer.seconds, 3),
        }


def view_hits(reader: Reader, ranked: Sequence[Unit], evidence: Sequence[int]) -> dict[str, bool]:
    """Whether the units that each view found hold all the evidence; empty where a memory has no views."""
    names = sorted({view for unit in ranked for view, part in unit.views.items() if part > 0})
    return {
        name: len(reader.found([u for u in ranked if u.views.get(name, 0) > 0], evidence)) == len(evidence)
        for name in names
    }


def written_turns(question: Question, answer: Mapping[str, Any] | None) -> list[Turn]:
    """The two turns that write-back adds: the question as it was asked, and what was answered.

    Without an answer model the reply is a fixed sentence: the right answer is never written into a memory.
    """
    asked = question.query
    if question.options:
        asked = f"{asked}\n{options_text(question.options)}"
    reply = "I have answered that."
    if answer is not None and answer["letter"] is not None:
        reply = f"{answer['letter']}. {answer['rationale']}".strip()
    return [Turn("user", asked), Turn("assistant", reply)]
