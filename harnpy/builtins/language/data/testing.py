"""Assertions. Spec: 04 §24."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import data_of, pieces
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values.equality import equal
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("assert(cond: any, msg?: string) -> nil", family="testing")
def assert_true(vm: Vm, cond: Value, msg: str | None) -> None:
    """Throw `msg` unless `cond` is truthy.

    Example:
        try { assert(1 > 2, "no order") } catch (e) { e }  // "no order"
    """
    if not cond:
        raise Thrown("Assertion failed" if msg is None else msg)


@builtin("assert_eq(actual: any, expected: any, msg?: string) -> nil", family="testing", counted=True)
def assert_eq(vm: Vm, actual: Value = ABSENT, expected: Value = ABSENT, msg: Value = None) -> None:
    """Throw `msg` unless `actual == expected`.

    Example:
        try { assert_eq(1 + 1, 3) } catch (e) { e }  // "Assertion failed: expected 3, got 2"
    """
    if expected is ABSENT:
        raise Thrown("assert_eq requires at least 2 arguments")
    if not equal(actual, expected):
        text = f"Assertion failed: expected {display(expected)}, got {display(actual)}"
        raise Thrown(text if msg is None else display(msg))


@builtin("assert_ne(a: any, b: any, msg?: string) -> nil", family="testing", counted=True)
def assert_ne(vm: Vm, a: Value = ABSENT, b: Value = ABSENT, msg: Value = None) -> None:
    """Throw `msg` if `a == b`.

    Example:
        assert_ne(1, 2)  // nil
    """
    if b is ABSENT:
        raise Thrown("assert_ne requires at least 2 arguments")
    if equal(a, b):
        text = f"Assertion failed: values should not be equal: {display(a)}"
        raise Thrown(text if msg is None else display(msg))


@builtin("parse_junit_xml(report: string | bytes) -> list", family="testing")
def parse_junit_xml(vm: Vm, report: Value) -> list[Value]:
    """The test cases of a JUnit XML report: `{name, status, duration_ms, message, stdout, stderr}` each.

    `status` is `passed`, `failed`, `errored` or `skipped`. What is no such report has none.

    Example:
        parse_junit_xml("<testsuite><testcase name='adds' time='0.5'/></testsuite>")[0].duration_ms  // 500
    """
    from harnpy.text.junit import read_cases

    encoding = None if type(report) is bytes else "utf-8"
    try:
        return read_cases(pieces(vm, data_of(report)), encoding)
    except ValueError:
        return []
