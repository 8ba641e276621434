"""The agents that a server answers with: Harn files, and tables of the project's `harn.toml`. Spec: 11 §1.1.

A *definition* runs in a loop of the session runtime, in a thread for each turn; the tools of its file run in
the file's own Vm, which stays loaded. A *program* runs in a Vm of its own for each prompt, on the same store.
"""

from __future__ import annotations

import asyncio
import os.path
from contextlib import AsyncExitStack, contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from harnpy import Vm
from harnpy.agent.factory.loops import LoopFactory
from harnpy.agent.factory.tools import Tool
from harnpy.agent.people import DUAL_CONTROL, ESCALATION, QUESTION, HumanCancelled, request_from
from harnpy.formats.display import display
from harnpy.formats.json import JsonError, compact_json, parse_json
from harnpy.project import MANIFEST, project_root
from harnpy.serve.functions import Function, functions_of
from harnpy.serve.mcp_tools import CallFailed, failure
from harnpy.serve.mcp_tools import Tool as FunctionTool
from harnpy.serve.program import NotServed, Program
from harnpy.session.agents import AgentDef, Budget
from harnpy.session.aio import in_thread
from harnpy.session.errors import AgentError, ExecutionTimeout, InvalidArgument, SessionError
from harnpy.session.events import TURN_COMPLETED
from harnpy.session.guards import ALLOW, ApprovalRequest
from harnpy.session.send import AgentFactory, result_of
from harnpy.session.turns import events_of
from harnpy.syntax import ast
from harnpy.syntax.comments import doc_comment
from harnpy.syntax.parser import parse_cached
from harnpy.vm.errors import ExitRequest, VmError
from harnpy.world import World
from harnpy.world.host import People

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from harnpy.agent.factory.build import AgentBuild
    from harnpy.agent.factory.runner import LoopRunner
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.session.agent_turn import Sink
    from harnpy.session.agents import TurnResult
    from harnpy.session.aio import AsyncSession, AsyncSessionRuntime
    from harnpy.session.calling import Caller
    from harnpy.session.guards import ApprovalGate, InputGate
    from harnpy.session.send import Prompt
    from harnpy.session.transaction import Txn
    from harnpy.storage.contract import Store

    Kind = Literal["definition", "program"]

#: The function of a file that returns its definition.
_ENTRY: Final = "agent"
_EXTENSION: Final = ".harn"
_TABLE: Final = "agents"

# The people whom one prompt may ask: approvals and questions of loops, of tools, of programs. Spec: 07 §14.6.


class Person:
    """Whoever answers for one prompt, through the gates of its sender: the caller of what it calls."""

    def __init__(self, session_id: str, approvals: ApprovalGate | None, inputs: InputGate | None) -> None:
        self._session_id = session_id
        self._approvals = approvals
        self._inputs = inputs
        #: Questions wait for one another: a gate has one at a time.
        self._asking = asyncio.Lock()

    def report(self, current: float, total: float | None, message: str) -> None:
        """Pass over what `progress` shows: a turn has no place for it."""

    async def ask(self, given: Dict) -> Dict:
        """Return the response to a request. Raises HumanCancelled where nobody can answer it."""
        request = request_from(given)
        if request.kind == QUESTION:
            return {"answer": await self._answer(str(request.prompt), request.payload)}
        if request.needed > 1 or request.kind == DUAL_CONTROL:
            raise HumanCancelled(f"{request.needed} people must approve, and one is there")
        if request.reviewers:
            raise HumanCancelled(
                f"only {', '.join(request.reviewers)} may decide, and nobody is there by name"
            )
        if self._approvals is None:
            raise HumanCancelled(_NOBODY)
        payload = request.payload
        tool = given.get("tool") or str(request.prompt)
        args = "" if payload.get("args") is None else compact_json(payload["args"])
        details = {key: payload[key] for key in ("detail", "principal", "role") if payload.get(key)}
        asked = ApprovalRequest(request.id, self._session_id, tool, args, request.kind, metadata=details)
        decided = await self._approvals.decide(asked)
        reason, reviewer = decided.reason or None, decided.reviewer or _REVIEWER
        if request.kind == ESCALATION:
            if decided.decision != ALLOW:
                raise HumanCancelled(reason or "escalation was declined")
            return {"accepted": True, "reviewer": reviewer, "reason": reason}
        return {"approved": decided.decision == ALLOW, "reviewer": reviewer, "reason": reason}

    async def _answer(self, prompt: str, payload: Dict) -> Any:
        if self._inputs is None:
            raise HumanCancelled(_NOBODY)
        async with self._asking:
            answer: Any = await self._inputs.put(prompt)
        default = payload.get("default")
        if default is not None and answer == "":
            return default
        schema = payload.get("schema")
        if isinstance(answer, str) and isinstance(schema, dict) and schema.get("type") != "string":
            with suppress(JsonError):  # else it is for the schema to refuse
                return parse_json(answer)
        return answer


