"""Errors as plain data: what a run ends with in the child is what the embedder catches."""

from __future__ import annotations

from typing import Any

from harnpy.syntax.diagnostic import Diagnostic, Edit, Fix, Related
from harnpy.syntax.errors import CompileFault, LexFault, SourceFault, SyntaxFault
from harnpy.syntax.span import Lines, Span
from harnpy.vm.errors import ExitRequest, LimitExceeded, Thrown, VmError
from harnpy.vm.run.backtrace import Frame
from harnpy.vm.unit import Unit

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
        case Thrown():
            return {"kind": "thrown", "value": error.value, **_position(error)}
        case VmError():
            return {"kind": "failed", "message": error.text, **_position(error)}
        case OSError():
            return {"kind": "os", "args": [error.errno, error.strerror or str(error), error.filename]}
    return {"kind": "other", "message": f"{type(error).__name__}: {error}"}


def unpacked(data: Data) -> BaseException:
    """The error that `packed` made the data of."""
    match data["kind"]:
        case "exit":
            return ExitRequest(data["code"])
        case "source":
            return _unpacked_fault(data)
        case "limit":
            return _at(data, LimitExceeded(data["limit"], data["message"]))
        case "thrown":
            return _at(data, Thrown(data["value"]))
        case "failed":
            return _at(data, VmError(data["message"]))
        case "os":
            return OSError(*data["args"])
    return RuntimeError(data["message"])


def _position(error: VmError) -> Data:
    """The call stack, and the texts of its files, each once."""
    frames = [[frame.name, frame.file, frame.line, frame.column] for frame in error.frames]
    return {"frames": frames, "sources": {frame.file: frame.unit.source for frame in error.frames}}


def _at(data: Data, error: VmError) -> VmError:
    units = {file: Unit(file, source) for file, source in data["sources"].items()}
    error.frames = tuple(Frame(name, units[file], *place) for name, file, *place in data["frames"])
    return error


def _packed_fault(fault: SourceFault) -> Data:
    found = [
        {
            "stated": [each.severity, each.message, each.span and _parts(each.span), each.label, each.help],
            "notes": each.notes,
            "code": each.code,
            "related": [
                [it.message, it.span and _parts(it.span), it.file, it.lines and it.lines.source]
                for it in each.related
            ],
            "fix": each.fix
            and [[[edit.start, edit.end, edit.text] for edit in each.fix.edits], each.fix.safe],
        }
        for each in fault.diagnostics
    ]
    line = [fault.line, fault.text] if isinstance(fault, CompileFault) else None
    return {
        "kind": "source",
        "class": type(fault).__name__,
        "message": fault.message,
        "diagnostics": found,
        "source": fault.source,
        "file": fault.file,
        "line": line,
    }


def _unpacked_fault(data: Data) -> SourceFault:
    found = [_diagnostic(each) for each in data["diagnostics"]]
    if data["line"] is not None:
        line, text = data["line"]
        return CompileFault(line, text, found, data["source"], data["file"])
    fault: SourceFault = _FAULTS.get(data["class"], SourceFault)(
        data["message"], found, data["source"], data["file"]
    )
    return fault


def _diagnostic(data: Data) -> Diagnostic:
    severity, message, span, label, help = data["stated"]
    related = [
        Related(text, place and Span(*place), file, None if source is None else Lines(source))
        for text, place, file, source in data["related"]
    ]
    fix = data["fix"] and Fix([Edit(*edit) for edit in data["fix"][0]], data["fix"][1])
    return Diagnostic(
        severity,
        message,
        span and Span(*span),
        label,
        help,
        tuple(data["notes"]),
        code=data["code"],
        related=tuple(related),
        fix=fix,
    )


def _parts(span: Span) -> list[int]:
    return [span.start, span.end, span.line, span.column]
