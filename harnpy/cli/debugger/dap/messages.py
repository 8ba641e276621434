"""What requests of the Debug Adapter Protocol carry, as far as harnpy reads it. Spec: 09 §15.6."""

from __future__ import annotations

import msgspec


class Arguments(msgspec.Struct, rename="camel"):
    """The arguments of a request; those without a class of their own carry none."""


class Initialize(Arguments):
    lines_start_at1: bool = msgspec.field(default=True, name="linesStartAt1")
    columns_start_at1: bool = msgspec.field(default=True, name="columnsStartAt1")


class Launch(Arguments):
    """What a launch configuration says: the options of `harnpy debug`, and where to run."""

    program: str
    args: list[str] = []
    cwd: str | None = None
    env: dict[str, str] = {}
    stop_on_entry: bool = False
    no_debug: bool = False
    skill_dirs: list[str] = []
    llm_mock: str | None = None


class Source(Arguments):
    path: str


class SourceBreakpoint(Arguments):
    line: int
    condition: str | None = None


class SetBreakpoints(Arguments):
    source: Source
    breakpoints: list[SourceBreakpoint] = []


class SetExceptionBreakpoints(Arguments):
    filters: list[str] = []


class OfThread(Arguments):
    thread_id: int


class StackTrace(OfThread):
    start_frame: int = 0
    levels: int = 0


class Scopes(Arguments):
    frame_id: int


class Variables(Arguments):
    variables_reference: int


class SetVariable(Variables):
    name: str
    value: str


class Evaluate(Arguments):
    expression: str
    frame_id: int | None = None


class Disconnect(Arguments):
    terminate_debuggee: bool = True
