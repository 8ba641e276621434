"""`AgentContext`: what one task works under, its sessions, the rules in force and the workflow it works for.

`Rules` are immutable: entering a loop makes new ones, so a new task inherits those of its starter at no cost.
The executor of workflows makes a `WorkflowScope`; what agents need of it is defined here. Spec: 08 §1.1,
§7.2; 07 §8.
"""

from __future__ import annotations

import os.path
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.agent.rules.command_policy import NO_COMMANDS, given_command_policy, without_command_policy
from harnpy.agent.rules.permissions import read_approval_policy, read_permissions
from harnpy.agent.rules.policy import PolicyError, read_policy
from harnpy.formats.dicts import errors_after
from harnpy.session.open_sessions import SessionStack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from harnpy.agent.people import Question
    from harnpy.agent.rules.command_policy import CommandPolicy, Commands
    from harnpy.agent.rules.permissions import ApprovalPolicy, PermissionPolicy
    from harnpy.agent.rules.policy import Policy
    from harnpy.agent.rules.policy_paths import Lead, RealPath
    from harnpy.formats.dicts import Dict, Options
    from harnpy.session.runtime import SessionRuntime

    #: ``(kind, text, metadata)`` of an event.
    Note = Callable[[str, str, Dict], None]


class ToolCall(NamedTuple):
    """A loop's tool call as it ended, with the text that the model read."""

    name: str
    id: str | None
    arguments: Any
    text: str
    rejected: bool
    ms: int
    iteration: int


class Recorder(Protocol):
    """Whatever keeps a run's record."""

    def tool_called(self, call: ToolCall) -> None: ...

    def asked(self, question: Question) -> None:
        """Record that a person was asked: `{request_id, prompt, agent, trace_id, asked_at}`."""

    def hitl(self, entry: Dict) -> None:
        """Record a request to a person as it stands (`people.history.entry`), instead of its former entry."""


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """``skills`` and ``skill_match`` are for loops that have none of their own; ``mutation`` is the mutation
    session; ``recorders`` are those of this run, followed by those of the runs around it."""

    workflow_id: str
    run_id: str
    mutation: Dict
    recorders: Sequence[Recorder]
    stage_id: str | None = None
    skills: Any = None
    skill_match: Any = None

    def inside(self, outer: WorkflowScope | None) -> WorkflowScope:
        """Return the scope of a run started by a stage of ``outer``, which records its calls too; ``outer``'s
        skills are for loops that would have none."""
        if outer is None:
            return self
        return replace(
            self,
            recorders=(*self.recorders, *outer.recorders),
            skills=outer.skills if self.skills is None else self.skills,
            skill_match=outer.skill_match if self.skill_match is None else self.skill_match,
        )

    def tool_called(self, call: ToolCall) -> None:
        for recorder in self.recorders:
            recorder.tool_called(call)

    def asked(self, question: Question) -> None:
        """Record a question, in this run's record only."""
        self.recorders[0].asked(question)

    def hitl(self, entry: Dict) -> None:
        """Record a request to a person, in this run's record only."""
        self.recorders[0].hitl(entry)


