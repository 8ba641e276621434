"""The store of a program's sessions: artifacts, exports, imports, searches, checks.

Spec: 10 §A1.14, §C6, §C9, §C10, §C17.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.contexts import path_at_work, state_root
from harnpy.builtins.sessions.session_values import invalid, thrown
from harnpy.builtins.sessions.verbs import builtin, read_options
from harnpy.session.arguments import checked
from harnpy.session.artifacts import Artifact, FileArtifactStore, MemoryArtifactStore, beside
from harnpy.session.codec import SessionCodec
from harnpy.session.errors import ArtifactNotFound, EventRejected, TransferError
from harnpy.session.events import ARTIFACT_RECORDED, Origin
from harnpy.session.log import KIND
from harnpy.session.transfer.agently import JSON, YAML, part_of, read_text, write_text
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import (
    AUTO,
    ERROR,
    RENAME,
    SKIP,
    UPDATE,
    export,
    format_of,
    import_,
    many_of,
)
from harnpy.world.effects import STATE
from harnpy.world.files import PRIVATE, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.builtins.sessions.verbs import Call
    from harnpy.session.log import Session
    from harnpy.session.transfer.directories import ImportReport
    from harnpy.storage.contract import Hit
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    Bodies = FileArtifactStore | MemoryArtifactStore

# Artifacts: bodies beside the store, descriptors in the logs. Spec: 10 §A1.14, §C9, §C10.


_DESCRIPTOR = (
    "id?: string, kind?: string, uri?: string, label?: string, mime_type?: string, size?: int, "
    "digest?: string, producer_session_id?: string, producer_event_id?: string, metadata?: dict"
)


class _InMemory:
    """The bodies of a program whose sessions are in memory."""

    def __init__(self, vm: Vm) -> None:
        self.bodies = MemoryArtifactStore(vm.world)


def bodies_of(call: Call) -> Bodies:
    """Return where the bodies are: beside a store of files, else with the state that programs keep."""
    url = call.runtime.store.url
    if url.startswith("memory:") or url == "sqlite::memory:":
        return call.vm.state(_InMemory, lambda: _InMemory(call.vm)).bodies
    directory = beside(url, state_root(call.vm))
    if not url.startswith(("sqlite:", "jsonl:")):
        call.vm.world.require(STATE, directory)
    modes = getattr(call.runtime.store, "modes", PRIVATE)
    bodies = FileArtifactStore(directory, world=call.vm.world, modes=modes)
    recorded: Callable[[Bodies], Bodies] | None = getattr(call.runtime.store, "bodies", None)
    return bodies if recorded is None else recorded(bodies)


def _artifact(call: Call, id: str, given: Dict) -> Artifact:
    fields = read_options(call.name, given, _DESCRIPTOR, id)
    try:
        return Artifact(**checked(fields))
    except EventRejected:
        raise invalid(f"{call.name}: `descriptor` must be JSON-serializable", id) from None


def _recorded(session: Session) -> list[Dict]:
    """Return the descriptors in a session's log, each as it was written last."""
    found = {}
    for event in session.events():
        if event.type == ARTIFACT_RECORDED:
            found[event.data["artifact"]["id"]] = event.data["artifact"]
    return list(found.values())


@builtin("__session_artifact_put(id: string, descriptor: dict, body: string | bytes, opts?: dict) -> dict")
def put(call: Call, id: str, descriptor: Dict, body: str | bytes, opts: Dict) -> Dict:
    """Store a body (a string or bytes) beside the store; record and return its descriptor.

    The descriptor is `{id?, kind?, label?, mime_type?, metadata?, …}`. Spec: 10 §A1.14, §C9.
    """
    artifact = _artifact(call, id, descriptor)
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return call.session(id).store_artifact(bodies_of(call), artifact, data).data()


@builtin("__session_artifact_record(id: string, descriptor: dict, opts?: dict) -> dict")
def record(call: Call, id: str, descriptor: Dict, opts: Dict) -> Dict:
    """Record the descriptor of an artifact whose body is kept elsewhere; return it.

    Spec: 10 §A1.14, §C9.
    """
    artifact = _artifact(call, id, descriptor)
    if not artifact.id:
        raise invalid(f"{call.name}: option `id` must be a string", id)
    return call.session(id).record_artifact(artifact).data()


@builtin("__session_artifact_read(id: string, artifact_id: string, opts?: dict) -> dict")
def read(call: Call, id: str, artifact_id: str, opts: Dict) -> Dict:
    """Return the descriptor of an artifact with its `body` (bytes), whose digest is checked.

    Spec: 10 §A1.14, §C9.
    """
    known = next((each for each in _recorded(call.session(id)) if each["id"] == artifact_id), None)
    if known is None:
        raise ArtifactNotFound(artifact_id)
    file, _ = bodies_of(call).open(artifact_id, verify=True)
    with file:
        return {**known, "body": file.read()}


