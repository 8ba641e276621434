"""A shape, by which a dict is read, and the type of what is read name the same keys (08 §5.1, §6.1, §8.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from harnpy.agent import people
from harnpy.workflow import artifacts, evaluation, graph_shapes
from harnpy.workflow import graph_shapes as graph_types
from harnpy.workflow.bundle import sections
from harnpy.workflow.bundle import sections as bundle_types
from harnpy.workflow.execution import run_options
from harnpy.workflow.records import record_shapes
from harnpy.workflow.records import record_shapes as record_types
from harnpy.workflow.shapes import Field, Shape

TYPES = (people, artifacts, bundle_types, graph_types, evaluation, record_types)
TABLES = (artifacts, sections, evaluation, run_options, graph_shapes, evaluation, record_shapes)
NAMES = {name: kind for module in TYPES for name, kind in vars(module).items() if isinstance(kind, type)}
#: What the modules with types import for type checkers only.
HINTS: dict[str, Any] = {**NAMES, "Dict": import_module("harnpy.formats.dicts").Dict}

KINDS = {
    "string": str,
    "int": int,
    "number": float,
    "bool": bool,
    "dict": dict[str, Any],
    "list of strings": list[str],
    "dict of lists of strings": dict[str, list[str]],
}


def declared() -> Iterator[tuple[str, Shape[Any], Any]]:
    """Every shape that a module declares, with its type."""
    for module in TABLES:
        for name, annotation in module.__annotations__.items():
            named = re.fullmatch(r"Shape\[(\w+)\]", annotation)
            if named is not None:
                yield f"{module.__name__}.{name}", getattr(module, name), NAMES[named[1]]


DECLARED = list(declared())


@pytest.mark.parametrize(("name", "shape", "type"), DECLARED, ids=[name for name, _, _ in DECLARED])
def test_a_shape_and_its_type_agree(name: str, shape: Shape[Any], type: Any) -> None:
    hints = get_type_hints(type, localns=HINTS)
    assert set(hints) == set(shape.fields) | set(shape.optional)
    for key, field in shape.fields.items():
        if field.kind in KINDS and field.part is None and not _is_a_dict_of_its_own(hints[key]):
            assert hints[key] in _types_of(field), key


def _types_of(field: Field) -> tuple[Any, ...]:
    """The type of a field; one without a default may be nil, unless it is filled in afterwards."""
    kind = KINDS[field.kind]
    return (kind, kind | None) if field.default is None or field.default == "" else (kind,)


def _is_a_dict_of_its_own(hint: Any) -> bool:
    """Whether a part has a type of its own, and is read by it."""
    return any(known in str(hint) for known in NAMES)


def test_every_part_of_a_graph_and_a_record_has_a_type() -> None:
    names = {name.rsplit(".", 1)[1].strip("_") for name, _, _ in DECLARED}
    assert names >= {"GRAPH", "NODE", "EDGE", "RUN", "STAGE", "TRANSITION", "CHECKPOINT", "ARTIFACT", "PACK"}
