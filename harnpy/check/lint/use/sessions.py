"""Sessions that a function opens and leaves open. Spec: 03 §15, 08 §1."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.subject import Subject
from harnpy.check.lint.uses import Binding
from harnpy.syntax import ast

_OPEN = "agent_session_open"
_CLOSE = "agent_session_close"
_FUNCTIONS = (ast.FnDecl, ast.FnExpr, ast.Closure, ast.ToolDecl)


def session_never_closed(subject: Subject) -> Iterator[Remark]:
    """A new session that a function only works in: with each call there is one more.

    Silent where anybody else could close it: its id is given away, or is one that somebody else may know.
    """
    for binding in subject.uses.bindings:
        value = _session(subject, binding)
        if value is not None and all(_works_in(subject, use) for use in binding.reads):
            yield remark(
                value,
                f"the session `{binding.name}` is opened here and never closed",
                help=f"close it where it is done with, best by `defer {{ {_CLOSE}({binding.name}) }}`",
            )


def _session(subject: Subject, binding: Binding) -> ast.Node | None:
    """The call that opens the session whose id a variable of a function holds, and nothing else."""
    let = binding.node
    if binding.kind != "let" or not isinstance(binding.owner, _FUNCTIONS):
        return None
    if binding.writes or binding.captured:
        return None
    return let.value if isinstance(let, ast.Let) and _opens(subject, let.value) else None


def _opens(subject: Subject, value: ast.Node) -> bool:
    """Whether a value is a session of its own: one without an id that others could use."""
    if not isinstance(value, ast.Call) or value.name != _OPEN or not subject.means_builtin(value):
        return False
    return not value.args or isinstance(value.args[0], ast.Nil)


def _works_in(subject: Subject, use: ast.Node) -> bool:
    """Whether a use of a session's id leaves it open, and here."""
    parent = subject.parent(use)
    if isinstance(parent, ast.Interp):
        return True
    if isinstance(parent, ast.DictEntry):
        return isinstance(parent.key, ast.Str) and parent.key.value == "session_id"
    if not isinstance(parent, ast.Call) or not subject.means_builtin(parent):
        return False
    return parent.name.startswith("agent_session_") and parent.name not in (_CLOSE, "agent_session_fork")
