"""What does a model call cost beside the model's own time, and beside the same call by the official SDK?

    python bench/calls.py [--rounds N] [--calls N] [--apart MS] [--profile DIALECT] [--check]

A server on loopback, in a process of its own, sends recorded replies at once, so that all time is the
client's: 200 words, whole, and streamed with a word a chunk; `--apart` has the chunks come one by one, as
services send them. A Harn program and the SDK make the same calls in turn, each on one connection that stays
open. The budget is a multiple of the SDK's asynchronous client, which lets others go on meanwhile, as a Harn
program does; its blocking one stands beside it. A row has the medians of the rounds: processor time of this
process, and ratios of that and of time on the clock.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

from options import parser

from harnpy import Vm

WORDS = [f"word{number} " for number in range(200)]
TEXT = "".join(WORDS)
SYSTEM, PROMPT, MODEL, MOST = "You are brief.", "Say two hundred words.", "m-1", 16384
#: Calls before those that are measured.
WARM = 5
#: At most so many times the SDK's time.
MUST = 1.3

PROGRAM = """
pipeline main(task) {
  fn whole(provider, n) {
    let options = {provider: provider, model: "MODEL", stream: false}
    for i in 0 to n { check(llm_call("PROMPT", "SYSTEM", options).text) }
  }
  fn streamed(provider, n) {
    let options = {provider: provider, model: "MODEL"}
    for i in 0 to n { check(llm_call("PROMPT", "SYSTEM", options).text) }
  }
  fn pieces(provider, n) {
    let options = {provider: provider, model: "MODEL"}
    for i in 0 to n {
      var text = ""
      for piece in llm_stream("PROMPT", "SYSTEM", options) { text = text + piece }
      check(text)
    }
  }
  fn measure(form, provider, n) {
    form(provider, WARM)
    start()
    form(provider, n)
    stop()
  }
  {whole: whole, streamed: streamed, pieces: pieces, measure: measure}
}
"""

Json = dict[str, Any]


# The recorded replies: what each service sends for such a text.


def chat_events() -> Iterator[Json]:
    head = {"id": "chatcmpl-CeTvqTq3", "object": "chat.completion.chunk", "created": 1764400000}
    head |= {"model": MODEL, "service_tier": "default", "system_fingerprint": "fp_a1b2c3d4e5"}

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "choices": [choice], "usage": None, "obfuscation": "8fKq2LmP"}

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for word in WORDS:
        yield chunk({"content": word})
    yield chunk({}, "stop")
    yield {**head, "choices": [], "usage": CHAT_USAGE, "obfuscation": "zT"}


CHAT_USAGE = {
    "prompt_tokens": 24,
    "completion_tokens": 200,
    "total_tokens": 224,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 0,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}


def chat_whole() -> Json:
    message: Json = {"role": "assistant", "content": TEXT, "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-CeTvqTq3", "object": "chat.completion", "created": 1764400000, "model": MODEL}
    return {**head, "choices": [choice], "usage": CHAT_USAGE, "service_tier": "default"}


def response(text: str, status: str) -> Json:
    content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
    item = {"id": "msg_1", "type": "message", "status": status, "content": content, "role": "assistant"}
    usage = {
        "input_tokens": 24,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 200,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 224,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1764400000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": SYSTEM,
        "metadata": {},
        "model": MODEL,
        "output": [item] if text else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage if text else None,
    }


def response_events() -> Iterator[Json]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    item = {"id": "msg_1", "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
    whole = response(TEXT, "completed")
    events: list[Json] = [
        {"type": "response.created", "response": response("", "in_progress")},
        {"type": "response.in_progress", "response": response("", "in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *(
            {
                "type": "response.output_text.delta",
                **place,
                "delta": word,
                "logprobs": [],
                "obfuscation": "8fKq2LmP",
            }
            for word in WORDS
        ),
        {"type": "response.output_text.done", **place, "text": TEXT, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": TEXT}},
        {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
        {"type": "response.completed", "response": whole},
    ]
    return ({**event, "sequence_number": number} for number, event in enumerate(events))


def message_whole(text: str = TEXT, reason: str | None = "end_turn") -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 24,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 200 if text else 1,
            "service_tier": "standard",
        },
    }


def message_events() -> Iterator[Json]:
    yield {"type": "message_start", "message": message_whole("", None)}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for word in WORDS:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"input_tokens": 24, "output_tokens": 200}}
    yield {"type": "message_stop"}


def generated(text: str, reason: str | None) -> Json:
    candidate: Json = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    counts = {"promptTokenCount": 24, "candidatesTokenCount": 200, "totalTokenCount": 224}
    return {
        "candidates": [candidate | ({"finishReason": reason} if reason else {})],
        "usageMetadata": counts,
        "modelVersion": MODEL,
        "responseId": "rk3Xq",
    }


def generated_events() -> Iterator[Json]:
    for number, word in enumerate(WORDS, 1):
        yield generated(word, "STOP" if number == len(WORDS) else None)


# The official SDKs, called as their own pages do.


class Sdk(NamedTuple):
    """``open(url, waits)`` makes a client, the asynchronous one if it ``waits`` in a loop."""

    open: Callable[[str, bool], Any]
    ask: Callable[[Any, bool], Any]
    text: Callable[[Any], str]
    piece: Callable[[Any], str | None]


def openai_client(url: str, waits: bool) -> Any:
    from openai import AsyncOpenAI, OpenAI

    return (AsyncOpenAI if waits else OpenAI)(api_key="k", base_url=url)


def anthropic_client(url: str, waits: bool) -> Any:
    from anthropic import Anthropic, AsyncAnthropic

    return (AsyncAnthropic if waits else Anthropic)(api_key="k", base_url=url)


def gemini_client(url: str, waits: bool) -> Any:
    from google.genai import Client

    client: Any = Client(api_key="k", http_options={"base_url": url, "api_version": ""})
    return client.aio if waits else client


def chat(client: Any, streamed: bool) -> Any:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    asked = {"model": MODEL, "messages": messages, "max_tokens": MOST}
    more = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
    return client.chat.completions.create(**asked, **more)


def response_of(client: Any, streamed: bool) -> Any:
    asked = {"model": MODEL, "instructions": SYSTEM, "input": PROMPT, "max_output_tokens": MOST}
    return client.responses.create(**asked, store=False, stream=streamed)


def message_of(client: Any, streamed: bool) -> Any:
    asked = {"model": MODEL, "max_tokens": MOST, "system": SYSTEM, "stream": streamed}
    return client.messages.create(**asked, messages=[{"role": "user", "content": PROMPT}])


def content_of(client: Any, streamed: bool) -> Any:
    config = {"system_instruction": SYSTEM, "max_output_tokens": MOST}
    models = client.models
    ask = models.generate_content_stream if streamed else models.generate_content
    return ask(model=MODEL, contents=PROMPT, config=config)


class Dialect(NamedTuple):
    protocol: str
    sdk: Sdk
    whole: Json
    events: list[Json]
    #: How the paths of its requests begin.
    path: str
    endpoint: str = "/chat/completions"
    #: Whether its events have names, and what comes behind the last one.
    named: bool = False
    end: str = ""


DIALECTS = {
    "chat": Dialect(
        "openai",
        Sdk(
            openai_client,
            chat,
            lambda made: made.choices[0].message.content,
            lambda chunk: chunk.choices[0].delta.content if chunk.choices else None,
        ),
        chat_whole(),
        [*chat_events()],
        "/chat/",
        end="data: [DONE]\n\n",
    ),
    "responses": Dialect(
        "responses",
        Sdk(
            openai_client,
            response_of,
            lambda made: made.output_text,
            lambda event: event.delta if event.type == "response.output_text.delta" else None,
        ),
        response(TEXT, "completed"),
        [*response_events()],
        "/responses",
        named=True,
    ),
    "messages": Dialect(
        "anthropic",
        Sdk(
            anthropic_client,
            message_of,
            lambda made: made.content[0].text,
            lambda event: event.delta.text if event.type == "content_block_delta" else None,
        ),
        message_whole(),
        [*message_events()],
        "/v1/",
        "/v1/messages",
        named=True,
    ),
    "gemini": Dialect(
        "gemini",
        Sdk(gemini_client, content_of, lambda made: made.text, lambda chunk: chunk.text),
        generated(TEXT, "STOP"),
        [*generated_events()],
        "/models/",
    ),
}


# The server.


def answers() -> dict[tuple[str, bool], list[bytes]]:
    """The pieces of each dialect's responses, by its path and whether they are streamed."""
    made = {}
    for dialect in DIALECTS.values():
        body = json.dumps(dialect.whole).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        made[dialect.path, False] = [head + body]
        rows = [
            (f"event: {event['type']}\n" if dialect.named else "") + f"data: {json.dumps(event)}\n\n"
            for event in dialect.events
        ]
        chunks = [row.encode() for row in (*rows, dialect.end) if row]
        made[dialect.path, True] = [
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            *(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks),
            b"0\r\n\r\n",
        ]
    return made


