"""What a store says of what is in it, as texts: the same from every store, now and later.

Only names of the documentation are used here, and of values that may get more fields only those that they had
when this was written.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harnpy import Vm
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.session import SessionQuery, SessionRuntime, child_runs, export_run
from harnpy.storage import open_store
from tests.stored.places import packed
from tests.stored.tokens import BEGIN, TOKENS

Texts = dict[str, str]

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = Path(__file__).parent / "programs"

#: What the names of large texts begin with, which are kept together.
LARGE = ("logs/", "views", "transcripts", "every-type", "topics", "sessions", "project", "bundle run")
_LARGE_FILE = "large.json.xz"
#: What is another text for each store: when sessions were written to, which lists know within a second; and
#: threads, whose ids are chance.
OWN = ("updated.json", "threads.jsonl")

_INFO = """id seq revision status execution agent_name agent_label definition parent_id fork_event_id fork_seq
branch_label fork_reason depth created_at cost metadata""".split()
_TURN = """id seq last_seq agent_id key status stop_reason error steps messages usage cost started_at
ended_at""".split()
_CHILD = "session_id agent_id status mode task context progress reason error summary note usage".split()
_QUERIES = [
    "monday",
    "the",
    '"did it"',
    "ü",
    "pixel",
    "parcel 42",
    "It is 4",
    "cellar",
    "refund",
    "nowhere to be found",
]
_EXPORTS = ("canto", "cognesy", "agently-json", "agently-yaml")
#: The sessions whose exports in other formats are kept.
_EXPORTED = ("plan-c", "sums")


def canonical(value: Any) -> str:
    """A JSON value as text, in one way only."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def keep(texts: Texts, directory: Path) -> None:
    """Write each text to a file; the large ones to one file together."""
    directory.mkdir(parents=True)
    large = {name: text for name, text in texts.items() if name.startswith(LARGE)}
    for name in texts.keys() - large.keys():
        (directory / name).write_text(texts[name], "utf-8", newline="")
    (directory / _LARGE_FILE).write_bytes(packed(canonical(large).encode()))


def kept(directory: Path) -> Texts:
    """Read what `keep` has written."""
    texts: Texts = json.loads(lzma.decompress((directory / _LARGE_FILE).read_bytes()))
    for path in directory.iterdir():
        if path.name != _LARGE_FILE:
            texts[path.name] = path.read_bytes().decode("utf-8")
    return texts


def lines(values: Any) -> str:
    return "".join(canonical(value) + "\n" for value in values)


def lines_of(text: str) -> list[str]:
    """The lines of a text. Unlike `str.splitlines`, nothing but a newline ends one."""
    return text.removesuffix("\n").split("\n")