@dataclass(frozen=True, slots=True)
class Rules:
    """``permissions`` are outermost first; None is no policy at all.

    ``leads`` are the paths of the tool call that is handled, which were allowed for what they led to.
    ``commands`` is which command policy holds.
    """

    policy: Policy | None = None
    approval: ApprovalPolicy | None = None
    permissions: tuple[PermissionPolicy, ...] = ()
    leads: tuple[Lead, ...] = ()
    commands: Commands = NO_COMMANDS

    def __bool__(self) -> bool:
        """Return True if anything is restricted or recorded."""
        return self.policy is not None or self.approval is not None or bool(self.permissions)

    @property
    def mind_annotations(self) -> bool:
        """Return True if the annotations of tools matter to the rules."""
        by_policy = self.policy is not None and self.policy.minds_annotations
        return by_policy or self.approval is not None or bool(self.permissions)

    def below(
        self,
        policy: Policy | None = None,
        approval: ApprovalPolicy | None = None,
        permissions: PermissionPolicy | None = None,
        command_policy: CommandPolicy | None = None,
    ) -> Rules:
        """Return the rules inside these, with policies of their own. Raises `PolicyError`."""
        if policy is not None and self.policy is not None:
            policy = self.policy.intersect(policy)
        if approval is not None and self.approval is not None:
            approval = self.approval.intersect(approval)
        scopes = self.permissions if permissions is None else (*self.permissions, permissions)
        commands = self.commands.inside(command_policy)
        return Rules(
            self.policy if policy is None else policy,
            self.approval if approval is None else approval,
            scopes,
            self.leads,
            commands,
        )

    def met(self, other: Rules) -> Rules:
        """Return the rules that allow what both allow."""
        if self == other or not self.restricts:
            return other
        if not other.restricts:
            return self
        from harnpy.agent.rules.policy import meet_policies

        policy = meet_policies(self.policy, other.policy) if self.policy and other.policy else self.policy
        approval = (
            self.approval.intersect(other.approval) if self.approval and other.approval else self.approval
        )
        return Rules(
            policy or other.policy,
            approval or other.approval,
            tuple(dict.fromkeys(self.permissions + other.permissions)),
            tuple(dict.fromkeys(self.leads + other.leads)),
            self.commands.met(other.commands),
        )

    @property
    def restricts(self) -> bool:
        """Return True if anything is restricted."""
        return bool(self) or bool(self.leads) or self.commands.policy is not None

    def following(self, leads: Sequence[Lead]) -> Rules:
        """The rules while a call is handled whose paths were allowed for what they led to."""
        return replace(self, leads=(*self.leads, *leads)) if leads else self

    def commanded(self, commands: Commands) -> Rules:
        """The rules with another command policy."""
        return self if commands is self.commands else replace(self, commands=commands)

    def placed(self, real_path: RealPath) -> Rules:
        """The rules in force where ``real_path`` says what the roots of their own policies lead to.

        Raises `MisuseError` for a root that is no path.
        """
        return self if self.policy is None else replace(self, policy=self.policy.placed(real_path))

    def one_deeper(self, label: str) -> Rules:
        """The rules of a loop or workflow that one under these starts, before its own policies.

        Raises `PolicyError`, in the name of ``label``, when it is one too many.
        """
        limit = None if self.policy is None else self.policy.recursion_limit
        if limit is None:
            return self
        if limit <= 0:
            raise PolicyError(f"{label}: exceeds recursion ceiling: the policy allows no deeper nesting")
        assert self.policy is not None
        return replace(self, policy=replace(self.policy, recursion_limit=limit - 1))

    def for_options(self, options: Options, label: str) -> Rules:
        """The rules of a loop with such options: its policies and permissions.

        Raises `MisuseError`, in the name of ``label`` where one can't be read.
        """
        if not options.has_any(_OF_RULES):
            rules = self.one_deeper(label)
            return rules.commanded(self.commands.inside()) if self.commands.pushed else rules
        policy = without_command_policy(options.value("policy"))
        approval, permissions = options.value("approval_policy"), options.value("permissions")
        commands = self.commands.inside(given_command_policy(options.given, label))
        return self.one_deeper(label).commanded(commands).for_policies(policy, approval, permissions, label)

    def for_policies(self, policy: Any, approval: Any, permissions: Any, label: str) -> Rules:
        """The rules of a loop with these policies, each nil or a dict; raises as `for_options` does."""
        with errors_after(f"{label}: "):
            ceiling = None if policy is None else read_policy(policy)
            approvals = read_approval_policy(approval)
        return self.below(ceiling, approvals, read_permissions(permissions, label))


NO_RULES = Rules()
_OF_RULES = frozenset(("policy", "approval_policy", "permissions", "command_policy"))


class WorkerName(NamedTuple):
    """The worker that a task works for."""

    id: str
    name: str


class Place(NamedTuple):
    """The directory that programs run in, and their variables besides those of the environment."""

    cwd: str | None
    env: Mapping[str, str]


def place_of(execution: Mapping[str, Any] | None, outer: Place | None) -> Place | None:
    """Return the place that an `execution` dict names; what it leaves open is as at the ``outer`` place."""
    if not execution or not (execution.get("cwd") or execution.get("env")):
        return outer
    around = Place(None, {}) if outer is None else outer
    return Place(execution.get("cwd") or around.cwd, {**around.env, **(execution.get("env") or {})})


class ActiveSession(NamedTuple):
    """The session that loops and model calls are on which name none, and the runtime that keeps it."""

    id: str
    runtime: SessionRuntime


class _Governed:
    """The block in which rules are in force. A class, as each loop, each of its model calls and each tool has
    such a block."""

    __slots__ = ("_callers", "_context", "_note", "_outer", "_rules")

    def __init__(self, context: AgentContext, rules: Rules, callers: Rules, note: Note | None) -> None:
        self._context = context
        self._rules = rules
        self._callers = callers
        self._note = note

    def __enter__(self) -> None:
        context = self._context
        self._outer = context.rules, context.caller_rules, context.note
        context.rules, context.caller_rules, context.note = self._rules, self._callers, self._note

    def __exit__(self, *error: object) -> None:
        context = self._context
        context.rules, context.caller_rules, context.note = self._outer


