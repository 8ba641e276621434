"""The REPL without its terminal: inputs in, coloured text out, one session behind. Spec: 09 §5.

A `Shell` gets complete inputs. It classifies each by its first word, runs it once and prints its result.
Lines that begin with `:` are commands to the shell itself. The session survives every failure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from harnpy import Vm
from harnpy.cli import Stopped, console
from harnpy.cli.console import columns, complain, one_line, say_folded, show_warnings
from harnpy.cli.project_setup import bind_manifest
from harnpy.cli.value_views import shown
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.formats.visible import cut
from harnpy.project import project_root
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.habits import prefixed_string, unprefixed
from harnpy.syntax.lexer import RESERVED
from harnpy.syntax.parser import parse_cached
from harnpy.syntax.pieces import pieces
from harnpy.vm.errors import VmError
from harnpy.vm.run.methods import method_names
from harnpy.vm.values import display, type_name
from harnpy.world import World
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from harnpy.session.registry import SessionRegistry
    from harnpy.vm.front_end import ReplSession
    from harnpy.vm.values import Value
    from harnpy.world import World

#: What an input that goes on ends with: an operator that lacks its right side.
_GOES_ON = re.compile(r"(?:[-+*/%=<>,|&?.]|\b(?:in|to))\s*\Z")
#: … but for those that end a value.
_ENDS = re.compile(r"(?:\?|\+\+|--)\s*\Z")


def is_unfinished(text: str) -> bool:
    """True while a string or a bracket is open, or the last line ends in an operator; surplus closing
    brackets don't count."""
    depth, code = 0, ""
    for kind, start, end in pieces(text):
        piece = text[start:end]
        if kind == "open string":
            # A quote on a later line closes it, so that nobody is caught in an input that can't be right.
            line_end = text.find("\n", end)
            quote = text.find('"', line_end) if line_end >= 0 and not text.startswith('"""', start) else -1
            return quote < 0 or is_unfinished(f'{text[:start]}""{text[quote + 1 :]}')
        if kind == "bracket":
            depth += 1 if piece in "([{" else -1
        code += "" if kind in ("comment", "doc") else piece
    lacks = _GOES_ON.search(code) is not None and _ENDS.search(code) is None
    return depth > 0 or (lacks and not text.lstrip().startswith(":"))


#: The first words of inputs that show no value.
_SILENT = (RESERVED - {"true", "false", "nil"}) | frozenset(
    "log print println assert assert_eq assert_ne".split()
)

_FIRST_WORD = re.compile(r"(?:gen\s+(?=fn\b))?([^\W\d]\w*)")
_COMPARISON = re.compile(r"[=!<>]=")

#: An input that assigns to a plain name.
_ASSIGNMENT = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
#: What newcomers type to leave, or to see what there is.
_LEAVING, _ASKING = ("exit", "quit", "q"), ("help", "?")

_HELP = """\
Type an expression to see its value, or any statement; everything you define stays.
The values of expressions are also in _1, _2, ...
"""
#: Each command of the shell, what it is given (in brackets: if anything), and what it does.
_COMMANDS = {
    "help": ("", "this text"),
    "doc": ("NAME", "what a builtin does, in the specification's words"),
    "raw": ("[EXPR]", "the whole display of a value, or of the last one"),
    "type": ("EXPR", "the type of an expression's value"),
    "vars": ("", "what you have defined"),
    "sessions": ("", "the sessions that are open"),
    "session": ("ID", "one of them in full; the beginning of its id is enough"),
    "tree": ("", "which session was forked from which"),
    "load": ("FILE", "run a file here"),
    "reset": ("", "forget everything"),
    "quit": ("", "leave (so does Ctrl+D)"),
}


def shell_vm(world: World | None = None) -> Vm:
    """Return a Vm for inputs, with what the project around the working directory gives to programs."""
    vm = Vm(world)
    vm.on_warnings = show_warnings
    here = vm.unguarded.files.cwd()
    bind_manifest(vm, project_root(here, vm.unguarded.files) or here)
    return vm


