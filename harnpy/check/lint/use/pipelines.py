"""What belongs into tests and what doesn't, and what a pipeline promises. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast

_ASSERTIONS = frozenset({"assert", "assert_eq", "assert_ne"})
#: Pipelines that the runtime calls, and that return to nobody.
_ENTRIES = frozenset({"default", "main", "auto", "test"})


def pipeline_return_type(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Pipeline):
        if node.pub and node.returns is None and node.name not in _ENTRIES and not _is_test(node):
            text = "has no declared return type; explicit return types will be required in a future release"
            yield Remark(
                *subject.name_span(node, node.name),
                f"public pipeline `{node.name}` {text}",
                help="add one: `-> any`, or better what it returns",
            )


def assert_outside_test(subject: Subject) -> Iterator[Remark]:
    """Functions of a library, and of a file with tests, may be there to help tests."""
    helps = subject.is_library or any(_is_test(node) for node in subject.each(ast.Pipeline))
    for call in subject.each(ast.Call):
        if call.name not in _ASSERTIONS or not subject.means_builtin(call):
            continue
        pipeline = next((node for node in subject.above(call) if isinstance(node, ast.Pipeline)), None)
        if helps if pipeline is None else _is_test(pipeline):
            continue
        text = f"`{call.name}` is intended for test pipelines, not production control flow"
        yield remark(call, text, help="use `require`")


def require_in_test(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Require):
        if any(_is_test(above) for above in subject.above(node)):
            yield remark(node, "`require` in a test pipeline should usually be an assertion")


def _is_test(node: ast.Node) -> bool:
    """Whether a node is a pipeline that `harnpy test` runs (09 §3.1)."""
    if not isinstance(node, ast.Pipeline):
        return False
    marked = any(attr.name == "test" for attr in node.attrs)
    return marked or node.name == "test" or node.name.startswith("test_")
