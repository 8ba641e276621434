"""Artifacts of the usual kinds: files, selections, diffs, reviews, results. Spec: 08 §5.2.

The last argument of each is a dict with what the artifact should say instead: `id`, `title`, `text`, `data`,
`metadata`, `priority`, ….
"""

from __future__ import annotations

from harnpy.builtins.agents.sessions.service import store_of
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.workflow.artifacts.artifact import normalised
from harnpy.workflow.artifacts.make_artifact import about, made, name_of
from harnpy.workflow.artifacts.text_diff import unified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.artifacts.artifact_types import Artifact


@builtin(
    "artifact_workspace_file(path: string, content: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_workspace_file(
    vm: Vm, path: Value = None, content: Value = None, opts: Value = None
) -> Artifact:
    """A file of the workspace with its content."""
    caller = "artifact_workspace_file"
    _require(caller, path=path)
    _require_given(caller, content=content)
    data = {"path": path, "content": content}
    return _made(vm, "workspace_file", opts, _text(path), content, data, {"path": path})


@builtin(
    "artifact_workspace_snapshot(paths: list, summary?: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_workspace_snapshot(
    vm: Vm, paths: Value = None, summary: Value = None, opts: Value = None
) -> Artifact:
    """Which files there are, with what to say of them."""
    _require("artifact_workspace_snapshot", paths=paths)
    data = {"paths": paths}
    return _made(vm, "workspace_snapshot", opts, "workspace snapshot", summary, data, data)


@builtin(
    "artifact_editor_selection(path: string, text: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_editor_selection(vm: Vm, path: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """What is selected in a file."""
    caller = "artifact_editor_selection"
    _require(caller, path=path)
    _require_given(caller, text=text)
    data = {"path": path, "text": text}
    return _made(vm, "editor_selection", opts, f"selection {_text(path)}", text, data, {"path": path})


@builtin(
    "artifact_verification_result(title: string, text: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_verification_result(
    vm: Vm, title: Value = None, text: Value = None, opts: Value = None
) -> Artifact:
    """What a verification found."""
    return _result(vm, "verification_result", title, text, opts)


@builtin(
    "artifact_test_result(title: string, text: string, opts?: dict) -> dict", family="records", counted=True
)
def artifact_test_result(vm: Vm, title: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """What tests found."""
    return _result(vm, "test_result", title, text, opts)


@builtin(
    "artifact_command_result(command: string, output: any, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_command_result(
    vm: Vm, command: Value = None, output: Value = None, opts: Value = None
) -> Artifact:
    """What a command printed, or a value that says what it did."""
    caller = "artifact_command_result"
    _require(caller, command=command)
    _require_given(caller, output=output)
    data = {"command": command, "output": output}
    return _made(vm, "command_result", opts, _text(command), output, data, {"command": command})


@builtin(
    "artifact_diff(path: string, before: string, after: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_diff(
    vm: Vm, path: Value = None, before: Value = None, after: Value = None, opts: Value = None
) -> Artifact:
    """What became of a text, as a unified diff of all its lines. Spec: 08 §8.6."""
    caller = "artifact_diff"
    _require(caller, path=path)
    _require_given(caller, before=before, after=after)
    text = unified(_text(path), _text(before), _text(after))
    data = {"path": path, "before": before, "after": after}
    return _made(vm, "diff", opts, f"diff {_text(path)}", text, data, {"path": path})


@builtin("artifact_git_diff(diff_text: string, opts?: dict) -> dict", family="records", counted=True)
def artifact_git_diff(vm: Vm, diff_text: Value = None, opts: Value = None) -> Artifact:
    """A diff that git made."""
    _require("artifact_git_diff", diff_text=diff_text)
    return _made(vm, "git_diff", opts, "git diff", diff_text, {"diff": diff_text})


@builtin(
    "artifact_diff_review(target: dict, summary?: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_diff_review(vm: Vm, target: Value = None, summary: Value = None, opts: Value = None) -> Artifact:
    """What a reviewer says of a diff."""
    reviewed = _target(vm, "artifact_diff_review", target)
    facts = about(reviewed)
    return _made(vm, "diff_review", opts, f"review {name_of(reviewed)}", summary, facts, facts, reviewed)


@builtin(
    "artifact_review_decision(target: dict, decision: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_review_decision(
    vm: Vm, target: Value = None, decision: Value = None, opts: Value = None
) -> Artifact:
    """What was decided about an artifact, e.g. `approved`."""
    caller = "artifact_review_decision"
    decided = _target(vm, caller, target)
    _require(caller, decision=decision)
    facts = about(decided, decision=decision)
    title = f"{_text(decision)} {name_of(decided)}"
    return _made(vm, "review_decision", opts, title, decision, facts, facts, decided)


@builtin(
    "artifact_patch_proposal(target: dict, patch: string, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_patch_proposal(
    vm: Vm, target: Value = None, patch: Value = None, opts: Value = None
) -> Artifact:
    """A patch that somebody proposes for an artifact."""
    caller = "artifact_patch_proposal"
    patched = _target(vm, caller, target)
    _require(caller, patch=patch)
    title, data = f"patch for {name_of(patched)}", about(patched, patch=patch)
    return _made(vm, "patch_proposal", opts, title, patch, data, about(patched), patched)


@builtin(
    "artifact_verification_bundle(title: string, checks: any, opts?: dict) -> dict",
    family="records",
    counted=True,
)
def artifact_verification_bundle(
    vm: Vm, title: Value = None, checks: Value = None, opts: Value = None
) -> Artifact:
    """Checks that belong together."""
    caller = "artifact_verification_bundle"
    _require(caller, title=title, checks=checks)
    data = {"title": title, "checks": checks}
    return _made(vm, "verification_bundle", opts, _text(title), checks, data)


@builtin(
    "artifact_apply_intent(target: dict, intent: string, opts?: dict) -> dict",
    family="records",
    counted=True,
    guarded=True,
)
def artifact_apply_intent(vm: Vm, target: Value = None, intent: Value = None, opts: Value = None) -> Artifact:
    """That somebody means to do something with an artifact, e.g. `apply`."""
    caller = "artifact_apply_intent"
    applied = _target(vm, caller, target)
    _require(caller, intent=intent)
    title, data = f"{_text(intent)} {name_of(applied)}", about(applied, intent=intent)
    return _made(vm, "apply_intent", opts, title, intent, data, about(applied), applied)


def _result(vm: Vm, kind: str, title: Value, text: Value, opts: Value) -> Artifact:
    _require(f"artifact_{kind}", title=title)
    _require_given(f"artifact_{kind}", text=text)
    return _made(vm, kind, opts, _text(title), text, {"title": title, "text": text})


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
    return made(kind, defaults, opts, store_of(vm).world, target)


def _target(vm: Vm, caller: str, target: Value) -> Artifact:
    if target is None:
        raise RuntimeFault(f"{caller}: missing target artifact")
    return normalised(target, store_of(vm).world)


def _require(caller: str, **arguments: Value) -> None:
    """Refuse arguments that are missing or empty."""
    for name, value in arguments.items():
        if value is None or value == "" or value == []:
            raise RuntimeFault(f"{caller}: missing {name}")


def _require_given(caller: str, **arguments: Value) -> None:
    """Refuse arguments that are missing; a file may be empty, and so may a command's output."""
    for name, value in arguments.items():
        if value is None:
            raise RuntimeFault(f"{caller}: missing {name}")


def _text(value: Value) -> str:
    """A text as it is, any other value as JSON."""
    return value if type(value) is str else to_json(value)