_NOBODY: Final = "nobody is there to ask"
#: Who decides where nobody says: whatever sent the prompt.
_REVIEWER: Final = "client"

#: The person of the prompt that runs.
_PERSON: ContextVar[Person | None] = ContextVar("person of the prompt", default=None)


@contextmanager
def _asking(person: Person) -> Iterator[None]:
    token = _PERSON.set(person)
    try:
        yield
    finally:
        _PERSON.reset(token)


async def _ask(request: Dict) -> Dict:
    """Put a request to the person of the prompt that runs. Raises HumanCancelled."""
    person = _PERSON.get()
    if person is None:
        raise HumanCancelled(_NOBODY)
    return await person.ask(request)


# Definitions: each with the loop that runs it.


class Definition:
    """An agent as data, and what runs it."""

    kind: Kind = "definition"

    def __init__(self, definition: AgentDef, loop: LoopFactory) -> None:
        self.definition = definition
        self.loop = loop

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def description(self) -> str:
        return self.definition.description


class Loops(AgentFactory):
    """Runs definitions, each with the tools of the AGENT that has its name."""

    def __init__(self, world: World) -> None:
        self._known: dict[str, LoopFactory] = {}
        self._usual = LoopFactory(host=_with_person(world))
        self._tools: tuple[Tool, ...] = ()

    def add(self, agent: Definition) -> None:
        self._known[agent.name] = agent.loop

    def beside(self, tools: Sequence[Tool]) -> Loops:
        """Return the same, whose definitions all have these tools, too."""
        loops = copy(self)
        loops._tools = (*self._tools, *tools)
        return loops

    def check(self, definition: AgentDef) -> None:
        self._of(definition).check(definition)

    def close(self, call: Caller) -> None:
        for loop in (self._usual, *self._known.values()):
            loop.close(call)

    def __call__(self, definition: AgentDef, session: Txn) -> LoopRunner:
        loop = self._of(definition)
        if self._tools:
            loop = loop.with_capability(self._bring)
        return loop(definition, session)

    def _bring(self, build: AgentBuild) -> None:
        for tool in self._tools:
            build.add_tool(tool)

    def _of(self, definition: AgentDef) -> LoopFactory:
        return self._known.get(definition.name, self._usual)


def _with_person(world: World) -> World:
    """Return the world in which the person of a prompt is the one to ask."""
    world = copy(world)
    world.people = People(_ask)
    return world


async def _of_file(program: Program, stem: str) -> Definition:
    """Return the agent that a loaded file defines. Raises NotServed."""
    file = program.module.place.name
    try:
        given = await program.call(functions_of(program.library)[_ENTRY].call, [])
    except VmError as error:
        raise NotServed(f"{file}: agent() failed: {failure(error)}") from None
    definition = _definition(given, f"{file}: agent()", stem)
    tools = [
        _tool(program, function)
        for name, function in functions_of(program.library).items()
        if name in program.module.tools
    ]
    models = await program.do(lambda: _models(program.vm))
    loop = LoopFactory(tools=tools, models=models, host=_with_person(program.vm.unguarded))
    return _checked(Definition(definition, loop), file)


def _models(vm: Vm) -> Models:
    """Return models for loops beside the program: what it says of models holds for them, too."""
    from harnpy.builtins import settings_of
    from harnpy.builtins.bridge.live_http import model_http_of
    from harnpy.builtins.live_models import models_of
    from harnpy.llm.call import Models

    world = vm.unguarded
    models = Models(
        world,
        directory=lambda: vm.source_dir or world.files.cwd(),
        provided=settings_of(vm).providers,
        http=model_http_of(vm),
    )
    models.mock = models_of(vm).mock
    return models


def _tool(program: Program, function: Function) -> Tool:
    """Return a `tool` declaration as a tool of loops, called in the file's Vm."""
    called = FunctionTool(function)

    async def call(arguments: Dict) -> str | None:
        try:
            answer = await called.run(
                arguments, lambda handler, args: program.call(handler, args, _PERSON.get())
            )
        except VmError as error:
            raise CallFailed(failure(error)) from error
        return answer.text

    return Tool(called.name, called.description, called.input_schema, call)


def _definition(given: Any, where: str, name: str) -> AgentDef:
    """Return the definition that a dict is; one without a name is called ``name``. Raises NotServed."""
    if not isinstance(given, dict):
        raise NotServed(f"{where} must return a dict, the definition of an agent: got {display(given)}")
    try:
        definition = AgentDef.of({"name": name, **given})
        compact_json(definition.data())
    except (SessionError, ValueError) as error:
        raise NotServed(f"{where} is no definition of an agent: {error}") from None
    except TypeError:
        raise NotServed(f"{where} is no definition of an agent: not all of it is JSON") from None
    return definition


def _checked(agent: Definition, where: str) -> Definition:
    try:
        agent.loop.check(agent.definition)
    except (SessionError, AgentError) as error:
        raise NotServed(f"{where}: {error}") from None
    return agent


# Programs: a Vm for each prompt.


class PipelineAgent:
    """A Harn file whose pipeline answers each prompt."""

    kind: Kind = "program"

    def __init__(self, file: str, source: str, description: str, new_vm: Callable[[str], Vm]) -> None:
        self.name = os.path.basename(file).removesuffix(_EXTENSION)
        self.description = description
        self.file = file
        self._source = source
        self._new_vm = new_vm

    async def run(self, session_id: str, store: Store, person: Person, **given: Any) -> Any:
        """Return what the pipeline returns; ``given`` are its globals. Raises VmError. Cancelling this ends
        it."""
        from harnpy.builtins.bridge.live_sessions import sessions_of

        vm = self._new_vm(self.file)
        sessions_of(vm).stores.lend(store)
        vm.unguarded.people = People(person.ask)
        for name, value in {"session_id": session_id, **given}.items():
            vm.set_global(name, value)
        try:
            return await vm.run_async(self._source, file=self.file)
        except ExitRequest as request:
            raise VmError(f"the program called exit({request.code})") from None


def _text_of(prompt: Prompt, name: str) -> str:
    """Return a prompt as the text that a program gets. Raises `InvalidArgument`."""
    if isinstance(prompt, str):
        return prompt
    content = prompt.get("content") if isinstance(prompt, dict) else None
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(block.get("type") == "text" for block in content):
        return "\n".join(block["text"] for block in content)
    raise InvalidArgument(f"agent '{name}' is a program: its prompt is a text, or a message of texts")


# All of them.


def _plain_vm(file: str) -> Vm:
    return Vm()


class Agents:
    """The agents of one server, by name; the first one answers in sessions that name none.

    An async context manager: entered, they are loaded. Raises NotServed for what can't be, `ManifestError`
    for a project that nobody trusts, and what a file raises that can't be read or run.
    """

    def __init__(
        self,
        given: Sequence[str],
        store: Store,
        *,
        new_vm: Callable[[str], Vm] = _plain_vm,
        world: World | None = None,
    ) -> None:
        """``given`` are paths of Harn files, or names of `[agents.NAME]` in the project's `harn.toml`.
        ``store`` is where programs keep their sessions; ``new_vm(file)`` makes the Vm of a file."""
        self._given = given
        self._store = store
        self._new_vm = new_vm
        self._world = World() if world is None else world
        self._agents: dict[str, Definition | PipelineAgent] = {}
        self._stack = AsyncExitStack()
        #: What runs the definitions of sessions: `agents` of the runtime.
        self.loops = Loops(self._world)

    async def __aenter__(self) -> Self:
        try:
            for each in self._given:
                self._add(await self._load(each), each)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    @property
    def names(self) -> list[str]:
        return list(self._agents)

    def kind(self, name: str) -> Kind:
        return self._named(name).kind

    def description(self, name: str) -> str:
        return self._named(name).description

    def file(self, name: str) -> str | None:
        """Return the file of a program; None for a definition."""
        agent = self._named(name)
        return agent.file if isinstance(agent, PipelineAgent) else None

    def definition(self, name: str) -> AgentDef | None:
        """Return the definition that sessions of the agent are made of; None for a program."""
        agent = self._named(name)
        return agent.definition if isinstance(agent, Definition) else None

    async def prompt(
        self,
        runtime: AsyncSessionRuntime,
        session_id: str,
        prompt: Prompt,
        *,
        agent: str | None = None,
        key: str | None = None,
        client: str | None = None,
        sink: Sink | None = None,
        approvals: ApprovalGate | None = None,
        inputs: InputGate | None = None,
        timeout: float | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        mcp_servers: Sequence[Dict] = (),
    ) -> TurnResult:
        """Have an agent answer a prompt, as a turn of the session, and return what became of it.

        Without an ``agent`` it is the session's own definition, else the agent that the session names, else
        the first one. ``approvals`` are asked for what its approval policy or a program wants approved,
        ``inputs`` for what a program or the model wants to know. A program's ``sink`` gets the answer as one
        piece. ``tools`` are there for a definition beside its own, ``mcp_servers`` (as of `agent_loop`) for a
        program, as the global of that name.

        Raises `InvalidArgument` for an unknown agent, and for a ``key``, a ``budget``, ``tools`` or messages
        that are for a program; what `SessionRuntime.send` does, and VmError for a program that fails.
        """
        session = await runtime.get(session_id)
        found = self._for(session, agent)
        person = Person(session_id, approvals, inputs)
        if isinstance(found, PipelineAgent):
            refused = {"key": key, "budget": budget, "tools": tools or None}
            what = next((name for name, value in refused.items() if value is not None), None)
            if what is not None:
                raise InvalidArgument(
                    f"agent '{found.name}' is a program: its turns take no `{what}`", session_id
                )
            text = _text_of(prompt, found.name)
            if client is not None:
                await in_thread(partial(runtime.runtime.admit, session_id, client))
            told = await self._run(
                found, runtime, session, timeout, person, prompt=text, mcp_servers=list(mcp_servers)
            )
            if sink is not None and told.text:
                sink(told.text)
            return told
        loops = self.loops.beside(tools)
        if found is not None:
            loops = loops.running(found.definition)
        more: dict[str, Any] = {} if client is None else {"client": client}
        with _asking(person):
            return await runtime.send(
                session_id,
                prompt,
                agent=loops,
                stream=sink,
                idempotency_key=key,
                timeout=timeout,
                budget=budget,
                inputs=inputs,
                **more,
            )

    async def _run(
        self,
        agent: PipelineAgent,
        runtime: AsyncSessionRuntime,
        session: AsyncSession,
        timeout: float | None,
        person: Person,
        **given: Any,
    ) -> TurnResult:
        """Run a program. Return its last turn in the session, or one of the prompt and what it returned."""
        before, id = session.version, session.id
        try:
            async with asyncio.timeout(timeout):
                value = await agent.run(id, runtime.store, person, **given)
        except TimeoutError:
            raise ExecutionTimeout(id, timeout or 0.0) from None
        session = await runtime.get(id)
        stream = session.session.stream
        ended = next(stream.read(before, types=frozenset({TURN_COMPLETED}), reverse=True), None)
        if ended is None or ended.turn is None:
            answer = "" if value is None else display(value)
            return await runtime.send(id, given["prompt"], agent=lambda messages: answer)
        begun = next(stream.read(ended.turn.seq - 1, ended.turn.seq))
        return replace(
            result_of(session.session, [begun, *events_of(session.session, begun)]), session=session
        )

    def _for(self, session: AsyncSession, name: str | None) -> Definition | PipelineAgent | None:
        """Return the agent that answers in a session; None: its own definition does."""
        if name is not None:
            return self._named(name)
        facts = session.session.agent_facts()
        if facts.get("definition"):
            return None
        known = self._agents.get(facts.get("agent_name", ""))
        if known is not None:
            return known
        if not self._agents:
            raise InvalidArgument(
                f"session '{session.id}' has no agent, and the server was given none", session.id
            )
        return next(iter(self._agents.values()))

    def _named(self, name: str) -> Definition | PipelineAgent:
        if name not in self._agents:
            known = ", ".join(self._agents) or "none"
            raise InvalidArgument(f"unknown agent '{name}' (known: {known})")
        return self._agents[name]

    def _add(self, agent: Definition | PipelineAgent, given: str) -> None:
        if agent.name in self._agents:
            raise NotServed(
                f"{given}: there is an agent '{agent.name}' already: give its definition another name"
            )
        self._agents[agent.name] = agent
        if isinstance(agent, Definition):
            self.loops.add(agent)

    async def _load(self, given: str) -> Definition | PipelineAgent:
        files = self._world.files
        if not given.endswith(_EXTENSION) and not files.is_file(given):
            return self._of_table(given)
        source = files.read_text(given, "replace")
        items = parse_cached(source, given).items
        if any(isinstance(item, ast.FnDecl) and item.pub and item.name == _ENTRY for item in items):
            vm = self._new_vm(given)
            self._lend(vm)
            program = await self._stack.enter_async_context(Program(vm, given))
            return await _of_file(program, os.path.basename(given).removesuffix(_EXTENSION))
        pipelines = [item for item in items if isinstance(item, ast.Pipeline)]
        if not pipelines:
            raise NotServed(f"{given} is no agent: it has neither a `pub fn agent()` nor a pipeline")
        entry = next((each for each in pipelines if each.name == "default"), pipelines[0])
        return PipelineAgent(given, source, doc_comment(source, entry.start), self._new_vm)

    def _lend(self, vm: Vm) -> None:
        from harnpy.builtins.bridge.live_sessions import sessions_of

        sessions_of(vm).stores.lend(self._store)

    def _of_table(self, name: str) -> Definition:
        """Return the agent of a table in `harn.toml`. Raises NotServed, `ManifestError`."""
        from harnpy.formats.manifest import manifest_of

        files = self._world.files
        root = project_root(files.cwd(), files)
        tables: dict[str, Any] = {}
        if root is not None:
            manifest = manifest_of(self._world, root)
            refusal = manifest.refusal(_TABLE)
            if refusal is not None:
                raise refusal
            tables = manifest.tables.get(_TABLE, {})
        if not isinstance(tables, dict) or name not in tables:
            raise NotServed(
                f"no agent '{name}': it is neither a Harn file nor a table [agents.{name}] in {MANIFEST}"
            )
        where = f"[agents.{name}] in {MANIFEST}"
        definition = _definition(tables[name], where, name)
        return _checked(Definition(definition, LoopFactory(host=_with_person(self._world))), where)
