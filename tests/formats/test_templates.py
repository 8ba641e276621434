"""The template engine with plain Python values: it knows nothing of the language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harnpy.formats.templates.engine import render
from harnpy.formats.templates.expressions import TemplateError
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.world.files import Files


class Plain:
    """What Python's own values are to the engine."""

    def go_on(self, written: int) -> None:
        """There is no limit."""

    def truthy(self, value: Any) -> bool:
        return bool(value)

    def text(self, value: Any) -> str:
        return str(value)

    def type_name(self, value: Any) -> str:
        return type(value).__name__

    def equal(self, a: Any, b: Any) -> bool:
        return bool(a == b)

    def compare(self, a: Any, b: Any) -> int:
        return (a > b) - (a < b)

    def items(self, value: Any) -> list[Any] | range | None:
        return value if isinstance(value, (list, range)) else None

    def json(self, value: Any, pretty: bool) -> str:
        return json.dumps(value, indent=2 if pretty else None)


def rendered(template: str, files: Files, directory: Path, **bindings: Any) -> str:
    return render(template, bindings, str(directory), files, Plain()).text


@pytest.fixture
def files() -> Files:
    return World().files


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ n + }}", None),
        ("{{ xs | join: '-' }} {{ xs | length }} {{ xs | last }}", "1-2 2 2"),
        ("{{ if n >= 3 and xs }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ for i, x in xs }}{{ i }}{{ x }} {{ end }}", "01 12 "),
        ("{{ for x in r }}{{ loop.last }} {{ end }}{{ r | length }}", "False False True 3"),
        ("{{ xs | json }} {{ none }}|{{ none | default: 'x' }}", "[1, 2] |x"),
        ("{{ name | title }} {{ name | trim | upper }}", " Ada  ADA"),
    ],
)
def test_directives(template: str, text: str | None, files: Files, tmp_path: Path) -> None:
    bindings = {"n": 3, "xs": [1, 2], "r": range(3), "none": None, "name": " ada "}
    if text is None:
        with pytest.raises(TemplateError):
            rendered(template, files, tmp_path, **bindings)
    else:
        assert rendered(template, files, tmp_path, **bindings) == text


def test_includes_are_read_from_the_files_it_is_given(files: Files, tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("<{{ x }}>")
    assert rendered('{{ include "part.txt" with {x: n} }}', files, tmp_path, n=7) == "<7>"


def test_a_range_longer_than_len_can_say_has_a_length(files: Files, tmp_path: Path) -> None:
    assert rendered("{{ r | length }}", files, tmp_path, r=range(-(2**63), 2**63)) == str(2**64)
