"""The REPL's input line: editing, history, completion, highlighting. Spec: 09 §5."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import style_from_pygments_dict
from pygments.token import Comment, Keyword, Name, Number, String

from harnpy.cli import Stopped
from harnpy.cli.pygments_lexer import HarnLexer
from harnpy.cli.repl import Shell, is_unfinished
from harnpy.world.files import PRIVATE, make_directories, make_file

_PROMPT, _CONTINUATION = "harn〉", "::: "
_HOW_TO_LEAVE = "(Ctrl+D or :quit to exit)"
_HISTORY_ENTRIES = 1000
#: A kind of token takes the colour of the kind above it.
_COLOURS = {
    Comment: "ansibrightblack",
    Keyword: "bold ansiblue",
    Keyword.Constant: "nobold ansiyellow",
    Name.Builtin: "bold ansiblue",
    Number: "ansicyan",
    String: "ansigreen",
    String.Interpol: "noinherit",
}


def prompter(shell: Shell) -> Callable[[], str]:
    """A function that asks for one complete input. Raises EOFError.

    Ctrl+C clears what has been typed.
    """
    words = _known_words()
    session: PromptSession[str] = PromptSession(
        _PROMPT,
        multiline=True,
        prompt_continuation=_CONTINUATION,
        history=_History(str(_history_file())),
        completer=_NameCompleter(shell, words),
        complete_while_typing=False,
        lexer=PygmentsLexer(HarnLexer),
        style=style_from_pygments_dict(_COLOURS),
        include_default_pygments_style=False,
        key_bindings=_keys(),
        color_depth=ColorDepth.MONOCHROME if "NO_COLOR" in os.environ else None,
    )

    def ask() -> str:
        while True:
            try:
                return session.prompt()
            except Stopped:
                raise
            except KeyboardInterrupt:
                if not session.default_buffer.text:
                    print(_HOW_TO_LEAVE)

    return ask


#: A variable, perhaps with keys behind it, and what was typed behind the last dot.
_MEMBER = re.compile(r"(?<![\w.)\]])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.(\w*)\Z")


class _History(FileHistory):
    """The last thousand inputs, shared between sessions."""

    def load_history_strings(self) -> Iterable[str]:
        return islice(super().load_history_strings(), _HISTORY_ENTRIES)


class _NameCompleter(Completer):
    """Keywords, builtins, what the session has defined, the shell's own commands; behind a dot what the value
    before it has."""

    def __init__(self, shell: Shell, words: frozenset[str]) -> None:
        self._shell = shell
        self._words = words

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor.lstrip()
        if typed.startswith(":") and " " not in typed:
            return _completions(typed, self._shell.command_names)
        if typed.startswith(":session "):
            return _completions(typed.removeprefix(":session "), self._shell.session_ids())
        member = _MEMBER.search(typed)
        if member is not None:
            found = dict.fromkeys(self._shell.members(member[1]))
            return [
                Completion(name, -len(member[2]), display=name)
                for name in found
                if name.startswith(member[2])
            ]
        prefix = document.get_word_before_cursor()
        if not prefix or not (prefix[0].isalpha() or prefix[0] == "_"):
            return ()
        return _completions(prefix, self._words.union(self._shell.session.names()))


def _completions(prefix: str, names: Iterable[str]) -> Iterable[Completion]:
    found = sorted(name for name in names if name.startswith(prefix))
    return (Completion(name + " ", -len(prefix), display=name) for name in found)


def _keys() -> KeyBindings:
    """Enter ends a finished input and opens another line of an unfinished one."""
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_unfinished(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    return keys


def _known_words() -> frozenset[str]:
    from harnpy.builtins import catalog
    from harnpy.syntax.lexer import RESERVED

    return RESERVED.union(catalog.names())


def _history_file() -> Path:
    """`~/.harn/repl_history`; without a HOME, `.harn/repl_history` here."""
    base = Path(os.environ["HOME"]) if os.environ.get("HOME") else Path()
    directory = base / ".harn"
    make_directories(str(directory), PRIVATE[1])
    file = directory / "repl_history"
    make_file(str(file), PRIVATE[0])
    return file
