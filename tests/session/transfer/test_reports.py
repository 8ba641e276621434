"""Logs of Inspect AI and spans of OpenTelemetry. Spec: 10 §C17.

`frameworks/` was written by the packages themselves, with our words; the programs that made it are beside it.
"""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harnpy.session.errors import TransferError
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import inspect_ai, otel
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import import_
from harnpy.storage import Store, open_store
from harnpy.storage.copying import all_names
from harnpy.world import World

HERE = Path(__file__).parent / "frameworks"
LOG, DEFLATED, SPANS = HERE / "inspect.eval", HERE / "inspect_deflated.eval", HERE / "otel.jsonl"
Json = dict[str, Any]
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "red"}}


def imported(path: Path, store: Store | None = None, **options: Any) -> tuple[Store, Any]:
    store = open_store("memory:") if store is None else store
    return store, import_sessions([str(path)], store, **options)


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


@pytest.mark.parametrize("log", [LOG, DEFLATED])
def test_samples_of_a_log_of_inspect(log: Path) -> None:
    store, report = imported(log)
    assert (len(report.imported), report.errors, report.losses) == (2, [], [])
    session = load(report.imported[0], store)
    asked, answer, result, again, failed, last = session.entries()
    assert session.get("system_prompt") == "Be short."
    # What is long stands among the attachments.
    assert asked.message["content"][1]["base64"] == "aGk/aGk+" * 20
    assert last.message["content"].startswith("Red is warm. Red is warm.")
    assert last.message["reasoning"] == "One look was enough."
    assert answer.message["content"][1]["id"] == result.message["tool_call_id"]
    assert (result.message["content"], again.message["content"][1]["input"]) == ("warm", {"at": "blue"})
    assert (failed.message["content"], failed.message["is_error"]) == ("There is no blue.", True)
    assert last.event is not None
    assert last.event.metadata["stop_reason"] == "stop"
    assert last.event.metadata["usage"]["output_tokens"] > 0
    assert last.event.time > answer.event.time  # type: ignore[union-attr]
    told = {key: session.metadata[key] for key in ("task", "model", "sample", "epoch", "scores")}
    assert told == {
        "task": "colours",
        "model": "mockllm/model",
        "sample": "s1",
        "epoch": 1,
        "scores": {"includes": "C"},
    }
    _, again_report = imported(log, store)
    assert again_report.imported == []


def test_reasoning_in_a_log_goes_back_to_its_service(tmp_path: Path) -> None:
    thoughts = [
        {"type": "reasoning", "reasoning": "Look.", "signature": "c2ln", "redacted": False},
        {"type": "reasoning", "reasoning": "b3BhcXVl", "redacted": True},
    ]
    said = {"role": "assistant", "id": "a", "model": "claude-opus-4-8", "content": thoughts}
    sample = {"id": 1, "epoch": 1, "uuid": "u", "messages": [{"role": "user", "content": "x"}, said]}
    for name, model in (("a.eval", "anthropic/claude-opus-4-8"), ("b.eval", "openrouter/anthropic/claude")):
        with zipfile.ZipFile(tmp_path / name, "w") as log:
            log.writestr("_journal/start.json", json.dumps({"eval": {"model": model}}))
            log.writestr("samples/1_epoch_1.json", json.dumps(sample))
    store, report = imported(tmp_path / "a.eval")
    answer = load("inspect-u", store).window()[-1]
    assert [block["type"] for block in answer["content"]] == ["thinking", "redacted_thinking"]
    assert answer["origin"]["model"] == "claude-opus-4-8"
    store, report = imported(tmp_path / "b.eval")
    assert load("inspect-u", store).window()[-1]["reasoning"] == "Look."
    assert [loss.kind for loss in report.losses] == ["reasoning of a model that isn't told"]


def test_a_call_repeats_what_was_said_and_adds_its_answer() -> None:
    store, report = imported(SPANS)
    assert (report.errors, report.losses) == ([], [])
    [id] = report.imported
    session = load(id, store)
    asked, answer, result, red, thanks, last = session.entries()
    assert session.get("system_prompt") == "Be short."
    assert asked.message["content"] == "What is red?"
    assert answer.message["content"][1] == {
        "type": "tool_use",
        "id": "c1",
        "name": "look",
        "input": {"at": "red"},
    }
    assert (result.message["tool_call_id"], result.message["content"]) == ("c1", "warm")
    assert (red.message["content"], red.message["reasoning"]) == ("Red is warm.", "One look was enough.")
    assert (thanks.message["content"], last.message["content"]) == ("Thank you.", "You are welcome.")
    assert last.event is not None
    assert last.event.metadata["stop_reason"] == "stop"
    assert last.event.metadata["usage"]["output_tokens"] == 21
    # Nothing of it is there twice.
    assert [event.type for event in session.events()].count("message_added") == 6


def test_spans_that_grow_and_are_one_document(tmp_path: Path) -> None:
    lines = SPANS.read_text(encoding="utf-8").splitlines(keepends=True)
    store, file = open_store("memory:"), tmp_path / "spans.jsonl"
    for count in range(1, len(lines) + 1):
        file.write_text("".join(lines[:count]), encoding="utf-8")
        _, report = imported(file, store)
        assert report.errors == []
    [id] = all_names(store, KIND)
    whole, first = imported(SPANS)
    assert load(id, store).window() == load(id, whole).window()
    everything = [resource for line in lines for resource in json.loads(line)["resourceSpans"]]
    (tmp_path / "spans.json").write_text(
        json.dumps({"resourceSpans": everything}, indent=1), encoding="utf-8"
    )
    _, document = imported(tmp_path / "spans.json", store)
    assert (document.imported, len(document.skipped)) == ([], 1)
    assert first.imported == [id]