class Shell:
    """One REPL conversation; `done` becomes true when the user leaves.

    ``session`` is one that has begun; without it, a new one begins.
    """

    session: ReplSession

    def __init__(self, session: ReplSession | None = None) -> None:
        self.done = False
        #: Whether an input has failed.
        self.failed = False
        self._commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: say_folded(_help()),
            "quit": self._quit,
            "doc": self._doc,
            "raw": self._raw,
            "type": self._type,
            "vars": self._vars,
            "sessions": self._sessions,
            "session": self._session,
            "tree": self._tree,
            "load": self._load,
            "reset": lambda _: self.reset(),
        }
        self._count = 0
        if session is None:
            self.reset()
        else:
            self.session = session

    def reset(self) -> None:
        """Forget every variable, session and counter."""
        self.session = shell_vm(World(streams=RealStreams(stdout=self._write))).repl()
        self._count = 0
        self._last = "nil"
        #: Whether what a program has printed ends within a line.
        self._within_line = False

    def _write(self, text: str) -> None:
        RealStreams().write_out(text)
        if text:
            self._within_line = not text.endswith("\n")

    def _end_line(self) -> None:
        """On a terminal, begin a line, where the prompt would overwrite what the program has printed."""
        if self._within_line and sys.stdout.isatty():
            _say("")
        self._within_line = False

    @property
    def command_names(self) -> list[str]:
        """The shell's own commands, as typed."""
        return [":" + name for name in self._commands]

    def feed(self, text: str) -> None:
        """Run one complete input and print what it shows; a failure goes to stderr."""
        source = text.strip()
        if source.startswith(":"):
            name, *argument = source[1:].split(maxsplit=1) or [""]
            self._command(name, "".join(argument))
        elif source in (*_LEAVING, *_ASKING) and source not in self.session.values:
            # Neither is a name of Harn, but for `exit`, whose value nobody asks for.
            say_folded("(Ctrl+D or :quit to exit)" if source in _LEAVING else _help())
        elif source:
            self._guarded(self._run, text)
        self._end_line()

    def _command(self, name: str, argument: str) -> None:
        if name not in self._commands:
            near = nearest_at_run_time(name, self._commands)
            told = f"did you mean `:{near}`?" if near else "try `:help`"
            self._complain(f"unknown command `:{name}` ({told})")
            return
        takes = _COMMANDS[name][0]
        if takes.isalpha() and not argument:
            self._complain(f"`:{name}` needs {takes}: `:{name} {takes}`")
        elif argument and not takes:
            self._complain(f"`:{name}` takes nothing behind it, got `{one_line(argument)}`")
        elif takes in ("NAME", "ID") and len(argument.split()) > 1:
            self._complain(f"`:{name}` takes one {takes}: `:{name} {takes}`")
        else:
            self._guarded(self._commands[name], argument)

    def _guarded(self, action: Callable[[str], None], argument: str) -> None:
        """Do `action`; show its failure instead of raising it."""
        try:
            action(argument)
        except Stopped:
            raise
        except KeyboardInterrupt:
            self._complain("interrupted")
        except Exception as error:
            self.failed = True
            self._end_line()
            sys.stdout.flush()
            sys.stderr.write(console.rendered_for_repl(error) + self._help(argument, error))

    def _help(self, source: str, error: Exception) -> str:
        """Return the line that says what to type instead; "" where the error says all there is to say."""
        help = self._declaration(source, error) or _without_prefix(source, error)
        return f"   = help: {help}\n" if help else ""

    def _declaration(self, source: str, error: Exception) -> str | None:
        """What declares the name that an input assigns to, if it failed because that can't be assigned."""
        assigned = _ASSIGNMENT.fullmatch(source)
        if assigned is None or not isinstance(error, VmError):
            return None
        name, value = assigned[1], _short(assigned[2].strip())
        if f"Undefined variable: {name} " in f"{error.text} ":
            return f"a name is declared first: `let {name} = {value}`, or `var` if it changes"
        if f"Cannot assign to immutable binding: {name} " in f"{error.text} ":
            return f"`let {name} = {value}` declares it again; what changes is declared with `var`"
        return None

    def _complain(self, problem: str) -> None:
        self.failed = True
        complain(f"Error: {problem}")

    def _run(self, source: str) -> None:
        if not is_expression(_last_statement(source)):
            self.session.run(source)
            return
        self._count += 1
        value = self.session.run(source)
        name = self._last = f"_{self._count}"
        self.session.bind(name, value)
        self._end_line()
        _show(value, name)

    def _quit(self, argument: str) -> None:
        self.done = True

    def _type(self, expression: str) -> None:
        _say(type_name(self.session.run(expression)))

    def _raw(self, expression: str) -> None:
        _say(display(self.session.run(expression or self._last)))

    def _load(self, path: str) -> None:
        self.session.run(Path(path).expanduser().read_text(encoding="utf-8"))

    def _vars(self, argument: str) -> None:
        for name, value in sorted(self.session.values.items()):
            _say(_short(f"{name}: {type_name(value)} = {display(value)}", columns() or 80))

    def members(self, path: str) -> Iterator[str]:
        """Yield what may follow the dot behind a variable, or behind keys of it: the value's own keys, then
        the methods of its type."""
        name, *keys = path.split(".")
        value = self.session.values.get(name)
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield from (key for key in sorted(value) if key.isidentifier())
        yield from method_names(type_name(value))

    def session_ids(self) -> list[str]:
        """The sessions that are open, the least recently used first."""
        return self.live_sessions().ids()

    def live_sessions(self) -> SessionRegistry:
        from harnpy.builtins.bridge.live_sessions import sessions_of

        return sessions_of(self.session.vm)

    def _sessions(self, argument: str) -> None:
        from harnpy.cli.session_views import live_table
        from harnpy.cli.tables import show

        show(live_table(self.live_sessions()))

    def _session(self, argument: str) -> None:
        from harnpy.cli.session_views import live_transcript
        from harnpy.cli.tables import show

        ids = self.session_ids()
        found = [id for id in ids if id == argument] or [id for id in ids if id.startswith(argument)]
        if len(found) == 1:
            show(live_transcript(self.live_sessions().snapshot_value(found[0]) or {}))
        elif found:
            self._complain(f"{len(found)} sessions begin with `{argument}` (try `:sessions`)")
        else:
            self._complain(f"unknown session id '{argument}' (try `:sessions`)")

    def _tree(self, argument: str) -> None:
        from harnpy.cli.session_views import live_tree
        from harnpy.cli.tables import show

        show(live_tree(self.live_sessions()))

    def _doc(self, name: str) -> None:
        from harnpy.cli import builtin_help

        try:
            builtin_help.print_help(name)
        except LookupError as error:
            self._complain(str(error))


