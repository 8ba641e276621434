"""docs/import.md is true: each cell of its tables has a check, and its recipe runs as it is pasted.

A cell that begins with ✓ comes along, both ways where the format has both; – stays behind; words have a check
that knows what they promise. A cell without a check fails.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

from harnpy.adapters.savers import import_threads
from harnpy.cli.app import main
from harnpy.cli.testing.sandbox import run_program
from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.formats import READ, export, format_of, import_, lost
from harnpy.session.transfer.listed import blocks_of
from harnpy.storage import Store, open_store
from tests.session.transfer import test_messages as messages
from tests.session.transfer.test_frameworks import LISTS
from tests.session.transfer.test_messages import FILES, IMAGE, OWN, imported, load, origin_of, session_of
from tests.session.transfer.test_tools import CHILD, FORK, FORKED, TALK, THREAD

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/import.md"
Json = dict[str, Any]

#: What each column is about: its format, and a file that the tool itself wrote.
COLUMNS: dict[str, tuple[str, Path | None]] = {
    "Claude Code": ("claude-code", HERE / "transcripts/claude_code"),
    "Codex": ("codex", HERE / "transcripts/codex"),
    "pydantic-ai": ("pydantic-ai", HERE / "frameworks" / LISTS["pydantic-ai"]),
    "Vercel's AI SDK": ("ai-sdk", HERE / "frameworks" / LISTS["ai-sdk"]),
    "LangChain": ("langchain", HERE / "frameworks" / LISTS["langchain"]),
    "LangGraph": ("langgraph", HERE / "frameworks/langgraph.db"),
    "OpenAI Agents SDK": ("openai-agents", HERE / "frameworks/openai_agents.db"),
    "Inspect AI": ("inspect", HERE / "frameworks/inspect.eval"),
    "OpenTelemetry": ("otel", HERE / "frameworks/otel.jsonl"),
    **{f"`{format}`": (format, None) for format in FILES},
}
#: How the page and sessions call those whose thinking goes back.
SERVICES = {"Anthropic": "anthropic", "OpenAI": "openai-responses", "Google": "gemini"}


class Seen(NamedTuple):
    """What came of a column's file."""

    format: str
    path: Path
    sessions: list[StoredSession]
    losses: set[str]
    store: Store

    @property
    def is_read_only(self) -> bool:
        return self.format in READ

    def events(self, type: str = "") -> list[Any]:
        return [e for each in self.sessions for e in each.events() if type in ("", e.type)]

    def messages(self) -> list[Json]:
        return [message for each in self.sessions for message in each.history(include_reset=True)]

    def blocks(self, *types: str) -> list[Json]:
        return [block for each in self.messages() for block in blocks_of(each) if block["type"] in types]

    def told(self) -> set[str]:
        """The keys of events' metadata."""
        return {key for event in self.events() for key in event.metadata}


@pytest.fixture(scope="module", autouse=True)
def _directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files that the checks write are the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("files")))
        yield


def file_of(value: Any, name: str = "x.json") -> Path:
    """Return a file with a text, or with a value as JSON."""
    path = Path(tempfile.mkdtemp()) / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@cache
def seen(column: str) -> Seen:
    format, path = COLUMNS[column]
    if path is None:
        path = file_of(FILES[format], "talk.json")
    return come_in(format, path)


def come_in(format: str, path: Path) -> Seen:
    store, report = imported(path, format="auto" if path.is_dir() else format)
    assert report.errors == []
    sessions = [load(id, store) for id in report.imported]
    return Seen(format, path, sessions, {loss.kind for loss in report.losses}, store)


def changed(at: Seen, change: Callable[[Any], None]) -> Seen:
    """Import a column's JSON once more, with something else in it."""
    value = json.loads(at.path.read_text(encoding="utf-8"))
    value = {"messages": value} if isinstance(value, list) and at.format in FILES else value
    change(value)
    return come_in(at.format, file_of(value, "talk.json"))


# Out and in again.


