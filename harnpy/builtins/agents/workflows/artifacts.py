"""Artifacts, and selecting those that a model sees. Spec: 08 §5."""

from __future__ import annotations

from harnpy.agent.handoffs import facts_of
from harnpy.builtins.agents.plans import current_run
from harnpy.builtins.bridge.agent_runtime import runtime_of
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.faults import MisuseError
from harnpy.session import events as kinds
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import builtin
from harnpy.workflow.artifacts import make_artifact, selection
from harnpy.workflow.artifacts.artifact import HANDOFF, normalised, read_artifacts
from harnpy.workflow.artifacts.assembly import assemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.artifacts.artifact_types import Artifact, AssembledContext
    from harnpy.workflow.graph.graph_types import ContextPolicy


@builtin("artifact(payload: dict) -> dict", family="records", counted=True)
def artifact(vm: Vm, payload: Value = None) -> Artifact:
    """An artifact with every key: `{_type, id, kind, title, text, data, source, priority, lineage, …}`.

    Example:
        artifact({kind: "note", text: "The disk is full."}).kind  // "note"
    """
    if payload is None:
        raise MisuseError("artifact: missing artifact payload")
    return _announced(vm, normalised(payload, sessions_of(vm).world, run_id=current_run(vm)))


@builtin("artifact_derive(parent: dict, kind?: string, extra?: dict) -> dict", family="records", counted=True)
def artifact_derive(vm: Vm, parent: Value = None, kind: Value = None, extra: Value = None) -> Artifact:
    """A copy of an artifact of another kind, descended from it; `extra.text` is its text.

    Example:
        let note = artifact({id: "n1", kind: "note", text: "long"})
        artifact_derive(note, "summary", {text: "short"}).lineage  // ["n1"]
    """
    if parent is None:
        raise MisuseError("artifact_derive: missing parent")
    return _announced(vm, make_artifact.derived(parent, kind, extra, sessions_of(vm).world))


@builtin("artifact_select(artifacts: list, policy?: dict) -> list", family="records", counted=True)
def artifact_select(vm: Vm, artifacts: Value = None, policy: Value = None) -> list[Artifact]:
    """The artifacts that a context policy lets through, the most important first. Spec: 08 §5.3.

    Example:
        let notes = (1 to 9).map({ n -> artifact({kind: "note", text: "no. ${n}"}) }).to_list()
        artifact_select(notes, {max_artifacts: 3}).count()  // 3
    """
    return selection.select(*_read(vm, artifacts, policy))


@builtin(
    "select_artifacts_adaptive(artifacts: list, policy?: dict) -> list", family="workflows", counted=True
)
def select_artifacts_adaptive(vm: Vm, artifacts: Value = None, policy: Value = None) -> list[Artifact]:
    """`artifact_select` without outdated or repeated artifacts, and with long ones shortened.

    Example:
        let note = artifact({kind: "note", text: "The disk is full."})
        select_artifacts_adaptive([note, note]).count()  // 1
    """
    return selection.select_adaptive(*_read(vm, artifacts, policy))


@builtin("artifact_context(artifacts: list, policy?: dict) -> string", family="records", counted=True)
def artifact_context(vm: Vm, artifacts: Value = None, policy: Value = None) -> str:
    """The selected artifacts as tagged text for a model, or with `render: "json"` as JSON. Spec: 08 §5.4.

    Example:
        let note = artifact({kind: "note", text: "The disk is full."})
        artifact_context([note]).contains("The disk is full.")  // true
    """
    given, read = _read(vm, artifacts, policy)
    return selection.render(selection.select(given, read), read["render"], to_json)


@builtin("assemble_context(options: dict) -> dict", family="workflows", counted=True)
def assemble_context(vm: Vm, options: Value = None) -> AssembledContext:
    """The best chunks of `{artifacts, budget_tokens?, query?, strategy?, dedup?, …}` that fit a budget.

    `{chunks, included, dropped, reasons, total_tokens, budget_tokens, strategy, dedup}`. Spec: 08 §5.5.

    Example:
        let notes = [artifact({kind: "note", text: "The disk is full."})]
        assemble_context({artifacts: notes, budget_tokens: 100}).chunks.count()  // 1
    """
    check_options(vm, "assemble_context", options)
    return assemble(with_callables(vm, options, "ranker_callback"), sessions_of(vm).world)


def _read(vm: Vm, artifacts: Value, policy: Value) -> tuple[list[Artifact], ContextPolicy]:
    return read_artifacts(artifacts, sessions_of(vm).world), selection.read_context_policy(policy)


def _announced(vm: Vm, made: Artifact) -> Artifact:
    """Return the artifact, after recording a handoff in the current session and notifying its subscribers."""
    sessions = sessions_of(vm)
    id = sessions.current_id()
    if made["kind"] == HANDOFF and id is not None:
        runtime_of(vm).record(id, [(kinds.HANDOFF, facts_of(made["data"]))])
        event = {"type": "handoff", "session_id": id, "artifact_id": made["id"], "handoff": made["data"]}
        sessions.emit(id, event)
    return made
