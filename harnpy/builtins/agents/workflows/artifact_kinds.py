"""Artifacts of the usual kinds: files, selections, diffs, reviews, results. Spec: 08 §5.2.

The last argument of each is a dict of fields to override: `id`, `title`, `text`, `data`, `metadata`,
`priority`, ….
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import builtin as declare
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

#: What all declarations here have in common.
builtin = partial(declare, family="records", counted=True)

#: A file may be empty, and so may a command's output.
_MAY_BE_EMPTY = ("content", "text", "output", "before", "after")


@builtin("artifact_workspace_file(path: string, content: string, opts?: dict) -> dict")
def artifact_workspace_file(
    vm: Vm, path: Value = None, content: Value = None, opts: Value = None
) -> Artifact:
    """A file of the workspace with its content.

    Example:
        artifact_workspace_file("a.txt", "one").text  // "one"
    """
    data = _required("workspace_file", path=path, content=content)
    return _made(vm, "workspace_file", opts, _text(path), content, data, {"path": path})


@builtin("artifact_workspace_snapshot(paths: list, summary?: string, opts?: dict) -> dict")
def artifact_workspace_snapshot(
    vm: Vm, paths: Value = None, summary: Value = None, opts: Value = None
) -> Artifact:
    """A list of files, with a summary.

    Example:
        artifact_workspace_snapshot(["a.txt", "b.txt"], "two files").kind  // "workspace_snapshot"
    """
    data = _required("workspace_snapshot", paths=paths)
    return _made(vm, "workspace_snapshot", opts, "workspace snapshot", summary, data, data)


@builtin("artifact_editor_selection(path: string, text: string, opts?: dict) -> dict")
def artifact_editor_selection(vm: Vm, path: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """The selected text of a file.

    Example:
        artifact_editor_selection("a.txt", "one").text  // "one"
    """
    data = _required("editor_selection", path=path, text=text)
    return _made(vm, "editor_selection", opts, f"selection {_text(path)}", text, data, {"path": path})


@builtin("artifact_verification_result(title: string, text: string, opts?: dict) -> dict")
def artifact_verification_result(
    vm: Vm, title: Value = None, text: Value = None, opts: Value = None
) -> Artifact:
    """The result of a verification.

    Example:
        artifact_verification_result("tests", "4 passed").title  // "tests"
    """
    data = _required("verification_result", title=title, text=text)
    return _made(vm, "verification_result", opts, _text(title), text, data)


@builtin("artifact_test_result(title: string, text: string, opts?: dict) -> dict")
def artifact_test_result(vm: Vm, title: Value = None, text: Value = None, opts: Value = None) -> Artifact:
    """The result of tests.

    Example:
        artifact_test_result("unit tests", "4 passed").kind  // "test_result"
    """
    data = _required("test_result", title=title, text=text)
    return _made(vm, "test_result", opts, _text(title), text, data)


@builtin("artifact_command_result(command: string, output: any, opts?: dict) -> dict")
def artifact_command_result(
    vm: Vm, command: Value = None, output: Value = None, opts: Value = None
) -> Artifact:
    """The output of a command, or a value that describes it.

    Example:
        artifact_command_result("make test", "4 passed").text  // "4 passed"
    """
    data = _required("command_result", command=command, output=output)
    return _made(vm, "command_result", opts, _text(command), output, data, {"command": command})


@builtin("artifact_diff(path: string, before: string, after: string, opts?: dict) -> dict")
def artifact_diff(
    vm: Vm, path: Value = None, before: Value = None, after: Value = None, opts: Value = None
) -> Artifact:
    r"""The changes of a text, as a unified diff of all its lines. Spec: 08 §8.6.

    Example:
        artifact_diff("a.txt", "one\n", "two\n").text.contains("+two")  // true
    """
    data = _required("diff", path=path, before=before, after=after)
    text = unified(_text(path), _text(before), _text(after))
    return _made(vm, "diff", opts, f"diff {_text(path)}", text, data, {"path": path})


@builtin("artifact_git_diff(diff_text: string, opts?: dict) -> dict")
def artifact_git_diff(vm: Vm, diff_text: Value = None, opts: Value = None) -> Artifact:
    """A diff made by git.

    Example:
        artifact_git_diff("+ a").kind  // "git_diff"
    """
    _required("git_diff", diff_text=diff_text)
    return _made(vm, "git_diff", opts, "git diff", diff_text, {"diff": diff_text})


@builtin("artifact_diff_review(target: dict, summary?: string, opts?: dict) -> dict")
def artifact_diff_review(vm: Vm, target: Value = None, summary: Value = None, opts: Value = None) -> Artifact:
    """A reviewer's comment on a diff.

    Example:
        artifact_diff_review(artifact({kind: "diff", text: "+ a"}), "Fine.").text  // "Fine."
    """
    reviewed = _target(vm, "diff_review", target)
    facts = about(reviewed)
    return _made(vm, "diff_review", opts, f"review {name_of(reviewed)}", summary, facts, facts, reviewed)


@builtin("artifact_review_decision(target: dict, decision: string, opts?: dict) -> dict")
def artifact_review_decision(
    vm: Vm, target: Value = None, decision: Value = None, opts: Value = None
) -> Artifact:
    """A decision about an artifact, e.g. `approved`.

    Example:
        artifact_review_decision(artifact({kind: "diff", text: "+ a"}), "approved").kind  // "review_decision"
    """
    decided = _target(vm, "review_decision", target)
    facts = about(decided, **_required("review_decision", decision=decision))
    title = f"{_text(decision)} {name_of(decided)}"
    return _made(vm, "review_decision", opts, title, decision, facts, facts, decided)


@builtin("artifact_patch_proposal(target: dict, patch: string, opts?: dict) -> dict")
def artifact_patch_proposal(
    vm: Vm, target: Value = None, patch: Value = None, opts: Value = None
) -> Artifact:
    """A patch that somebody proposes for an artifact.

    Example:
        artifact_patch_proposal(artifact({kind: "note", text: "a"}), "+ b").text  // "+ b"
    """
    patched = _target(vm, "patch_proposal", target)
    data = about(patched, **_required("patch_proposal", patch=patch))
    title = f"patch for {name_of(patched)}"
    return _made(vm, "patch_proposal", opts, title, patch, data, about(patched), patched)


@builtin("artifact_verification_bundle(title: string, checks: any, opts?: dict) -> dict")
def artifact_verification_bundle(
    vm: Vm, title: Value = None, checks: Value = None, opts: Value = None
) -> Artifact:
    """Checks that belong together.

    Example:
        artifact_verification_bundle("all", [{name: "tests", ok: true}]).kind  // "verification_bundle"
    """
    data = _required("verification_bundle", title=title, checks=checks)
    return _made(vm, "verification_bundle", opts, _text(title), checks, data)


@builtin("artifact_apply_intent(target: dict, intent: string, opts?: dict) -> dict", guarded=True)
def artifact_apply_intent(vm: Vm, target: Value = None, intent: Value = None, opts: Value = None) -> Artifact:
    """The intent to do something with an artifact, e.g. `apply`.

    Example:
        artifact_apply_intent(artifact({kind: "diff", text: "+ a"}), "apply").kind  // "apply_intent"
    """
    applied = _target(vm, "apply_intent", target)
    data = about(applied, **_required("apply_intent", intent=intent))
    title = f"{_text(intent)} {name_of(applied)}"
    return _made(vm, "apply_intent", opts, title, intent, data, about(applied), applied)


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
    return made(kind, defaults, opts, sessions_of(vm).world, target)


def _target(vm: Vm, kind: str, target: Value) -> Artifact:
    """Return the artifact that the new one is about."""
    if target is None:
        raise RuntimeFault(f"artifact_{kind}: missing target artifact")
    return normalised(target, sessions_of(vm).world)


def _required(kind: str, **arguments: Value) -> Dict:
    """Return the arguments by name. Raise for one that is missing, or empty unless that makes sense."""
    for name, value in arguments.items():
        if value is None or (value in ("", []) and name not in _MAY_BE_EMPTY):
            raise RuntimeFault(f"artifact_{kind}: missing {name}")
    return arguments


def _text(value: Value) -> str:
    """Return a text as it is, any other value as JSON."""
    return value if type(value) is str else to_json(value)