ASKED: Json = {"role": "user", "content": [{"type": "text", "text": "What is it?"}]}
USES = [{"type": "tool_use", "id": id, "name": "look", "input": {"at": id}} for id in ("c1", "c2")]
RESULTS: list[Json] = [
    {"role": "tool", "tool_call_id": "c1", "content": "red"},
    {"role": "tool", "tool_call_id": "c2", "content": "blue"},
]
TALK_OF_TWO_CALLS = [
    ASKED,
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *USES]},
    *RESULTS,
    {"role": "assistant", "content": "It is red."},
]


class Back(NamedTuple):
    blocks: list[Json]
    losses: set[str]
    text: str
    session: StoredSession


def back(at: Seen, *said: Json, system: str | None = None, context: str | None = None) -> Back:
    """Write a session in the column's format, and read it again."""
    session = session_of(list(said), system)
    if context is not None:
        told = {"content": context, "kind": "harness", "placement": "history"}
        session.append(EventDraft(kinds.CONTEXT_ADDED, told))
        session.append(EventDraft(kinds.MESSAGE_ADDED, {"role": "user", "content": "So?"}))
    text = export(session, at.format)
    again = import_(text, open_store("memory:"), at.format)
    assert again is not None
    blocks = [block for message in again.history(include_reset=True) for block in blocks_of(message)]
    return Back(blocks, {loss.kind for loss in lost(session, at.format)}, text, again)


def simple(block: Json) -> Json:
    """A block without ids, which some formats make anew."""
    kept = ("type", "text", "name", "input", "content", "thinking", "signature", "encrypted_content")
    return {key: block[key] for key in kept if key in block and not isinstance(block[key], dict | list)} | {
        key: block[key] for key in ("input",) if key in block
    }


def both_ways(at: Seen, *said: Json) -> bool:
    if at.is_read_only:
        return True
    wanted = [simple(block) for message in said for block in blocks_of(message)]
    return [simple(block) for block in back(at, *said).blocks] == wanted


def stays_behind(at: Seen, *said: Json, word: str) -> bool:
    """Return whether something isn't written, and is listed."""
    gone = back(at, *said)
    return word not in gone.text and bool(gone.losses)


# The checks, by the words of the rows. What they return is whether the cell is true.


def texts(at: Seen, cell: str) -> bool:
    roles = {
        message["role"] for message in at.messages() if "text" in [b["type"] for b in blocks_of(message)]
    }
    return {"user", "assistant"} <= roles and both_ways(at, ASKED, TALK_OF_TWO_CALLS[-1])


def calls(at: Seen, cell: str) -> bool:
    """Calls with their results, also of one answer; ``out: without ids`` lists that."""
    answered = {block["tool_use_id"] for block in at.blocks("tool_result")}
    if "steps" in cell or "step of" in cell:
        assert len(at.sessions[0].history()) > len(json.loads(at.path.read_text(encoding="utf-8")))
    if "aren't texts are JSON" in cell:
        assert any(str(block["content"]).startswith(("{", "[")) for block in at.blocks("tool_result"))
    if "can't be read" in cell:
        assert any("__unreadable" in block["input"] for block in at.blocks("tool_use"))
    if "without ids" in cell:
        assert back(at, *TALK_OF_TWO_CALLS).losses == {"ids of calls"}
    return bool({b["id"] for b in at.blocks("tool_use")} & answered) and both_ways(at, *TALK_OF_TWO_CALLS)


def thinking(at: Seen, cell: str) -> bool:
    """Thinking goes back to each service that the cell names, in the other's shape to none."""
    if "texts of it" in cell:
        assert not any(block.keys() & {"signature", "encrypted_content"} for block in at.blocks("thinking"))
        return any(message.get("reasoning") for message in at.messages())
    if cell == "as LangChain's":
        return bool(at.format == "langgraph")
    named = [format for word, format in SERVICES.items() if word in cell]
    assert named or "the same" in cell
    if at.format in ("claude-code", "codex"):
        assert any("origin" in each for each in at.messages() if blocks_of(each)[0]["type"] != "text")
        assert at.blocks("thinking", "reasoning")
    if at.is_read_only:  # an `.eval` log: test_reports.py writes one with signatures
        return hasattr(__import__("tests.session.transfer.test_reports", fromlist=["x"]), _IN_LOGS)
    for format in named or SERVICES.values():
        said = {"role": "assistant", "content": OWN[format][:1], "origin": origin_of(format)}
        again = back(at, ASKED, {**said, "content": [*said["content"], {"type": "text", "text": "So."}]})
        [answer] = (each for each in again.session.history() if each["role"] == "assistant")
        assert simple(answer["content"][0]) == simple(OWN[format][0])
        assert answer["origin"]["dialect"] == origin_of(format)["dialect"]
    return True


