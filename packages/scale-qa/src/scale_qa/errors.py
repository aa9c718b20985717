"""Errors of the benchmark. Each names the file and line where there is one, and says what to do.

ScaleQAError
+-- RecordError     a record or noise line is malformed; names file and line      (also ValueError)
+-- FamilyError     a scenario family is malformed; names the file                (also ValueError)
+-- BuildError      a package cannot be built from these records and this noise   (also ValueError)
+-- PackageError    a package on disk is missing, broken or not what was hashed   (also ValueError)
+-- ImportFormatError   a foreign file is not in the format it was said to be in  (also ValueError)
+-- UnknownSystemError      no system has that name, or it is no memory           (also ValueError)
+-- SystemUnavailableError  a system needs a package that is not installed
+-- RunError        a run cannot start, or goes on from other settings            (also ValueError)
+-- ResultsError    a results file is missing or is none                          (also ValueError)
+-- AnswerError     the answer backend cannot be built, or is down
+-- GoldError       a gold segmentation file is malformed                         (also ValueError)
"""

from __future__ import annotations

from tsim_core.errors import TSIMError


class ScaleQAError(TSIMError):
    """Base of every error that the benchmark raises on purpose."""


class RecordError(ScaleQAError, ValueError):
    """A record or a noise line is malformed. The message names the file and the line."""


class FamilyError(ScaleQAError, ValueError):
    """A scenario family is malformed. The message names the file."""


class BuildError(ScaleQAError, ValueError):
    """A package cannot be built: bad target, truth larger than the target, too little noise."""


class PackageError(ScaleQAError, ValueError):
    """A package on disk is missing, incomplete, or does not match its hashes."""


class ImportFormatError(ScaleQAError, ValueError):
    """A file from elsewhere is not in the format it was said to be in."""


class UnknownSystemError(ScaleQAError, ValueError):
    """No system has that name, or what has it is no memory system."""


class SystemUnavailableError(ScaleQAError):
    """A system needs a package that is not installed. The message names the pip command."""


class RunError(ScaleQAError, ValueError):
    """A run cannot start: an impossible setting, or an output file that holds a run with other settings."""


class ResultsError(ScaleQAError, ValueError):
    """A results file is missing or is none, or two of them cannot be compared."""


class AnswerError(ScaleQAError):
    """The answer backend cannot be built, or does not answer any more."""


class GoldError(ScaleQAError, ValueError):
    """A gold segmentation file is malformed. The message names the dialogue."""
