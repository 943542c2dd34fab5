"""Every error we raise on purpose, in one tree.

`InputError` means the caller's file, option or data is at fault: commands print it in one line and
exit with 2. Everything else under `LabError` is a failure of the program: exit code 1.
"""


class LabError(Exception):
    """Raised when PaMER Lab cannot continue; the message is a sentence for the user."""


class InputError(LabError):
    """Raised when what the user gave is at fault: which file, where in it, and what to do."""

    def __init__(self, reason: str, *, path: str = "", where: str = "") -> None:
        self.reason = reason
        self.path = path
        self.where = where
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """The one line a user sees: `file, place: reason`."""
        place = ", ".join(part for part in (self.path, self.where) if part)
        return f"{place}: {self.reason}" if place else self.reason

    def at(self, *, path: str = "", where: str = "") -> "InputError":
        """The same error with the place filled in where it was still unknown."""
        return InputError(self.reason, path=self.path or path, where=self.where or where)


class FormatError(InputError):
    """Raised when a file was read but holds no trace we can use."""


class NotThisFormat(FormatError):
    """Raised when a reader does not find in a file what its format needs, so that the next reader is tried."""


class ProtocolError(InputError):
    """Raised when messages break the safe tool protocol of spec 1."""


class UnknownNameError(InputError):
    """Raised when a name is not in a registry; the message lists the names that are."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(known)}")


class StorageError(LabError):
    """Raised when the workspace cannot be read or written."""


class ModelError(LabError):
    """Raised when a model is missing, does not match its checksum, or fails to run."""


class ProbeError(ModelError):
    """Raised when hidden states could not be computed; the message carries the figures."""


class Cancelled(LabError):
    """Raised inside long work when its caller asked it to stop; finished parts are kept."""