_IN_LOGS = "test_reasoning_in_a_log_goes_back_to_its_service"


def reasoning(at: Seen, cell: str) -> bool:
    for key in re.findall(r"`(\w+)`", cell):
        value: Any = [{"type": "reasoning.text", "text": "Hm."}] if key.endswith("details") else "Hm."
        item = {"role": "assistant", "content": "It is red.", key: value}
        told = changed(at, lambda file, item=item: file["messages"].append(item))  # type: ignore[misc]
        assert f'"{key}":' in export(told.sessions[0], at.format)
    if any(word in cell for word in SERVICES):
        return thinking(at, cell)
    unsigned = {"role": "assistant", "content": "It is red.", "reasoning": "Hm."}
    return "`" in cell or not stays_behind(at, ASKED, unsigned, word="Hm.")


def images(at: Seen, cell: str) -> bool:
    picture = {"role": "user", "content": [*ASKED["content"], IMAGE]}
    in_a_result = [*TALK_OF_TWO_CALLS[:2], {**RESULTS[0], "content": [IMAGE]}, RESULTS[1]]
    address = {"role": "user", "content": [{"type": "image", "url": "https://example.com/a.png"}]}
    if cell == "–":
        return not stays_behind(at, picture, word=IMAGE["base64"])
    if "none in results" in cell:
        assert stays_behind(at, *in_a_result, word=IMAGE["base64"])
    elif not at.is_read_only and at.format != "ollama":
        assert any(IMAGE["base64"] in json.dumps(block) for block in back(at, *in_a_result).blocks)
    if "no addresses" in cell:
        assert stays_behind(at, address, word="https://example.com/a.png")
    if at.is_read_only:
        return bool(at.blocks("image"))
    return [block["base64"] for block in back(at, picture).blocks if block["type"] == "image"] == [
        IMAGE["base64"]
    ]


