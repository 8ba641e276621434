"""Policies on the commands that programs and agents run, and the scans behind them. Spec: 02 §28."""

from __future__ import annotations

from functools import partial

from harnpy.agent.rules.command_call import command_of, patterns_of
from harnpy.agent.rules.command_policy import (
    normalised_command_policy,
    read_command_policy,
    scan_command,
    scan_result,
)
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.contexts import context_of, workplace_of
from harnpy.faults import MisuseError, paced
from harnpy.formats.secrets.secret_names import is_secret_member
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="policy")

_REDACTED = "<redacted>"


@builtin("command_policy(config: dict) -> dict")
def command_policy(vm: Vm, config: Value = None) -> Dict:
    """Return the checked config of which commands `process.exec` may run, with every list and its `_type`.

    `{deny_patterns?, require_approval?, workspace_roots?, pre?, post?, allow_recursive?, …}`. It holds where
    `command_policy_push` puts it, or in the loop that has it as `command_policy`.

    Example: command_policy({deny_patterns: ["rm -rf"]}).default_shell_mode  // "argv_only"
    """
    return normalised_command_policy(config)


@builtin("command_policy_push(policy: dict) -> nil")
def command_policy_push(vm: Vm, policy: Value = None) -> None:
    """Put a command policy into force instead of the current one, until `command_policy_pop`.

    It ends at the latest with the task, the loop or the tool call that pushed it.

    Example:
        command_policy_push(command_policy({deny_patterns: ["rm -rf"]}))
        host_call("process.exec", {mode: "argv", argv: ["rm", "-rf", "."]}).status  // "blocked"
    """
    if policy is None:
        raise MisuseError("command_policy_push: policy is required")
    pushed = read_command_policy(callables_within(vm, policy), "command_policy_push")
    context = context_of(vm)
    context.rules = context.rules.commanded(context.rules.commands.push(pushed))


@builtin("command_policy_pop() -> nil")
def command_policy_pop(vm: Vm) -> None:
    """Remove the command policy that was pushed last, if any.

    Example:
        command_policy_push(command_policy({deny_patterns: ["*"]}))
        command_policy_pop()
        host_call("process.exec", {mode: "argv", argv: ["echo", "a"]}).status  // "completed"
    """
    context = context_of(vm)
    context.rules = context.rules.commanded(context.rules.commands.pop())


@builtin("command_risk_scan(ctx: dict) -> dict")
def command_risk_scan(vm: Vm, ctx: Value = None) -> Dict:
    """Assess a command's text: `{action, recommended_action, risk_labels, confidence, rationale}`.

    `ctx` is what a hook gets, or a request `{argv}` or `{command}`.

    Example: command_risk_scan({argv: ["pip", "install", "x"]}).risk_labels  // ["package_install"]
    """
    return _scanned(vm, "command_risk_scan", ctx)


@builtin("command_llm_risk_scan(ctx: dict, options?: dict) -> dict")
def command_llm_risk_scan(vm: Vm, ctx: Value = None, options: Value = None) -> Dict:
    """Return the same assessment, with the options as `llm`; it calls no model.

    Example: command_llm_risk_scan({command: "ls"}, {api_key: "k"}).llm  // {api_key: "<redacted>"}
    """
    found = _scanned(vm, "command_llm_risk_scan", ctx)
    return {**found, "scan_kind": "deterministic_fallback", "llm": _without_secrets(options or {})}


@builtin("command_result_scan(ctx: dict) -> dict")
def command_result_scan(vm: Vm, ctx: Value = None) -> Dict:
    """Assess a command's output, in `ctx.result`: credentials, refusals, errors.

    Example: command_result_scan({result: {stderr: "fatal: no such ref"}}).risk_labels  // ["error_output"]
    """
    return scan_result(_context("command_result_scan", ctx).get("result")).as_dict()


def _scanned(vm: Vm, caller: str, ctx: Value) -> Dict:
    given = _context(caller, ctx)
    return scan_command(command_of(given, workplace_of(vm).directory()), patterns_of(given)).as_dict()


def _context(caller: str, ctx: Value) -> Dict:
    if ctx is None:
        raise MisuseError(f"{caller}: ctx is required")
    if not isinstance(ctx, dict):
        raise MisuseError(f"{caller}: ctx must be a dict, got {type_name(ctx)}")
    return ctx


def _without_secrets(value: Value) -> Value:
    if type(value) is dict:
        return {
            key: _REDACTED if is_secret_member(key, item) else _without_secrets(item)
            for key, item in paced([*value.items()])
        }
    return [_without_secrets(item) for item in paced(value)] if type(value) is list else value
