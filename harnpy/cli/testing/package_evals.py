"""`harnpy test package --evals`: the eval packs that the project's manifest lists. Spec: 09 §8.3."""

from __future__ import annotations

import os.path
from pathlib import Path

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.commands.eval import judged, shown
from harnpy.cli.console import say
from harnpy.cli.run_records import refused
from harnpy.faults import MisuseError
from harnpy.project import MANIFEST, project_root
from harnpy.reading.dicts import read_toml
from harnpy.world.files import RealFiles

_USUAL = ["harn.eval.toml"]


def run() -> int:
    """Judge them all and return the exit status."""
    here = os.getcwd()
    root = os.path.relpath(project_root(here, RealFiles()) or here)
    statuses = [_judge(os.path.normpath(os.path.join(root, path))) for path in _listed(root)]
    return FAILED if FAILED in statuses else OK


def _judge(path: str) -> int:
    say(f"Eval pack: {path}")
    try:
        return shown(judged(path, "pack"))
    except MisuseError as error:
        return refused(error, f"error: {error.message}")


def _listed(root: str) -> list[str]:
    manifest = Path(root, MANIFEST)
    if not manifest.is_file():
        return _USUAL
    try:
        package = read_toml(manifest.read_text(encoding="utf-8")).get("package", {})
    except ValueError as error:
        raise click.ClickException(f"{manifest}: {error}") from None
    evals = package.get("evals", _USUAL) if isinstance(package, dict) else None
    if not isinstance(evals, list) or not all(isinstance(path, str) for path in evals):
        raise click.ClickException(f"{manifest}: `package.evals` must be a list of paths")
    return evals
