"""Messages between the two sides, and the values and errors in them as plain data. Spec: 09 §16.3.

A message is a length, then a msgpack list of a kind and its contents.

| to the child                                  |                                                   |
|-----------------------------------------------|---------------------------------------------------|
| begin, settings                               | the first message                                 |
| run, source, options; call, function, args    | one at a time                                     |
| cancel                                        | end what runs                                     |
| answer, number, value; refusal, number, error | to a question                                     |

| to the embedder                               |                                                   |
|-----------------------------------------------|---------------------------------------------------|
| out, text; err, text; event, dict             | what a program writes, what its agents do         |
| ask, number, whom, name, args                 | a question, answered while the program waits      |
| done, value; failed, error; cancelled         | the end of a run or call                          |

Both sides are harnpy: what crosses is checked where it leaves. Programs make values, not messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from harnpy.syntax.diagnostic import (
    CompileFault,
    Diagnostic,
    Edit,
    Fix,
    LexFault,
    Lines,
    Related,
    SourceFault,
    Span,
    SyntaxFault,
)
from harnpy.vm.errors import Elsewhere, ExitRequest, HostError, LimitExceeded, Thrown, VmError
from harnpy.vm.run.backtrace import Frame
from harnpy.vm.unit import Unit
from harnpy.vm.values import Duration, EnumValue, Fn, Pair, Range, Set, type_name

# Values of the language as data that crosses between processes.
#
# nil, bool, int, float, string, bytes, list and dict are msgpack's own; a struct becomes a dict. Enums,
# durations, sets, pairs, ranges and the parts of diagnostics are extensions. A function crosses as a number:
# it stays in the child, where `call` finds it.


_encode, _Ext = msgspec.msgpack.encode, msgspec.msgpack.Ext
_FUNCTION = 1
#: Deeper values would cost the codec more C stack than there is.
_MOST_NESTED = 500


class RemoteFunction:
    """A function of an isolated program; `IsolatedVm.call` calls it. It ends with the child."""

    __slots__ = ("child", "name", "number")
    type_name = "closure"

    def __init__(self, child: int, number: int, name: str | None) -> None:
        self.child = child
        self.number = number
        self.name = name

    def __repr__(self) -> str:
        return f"<isolated fn {self.name or 'closure'}>"


def _enum(enum: str, variant: str, *fields: Any) -> EnumValue:
    return EnumValue(enum, variant, fields)


def _diagnostic(stated: dict[str, Any]) -> Diagnostic:
    return Diagnostic(**{**stated, "notes": tuple(stated["notes"]), "related": tuple(stated["related"])})


#: For each class: its extension code, its parts as a list, and what makes it of them again.
_PARTS: dict[type, tuple[int, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    EnumValue: (2, lambda value: [value.enum, value.variant, *value.fields], _enum),
    Duration: (3, lambda value: [value.ms], Duration),
    Set: (4, lambda value: [value.items], Set),
    Pair: (5, lambda value: [value.first, value.second], Pair),
    Range: (6, lambda value: [value.first, value.last, value.exclusive], Range),
    Span: (7, lambda span: [span.start, span.end, span.line, span.column], Span),
    Lines: (8, lambda lines: [lines.source], Lines),
    Related: (9, lambda related: [related.message, related.span, related.file, related.lines], Related),
    Edit: (10, lambda edit: [edit.start, edit.end, edit.text], Edit),
    Fix: (11, lambda fix: [fix.edits, fix.safe], Fix),
    Diagnostic: (12, lambda it: [{name: getattr(it, name) for name in it.__slots__}], _diagnostic),
}
_MADE = {code: make for code, _, make in _PARTS.values()}


class Packing:
    """Packs the values of one side: what happens to functions differs."""

    def __init__(self, pack_function: Callable[[Any], list[Any] | None]) -> None:
        """``pack_function(value)`` returns what stands for a function, None for any other value."""
        self._pack_function = pack_function

    def pack(self, value: Any) -> Any:
        """The `enc_hook` of msgspec. Raises TypeError for what can't cross."""
        parts = _PARTS.get(type(value))
        if parts is not None:
            return _Ext(parts[0], _encode(parts[1](value), enc_hook=self.pack))
        function = self._pack_function(value)
        if function is None:
            what = type_name(value) if type(value).__module__.startswith("harnpy.") else type(value).__name__
            raise TypeError(f"a {what} can't leave its process: only plain data and functions do")
        return _Ext(_FUNCTION, _encode(function))


class Unpacking:
    """Unpacks the values of one side."""

    def __init__(self, unpack_function: Callable[..., Any]) -> None:
        self._unpack_function = unpack_function

    def unpack(self, code: int, data: memoryview) -> Any:
        """The `ext_hook` of msgspec. Raises ValueError for what isn't known."""
        make = self._unpack_function if code == _FUNCTION else _MADE.get(code)
        if make is None:
            raise ValueError(f"no value has the code {code}")
        return make(*msgspec.msgpack.decode(data, ext_hook=self.unpack))


