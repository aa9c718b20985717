"""Errors of the benchmark. Each names the file and line where there is one, and says what to do.

ScaleQAError
+-- RecordError     a record or noise line is malformed; names file and line      (also ValueError)
+-- FamilyError     a scenario family is malformed; names the file                (also ValueError)
+-- BuildError      a package cannot be built from these records and this noise   (also ValueError)
+-- PackageError    a package on disk is missing, broken or not what was hashed   (also ValueError)
+-- ImportFormatError   a foreign file is not in the format it was said to be in  (also ValueError)
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
