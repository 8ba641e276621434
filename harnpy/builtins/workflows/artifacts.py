"""Artifacts: the usual kinds, and selecting those that a model sees. Spec: 08 §5."""

from __future__ import annotations

from functools import partial

from harnpy.agent.handoffs import facts_of
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.builtins.agents.agent_state import current_run
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.options import check_options
from harnpy.faults import MisuseError
from harnpy.formats.json import to_json
from harnpy.session import events as kinds
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.workflow import artifacts
from harnpy.workflow import artifacts as selection
from harnpy.workflow.artifacts import (
    HANDOFF,
    about_artifact,
    artifact_name,
    made_artifact,
    normalised_artifact,
    read_artifacts,
)
from harnpy.workflow.context_assembly import assemble
from harnpy.workflow.records.differences import unified_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.artifacts import Artifact, AssembledContext
    from harnpy.workflow.graph_shapes import ContextPolicy

# Artifacts, and selecting those that a model sees. Spec: 08 §5.


@builtin("artifact(payload: dict) -> dict", family="records", counted=True)
def artifact(vm: Vm, payload: Value = None) -> Artifact:
    """Make an artifact with every key: `{_type, id, kind, title, text, data, source, priority, lineage, …}`.

    Example: artifact({kind: "note", text: "The disk is full."}).kind  // "note"
    """
    if payload is None:
        raise MisuseError("artifact: missing artifact payload")
    return _announced(vm, normalised_artifact(payload, sessions_of(vm).world, run_id=current_run(vm)))


@builtin("artifact_derive(parent: dict, kind?: string, extra?: dict) -> dict", family="records", counted=True)
def artifact_derive(vm: Vm, parent: Value = None, kind: Value = None, extra: Value = None) -> Artifact:
    """Return a copy of an artifact as another kind, descended from it; `extra.text` is its text.

    Example:
        let note = artifact({id: "n1", kind: "note", text: "long"})
        artifact_derive(note, "summary", {text: "short"}).lineage  // ["n1"]
    """
    if parent is None:
        raise MisuseError("artifact_derive: missing parent")
    return _announced(vm, artifacts.derived_artifact(parent, kind, extra, sessions_of(vm).world))


@builtin("artifact_select(artifacts: list, policy?: dict) -> list", family="records", counted=True)
def artifact_select(vm: Vm, artifacts: Value = None, policy: Value = None) -> list[Artifact]:
    """Return the artifacts that a context policy selects, most important first. Spec: 08 §5.3.

    Example:
        let notes = (1 to 9).map({ n -> artifact({kind: "note", text: "no. ${n}"}) }).to_list()
        artifact_select(notes, {max_artifacts: 3}).count()  // 3
    """
    return selection.select_artifacts(*_read(vm, artifacts, policy))


@builtin(
    "select_artifacts_adaptive(artifacts: list, policy?: dict) -> list", family="workflows", counted=True
)
def select_artifacts_adaptive(vm: Vm, artifacts: Value = None, policy: Value = None) -> list[Artifact]:
    """Do what `artifact_select` does, without outdated or repeated artifacts and with long ones shortened.

    Example:
        let note = artifact({kind: "note", text: "The disk is full."})
        select_artifacts_adaptive([note, note]).count()  // 1
    """
    return selection.select_artifacts_adaptive(*_read(vm, artifacts, policy))


@builtin("artifact_context(artifacts: list, policy?: dict) -> string", family="records", counted=True)
def artifact_context(vm: Vm, artifacts: Value = None, policy: Value = None) -> str:
    """Render the selected artifacts as tagged text, or as JSON with `render: "json"`. Spec: 08 §5.4.

    Example:
        let note = artifact({kind: "note", text: "The disk is full."})
        artifact_context([note]).contains("The disk is full.")  // true
    """
    given, read = _read(vm, artifacts, policy)
    return selection.render_artifacts(selection.select_artifacts(given, read), read["render"], to_json)