async def serve(apart: float) -> None:
    """Answer on a free port, which is printed, until the process ends; ``apart``: ms between two pieces."""
    made = answers()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                rows = dict(row.lower().split(": ", 1) for row in head.split("\r\n")[1:] if row)
                body = json.loads(await reader.readexactly(int(rows["content-length"])))
                path = head.split(" ", 2)[1]
                [place] = [dialect.path for dialect in DIALECTS.values() if path.startswith(dialect.path)]
                for piece in made[place, bool(body.get("stream")) or "alt=sse" in path]:
                    writer.write(piece)
                    if apart:
                        await asyncio.sleep(apart / 1000)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving(apart: float = 0.0) -> Iterator[str]:
    """The URL of the server."""
    command = [sys.executable, __file__, "--serve", "--apart", str(apart)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


# The two sides.


class Cost(NamedTuple):
    """Milliseconds of a call: of the processor, and on the clock."""

    processor: float
    clock: float


class Watch:
    def __init__(self, profile: cProfile.Profile | None = None) -> None:
        self._profile = profile

    def start(self) -> None:
        gc.collect()
        if self._profile is not None:
            self._profile.enable()
        self._begin = process_time(), perf_counter()

    def stop(self, calls: int) -> None:
        end = process_time(), perf_counter()
        if self._profile is not None:
            self._profile.disable()
        spent = [(after - before) * 1000 / calls for before, after in zip(self._begin, end, strict=True)]
        self.cost = Cost(*spent)


def by_sdk(sdk: Sdk, url: str, streamed: bool, calls: int, watch: Watch) -> None:
    with sdk.open(url, False) as client:

        def call() -> None:
            made = sdk.ask(client, streamed)
            check("".join([sdk.piece(each) or "" for each in made]) if streamed else sdk.text(made))

        for _ in range(WARM):
            call()
        watch.start()
        for _ in range(calls):
            call()
        watch.stop(calls)


async def by_sdk_waiting(sdk: Sdk, url: str, streamed: bool, calls: int, watch: Watch) -> None:
    async with sdk.open(url, True) as client:

        async def call() -> None:
            made = await sdk.ask(client, streamed)
            check("".join([sdk.piece(each) or "" async for each in made]) if streamed else sdk.text(made))

        for _ in range(WARM):
            await call()
        watch.start()
        for _ in range(calls):
            await call()
        watch.stop(calls)


def by_harnpy(provider: str, form: str, calls: int, watch: Watch) -> None:
    vm = Vm()
    vm.register("check(text: string) -> nil", check)
    vm.register("start() -> nil", watch.start)
    vm.register("stop() -> nil", lambda: watch.stop(calls))
    text = PROGRAM.replace("MODEL", MODEL).replace("PROMPT", PROMPT).replace("SYSTEM", SYSTEM)
    functions = vm.run_source(text.replace("WARM", str(WARM)))
    vm.call(functions["measure"], functions[form], provider, calls)


def check(text: str) -> None:
    if text != TEXT:
        raise AssertionError(f"the call returned {text[:80]!r}")


#: What a row is called, whether its reply is streamed, and the function of the program.
FORMS = [("llm_call, whole", False, "whole"), ("llm_call, streamed", True, "streamed")]
FORMS += [("llm_stream", True, "pieces")]


@contextmanager
def configured(url: str) -> Iterator[None]:
    """Inside the block, the environment names the server as a provider of each dialect."""
    entry = '[providers.{}]\nbase_url = "{}"\nauth_envs = ["BENCH_KEY"]\nprotocol = "{}"\n'
    entry += 'chat_endpoint = "{}"\n'
    rows = [entry.format(name, url, dialect.protocol, dialect.endpoint) for name, dialect in DIALECTS.items()]
    with TemporaryDirectory() as directory:
        path = Path(directory) / "providers.toml"
        path.write_text("".join(rows), encoding="utf-8")
        os.environ |= {"BENCH_KEY": "k", "HARN_PROVIDERS_CONFIG": str(path)}
        yield


def main() -> None:
    arguments = parser(__doc__, rounds=7)
    arguments.add_argument("--calls", type=int, default=50, help="how many calls a side makes in a round")
    arguments.add_argument("--apart", type=float, default=0.0, help="ms between two chunks")
    arguments.add_argument("--profile", choices=DIALECTS, help="show where both sides spend their time")
    arguments.add_argument("--serve", action="store_true", help="be the server")
    given = arguments.parse_args()
    if given.serve:
        asyncio.run(serve(given.apart))
        return
    with serving(given.apart) as url, configured(url):
        if given.profile:
            profiles(given.profile, url, given.calls)
            return
        print(f"{'':<31}{'harnpy':<10}{'SDK, asyncio':<40}SDK, blocking")
        met = [row(name, *form, url, given.rounds, given.calls) for name in present() for form in FORMS]
    if given.check and not all(met):
        raise SystemExit(1)


def present() -> Iterator[str]:
    """The dialects whose SDK is installed; a line for each other one."""
    for name, dialect in DIALECTS.items():
        try:
            dialect.sdk.open("http://127.0.0.1", False).close()
        except ImportError as error:
            print(f"{name} is left out, its SDK isn't installed: {error}")
        else:
            yield name


def sides(name: str, streamed: bool, form: str, url: str, calls: int) -> dict[str, Callable[[Watch], None]]:
    """What is measured in a row, in this order."""
    sdk = DIALECTS[name].sdk
    return {
        "harnpy": lambda watch: by_harnpy(name, form, calls, watch),
        "SDK, asyncio": lambda watch: asyncio.run(by_sdk_waiting(sdk, url, streamed, calls, watch)),
        "SDK, blocking": lambda watch: by_sdk(sdk, url, streamed, calls, watch),
    }


def row(name: str, title: str, streamed: bool, form: str, url: str, rounds: int, calls: int) -> bool:
    """Print a row; return whether it meets the budget."""
    found = []
    for _ in range(rounds):
        costs = []
        for measure in sides(name, streamed, form, url, calls).values():
            watch = Watch()
            measure(watch)
            costs.append(watch.cost)
        found.append(costs)
    ours, *sdk = [Cost(*map(median, zip(*costs, strict=True))) for costs in zip(*found, strict=True)]
    ratios = [
        Cost(*(median(costs[0][at] / costs[peer][at] for costs in found) for at in (0, 1))) for peer in (1, 2)
    ]
    print(
        f"{name:<9}  {title:<18}  {ours.processor:5.2f} ms  "
        + "  ".join(
            f"{cost.processor:6.2f} ms (× {ratio.processor:.2f}, × {ratio.clock:.2f} on the clock)"
            for cost, ratio in zip(sdk, ratios, strict=True)
        )
    )
    return max(ratios[0]) <= MUST


def profiles(name: str, url: str, calls: int) -> None:
    for title, streamed, form in FORMS:
        for side, measure in sides(name, streamed, form, url, calls).items():
            print(f"{name}, {title}: {side}")
            profile = cProfile.Profile()
            measure(Watch(profile))
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