@builtin("__session_artifacts(id: string, opts?: dict) -> list")
def artifacts(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Return the latest descriptor of each artifact in a session's log.

    Spec: 10 §A1.14, §C9.
    """
    return _recorded(call.session(id))


class Offloaded:
    """Where a resize puts long outputs of tools: a `harnpy.session.resize_policy.Artifacts`."""

    def __init__(self, call: Call) -> None:
        self._bodies = bodies_of(call)

    def put(self, descriptor: Dict, body: bytes) -> Dict:
        return self._bodies.put(Artifact.of(descriptor), body).data()


# Files of sessions, searching a store, checking it. Spec: 10 §C6, §C9, §C17.


_ON_CONFLICT = (UPDATE, ERROR, SKIP, RENAME)


@builtin(
    "__session_search(query: string, opts?: dict) -> list",
    "session_id?: string, types?: list, limit?: int, raw?: bool",
)
def search(call: Call, query: str, opts: Dict) -> list[Dict]:
    """Return the events whose text contains every term of a query.

    Options: `session_id`, `types`, `limit` (50), `raw`. Spec: 10 §C6, §C9.
    """
    runtime, types, id = call.runtime, opts.get("types"), opts.get("session_id")
    hits = runtime.store.search(
        query,
        KIND,
        codec=SessionCodec(Origin("", call.vm.world)),
        name=id,
        types=None if types is None else frozenset(types),
        limit=opts.get("limit", 50),
        raw=bool(opts.get("raw")),
    )
    return [_hit(call, hit) for hit in hits]


def _hit(call: Call, hit: Hit) -> Dict:
    event = call.runtime.get(hit.name).event(hit.seq)
    return {"session_id": hit.name, "seq": hit.seq, "event_id": event.id, "type": hit.type, "text": hit.text}


@builtin("__session_export(id: string, opts?: dict) -> string", "format?: string, path?: string")
def export_(call: Call, id: str, opts: Dict) -> str:
    """Return a session as the text of a file, and write it to `path` if given.

    Options: `format` (`jsonl`, another tool's, `html` or `markdown` for people), `path`: what the format
    can't represent is written to `PATH.harn.json`. Spec: 10 §C6, §C9, §C17.
    """
    session, format, path = call.session(id), opts.get("format", "jsonl"), opts.get("path")
    if path is None:
        return export(session, format)
    with _files(call, path):
        return export(session, format, path_at_work(call.vm, path), world=call.vm.world)


@builtin(
    "__session_import(text_or_path: string, opts?: dict) -> string | dict | nil",
    "format?: string, session_key_path?: string, id?: string, on_conflict?: string",
)
def import_session(call: Call, text_or_path: str, opts: Dict) -> str | Dict | None:
    """Create a session from a file or a text; return its id, or nil if it was skipped.

    Import all sessions of a directory or database, and return each one's outcome. Options: `format`,
    `session_key_path`, `id`, `on_conflict` (`update`, `error`, `skip`, `rename`). Spec: 10 §C6, §C9, §C17.
    """
    format, on_conflict = opts.get("format", AUTO), opts.get("on_conflict")
    if on_conflict is not None and on_conflict not in _ON_CONFLICT:
        raise invalid(f"{call.name}: option `on_conflict` must be one of {', '.join(_ON_CONFLICT)}")
    world, store = call.vm.world, call.runtime.store
    text, key_path = text_or_path, opts.get("session_key_path")
    path = "the text"
    if _is_path(text_or_path):
        path = path_at_work(call.vm, text_or_path)
        with _files(call, text_or_path):
            if world.files.is_dir(path) or many_of(path, world) is not None:
                report = import_sessions([path], store, format, on_conflict=on_conflict, world=world)
                return _report(report)
            text = world.files.read_text(path)
    source = text if path == "the text" else path
    if key_path is not None:
        text, path, format = _part(text, key_path, path, format), "part.json", AUTO
        source = text
    chosen = format if source == path else format_of(path, text, format).name
    session = import_(source, store, chosen, id=opts.get("id"), on_conflict=on_conflict, world=world)
    return None if session is None else session.id


def _report(report: ImportReport) -> Dict:
    return {
        "imported": report.imported,
        "skipped": report.skipped,
        "errors": [{"path": path, "reason": reason} for path, reason in report.errors],
        "losses": [str(loss) for loss in report.losses],
    }


def _part(text: str, key_path: str, path: str, format: str) -> str:
    """Return a part of a document as JSON. Raises `TransferError`."""
    is_yaml = format == "agently-yaml" or path.endswith((".yaml", ".yml"))
    try:
        document = read_text(text, YAML if is_yaml else JSON)
    except ValueError as error:
        raise TransferError(f"{path} can't be read: {error}") from error
    return write_text(part_of(document, key_path), JSON)


def _is_path(text: str) -> bool:
    return "\n" not in text and not text.lstrip().startswith(("{", "["))


@contextmanager
def _files(call: Call, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        category = "not_found" if isinstance(error, FileNotFoundError) else "invalid"
        raise thrown(category, "file", f"{call.name}: {path}: {system_reason(error)}", None) from error
    except UnicodeDecodeError as error:
        raise thrown("invalid", "file", f"{call.name}: {path}: this is no text", None) from error


@builtin("__session_fsck(opts?: dict) -> dict", "repair?: bool")
def fsck(call: Call, opts: Dict) -> Dict:
    """Check a store: `{streams, records, findings, clean}`; with `repair`, repair what can be repaired.

    Spec: 10 §C6, §C9.
    """
    report = call.runtime.store.fsck(repair=bool(opts.get("repair")))
    findings = [finding._asdict() for finding in report.findings]
    return {"streams": report.streams, "records": report.records, "findings": findings, "clean": report.clean}