def refuse_deep(value: Any) -> None:
    """Raise ValueError for a value that is nested too deeply to cross."""
    level = [value]
    for _ in range(_MOST_NESTED):
        level = [inner for each in level for inner in _contents(each)]
        if not level:
            return
    raise ValueError(f"a value nested more than {_MOST_NESTED} deep can't leave its process")


def _contents(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    parts = _PARTS.get(type(value))
    return parts[1](value) if parts is not None else ()


def is_function(value: Any) -> bool:
    return type(value) is Fn


# Errors as plain data: what a run ends with in the child is what the embedder catches.


Data = dict[str, Any]

_FAULTS: dict[str, Any] = {"SyntaxFault": SyntaxFault, "LexFault": LexFault, "SourceFault": SourceFault}


def packed(error: BaseException) -> Data:
    """An error as data; a thrown value may be one that can't cross."""
    match error:
        case ExitRequest():
            return {"kind": "exit", "code": error.code}
        case SourceFault():
            return _packed_fault(error)
        case LimitExceeded():
            return {"kind": "limit", "limit": error.limit, "message": error.message, **_position(error)}
        case HostError():
            return {"kind": "host", "value": error.value, **_position(error)}
        case Thrown():
            return {"kind": "thrown", "value": error.value, **_position(error)}
        case VmError():
            return {"kind": "failed", "message": error.text, **_position(error)}
        case OSError():
            return {"kind": "os", "args": [error.errno, error.strerror or str(error), error.filename]}
    return {"kind": "other", "class": type(error).__name__, "message": str(error)}


def unpacked(data: Data) -> BaseException:
    """The error that `packed` made the data of."""
    match data["kind"]:
        case "exit":
            return ExitRequest(data["code"])
        case "source":
            return _unpacked_fault(data)
        case "limit":
            return _at(data, LimitExceeded(data["limit"], data["message"]))
        case "host":
            return _at(data, HostError(data["value"]))
        case "thrown":
            return _at(data, Thrown(data["value"]))
        case "failed":
            return _at(data, VmError(data["message"]))
        case "os":
            return OSError(*data["args"])
    return Elsewhere(data["class"], data["message"])


def _position(error: VmError) -> Data:
    """The call stack, and the texts of its files, each once."""
    frames = [[frame.name, frame.file, frame.line, frame.column] for frame in error.frames]
    return {"frames": frames, "sources": {frame.file: frame.unit.source for frame in error.frames}}


def _at(data: Data, error: VmError) -> VmError:
    units = {file: Unit(file, source) for file, source in data["sources"].items()}
    error.frames = tuple(Frame(name, units[file], *place) for name, file, *place in data["frames"])
    return error


def _packed_fault(fault: SourceFault) -> Data:
    return {
        "kind": "source",
        "class": type(fault).__name__,
        "message": fault.message,
        "diagnostics": list(fault.diagnostics),
        "source": fault.source,
        "file": fault.file,
        "line": [fault.line, fault.text] if isinstance(fault, CompileFault) else None,
    }


def _unpacked_fault(data: Data) -> SourceFault:
    found, source, file = data["diagnostics"], data["source"], data["file"]
    if data["line"] is not None:
        line, text = data["line"]
        return CompileFault(line, text, found, source, file)
    fault: SourceFault = _FAULTS.get(data["class"], SourceFault)(data["message"], found, source, file)
    return fault


#: The most bytes of one message: what one side sends can't fill the memory of the other.
MOST = 1 << 26
_HEAD = 4


class ProtocolError(Exception):
    """The other side said what this protocol doesn't know."""


def frame(message: tuple[Any, ...], enc_hook: Callable[[Any], Any] | None = None) -> bytes:
    """A message as bytes. Raises what `enc_hook` raises, and ValueError when it is too long or too deep."""
    refuse_deep(message)
    body = msgspec.msgpack.encode(message, enc_hook=enc_hook)
    if len(body) > MOST:
        raise ValueError(f"{len(body)} bytes are too many to cross: at most {MOST} do")
    return len(body).to_bytes(_HEAD, "big") + body


class Frames:
    """Finds the messages in what is received."""

    def __init__(self, ext_hook: Callable[[int, memoryview], Any] | None = None) -> None:
        self._ext_hook = ext_hook
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that are complete with ``data``. Raises ProtocolError."""
        self._received += data
        while len(self._received) >= _HEAD:
            end = _HEAD + int.from_bytes(self._received[:_HEAD], "big")
            if end > _HEAD + MOST:
                raise ProtocolError("a message is too long")
            if len(self._received) < end:
                return
            body = bytes(self._received[_HEAD:end])
            del self._received[:end]
            yield self._message(body)

    def _message(self, body: bytes) -> list[Any]:
        try:
            message = msgspec.msgpack.decode(body, ext_hook=self._ext_hook)
        except (msgspec.DecodeError, RecursionError, ValueError, TypeError) as error:
            raise ProtocolError("a message can't be read") from error
        if not isinstance(message, list) or not message or not isinstance(message[0], str):
            raise ProtocolError("a message is no list with a kind")
        return message
