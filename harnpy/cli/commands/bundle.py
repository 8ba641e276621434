"""`harnpy bundle`: export, validate and import session bundles. Spec: 09 §9, 08 §17, 10 §C21.

The same verbs as `harnpy session` are its alias.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harnpy.cli import FAILED, OK, USAGE, run_records
from harnpy.cli.console import complain, one_line, say
from harnpy.cli.usage import Group
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import json_problem, parse_json
from harnpy.project import project_root
from harnpy.session.transfer.sidecar import SidecarError, read_rows
from harnpy.workflow.bundle import BundleError, export_run, import_bundle, validate_bundle
from harnpy.workflow.records.observability import sidecar_path
from harnpy.world import World
from harnpy.world.files import RealFiles, system_reason

_MODES = ("sanitized", "local", "replay-only")
_SURROGATE = re.compile("[\ud800-\udfff]")


#: The verbs of `harnpy sessions` that `harnpy session` could be mistaken for.
_OF_SESSIONS = (
    "list", "tree", "show", "search", "fork", "rewind", "redo", "delete", "copy", "gc", "fsck"
)  # fmt: skip


class _Alias(Group):
    """`harnpy session`, which knows what its namesake does."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _OF_SESSIONS:
            complain(f"harnpy session {name}: did you mean `harnpy sessions {name}`?")
            ctx.exit(USAGE)
        return super().get_command(ctx, name)


@click.group(
    "bundle", cls=Group, short_help="Export, validate and import session bundles.", no_args_is_help=False
)
def command() -> None:
    """Carry a run to another machine, in one file without secrets."""


@click.group("session", cls=_Alias, short_help="The same as bundle.", no_args_is_help=False)
def alias() -> None:
    """The same as `harnpy bundle`. The logs of conversations are `harnpy sessions`."""


@command.command("export")
@click.argument("run", metavar="RUN")
@click.option("--mode", type=click.Choice(_MODES), default="sanitized", show_default=True, help="See above.")
@click.option("-o", "--out", metavar="FILE", help="The bundle's file; by default stdout.")
def export(run: str, mode: str, out: str | None) -> int:
    """Make a bundle from a run record and the transcript beside it, or from a tape (`harnpy run --record`).

    sanitized: for support and sharing. local: verbatim, for one trust boundary only. replay-only: evidence
    without any text. Secrets are masked in every mode.
    """
    world = World()
    from harnpy.tape import is_tape

    if is_tape(run):
        from harnpy.cli.project_setup import bind_project
        from harnpy.tape.bundles import export_tape

        try:
            bundle = export_tape(run, mode, env=os.environ, prepare=bind_project)
            return _deliver(_text(bundle), out, "session bundle")
        except MisuseError as error:
            return run_records.refused(error, str(error))
    try:
        record = run_records.load(run)
        bundle = export_run(
            record,
            mode,
            sidecar=_sidecar(run, world),
            workspaces=[project_root(os.getcwd(), RealFiles()) or os.getcwd()],
            env=os.environ,
        )
    except (MisuseError, SidecarError) as error:
        return run_records.refused(error, str(error))
    return _deliver(_text(bundle), out, "session bundle")


@command.command("validate")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print {valid, bundle_id, mode, problems}.")
def validate(file: str, as_json: bool) -> int:
    """Check that a bundle is unchanged and without secrets."""
    try:
        bundle = _read(file)
        problems = validate_bundle(bundle)
    except ValueError as error:
        bundle, problems = {}, [f"not a session bundle: {error}"]
    known = bundle if isinstance(bundle, dict) else {}
    id, mode = known.get("bundle_id"), known.get("mode")
    if as_json:
        report = {"valid": not problems, "bundle_id": id, "mode": mode, "problems": problems}
        say(_text(report))
    elif problems:
        say("\n".join(["INVALID", *map(one_line, problems)]))
    else:
        say(one_line(f"OK {id} ({mode})"))
    return FAILED if problems else OK


@command.command("import")
@click.argument("file")
@click.option("-o", "--out", metavar="FILE", help="The file of the run record or tape; by default stdout.")
def import_(file: str, out: str | None) -> int:
    """Make a run record from a bundle, or the tape that it was made from. `harnpy replay` replays a bundle
    with a tape as it is."""
    try:
        bundle = _read(file)
        run = import_bundle(bundle)
        if "tape" in bundle["replay"]:
            return _deliver("\n".join(bundle["replay"]["tape"]), out, "tape")
    except BundleError as error:
        complain(one_line(str(error)))
        return FAILED
    except ValueError as error:
        complain(f"not a session bundle: {error}")
        return FAILED
    return _deliver(_text(run), out, "run record")


for _verb in (export, validate, import_):
    alias.add_command(_verb)


def _sidecar(run: str, world: World) -> list[Dict]:
    """The rows of the transcript beside a run record, none without such a file."""
    path = sidecar_path(run)
    if not world.files.exists(path):
        return []
    try:
        return read_rows(world.files.read_text(path), parse_json).records
    except SidecarError as error:
        raise SidecarError(f"failed to read {path}: {error}") from error


def _read(file: str) -> Any:
    """Return the JSON in a file. Raises ValueError if it is invalid, ClickException if it can't be read."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"failed to read session bundle: {system_reason(error)}") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(json_problem(text)) from error


def _deliver(text: str, out: str | None, what: str) -> int:
    if out is None:
        click.echo(text)
    else:
        World().files.replace_text(out, text + "\n")
        click.echo(f"{what}: {out}")
    return OK


def _text(document: Mapping[str, Any]) -> str:
    """JSON with sorted keys; lone surrogates, which UTF-8 can't encode, are escaped."""
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
