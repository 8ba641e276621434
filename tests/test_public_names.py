"""What a program imports from `harnpy`: all of it is there, loads on first use, and has types."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import harnpy
from tests.typed import embedding, sessions

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", harnpy.__all__)
def test_each_name_is_there(name: str) -> None:
    assert getattr(harnpy, name) is not None
    assert name in dir(harnpy)


def test_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(harnpy.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    seen = [alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(filter(None, seen)) == sorted(harnpy.__all__)


def test_to_import_harnpy_loads_nothing_else() -> None:
    code = "import sys, harnpy\ndir(harnpy)\nprint([n for n in sys.modules if n.startswith('harnpy.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'harnpy' has no attribute 'nothing'"):
        _ = harnpy.nothing  # type: ignore[attr-defined]


def test_the_typed_program_that_embeds_runs() -> None:
    assert embedding.main() == [
        "24",
        "parcel: KeyError: 41 from KeyError at 1",
        "thrown 3",
        "exit 2",
        "42",
        "HI",
        1,
        "f[0]",
        1,
        ["error"],
        True,
    ]


def test_the_typed_program_of_sessions_runs() -> None:
    said = ["hi", "You said: hi"]
    assert sessions.main() == ["It comes tomorrow.", "You said: hi", said, True, 1, True, True]


def test_a_runtime_that_is_ready_has_loaded_no_asyncio_and_no_other_store() -> None:
    code = (
        "import sys; before = {*sys.modules}; from harnpy.session import SessionRuntime;"
        "SessionRuntime('memory:').create(); print(*{*sys.modules} - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unused = "asyncio concurrent.futures hashlib harnpy.formats.secrets.masking harnpy.storage.jsonl.store"
    assert not {*unused.split()} & {*done.stdout.split()}


def test_a_name_of_the_session_package_loads_its_module() -> None:
    code = (
        "import sys; from harnpy import session;"
        "loaded = [name for name in sys.modules if name.startswith('harnpy.s')];"
        "session.EventDraft; print(loaded, 'harnpy.session.events' in sys.modules, 'Event' in dir(session))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['harnpy.session'] True True\n"