def files(at: Seen, cell: str) -> bool:
    sent = [IMAGE] + [
        {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": "aGk="}}
        for kind, media_type in (("document", "application/pdf"), ("audio", "audio/wav"))
    ]
    if "without their names" in cell:
        assert "names of files" in at.losses
    again = back(at, {"role": "user", "content": [*ASKED["content"], *sent]})
    return [block["type"] for block in again.blocks] == ["text", "image", "document", "audio"]


def usage(at: Seen, cell: str) -> bool:
    if at.format in FILES:
        answers = {id.partition("-")[0]: value for id, value in messages.ANSWERS.items()}
        answers["openai-chat"] = messages.COMPLETION
        at = come_in(at.format, file_of(answers[at.format])) if at.format in answers else at
    return "usage" in at.told()


def usage_and_end(at: Seen, cell: str) -> bool:
    """Usage and the reason of the end are an event's metadata, and what else the cell names."""
    if "as the message's" in cell:
        return any(
            isinstance(e.metadata.get("metadata"), dict) and "usage" in e.metadata["metadata"]
            for e in at.events()
        )
    if at.format == "langchain":
        answer = {"type": "ai", "data": {"content": "So.", "response_metadata": {"finish_reason": "stop"}}}
        answer["data"]["additional_kwargs"] = {"more": 1}  # type: ignore[index]
        at = changed(at, lambda file: file.append(answer))
    return {"usage", "stop_reason", *re.findall(r"`(\w+)`", cell)} <= at.told()


def failed_calls(at: Seen, cell: str) -> bool:
    said = [*TALK_OF_TWO_CALLS[:2], {**RESULTS[0], "is_error": True}, RESULTS[1]]
    again = back(at, *said)
    marked = any(block.get("is_error") for block in again.blocks)
    return not marked and bool(again.losses) if cell.startswith("out: ") else marked


def failures(at: Seen, cell: str) -> bool:
    return any(block.get("is_error") for block in at.blocks("tool_result")) and (
        "`outcome`" not in cell or "outcome" in at.told()
    )


def system_prompt(at: Seen, cell: str) -> bool:
    """Where the prompt stands in what is written; it comes back as such."""
    again = back(at, *TALK_OF_TWO_CALLS, system="Be short.")
    value = json.loads(again.text)
    listed = value if isinstance(value, list) else next(v for v in value.values() if isinstance(v, list))
    key = next(iter(re.findall(r"`(\w+)`", cell)), "")
    is_first = cell.startswith("first message") or isinstance(value, list)
    assert "Be short." in json.dumps(listed[0] if is_first else value[key])
    return again.session.get("system_prompt") == "Be short."


def later_system_messages(at: Seen, cell: str) -> bool:
    again = back(at, *TALK_OF_TWO_CALLS, system="Be short.", context="Noted.")
    contexts = [e.data["content"] for e in again.session.events() if e.type == kinds.CONTEXT_ADDED]
    users = [m for m in again.session.history() if m["role"] == "user" and "Noted." in json.dumps(m)]
    return bool(users) and not contexts if cell.startswith("out: ") else contexts == ["Noted."]


def forms(at: Seen, cell: str) -> bool:
    """A file of each form that the cell names is recognised, and comes in."""
    file = FILES[at.format]
    whole = file if isinstance(file, dict) else {"messages": file}
    key = {"openai-responses": "input", "gemini": "contents", "sharegpt": "conversations"}.get(
        at.format, "messages"
    )
    items = [*whole[key], *whole.get("output", ())]
    answer = messages.ANSWERS.get(
        f"{at.format}-{ {'anthropic': 'msg_1', 'gemini': 'r1'}.get(at.format, 'x') }"
    )
    conversation = {
        "object": "list",
        "data": [{"id": f"i{n}", "type": "message", **i} for n, i in enumerate(items)],
    }
    made = {
        "list": items,
        "list of items": items,
        "object": whole,
        "object with `messages`": whole,
        "request": {"model": "m-1", key: items},
        "response": whole,
        "completion": messages.COMPLETION,
        "answer": answer,
        "lines of fine-tuning": f"{json.dumps(whole)}\n{json.dumps({**whole, 'id': 'two'})}\n",
        "lines": f"{json.dumps(whole)}\n{json.dumps({**whole, 'id': 'two'})}\n",
        "list of them": [whole, {**whole, "id": "two"}],
        "list of a conversation's items": conversation,
    }
    for form in re.split(r"[;,] ", cell):
        value = made[form]
        _, report = imported(file_of(value, "x.jsonl" if isinstance(value, str) else "x.json"))
        assert report.errors == [], form
        assert all(id.startswith(at.format) for id in report.imported), form
        assert report.imported, form
    return True


def other_keys(at: Seen, cell: str) -> bool:
    more = {"temperature": 0.5, "tools": []}
    return "keys of the file" in changed(at, lambda file: file.update(more)).losses


def file_of_its_own(at: Seen, cell: str) -> bool:
    """A file is recognised by what is in it."""
    _, report = imported(at.path)
    if "{id, messages}" in cell:
        chat = json.dumps({"id": "talk", "messages": json.loads(at.path.read_text(encoding="utf-8"))})
        assert format_of("x.json", chat).name == at.format
    if "`dumps`" in cell:
        from langchain_core.load import dumps
        from langchain_core.messages import HumanMessage

        for value in ([HumanMessage("x")], {"messages": [HumanMessage("x")]}):
            assert format_of("x.json", dumps(value)).name == at.format
    return report.errors == [] and all(id.startswith(at.format) for id in report.imported)


def directions(at: Seen, cell: str) -> bool:
    return at.is_read_only if cell == "in" else cell.startswith("both") and both_ways(at, *TALK_OF_TWO_CALLS)


def session_for_each(at: Seen, cell: str) -> bool:
    prefixes = tuple(re.findall(r"`([a-z-]+-)<", cell))
    return (
        bool(prefixes) and len(at.sessions) >= 1 and all(each.id.startswith(prefixes) for each in at.sessions)
    )


def messages_of_a_thread(at: Seen, cell: str) -> bool:
    return texts(at, cell) and calls(at, cell)


def interrupts(at: Seen, cell: str) -> bool:
    return bool(at.events(kinds.EXTERNAL_INPUT))


def checkpoints(at: Seen, cell: str) -> bool:
    report = import_threads([str(at.path)], open_store("memory:"))
    return [f"langgraph-{id}" for id in report.imported] == [each.id for each in at.sessions]


def listed_as_lost(at: Seen, cell: str) -> bool:
    """Something that the file has and a session hasn't is listed, by one of the words of the cell."""
    losses = set(at.losses)
    odd = [{"type": "odd", "odd": 1}]
    if at.format == "inspect":
        path = Path(tempfile.mkdtemp()) / "x.eval"
        sample = {"id": 1, "epoch": 1, "uuid": "u", "messages": [{"role": "user", "content": odd}]}
        with ZipFile(path, "w") as log:
            log.writestr("samples/1_epoch_1.json", json.dumps(sample))
        losses |= come_in(at.format, path).losses
    if at.format == "otel":
        said = [{"role": "user", "parts": [*odd, {"type": "text", "content": "x"}]}]
        told = [{"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(said)}}]
        spans = [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "attributes": told}]}]}]
        losses |= come_in(at.format, file_of(json.dumps({"resourceSpans": spans}) + "\n", "x.jsonl")).losses
    words = set(re.findall(r"[a-z]{5,}", cell))
    return any(words & set(re.findall(r"[a-z]{5,}", loss)) for loss in losses)