#: The kinds of pieces in which a `=` assigns nothing.
_NO_CODE = frozenset(["comment", "doc", "string", "raw", "escape", "open string"])


def is_expression(source: str) -> bool:
    """True for an input whose value is shown: no definition, statement or assignment. Spec: 09 §5."""
    first = _FIRST_WORD.match(source.lstrip())
    if first and first[1] in _SILENT:
        return False
    code = "".join(source[start:end] for kind, start, end in pieces(source) if kind not in _NO_CODE)
    return "=" not in code or _COMPARISON.search(code) is not None


def _show(value: Value, name: str) -> None:
    """Print a value as people read it: on a terminal folded to the screen, else on a line."""
    if not sys.stdout.isatty():
        _say("\n".join(shown(value)))
        return
    width, height = get_terminal_size()
    lines = shown(value, width)
    kept = max(height - 3, 3)
    if len(lines) > kept + 1:
        lines = [*lines[:kept], f"… {len(lines) - kept} more lines (:raw {name} shows all)"]
    _say("\n".join(lines))


def _last_statement(source: str) -> str:
    """The text from the last of several statements on, as pasted ones are; else all of it."""
    try:
        items = parse_cached(source).items
    except SyntaxFault:
        return source
    return source[items[-1].start :] if len(items) > 1 else source


def _without_prefix(source: str, error: Exception) -> str | None:
    """What to write instead of `f"…"`, where an `f` is an undefined name."""
    if not isinstance(error, VmError) or not error.frames or "Undefined variable: " not in error.text:
        return None
    place = error.frames[0]
    line = source.split("\n")[place.line - 1] if place.file.startswith("<repl") else ""
    string = prefixed_string(line, place.column - 1)
    return unprefixed(string) if string else None


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _help() -> str:
    """The text of `:help`."""
    rows = (f"  {f':{name} {takes}':13} {text}" for name, (takes, text) in _COMMANDS.items())
    return "\n".join([_HELP, *rows])


def described(value: Value) -> str:
    """Return the type and the beginning of a value, on a line."""
    return f"{type_name(value)} = {_short(display(value))}"


def _short(text: str, width: int = 60) -> str:
    return cut(text.replace("\n", " "), width)
