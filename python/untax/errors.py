"""The exceptions of untax. Each is an `Error`, with the text of the library, and the suspect."""

from __future__ import annotations


class Error(Exception):
    """The base of all errors. `suspect` is the rank that others wait for in vain, or that failed; -1 if it is no rank
    in particular. `code` is the library's word for the error, such as "peer_lost". """

    code = "internal"

    def __init__(self, text: str, suspect: int = -1) -> None:
        super().__init__(text)
        self.suspect = suspect


class InvalidArgument(Error, ValueError):
    """A shape, array, type or option that cannot be used."""

    code = "invalid_argument"


class NotSymmetric(Error, ValueError):
    """Memory that has to lie in the symmetric heap, and does not."""

    code = "not_symmetric"


class OutOfMemory(Error, MemoryError):
    """The symmetric heap, or the machine, has too little memory left."""

    code = "out_of_memory"


class Unsupported(Error, RuntimeError):
    """A combination that this machine or build does not offer."""

    code = "unsupported"


class Disagreement(Error, RuntimeError):
    """Ranks make different collective calls."""

    code = "disagreement"


class PeerLost(Error, RuntimeError):
    """A rank ended, or was killed, while others waited for it."""

    code = "peer_lost"


class Timeout(Error, TimeoutError):
    """A bounded wait reached its limit."""

    code = "timeout"


class Aborted(Error, RuntimeError):
    """Another rank failed and stopped the world."""

    code = "aborted"


class Internal(Error, RuntimeError):
    """A broken invariant of untax itself."""

    code = "internal"


_of_code = {kind.code: kind for kind in (
    InvalidArgument, NotSymmetric, OutOfMemory, Unsupported, Disagreement, PeerLost, Timeout, Aborted, Internal)}


def made(code: str, text: str, suspect: int) -> Error:
    """The error for a status of the library, chosen by its word."""
    return _of_code.get(code, Internal)(text, suspect)
