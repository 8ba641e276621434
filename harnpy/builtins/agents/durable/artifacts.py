"""Artifacts: bodies beside the store, descriptors in the logs. Spec: 10 §A1.14, §C9, §C10."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.verbs import builtin, read_options
from harnpy.builtins.bridge.places import state_root
from harnpy.session.artifacts.artifact import Artifact
from harnpy.session.artifacts.files import FileArtifactStore
from harnpy.session.artifacts.memory import MemoryArtifactStore
from harnpy.session.errors import ArtifactNotFound, EventRejected
from harnpy.session.events import ARTIFACT_RECORDED
from harnpy.session.json_check import checked
from harnpy.world.effects import STATE

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.session.log import Session
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    Bodies = FileArtifactStore | MemoryArtifactStore

_DESCRIPTOR = (
    "id?: string, kind?: string, uri?: string, label?: string, mime_type?: string, size?: int, "
    "digest?: string, producer_session_id?: string, producer_event_id?: string, metadata?: dict"
)
_FOLDER = "artifacts"


class _InMemory:
    """The bodies of a program whose sessions are in memory."""

    def __init__(self, vm: Vm) -> None:
        self.bodies = MemoryArtifactStore(vm.world)


def bodies_of(call: Call) -> Bodies:
    """Return where the bodies are: beside a store of files, else with the state that programs keep."""
    scheme, _, target = call.runtime.store.url.partition(":")
    path = target.partition("?")[0]
    if scheme == "memory" or path == ":memory:":
        return call.vm.state(_InMemory, lambda: _InMemory(call.vm)).bodies
    if scheme == "sqlite":
        directory = f"{path}-{_FOLDER}"
    elif scheme == "jsonl":
        directory = os.path.join(path, _FOLDER)
    else:
        directory = os.path.join(state_root(call.vm), _FOLDER)
        call.vm.world.require(STATE, directory)
    return FileArtifactStore(directory, world=call.vm.world)


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
    """Keep a body and record its descriptor, which is returned."""
    artifact = _artifact(call, id, descriptor)
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return call.session(id).store_artifact(bodies_of(call), artifact, data).data()


@builtin("__session_artifact_record(id: string, descriptor: dict, opts?: dict) -> dict")
def record(call: Call, id: str, descriptor: Dict, opts: Dict) -> Dict:
    """Record the descriptor of what is kept elsewhere."""
    artifact = _artifact(call, id, descriptor)
    if not artifact.id:
        raise invalid(f"{call.name}: option `id` must be a string", id)
    return call.session(id).record_artifact(artifact).data()


@builtin("__session_artifact_read(id: string, artifact_id: string, opts?: dict) -> dict")
def read(call: Call, id: str, artifact_id: str, opts: Dict) -> Dict:
    """The descriptor of an artifact of a session, with its `body`, whose digest is checked."""
    known = next((each for each in _recorded(call.session(id)) if each["id"] == artifact_id), None)
    if known is None:
        raise ArtifactNotFound(artifact_id)
    file, _ = bodies_of(call).open(artifact_id, verify=True)
    with file:
        return {**known, "body": file.read()}


@builtin("__session_artifacts(id: string, opts?: dict) -> list")
def artifacts(call: Call, id: str, opts: Dict) -> list[Dict]:
    """The descriptors of the artifacts in a session's log."""
    return _recorded(call.session(id))


class Offloaded:
    """Where a resize puts long outputs of tools: a `harnpy.session.resize.resize_policy.Artifacts`."""

    def __init__(self, call: Call) -> None:
        self._bodies = bodies_of(call)

    def put(self, descriptor: Dict, body: bytes) -> Dict:
        return self._bodies.put(Artifact.of(descriptor), body).data()
