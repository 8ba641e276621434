"""Which parts of a manifest take effect by themselves, and which need trust. Spec: 09 §12.1."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harnpy.eventlog import topics
from harnpy.formats.manifest import FREE, PARTS, PATHS, STORE, TRUST, Manifest, decisions, manifest_of
from harnpy.llm.configuration.model_settings import Settings
from harnpy.session import stores
from harnpy.world import World
from harnpy.world.environment import Variables
from harnpy.world.files import RealFiles
from tests.support import ROOT


def read(directory: Path, text: str) -> Manifest:
    (directory / "harn.toml").write_text(text)
    return Manifest(RealFiles(), str(directory))


def keys() -> set[str]:
    """Return every key of a manifest, as the specification and the code have it."""
    text = (ROOT / "docs/spec/09-cli-repl-tooling.md").read_text()
    table = text[text.index("| Table | Keys |") : text.index("### 12.1")]
    found = {f"llm.{each.name}" for each in fields(Settings)}
    found |= {f"sessions.{key}" for key in stores._KNOWN} | {f"event_log.{key}" for key in topics._KNOWN}
    for first, described in re.findall(r"^\| (`\[.*?) \| (.*) \|$", table, re.MULTILINE):
        names = re.findall(r"`\[\[?([\w.]+)", f"{first} {described}")
        found |= {*names, *(f"{names[0]}.{key}" for key in re.findall(r"`(\w+)`", described))}
    return found


def test_every_key_is_in_the_table() -> None:
    assert keys() >= {"package", "mcp", "hooks", "llm.providers", "check.bundle_root", "event_log.store"}
    tables = {key.partition(".")[0] for key in PARTS}
    assert not {key for key in keys() if key not in PARTS and key.partition(".")[0] not in PARTS}
    assert tables <= {key.partition(".")[0] for key in keys()}
    assert set(PARTS.values()) == {FREE, TRUST, PATHS, STORE}


@pytest.mark.parametrize("row", PARTS)
def test_each_row_holds(tmp_path: Path, row: str) -> None:
    values: dict[str, list[tuple[Any, bool]]] = {
        FREE: [("x", True), ("../x", True)],
        TRUST: [("x", False)],
        PATHS: [("x", True), ("../x", False), ("/x", False), ("a/../../x", False), ("link/x", False)],
        STORE: [
            ("memory:", True),
            ("sqlite:x.db?timeout=1", True),
            ("sqlite::memory:", True),
            ("jsonl:../x", False),
            ("sqlite:/x", False),
            ("jsonl:link", False),
            ("sqlite:links.db", False),
            ("jsonl:links", False),
            ("postgresql://h/d", False),
            ("postgres://h/d", False),
            ("other:x", False),
        ],
    }
    (tmp_path / "links").mkdir()
    for name in ("link", "links.db-wal", "links/artifacts"):
        (tmp_path / name).symlink_to("/etc")
    for value, is_free in values[PARTS[row]]:
        manifest = read(tmp_path, f'{row} = "{value}"')
        assert bool(manifest.untrusted()) is not is_free
        assert (str(value) in str(manifest.tables)) is is_free


def test_lists_and_tables_keep_what_stays_inside(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        'exports = {a = "a", b = "../b"}\nskills.paths = ["in", "/out"]\n'
        '[[skill.source]]\npath = "in"\n[[skill.source]]\npath = "/out"\n[llm]\naliases = {}\nfoo = 1\n',
    )
    assert manifest.tables == {
        "exports": {"a": "a"},
        "skills": {"paths": ["in"]},
        "skill": {"source": [{"path": "in"}]},
        "llm": {"aliases": {}},
    }
    assert manifest.untrusted() == ["exports", "skills.paths", "skill.source", "llm"]


def test_what_nobody_knows_has_no_effect(tmp_path: Path) -> None:
    manifest = read(tmp_path, 'plugins = ["x"]\n[tool]\ncommand = "x"\n')
    assert (manifest.tables, manifest.untrusted()) == ({}, [])


def test_no_two_parts_are_taken_for_one(tmp_path: Path) -> None:
    """What is shown and trusted is all that there is, however keys are spelled."""
    both = read(tmp_path, '[event_log]\nstore = "other:a"\n[event-log]\nstore = "other:b"\n')
    assert [*both.held.values()] == ["other:a", "other:b"]
    dotted = read(tmp_path, '"llm.providers" = {a = 1}\n[llm.providers.b]\nbase_url = "x"\n')
    assert len(dotted.held) == 2


def test_decisions_are_the_users(tmp_path: Path) -> None:
    """A relative place would be the project's, and a decision is about one place."""
    assert decisions({"HOME": "/h"}.get) == "/h/.config/harn/trust"
    assert decisions({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}.get) == "/c/harn/trust"
    assert decisions({"HOME": "/h", "XDG_CONFIG_HOME": ".config"}.get) == "/h/.config/harn/trust"
    assert decisions({"HOME": "."}.get) is None
    text = '[[mcp]]\nname = "x"'
    world = World(environment=Variables({"HOME": str(tmp_path)}))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        read(tmp_path / name, text)
    a, b = (manifest_of(world, str(tmp_path / name)) for name in ("a", "b"))
    place = Path(decisions(world.environment.get) or "", "x").parent
    place.mkdir(parents=True)
    from harnpy.formats.manifest import decision_name

    for manifest in (a, b):
        (place / decision_name(manifest.root)).write_text(a.decision())
    assert (a.untrusted(), b.untrusted()) == ([], ["mcp"])