# What Claude Code and Codex have besides.


ROLLOUT = next((HERE / "transcripts/codex").glob("*35-29*.jsonl"))


def codex_with(*rows: Json, **meta: Any) -> StoredSession:
    """Codex's rollout with lines behind it, and more in its first line."""
    first, *lines = ROLLOUT.read_text(encoding="utf-8").splitlines()
    head = json.loads(first)
    head["payload"] |= meta
    more = [
        {"timestamp": "2026-11-29T12:40:00.000Z", "ordinal": 900 + n, **row} for n, row in enumerate(rows)
    ]
    text = "\n".join([json.dumps(head), *lines, *map(json.dumps, more)]) + "\n"
    [session] = come_in("codex", file_of(text, ROLLOUT.name)).sessions
    return session


def said_by_the_tool(at: Seen, cell: str) -> bool:
    contexts = at.events(kinds.CONTEXT_ADDED)
    return bool(contexts) and {event.data["kind"] for event in contexts} == {"harness"}


def attached(at: Seen, cell: str) -> bool:
    return any(event.data["content"].startswith("<file ") for event in at.events(kinds.CONTEXT_ADDED))


def compaction(at: Seen, cell: str) -> bool:
    if at.format == "claude-code":
        window = load(TALK, at.store).window()
        return str(window[0]["content"]).startswith("The conversation so far") and len(window) > 1
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What was left."}]}
    session = codex_with({"type": "compacted", "payload": {"message": "", "replacement_history": [kept]}})
    return session.window()[0]["content"] == "What was left." and "Second" not in json.dumps(session.window())


def going_back(at: Seen, cell: str) -> bool:
    """A turn that was taken back is no longer shown, and still in the log."""
    if at.format == "codex":
        back = {"type": "thread_rolled_back", "num_turns": 1}
        again = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Else."}]}
        session = codex_with(
            {"type": "event_msg", "payload": back}, {"type": "response_item", "payload": again}
        )
        gone = "Second question"
    else:
        [source] = at.path.glob("1111*.jsonl")
        rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        last = next(row for row in rows if (row.get("message") or {}).get("content") == "Go on")
        message = {"role": "user", "content": "Else."}
        rows.append({**last, "uuid": "e" * 8 + last["uuid"][8:], "message": message})
        path = file_of("".join(json.dumps(row) + "\n" for row in rows), source.name)
        session, gone = load(TALK, come_in("claude-code", path).store), "Hello from turn 17."
    shown, log = (
        json.dumps(session.window()),
        json.dumps([event.data for event in session.events()], default=str),
    )
    return "Else." in shown and gone not in shown and gone in log


def forks(at: Seen, cell: str) -> bool:
    fork, origin = {"claude-code": (FORK, TALK), "codex": (FORKED, THREAD)}[at.format]
    session, parent = load(fork, at.store), load(origin, at.store)
    assert session.origin.parent is not None
    return session.origin.parent.id == origin and session.window()[:2] == parent.window()[:2]


