"""Attributes: names that are none, and attributes where they mean nothing; warnings all. Spec: 03 §8.4."""

from __future__ import annotations

from harnpy.check.findings import respelled
from harnpy.formats.suggestions import nearest
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.findings import Findings

_FUNCTIONS = ("function declarations", ast.FnDecl)
#: What an attribute applies to, where that isn't any declaration.
_TARGETS: dict[str, tuple[str, type[ast.Node] | tuple[type[ast.Node], ...]]] = {
    "test": ("pipeline declarations", ast.Pipeline),
    "acp_tool": _FUNCTIONS,
    "acp_skill": _FUNCTIONS,
    "deterministic": _FUNCTIONS,
    "semantic": _FUNCTIONS,
    "archivist": _FUNCTIONS,
    "retroactive": _FUNCTIONS,
    "invariant": (
        "function, tool, or pipeline declarations",
        (ast.FnDecl, ast.ToolDecl, ast.Pipeline),
    ),
}
_KNOWN = (*_TARGETS, "deprecated", "complexity")
_PROVENANCE = ("evidence", "confidence", "source_date", "coverage_examples")


def check_attributes(declaration: ast.Node, findings: Findings) -> None:
    """Warn of the attributes of a declaration, in the order in which they are written."""
    attrs: tuple[ast.Attribute, ...] = getattr(declaration, "attrs", ())
    if not attrs:
        return
    for attr in attrs:
        if attr.name not in _KNOWN:
            near = nearest(attr.name, _KNOWN, limit=3)
            findings.warn(
                "unknown-attribute",
                attr,
                f"unknown attribute `@{attr.name}`",
                help=f"did you mean `@{near}`?" if near else None,
                fix=respelled(attr.start + len("@"), attr.name, near),
            )
        elif attr.name in _TARGETS and not isinstance(declaration, _TARGETS[attr.name][1]):
            target = _TARGETS[attr.name][0]
            findings.warn("attribute-target", attr, f"`@{attr.name}` only applies to {target}")
    for attr, fault in _flow_faults({attr.name: attr for attr in reversed(attrs)}):
        findings.warn("flow-predicate", attr, fault)


def _flow_faults(attrs: dict[str, ast.Attribute]) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield what is wrong with a Flow predicate, which a bare `@invariant` marks."""
    if "deterministic" in attrs and "semantic" in attrs:
        yield (
            attrs["semantic"],
            "`@deterministic` and `@semantic` are mutually exclusive;"
            " a Flow predicate is one mode or the other",
        )
    invariant = attrs.get("invariant")
    if invariant is not None and not invariant.args:
        if "deterministic" not in attrs and "semantic" not in attrs:
            yield (
                invariant,
                "Flow `@invariant` requires exactly one of `@deterministic` (default) or `@semantic`",
            )
        if "archivist" not in attrs:
            yield (
                invariant,
                "Flow `@invariant` is missing `@archivist(...)` provenance"
                " (evidence, confidence, source_date, coverage_examples)",
            )
    else:
        for name, shown in (("archivist", "@archivist(...)"), ("retroactive", "@retroactive")):
            if name in attrs:
                yield (
                    attrs[name],
                    f"`{shown}` only applies to Flow predicates marked with `@invariant`",
                )
    if "archivist" in attrs:
        yield from _provenance_faults(attrs["archivist"])


def _provenance_faults(archivist: ast.Attribute) -> Iterator[tuple[ast.Attribute, str]]:
    for arg in archivist.args:
        if arg.name is None:
            yield (
                archivist,
                "`@archivist(...)` arguments must be named (e.g. `evidence: [...], confidence: 0.9`)",
            )
        elif arg.name not in _PROVENANCE:
            expected = ", ".join(f'"{name}"' for name in _PROVENANCE)
            yield archivist, f"unknown `@archivist` argument `{arg.name}`; expected one of [{expected}]"
        elif arg.name == "confidence" and not _is_share(arg.value):
            yield archivist, "`@archivist(confidence: ...)` must be a float in [0.0, 1.0]"
    if not any(arg.name == "evidence" for arg in archivist.args):
        yield (
            archivist,
            "`@archivist(...)` should declare `evidence: [...]` so predicates can be audited",
        )


def _is_share(value: ast.Node) -> bool:
    return isinstance(value, ast.Float | ast.Int) and 0 <= value.value <= 1