class _Held:
    """Parts that a context has inside a block. A class, as stages enter several such blocks each."""

    __slots__ = ("_context", "_outer", "_parts")

    def __init__(self, context: AgentContext, parts: Dict) -> None:
        self._context = context
        self._parts = parts

    def __enter__(self) -> None:
        context = self._context
        self._outer = {name: getattr(context, name) for name in self._parts}
        for name, part in self._parts.items():
            setattr(context, name, part)

    def __exit__(self, *error: object) -> None:
        for name, part in self._outer.items():
            setattr(self._context, name, part)


#: A block in which nothing is other than around it.
NOTHING: AbstractContextManager[None] = nullcontext()


class AgentContext:
    """The rules, workflow and place that one task works under.

    ``sessions`` are those that it drives, ``rules`` those in force. ``caller_rules`` are those under which
    the running workflow was started: the model calls of its stages obey them, what else is done ``rules``.
    The task works for ``worker`` and ``workflow``, at ``place``, if that isn't the program's, by default on
    the session ``active``. ``note`` records what rules decided, in the innermost loop around it, if there is
    one.
    """

    __slots__ = ("active", "caller_rules", "note", "place", "rules", "sessions", "worker", "workflow")

    def __init__(
        self,
        sessions: SessionStack | None = None,
        rules: Rules = NO_RULES,
        worker: WorkerName | None = None,
        workflow: WorkflowScope | None = None,
        place: Place | None = None,
        caller_rules: Rules = NO_RULES,
        active: ActiveSession | None = None,
        note: Note | None = None,
    ) -> None:
        self.active = active
        self.note = note
        self.sessions = SessionStack() if sessions is None else sessions
        self.rules = rules
        self.worker = worker
        self.workflow = workflow
        self.place = place
        self.caller_rules = caller_rules

    def _holding(self, **parts: Any) -> AbstractContextManager[None]:
        """Have these parts inside the block."""
        return _Held(self, parts)

    def govern(
        self, rules: Rules, caller_rules: Rules | None = None, note: Note | None = None
    ) -> AbstractContextManager[None]:
        """Put ``rules`` in force inside the block, for whoever is under ``caller_rules`` itself. ``note`` is
        told what they decide; by default whatever was told before."""
        callers = self.caller_rules if caller_rules is None else caller_rules
        return _Governed(self, rules, callers, self.note if note is None else note)

    def as_caller(self) -> AbstractContextManager[None]:
        """Put those rules in force under which the running workflow was started."""
        callers = self.caller_rules
        return NOTHING if self.rules is callers else _Governed(self, callers, callers, self.note)

    def work_for(self, workflow: WorkflowScope) -> AbstractContextManager[None]:
        """Work for ``workflow`` inside the block."""
        return self._holding(workflow=workflow)

    def work_at(self, execution: Mapping[str, Any] | None) -> AbstractContextManager[None]:
        """Work inside the block where an `execution` dict says, if it does."""
        return self._holding(place=place_of(execution, self.place))

    def refuses(self, builtin: str) -> str | None:
        """Return why a script may not call a builtin here; None when it may."""
        return None if self.rules.policy is None else self.rules.policy.check_builtin(builtin)

    def refuses_effect(self, effect: str, target: str) -> str | None:
        """The same for an effect of whatever it calls."""
        return None if self.rules.policy is None else self.rules.policy.check_effect(effect, target)

    def refuses_path(self, effect: str, path: str, named: str) -> str | None:
        """The same for the place of a file, or of a process.

        ``path`` is absolute and free of links, ``named`` the absolute path that led to it.
        """
        if self.rules.leads:
            normal = os.path.normpath(named)
            left = (lead.left_by(normal, path) for lead in self.rules.leads)
            reason = next((reason for reason in left if reason is not None), None)
            if reason is not None:
                return reason
        return None if self.rules.policy is None else self.rules.policy.check_path(effect, path)

    @property
    def restricts(self) -> bool:
        """Return True if any effect may be refused."""
        return self.rules.policy is not None or bool(self.rules.leads)

    def refuses_host_call(self, capability: str, operation: str) -> str | None:
        """The same for an operation of the host."""
        policy = self.rules.policy
        return None if policy is None else policy.check_host_call(capability, operation)

    def branch(self) -> AgentContext:
        """Return the context of a task that starts here: a copy."""
        rules = self.rules.commanded(self.rules.commands.inside())
        parts = rules, self.worker, self.workflow, self.place, self.caller_rules, self.active
        return AgentContext(self.sessions.branch(), *parts, self.note)