def sidechains(at: Seen, cell: str) -> bool:
    if at.format == "codex":
        return any("subagent" in each.id for each in at.sessions)
    child = load(CHILD, at.store).origin.parent
    return child is not None and child.id == TALK


def facts(at: Seen, cell: str) -> bool:
    session = at.sessions[0] if at.format == "claude-code" else codex_with(git={"branch": "main"})
    return {"cwd", "git_branch"} <= session.metadata.keys() and any(
        "version" in key for key in session.metadata
    )


def facts_of_a_sample(at: Seen, cell: str) -> bool:
    wanted = {"task", "model", "scores"} if at.format == "inspect" else {"model"}
    return wanted <= (at.sessions[0].metadata.keys() if at.format == "inspect" else at.told())


def state_of_the_tool(at: Seen, cell: str) -> bool:
    return bool(at.losses) == (cell == "listed as lost")


CHECKS: dict[str, Callable[[Seen, str], bool]] = {
    "texts of users and models": texts,
    "calls and results, several at once too": calls,
    "texts, calls, results, several at once too": calls,
    "texts, calls, results": calls,
    "texts, calls, results, images": lambda at, cell: texts(at, cell) and calls(at, cell),
    "thinking, with its signature": thinking,
    "thinking": thinking,
    "reasoning": reasoning,
    "images": images,
    "images, documents, recordings": files,
    "usage of each answer": usage,
    "usage of an answer": usage,
    "usage, reason of the end, run": usage_and_end,
    "usage, reason of the end": usage_and_end,
    "failed calls": failed_calls,
    "failed, denied and retried calls": failures,
    "system prompt, and back there": system_prompt,
    "later system messages": later_system_messages,
    "forms of a file": forms,
    "tools, temperature, other keys": other_keys,
    "`--format`": lambda at, cell: cell == f"`{at.format}`",
    "the file": file_of_its_own,
    "in, out": directions,
    "a session for each": session_for_each,
    "messages": messages_of_a_thread,
    "interrupts": interrupts,
    "checkpoints": checkpoints,
    "listed as lost": listed_as_lost,
    "task, model, scores": facts_of_a_sample,
    "what the tool itself said in the user's name": said_by_the_tool,
    "attached files": attached,
    "compaction": compaction,
    "going back (rewind, edit)": going_back,
    "forks": forks,
    "agents that were asked (sidechains)": sidechains,
    "working directory, version of the tool, branch of git": facts,
    "skills, lists of agents, the tool's own state": state_of_the_tool,
}


def cells() -> Iterator[Any]:
    """The cells of the page's tables."""
    for table in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
        for row, *found in rows:
            for column, cell in zip(head[1:], found, strict=True):
                yield pytest.param(row, column, cell, id=f"{row}, {column}")


@pytest.mark.parametrize(("row", "column", "cell"), list(cells()))
def test_a_cell_is_true(row: str, column: str, cell: str) -> None:
    assert row in CHECKS, "nobody checks this row"
    assert column in COLUMNS, "nobody knows this column"
    assert CHECKS[row](seen(column), cell) is not cell.startswith("–")


RECIPE = "### From Claude Code, and back"
ID = "11111111-1111-4111-8111-111111111111"


def test_the_recipe_of_claude_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run as they are pasted, but for `claude` itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(HERE / "transcripts/claude_code", tmp_path / "home/.claude/projects/-work")
    text = PAGE.read_text(encoding="utf-8").partition(RECIPE)[2]
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "harn":
            (tmp_path / "go_on.harn").write_text(code, encoding="utf-8")
        for line in code.splitlines() if language == "sh" else ():
            match [str(Path(word).expanduser()) for word in shlex.split(line)]:
                case ["harnpy", "run", program]:
                    outcome = run_program(tmp_path / program)
                    assert outcome.error is None, outcome.report
                case ["harnpy", *words]:
                    assert main(words) == 0, line
                case words:
                    assert words == ["claude", "--resume", ID]
    [written] = (tmp_path / "home/.claude/projects/-work").glob(f"{ID}.jsonl")
    said = [load(id, store).window() for store, report in [imported(written)] for id in report.imported]
    assert [message["content"] for message in said[0] if message["role"] == "user"][-1] == "And the tests?"