def attributes(**values: Any) -> list[Json]:
    return [{"key": key.replace("__", "."), "value": value} for key, value in values.items()]


def test_events_of_older_conventions(tmp_path: Path) -> None:
    def text(value: str) -> Json:
        return {"stringValue": value}

    def record(name: str, **fields: Json) -> Json:
        body = {"kvlistValue": {"values": attributes(**fields)}}
        return {"traceId": "t", "spanId": "s", "eventName": name, "body": body}

    function = {"kvlistValue": {"values": attributes(name=text("look"), arguments=text('{"at": "red"}'))}}
    call = {"kvlistValue": {"values": attributes(id=text("c1"), type=text("function"), function=function)}}
    said = {"kvlistValue": {"values": attributes(role=text("assistant"), content=text("It is warm."))}}
    records = [
        record("gen_ai.system.message", content=text("Be short.")),
        record("gen_ai.user.message", content=text("What is red?")),
        record("gen_ai.assistant.message", tool_calls={"arrayValue": {"values": [call]}}),
        record("gen_ai.tool.message", id=text("c1"), content=text("warm")),
        record("gen_ai.choice", message=said, finish_reason=text("stop"), index={"intValue": "0"}),
    ]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    span = {"traceId": "t", "spanId": "s", "startTimeUnixNano": "1700000000000000000"}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    file = tmp_path / "old.jsonl"
    file.write_text(f"{json.dumps(spans)}\n{json.dumps(logs)}\n", encoding="utf-8")
    store, report = imported(file)
    assert (report.imported, report.errors) == (["otel-t"], [])
    asked, answer, result, last = load("otel-t", store).entries()
    assert load("otel-t", store).get("system_prompt") == "Be short."
    assert asked.message["content"] == "What is red?"
    assert answer.message["content"] == [
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "red"}}
    ]
    assert (result.message["content"], last.message["content"]) == ("warm", "It is warm.")
    assert last.event is not None
    assert last.event.metadata["stop_reason"] == "stop"


def test_a_file_of_many_conversations_is_found_in_a_folder_and_is_no_one_session(tmp_path: Path) -> None:
    for source in (DEFLATED, SPANS):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    _, report = imported(tmp_path)
    assert (len(report.imported), report.errors) == (3, [])
    text = SPANS.read_text(encoding="utf-8")
    with pytest.raises(TransferError, match="a file of otel holds many conversations"):
        import_(text, open_store("memory:"), otel.TOOL)


@pytest.mark.parametrize(("format", "reason"), [
    (inspect_ai.TOOL, "this is no log of Inspect AI: it is no zip file"),
    (otel.TOOL, "line 1 is no export of OTLP: it has no resourceSpans and no resourceLogs"),
])  # fmt: skip
def test_a_file_of_another_kind_is_one_sentence(format: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"a": 1}\n', encoding="utf-8")
    _, report = imported(file, format=format)
    assert report.errors == [(str(file), reason)]


@pytest.mark.parametrize(("source", "format"), [(DEFLATED, inspect_ai.TOOL), (SPANS, otel.TOOL)])
def test_a_damaged_file_is_a_sentence_for_each_conversation(
    source: Path, format: str, tmp_path: Path
) -> None:
    data, chance, file = source.read_bytes(), random.Random(32), tmp_path / source.name
    for _ in range(150):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 7, 300])
        file.write_bytes(data[:at] + chance.randbytes(chance.choice([0, 1, 3])) + data[at + size :])
        store, report = imported(file, format=format)
        assert len(list(all_names(store, KIND))) == len(report.imported)
        assert report.imported or report.errors
        assert all(reason and "\n" not in reason for _, reason in report.errors)


def test_values_of_another_kind_are_one_sentence(tmp_path: Path) -> None:
    """Each value in turn is one that nobody expects there."""
    with zipfile.ZipFile(DEFLATED) as log:
        sample = json.loads(log.read("samples/s1_epoch_1.json"))
    sample["events"] = [event for event in sample["events"] if event["event"] == "model"][:1]
    spans = [json.loads(line) for line in SPANS.read_text(encoding="utf-8").splitlines()[:1]]
    for document, name in ((sample, "log.eval"), (spans, "spans.jsonl")):
        for number, (holder, key) in enumerate(list(places(document))):
            was, holder[key] = holder[key], ([], {}, 5, "x", None, [[]], True)[number % 7]
            if document is sample:
                with zipfile.ZipFile(tmp_path / name, "w") as log:
                    log.writestr("samples/s1_epoch_1.json", json.dumps(sample))
            else:
                text = "".join(f"{json.dumps(line)}\n" for line in spans)
                (tmp_path / name).write_text(text, encoding="utf-8")
            holder[key] = was
            format = inspect_ai.TOOL if document is sample else otel.TOOL
            store, report = imported(tmp_path / name, format=format)
            assert len(report.errors) + len(list(all_names(store, KIND))) <= 1
            assert all(reason and "\n" not in reason for _, reason in report.errors)


def places(value: Any) -> Any:
    """Where each value of a document stands: what holds it, and its key there."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])