def named(value: Any, names: list[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def of_store(url: str) -> Texts:
    """Everything that a store exports."""
    texts = of_sessions(url)
    texts.update(of_transcripts(url))
    texts.update(of_topics(url))
    texts.update(of_items(url))
    texts.update(of_threads(url))
    return texts


def of_sessions(url: str) -> Texts:
    """Logs, views, lists, searches."""
    texts: Texts = {}
    with SessionRuntime(url) as runtime:
        infos = runtime.list(SessionQuery(deleted=True, limit=1000)).items
        infos = sorted(infos, key=lambda info: info.id)
        texts["sessions.jsonl"] = lines(named(info, _INFO) for info in infos)
        texts["updated.json"] = canonical({info.id: info.updated_at for info in infos})
        for info in infos:
            texts[f"logs/{info.id}"] = runtime.export(info.id)
        texts["views.jsonl"] = lines(_view(runtime, info.id) for info in infos)
        texts["every-type.canto"] = runtime.export("every-type", "canto")
        for id in _EXPORTED:
            for format in _EXPORTS:
                texts[f"{id}.{format}"] = runtime.export(id, format)
        texts["searches.jsonl"] = lines(
            {"query": query, "hits": [[hit.name, hit.seq, hit.type] for hit in runtime.search(query)]}
            for query in _QUERIES
        )
        texts["runs.jsonl"] = lines(export_run(runtime.open(id)).data() for id in ("sums", "every-type"))
        texts["episodes.jsonl"] = lines(episode.data() for episode in runtime.episodes("sums"))
        texts["episodes found.jsonl"] = lines(found.data() for found in runtime.search_episodes("add"))
    return texts


def _view(runtime: SessionRuntime, id: str) -> dict[str, Any]:
    """What a session shows, without what its log says in as many words."""
    session = runtime.open(id)
    window = session.window()
    messages, history = session.messages(), session.history()
    view = {
        "id": id,
        "window": window,
        "entries": [
            [entry.event_id, entry.context_kind, entry.placement, entry.tool] for entry in session.entries()
        ],
        "turns": [[getattr(turn, name) for name in _TURN] for turn in session.turns()],
        "waiting": session.is_waiting,
        "leaf": session.leaf_id,
        "memo": session.memo,
        "task": session.task,
        "tasks": [[task.content, task.status] for task in session.tasks],
        "scratchpad": session.scratchpad,
        "settings": dict(session.settings),
        "model": list(session.model_settings),
        "children": [[getattr(run, name) for name in _CHILD] for run in child_runs(session)],
        "lineage": [info.id for info in runtime.lineage(id)],
        "forks": sorted(info.id for info in runtime.children(id)),
    }
    if messages != window:
        view["messages"] = messages
    if history != messages:
        view["history"] = history
    everything = session.history(include_reset=True)
    if everything != history:
        view["everything"] = everything
    return view


_SNAPSHOTS = """
pipeline main(task) {
  return argv.slice(1).map({ id ->
    agent_session_open(id, {store: argv[0]})
    let snapshot = agent_session_snapshot(id)
    {snapshot: snapshot, ancestry: agent_session_ancestry(id), history: agent_session_history(id).count}
  })
}
"""


def of_transcripts(url: str) -> Texts:
    """What programs see of the sessions that programs wrote."""
    ids = ["clients", "loop", "talk", "talk-b", "talk-c", "other", "reset"]
    return {"transcripts.jsonl": lines(Vm().run_source(_SNAPSHOTS, args=[url, *ids]))}


def of_topics(url: str) -> Texts:
    """Events, cursors, waitpoints, bearer sessions."""
    with closing(StoreEventLog(open_store(url))) as log:
        topics = log.topics()
        texts = {
            "topics.jsonl": lines(
                {
                    "topic": topic,
                    "latest": log.latest(topic),
                    "problems": log.verify_topic(topic),
                    "events": [
                        [id, event.kind, event.payload, dict(event.headers), event.occurred_at_ms]
                        for id, event in log.read_range(topic)
                    ],
                }
                for topic in topics
            ),
            "cursors.json": canonical(
                [log.consumer_cursor("orders", name) for name in ("mailer", "Printer/2 ü", "nobody")]
            ),
        }
        points = Waitpoints(log)
        texts["waitpoints.jsonl"] = lines(point.to_dict() for point in points.list())
        waits = [("open", "expired"), (["completed", "open"], "one-of-two")]
        texts["waits.jsonl"] = lines(points.wait(ids, wait_id=id, all=False).to_dict() for ids, id in waits)
        sessions = BearerSessions(log)
        now = datetime.fromtimestamp(BEGIN + 7 * 86400, UTC)
        found = {name: sessions.get(token, now) for name, token in TOKENS.items()}
        texts["tokens.json"] = canonical(
            {
                name: session
                and [session.principal, str(session.created_at), str(session.expires_at), session.attributes]
                for name, session in found.items()
            }
        )
    return texts


def of_items(url: str) -> Texts:
    """What the OpenAI Agents SDK reads."""
    from harnpy.adapters.openai_agents import HarnpySession

    with closing(open_store(url)) as store:
        return {"items.jsonl": lines(asyncio.run(HarnpySession("sdk", store).get_items()))}


def of_threads(url: str) -> Texts:
    """What LangGraph reads."""
    from harnpy.adapters.langgraph import HarnpySaver

    with closing(open_store(url)) as store:
        return {
            "threads.jsonl": lines(
                [
                    found.config,
                    found.checkpoint,
                    found.metadata,
                    found.parent_config,
                    [[task, channel, repr(value)] for task, channel, value in found.pending_writes or ()],
                ]
                for found in _by_thread(HarnpySaver(store).list(None))
            )
        }


def _by_thread(found: Iterable[Any]) -> list[Any]:
    """Checkpoints by thread and graph, in each the newest first: the first builds listed them so."""
    newest: dict[tuple[str, str], list[Any]] = {}
    for each in found:
        place = each.config["configurable"]
        newest.setdefault((place["thread_id"], place["checkpoint_ns"]), []).append(each)
    oldest = {key: each[-1].checkpoint["id"] for key, each in newest.items()}
    return [each for key in sorted(newest, key=lambda key: (key[0], oldest[key])) for each in newest[key]]


def of_project(project: Path) -> Texts:
    """What programs and commands read in a copy of a project. Programs change it."""
    texts = {
        "runs list.json": _as_first(said(project, "runs", "list", "--json")),
        "replay.txt": said(project, "replay", ".harn-runs/announced.json"),
        "bundle.txt": said(project, "bundle", "validate", "bundle.json"),
        "bundle run.json": said(project, "bundle", "import", "bundle.json"),
        "replied.txt": said(project, "run", "recorded.harn", "--llm-mock", "replies.jsonl"),
    }
    # What programs keep is found by the name of their file.
    shutil.copy(PROGRAMS / "read_project.harn", project / "project.harn")
    texts["project.jsonl"] = said(project, "run", "project.harn")
    return {name: text.replace(str(project), "<project>") for name, text in texts.items()}


def _as_first(listed: str) -> str:
    """A list of runs with the fields that the first builds gave them."""
    runs = [{key: value for key, value in run.items() if key != "engine"} for run in json.loads(listed)]
    return json.dumps(runs, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def said(directory: Path, *command: str) -> str:
    """Run a command of harnpy. Return what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "harnpy", *command],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout
