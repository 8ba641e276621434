"""Making a call: budget, provider, retries, and the account of it. Spec: 07 §1.8, §1.11–1.12."""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy import telemetry
from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.formats.schema_checks import SchemaValues
from harnpy.formats.text_size import byte_length
from harnpy.llm.account import Account
from harnpy.llm.call_options import read_transport
from harnpy.llm.configuration.capabilities import row_of
from harnpy.llm.configuration.known_models import Configured
from harnpy.llm.errors import BudgetSpent, CallError, retryable
from harnpy.llm.experiments import VARIABLE as EXPERIMENT
from harnpy.llm.experiments import read_experiment
from harnpy.llm.native_tools import (
    NativeSearch,
    native_tools,
    read_tool_search,
    resolve_search,
    tool_entries,
)
from harnpy.llm.providers import Connections
from harnpy.llm.providers.mock import MOCK_NAME as MOCK
from harnpy.llm.providers.mock import MockProvider
from harnpy.llm.reply import Reply
from harnpy.llm.request import check_gates, read_request
from harnpy.llm.routing import Router
from harnpy.llm.structured import ask_until_valid
from harnpy.llm.telemetry import model_span, tell_reply
from harnpy.llm.transcript_log import VARIABLE, Segment, segment_writer
from harnpy.llm.waiting import Blocking, RateLimits
from harnpy.world import World
from harnpy.world.egress import environment_egress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from harnpy.llm.call_options import Caps
    from harnpy.llm.providers import Provider
    from harnpy.llm.providers.mock import FixtureRecording
    from harnpy.llm.request import Request, Shown
    from harnpy.llm.structured import Answer
    from harnpy.llm.waiting import Waiting
    from harnpy.spans import Spans
    from harnpy.world.http import Http

    Complete = Callable[[Request], Reply | Awaitable[Reply]]


#: Seconds after which a person wonders what a call is waiting for.
_LONG_PAUSE = 1.0


class Models:
    """The providers of one program, and what its calls add up to.

    ``waiting`` suspends a call; ``values`` is what is known of values that come from JSON; ``directory``
    returns where the program is; ``tracing`` as `Account` has it. ``provided`` are an embedder's own
    providers: they need no configuration and pass no gate. ``admission`` is called before every attempt.
    ``permit(provider)`` raises where the running task may not call a provider; mocks may always be called.
    ``caps`` bound the replies. ``spans`` returns where spans are recorded now, if they are. ``http`` sends
    the calls, by default the world's, under the egress policy of the environment. ``program`` reads variables
    and files as the program may, for the providers of its project; by default as the world does.
    """

    def __init__(
        self,
        world: World | None = None,
        waiting: Waiting | None = None,
        *,
        values: SchemaValues | None = None,
        directory: Callable[[], str] | None = None,
        tracing: bool = False,
        provided: Mapping[str, Provider] | None = None,
        admission: Callable[[], object] | None = None,
        permit: Callable[[str], object] = lambda provider: None,
        caps: Caps | None = None,
        spans: Callable[[], Spans | None] = lambda: None,
        http: Http | None = None,
        program: tuple[Callable[[str], str | None], Callable[[str], str]] | None = None,
    ) -> None:
        self.world = world = World() if world is None else world
        self.waiting = waiting = Blocking(world.clock) if waiting is None else waiting
        self.values = SchemaValues() if values is None else values
        self._env = env = world.environment.get
        self.config = Configured(world, world.files.cwd if directory is None else directory, program)
        http = world.http.behind(environment_egress(env)) if http is None else http
        self.connections = Connections(http, waiting, caps, world.unguarded.clock.now)
        self.provided = provided or {}
        self._admission = admission
        self._permit = permit
        self.spans = spans
        self.mock = MockProvider()
        #: Where replies are recorded, if they are.
        self.recording: FixtureRecording | None = None
        #: Whether who watches a reply come is called meanwhile, and not only once it is there.
        self.tells_pieces = True
        self.account = Account(tracing)
        self.trace = self.account.trace
        self.rates = RateLimits(
            env, world.clock.monotonic, waiting.sleep, lambda name: self.config.known_providers.rpm(name)
        )

    def beside(self, waiting: Waiting, connections: Connections) -> Models:
        """Return these models for another task, which waits in its own way and has an account of its own."""
        models = copy(self)
        models.waiting, models.connections = waiting, connections
        models.account = Account()
        models.trace = models.account.trace
        models.rates = self.rates.waited_for(waiting.sleep)
        return models

    def options(self, given: Any) -> Options:
        return Options(given)

    def request(
        self,
        prompt: str,
        system: str | None,
        options: Options,
        *,
        once: bool = True,
        prefers_native: bool = False,
        **defaults: Any,
    ) -> Request:
        """The request that a caller's arguments make; ``defaults`` as in `read_request`.

        A request for one call is sent as it is; a loop (``once`` is false) completes its request each turn.
        ``prefers_native``: as in `tool_format`.
        """
        config = self.config
        route = self.router.route(options)
        style = config.known_providers.style(route.first.provider)
        tools = tool_entries(options.value("tools"))
        request = read_request(prompt, system, options, route, config.known_models, style=style, **defaults)
        if once:
            request.tools = native_tools(tools, style) or None
        chosen = options.string("tool_format")
        request.tool_format = chosen or self.tool_format(*route.first, prefers_native=prefers_native)
        request.transport = read_transport(options, self._env)
        experiment, usual = options.value("structural_experiment"), self._env(EXPERIMENT)
        if experiment is not None or usual:
            request.experiment = read_experiment(experiment, usual)
        self._defer_tools(request, options, tools)
        if not self.mock.queued and request.provider not in self.provided:
            config.known_providers.require_known(request.provider)
            can = config.capabilities.of(request.provider, request.model)
            check_gates(options, request, can, config.manifest)
            request.sees = not can.is_blind
            config.known_providers.require(request.provider)
        return request.rewritten() if once else request

    def tool_format(self, provider: str, model: str, *, prefers_native: bool = False) -> str:
        """Return how tools are offered to the model by default: ``text`` or ``native``.

        ``prefers_native``: natively to whatever can take them, also to a model that is provided or mocked.
        """
        known = self.config.known_models
        if not prefers_native:
            return known.tool_format(model, provider, mocked=self.mock.intercepts(provider))
        if provider in self.provided or (provider == MOCK and known.takes_tools(model, provider)):
            return "native"
        return known.tool_format(model, provider)

    def _defer_tools(self, request: Request, options: Options, entries: list[dict[str, Any]]) -> None:
        """Hold tools back, if they are to be searched for. Raises `OptionError`."""
        option = read_tool_search(options)
        if option is None or not entries:
            return
        provider, model = request.provider, request.model
        can = self.config.capabilities.of(provider, model)
        forced = self.options(options.value(provider)).flag("force_native_tool_search")
        native = NativeSearch(
            provider, model, can.tool_search if can.defer_loading else (), forced, request.style
        )
        request.search = resolve_search(option, entries, native)
        request.tools = request.search.tools(entries, request.style)

    @property
    def router(self) -> Router:
        return Router(self.config.known_providers, self.config.known_models, self._env, self._callable_now)

    def _callable_now(self, provider: str) -> bool:
        """Return True if the provider could be called: its key is there, or mocks reply for it."""
        known = self.mock.intercepts(provider) or provider in self.provided
        return known or self.config.known_providers.available(provider)

    def info(self) -> dict[str, Any]:
        """The provider and model that the environment sets for calls that name neither (07 §1.12)."""
        model = self._env("HARN_LLM_MODEL")
        provider = self.router.provider(None, None)
        return {
            "provider": provider,
            "model": self.config.known_models.resolve(model).id if model else "",
            "api_key_set": self.config.known_providers.available(provider),
        }

    def provider(self, request: Request) -> Provider:
        """The provider of a request. Raises `OptionError` if it has no key, `CallError` if calls are off."""
        name = request.provider
        if self.mock.intercepts(name):
            return self.mock
        self._permit(name)
        if name in self.provided:
            return self.provided[name]
        self.config.known_providers.require(name)
        refusal = self.config.known_providers.refuse_when_disabled(name)
        if refusal is not None:
            raise CallError("generic", refusal)
        return self.connections.provider(self.config.known_providers.configuration(name, model=request.model))

    def segment(
        self,
        new_loop_id: Callable[[], str] | None = None,
        depth: Callable[[], int] = int,
        **scope: Any,
    ) -> Segment | None:
        """The segment of the transcript sidecar for a loop, or for a call outside any loop.

        None when no sidecar is kept; then ``depth()`` isn't called. ``scope``: session_id, tool_format.
        """
        directory = self._env(VARIABLE)
        if not directory:
            return None
        write = segment_writer(directory, self.world.files)
        loop_id = new_loop_id() if new_loop_id else None
        return Segment(write, lambda: self.world.clock.now(), loop_id=loop_id, depth=depth(), **scope)

    def ask(self, request: Request, iteration: int | None = None, answer: Complete | None = None) -> Reply:
        """Make a call, with the fallbacks when its provider fails. Raises the first `CallError`.

        ``answer`` is called instead of the provider. Raises `BudgetSpent` after a call that cost too much.
        """
        try:
            return self._ask(request, iteration, answer)
        except CallError as error:
            if request.route is None or error.category in ("budget_exceeded", "cancelled"):
                raise
            for stop in request.route.fallbacks:
                try:
                    return self._ask(request.at(stop, self.config), iteration, answer)
                except BudgetSpent:
                    raise
                except (CallError, OptionError):
                    continue
            raise

    def _ask(self, request: Request, iteration: int | None, answer: Complete | None) -> Reply:
        """Make a call to one provider, with the retries that the request allows."""
        attempt = 0
        while True:
            self.admit(request)
            mocked = self.mock.intercepts(request.provider)
            try:
                spans = self.spans()
                if spans is None:
                    return self._attempt(request, iteration, answer)
                return in_span(spans, request, lambda: self._attempt(request, iteration, answer))
            except CallError as error:
                attempt += 1
                again = retryable(error.category, error.message) and not error.is_final
                if attempt > request.retries or not again:
                    if not mocked:
                        self._explain(request, error)
                    raise
                self._note_empty(error, iteration, attempt)
                if request.retried is not None:
                    request.retried(request, attempt, error.message)
                if not mocked:
                    self._back_off(request, error, attempt)

    def _complete(self, request: Request) -> Complete:
        """The provider's `complete`, wrapped while replies are recorded."""
        complete, recording = self.provider(request).complete, self.recording
        if recording is None:
            return complete
        return lambda request: recording.record(
            request, lambda: self._received(complete(request), request.shown)
        )

    def _received(self, answer: Reply | Awaitable[Reply], shown: Shown | None = None) -> Reply:
        """Return a provider's reply, with an id for each call."""
        reply = self.connections.reply(answer, shown if self.tells_pieces else None)
        reply.identify(self.world.ids.new)
        return reply

    def clear_mocks(self) -> None:
        """Forget the mock provider's replies and calls, and stop recording."""
        self.mock.clear()
        if self.recording is not None:
            self.recording.clear()
            self.recording = None

    def answer(self, request: Request) -> Answer:
        """The reply to a request with its structured output, after the schema retries that it allows."""
        return ask_until_valid(request, self.ask, self.trace, self.values)

    def admit(self, request: Request) -> None:
        """Check the budgets, then take the provider's permit, as every attempt must."""
        self.waiting.go_on()
        if self._admission is not None:
            self._admission()
        self.account.check(request)
        self.rates.acquire(request.provider)

    def _attempt(self, request: Request, iteration: int | None, answer: Complete | None) -> Reply:
        begin = self.world.clock.monotonic()
        segment = request.segment
        if segment is None and iteration is None:  # a loop has seen to its own
            segment = self.segment()
        call_id = self.trace.new_call_id()
        if segment is not None:
            segment.request(request, call_id)
        complete = self._complete(request) if answer is None else answer
        if request.shown is not None:
            request.shown.began(request)
        with model_span(request) if telemetry.is_on() else telemetry.OFF as span:
            reply = self._received(complete(request), request.shown)
            reply.price = request.price
            if span.records:
                tell_reply(span, reply)
        ms = int((self.world.clock.monotonic() - begin) * 1000)
        if segment is not None:
            segment.response(reply, ms)
        self.account.charge(reply, call_id, ms, iteration)
        return reply

    def _note_empty(self, error: CallError, iteration: int | None, attempt: int) -> None:
        if "completion_tokens=" in error.message and "delivered no content" in error.message:
            self.trace.record(
                "empty_completion_retry", iteration=iteration, attempt=attempt, error=error.message
            )

    def _back_off(self, request: Request, error: CallError, attempt: int) -> None:
        usual = request.backoff_ms * 2 ** min(attempt, 4) / 1000
        pause = usual if error.retry_after is None else error.retry_after
        if pause >= _LONG_PAUSE:
            count = f"retry {attempt} of {request.retries} in {pause:g} s"
            self.world.warn("model", f"{error.message.partition(chr(10))[0]}; {count}")
        self.waiting.sleep(pause)

    def _explain(self, request: Request, error: CallError) -> None:
        """Say what to do where a server refuses tools of which harnpy has only assumed that it takes them."""
        matrix, provider, model = self.config.capabilities, request.provider, request.model
        if request.tools and "tool" in error.message.lower() and matrix.is_assumed(provider, model):
            plain = replace(matrix.of(provider, model), native_tools=False)
            row = row_of(provider, model, plain)
            error.message += (
                '\nIf it takes no tools, offer them as text: tool_format: "text" in the options, or in '
                f"{self.config.manifest}:\n\n{row}"
            )


@contextmanager
def models_alone(world: World, directory: Callable[[], str] | None = None) -> Iterator[Models]:
    """The models of a caller that runs no program: it waits in its own thread, and closes them at the end."""
    waiting = Blocking(world.clock)
    models = Models(world, waiting, directory=directory)
    try:
        yield models
    finally:
        waiting.wait(models.connections.aclose())
        waiting.close()


def in_span(spans: Spans, request: Request, attempt: Callable[[], Reply]) -> Reply:
    """The reply of an attempt, which is recorded as a span of the kind `llm_call` (04 §25)."""
    span = spans.begin("llm_call", request.model)
    used: dict[str, Any] = {"provider": request.provider}
    try:
        reply = attempt()
        used |= {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    finally:
        spans.end(span, **used)
    return reply


# Asking a model for the text between two others. Spec: 07 §1.11.
#
# The mock provider does this in its own way, without its queue and its log of calls.


_INFILL = """\
Continue the text between <prefix> and </prefix>. What you write is put directly behind it{}.
Answer with that text alone: no explanation, no code fence.

<prefix>{}</prefix>"""


def infill_prompt(prefix: str, suffix: str) -> str:
    """The prompt that asks a chat model for the text between ``prefix`` and ``suffix``."""
    if not suffix:
        return _INFILL.format("", prefix)
    return _INFILL.format(" and before <suffix>", prefix) + f"\n<suffix>{suffix}</suffix>"


def complete_infill(models: Models, request: Request, prefix: str, suffix: str) -> Reply:
    """The text between; ``request`` is for the `infill_prompt`. Raises `CallError`."""
    if request.provider == MOCK:
        return models.ask(request, answer=lambda request: _mock_completion(request, prefix, suffix))
    return models.ask(request)


def _mock_completion(request: Request, prefix: str, suffix: str) -> Reply:
    text = f"Mock completion after {len(prefix)} chars"
    return Reply(
        text=f"{text} before {len(suffix)} chars" if suffix else text,
        model=MOCK,
        provider=MOCK,
        requested_model=request.model,
        input_tokens=byte_length(prefix + suffix),
        output_tokens=16,
        stop_reason="stop",
    )
