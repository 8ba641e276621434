"""`ApiError`: a request to a server that didn't come to what was asked for. Spec: 11 §3."""

from __future__ import annotations

from harnpy.faults import Fault


class ApiError(Fault):
    """``status`` and ``code`` are the server's (11 §1.3), and ``message`` is one sentence.

    Without a response of a harnpy server the code is `unreachable` (with status 0), `broken` (0 too: nobody
    knows whether the request was carried out), or `not_harnpy`.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status, self.code, self.message)