@builtin("assemble_context(options: dict) -> dict", family="workflows", counted=True)
def assemble_context(vm: Vm, options: Value = None) -> AssembledContext:
    """Choose the best chunks that fit a budget: `{artifacts, budget_tokens?, query?, strategy?, dedup?, …}`.

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


# Artifacts of the usual kinds: files, selections, diffs, reviews, results. Spec: 08 §5.2.
#
# The last argument of each is a dict of fields to override: `id`, `title`, `text`, `data`, `metadata`,
# `priority`, ….


kind_builtin = partial(declare, family="records", counted=True)

#: A file may be empty, and so may a command's output.
_MAY_BE_EMPTY = ("content", "text", "output", "before", "after")


@kind_builtin("artifact_workspace_file(path: string, content: string, opts?: dict) -> dict")
def artifact_workspace_file(
    vm: Vm, path: Value = None, content: Value = None, opts: Value = None
) -> Artifact:
    """Return a file of the workspace with its content.

    Example: artifact_workspace_file("a.txt", "one").text  // "one"
    """
    data = _required("workspace_file", path=path, content=content)
    return _made(vm, "workspace_file", opts, _text(path), content, data, {"path": path})


@kind_builtin("artifact_workspace_snapshot(paths: list, summary?: string, opts?: dict) -> dict")
def artifact_workspace_snapshot(
    vm: Vm, paths: Value = None, summary: Value = None, opts: Value = None
) -> Artifact:
    """Return a list of files, with a summary.

    Example: artifact_workspace_snapshot(["a.txt", "b.txt"], "two files").kind  // "workspace_snapshot"
    """
    data = _required("workspace_snapshot", paths=paths)
    return _made(vm, "workspace_snapshot", opts, "workspace snapshot", summary, data, data)


@kind_builtin("artifact_editor_selection(path: string, text: string, opts?: dict) -> dict")
def artifact_editor_selection(vm: Vm, path: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """Return the selected text of a file.

    Example: artifact_editor_selection("a.txt", "one").text  // "one"
    """
    data = _required("editor_selection", path=path, text=text)
    return _made(vm, "editor_selection", opts, f"selection {_text(path)}", text, data, {"path": path})


@kind_builtin("artifact_verification_result(title: string, text: string, opts?: dict) -> dict")
def artifact_verification_result(
    vm: Vm, title: Value = None, text: Value = None, opts: Value = None
) -> Artifact:
    """Return the result of a verification.

    Example: artifact_verification_result("tests", "4 passed").title  // "tests"
    """
    data = _required("verification_result", title=title, text=text)
    return _made(vm, "verification_result", opts, _text(title), text, data)


@kind_builtin("artifact_test_result(title: string, text: string, opts?: dict) -> dict")
def artifact_test_result(vm: Vm, title: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """Return the result of tests.

    Example: artifact_test_result("unit tests", "4 passed").kind  // "test_result"
    """
    data = _required("test_result", title=title, text=text)
    return _made(vm, "test_result", opts, _text(title), text, data)


@kind_builtin("artifact_command_result(command: string, output: any, opts?: dict) -> dict")
def artifact_command_result(
    vm: Vm, command: Value = None, output: Value = None, opts: Value = None
) -> Artifact:
    """Return the output of a command, or a value that describes it.

    Example: artifact_command_result("make test", "4 passed").text  // "4 passed"
    """
    data = _required("command_result", command=command, output=output)
    return _made(vm, "command_result", opts, _text(command), output, data, {"command": command})


@kind_builtin("artifact_diff(path: string, before: string, after: string, opts?: dict) -> dict")
def artifact_diff(
    vm: Vm, path: Value = None, before: Value = None, after: Value = None, opts: Value = None
) -> Artifact:
    r"""Return the changes to a text as a unified diff of all its lines. Spec: 08 §8.6.

    Example: artifact_diff("a.txt", "one\n", "two\n").text.contains("+two")  // true
    """
    data = _required("diff", path=path, before=before, after=after)
    text = unified_diff(_text(path), _text(before), _text(after))
    return _made(vm, "diff", opts, f"diff {_text(path)}", text, data, {"path": path})


@kind_builtin("artifact_git_diff(diff_text: string, opts?: dict) -> dict")
def artifact_git_diff(vm: Vm, diff_text: Value = None, opts: Value = None) -> Artifact:
    """Return a diff made by git.

    Example: artifact_git_diff("+ a").kind  // "git_diff"
    """
    _required("git_diff", diff_text=diff_text)
    return _made(vm, "git_diff", opts, "git diff", diff_text, {"diff": diff_text})


@kind_builtin("artifact_diff_review(target: dict, summary?: string, opts?: dict) -> dict")
def artifact_diff_review(vm: Vm, target: Value = None, summary: Value = None, opts: Value = None) -> Artifact:
    """Return a reviewer's comment on a diff.

    Example: artifact_diff_review(artifact({kind: "diff", text: "+ a"}), "Fine.").text  // "Fine."
    """
    reviewed = _target(vm, "diff_review", target)
    facts = about_artifact(reviewed)
    return _made(
        vm, "diff_review", opts, f"review {artifact_name(reviewed)}", summary, facts, facts, reviewed
    )


@kind_builtin("artifact_review_decision(target: dict, decision: string, opts?: dict) -> dict")
def artifact_review_decision(
    vm: Vm, target: Value = None, decision: Value = None, opts: Value = None
) -> Artifact:
    """Return a decision about an artifact, e.g. `approved`.

    Example:
        artifact_review_decision(artifact({kind: "diff", text: "+ a"}), "approved").kind  // "review_decision"
    """
    decided = _target(vm, "review_decision", target)
    facts = about_artifact(decided, **_required("review_decision", decision=decision))
    title = f"{_text(decision)} {artifact_name(decided)}"
    return _made(vm, "review_decision", opts, title, decision, facts, facts, decided)


@kind_builtin("artifact_patch_proposal(target: dict, patch: string, opts?: dict) -> dict")
def artifact_patch_proposal(
    vm: Vm, target: Value = None, patch: Value = None, opts: Value = None
) -> Artifact:
    """Return a proposed patch for an artifact.

    Example: artifact_patch_proposal(artifact({kind: "note", text: "a"}), "+ b").text  // "+ b"
    """
    patched = _target(vm, "patch_proposal", target)
    data = about_artifact(patched, **_required("patch_proposal", patch=patch))
    title = f"patch for {artifact_name(patched)}"
    return _made(vm, "patch_proposal", opts, title, patch, data, about_artifact(patched), patched)


@kind_builtin("artifact_verification_bundle(title: string, checks: any, opts?: dict) -> dict")
def artifact_verification_bundle(
    vm: Vm, title: Value = None, checks: Value = None, opts: Value = None
) -> Artifact:
    """Return a set of checks that belong together.

    Example: artifact_verification_bundle("all", [{name: "tests", ok: true}]).kind  // "verification_bundle"
    """
    data = _required("verification_bundle", title=title, checks=checks)
    return _made(vm, "verification_bundle", opts, _text(title), checks, data)


@kind_builtin("artifact_apply_intent(target: dict, intent: string, opts?: dict) -> dict", guarded=True)
def artifact_apply_intent(vm: Vm, target: Value = None, intent: Value = None, opts: Value = None) -> Artifact:
    """Return the intent to do something with an artifact, e.g. `apply`.

    Example: artifact_apply_intent(artifact({kind: "diff", text: "+ a"}), "apply").kind  // "apply_intent"
    """
    applied = _target(vm, "apply_intent", target)
    data = about_artifact(applied, **_required("apply_intent", intent=intent))
    title = f"{_text(intent)} {artifact_name(applied)}"
    return _made(vm, "apply_intent", opts, title, intent, data, about_artifact(applied), applied)


def _made(
    vm: Vm,
    kind: str,
    opts: Value,
    title: str,
    text: Value,
    data: Dict,
    metadata: Dict | None = None,
    target: Artifact | None = None,
) -> Artifact:
    shown = None if text is None else _text(text)
    defaults = {"title": title, "text": shown, "data": data, "metadata": metadata or {}}
    return made_artifact(kind, defaults, opts, sessions_of(vm).world, target)


def _target(vm: Vm, kind: str, target: Value) -> Artifact:
    """Return the artifact that the new one is about."""
    if target is None:
        raise RuntimeFault(f"artifact_{kind}: missing target artifact")
    return normalised_artifact(target, sessions_of(vm).world)


def _required(kind: str, **arguments: Value) -> Dict:
    """Return the arguments by name. Raise for one that is missing, or empty unless that makes sense."""
    for name, value in arguments.items():
        if value is None or (value in ("", []) and name not in _MAY_BE_EMPTY):
            raise RuntimeFault(f"artifact_{kind}: missing {name}")
    return arguments


def _text(value: Value) -> str:
    """Return a text as it is, any other value as JSON."""
    return value if type(value) is str else to_json(value)
