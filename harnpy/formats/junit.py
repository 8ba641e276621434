"""The test cases of a JUnit XML report. Spec: 04 §11.5.

Expat reads it piece by piece; a document type, which could define entities without end, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn
from xml.parsers import expat

_STATUS = {"failure": "failed", "error": "errored", "skipped": "skipped"}
_STREAMS = {"system-out": "stdout", "system-err": "stderr"}


def read_cases(pieces: Iterable[bytes], encoding: str | None) -> list[dict[str, Any]]:
    """Return a dict for each case, in the document's order. Raises ValueError for what is no such report.

    ``encoding``: None for the one that the document declares.
    """
    reader = _Reader()
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse
    try:
        for piece in pieces:
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError):
        raise ValueError("this is no XML") from None
    return reader.cases


def _refuse(*_: Any) -> NoReturn:
    raise ValueError("a document type is not supported")


class _Reader:
    def __init__(self) -> None:
        self.cases: list[dict[str, Any]] = []
        self._case: dict[str, Any] | None = None
        self._texts: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._texts = []
        if tag == "testcase":
            self._case = _case(attributes)
            self.cases.append(self._case)
        elif self._case is not None and tag in _STATUS:
            self._case["status"] = _STATUS[tag]
            if tag != "skipped":
                _add_message(self._case, attributes.get("message", ""))

    def text(self, text: str) -> None:
        self._texts.append(text)

    def end(self, tag: str) -> None:
        text, self._texts = "".join(self._texts), []
        if tag == "testcase":
            self._case = None
        elif self._case is not None and tag in ("failure", "error"):
            _add_message(self._case, text.strip())
        elif self._case is not None and tag in _STREAMS:
            self._case[_STREAMS[tag]] = text


def _case(attributes: dict[str, str]) -> dict[str, Any]:
    name, owner = attributes.get("name", ""), attributes.get("classname", "")
    return {
        "name": f"{owner}::{name}" if owner else name,
        "status": "passed",
        "duration_ms": _milliseconds(attributes.get("time", "")),
        "message": None,
        "stdout": None,
        "stderr": None,
    }


def _milliseconds(seconds: str) -> int:
    """Return seconds as milliseconds, 0 for what is no number."""
    try:
        number = float(seconds)
    except ValueError:
        return 0
    return round(number * 1000) if math.isfinite(number) and abs(number) < 1e15 else 0


def _add_message(case: dict[str, Any], text: str) -> None:
    if text:
        case["message"] = text if case["message"] is None else f"{case['message']}\n{text}"
