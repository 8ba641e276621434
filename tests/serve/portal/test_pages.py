"""The portal's pages: what is where, that everything said is only text, and what forms do."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.client import types as t
from harnpy.serve.portal import shell
from harnpy.serve.portal.transcript import markdown
from harnpy.serve.refusals import Refused
from harnpy.serve.service import Caller
from tests.counts import COUNT
from tests.serve.portal.double import ALL, READER, TIME, Double, app, entry, info

ROOT = Path(__file__).parents[3]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "media_type": "image/png", "base64": PIXEL}
HOSTILE = (
    '</script></div><img src=x onerror=alert(1)>"\' onload="alert(1)" &lt; [a](javascript:alert(1)) \x00\x1b'
)
VOID = {"meta", "link", "img", "input", "br", "hr"}
#: What may be said in Markdown.
SAID = set("p br hr strong em code pre a ul ol li blockquote table thead tbody tr th td".split())
ELEMENTS = SAID | set(
    "html head meta title link script body header main nav section article aside div span h1 h2 h3 h4 h5 b "
    "i img small dl dt dd details summary svg foreignobject form label input select option textarea button "
    "dialog kbd time data mark q".split()
)
PAGES = [
    "/", "/?status=active", "/sessions/one", "/sessions/one?client=terminal", "/sessions/one?before=9",
    "/sessions/two", "/sessions/one/compare/two", "/runs", "/runs/going", "/runs/graph", "/runs/broken",
    "/search", "/search?q=said", "/signin", "/signin?refused=1", "/sessions/none", "/runs/none",
]  # fmt: skip


class Outline(HTMLParser):
    """Checks what every page has to be, and keeps what is said and where it leads."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.said: list[str] = []
        self.all: list[tuple[str, dict[str, str]]] = []
        assert document.startswith("<!doctype html>\n<html")
        self.feed(document)
        self.close()
        assert self.open == []
        self.text = "".join(self.said)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        known = {name: value or "" for name, value in attrs}
        assert len(known) == len(attrs)
        assert not [name for name in known if name.startswith("on") or name in ("style", "srcdoc")]
        if tag == "script":
            assert known["src"].startswith("/static/")
        if tag == "img":
            assert known["src"].startswith("data:image/")
            assert "alt" in known
        if tag == "a" and not known["href"].startswith(("/", "#")):
            assert urlsplit(known["href"]).scheme in ("http", "https", "mailto")
            assert known["rel"] == "noopener noreferrer"
        for name in ("action", "formaction"):
            assert known.get(name, "/").startswith("/")
        self.all.append((tag, known))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert self.open[-1:] not in (["script"], ["style"])
        self.said.append(data)

    def find(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        return [known for name, known in self.all if name == tag and attributes.items() <= known.items()]


def request(
    service: Any, method: str, path: str, caller: Caller | None = ALL, **more: Any
) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app(service, caller))
        async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, **more)

    return asyncio.run(ask())


def shown(service: Any, path: str, caller: Caller = ALL) -> Outline:
    return Outline(request(service, "GET", path, caller).text)


def ids_of(page: Outline) -> list[str]:
    """Return the ids of the entries."""
    return [known["id"] for known in page.find("li") if "id" in known]


def filled(said: str = "said") -> Double:
    """A service in which everything that anybody can say is ``said``."""
    call = {"type": "tool_use", "id": "c1", "name": said, "input": {said: said}}
    thought = {"type": "thinking", "thinking": said}
    talk = [
        entry(2, "user", said, metadata={"live_session": {"client_id": said}}),
        entry(4, "assistant", [thought, {"type": "text", "text": said}, call], cost=0.5, reasoning=said),
        entry(5, "tool", [{"type": "text", "text": said}, IMAGE], tool_call_id="c1"),
        entry(6, said, said, name=said),
        entry(7, "assistant", {"unknown": said}),
        entry(
            8, "user", [{"type": "text", "text": said}, IMAGE, {"type": "image", "url": f"https://x/{said}"}]
        ),
    ]
    clients = [
        t.Client(
            client_id=each,
            mode="observer",
            attached_at=TIME.format(1),
            last_seen_at=TIME.format(2),
            stale=old,
        )
        for each, old in (("terminal", False), (said, True))
    ]
    run = {
        "kind": said,
        "steps": 2,
        "created_at": TIME.format(0),
        "started_at": TIME.format(1),
        "ended_at": None,
    }
    record = {
        "_type": "run_record",
        "status": "completed",
        "workflow_name": said,
        "artifacts": [{"text": said}],
    }
    return Double(
        infos={
            "one": info("one", label=said, agent=said, metadata={said: said}, owner=said),
            "two": info("two", parent="one", fork_seq=4, metadata={"title": said}, status=said),
        },
        entries={"one": talk, "two": talk[:3]},
        clients_of={"one": t.ClientList(clients=clients, controller="terminal")},
        requests_open=[
            t.Request(id="r/1", session="one", kind="approval", prompt=said, since="", tool=said, args=said),
            t.Request(id="r2", session="one", kind="question", prompt=said, since=said),
            t.Request(id="r3", session=None, run="going", kind="question", prompt=said, since=said),
        ],
        runs_there=[
            t.Run(id="going", name=said, status="running", **run),
            t.Run(id="graph", name=said, status="completed", output=record, **run),
            t.Run(id="broken", name=said, status="failed", error=said, output={said: said}, **run),
        ],
        steps=[t.RunStep(n=n, key=said, output=said, time=TIME.format(9 * n)) for n in (1, 2)],
        hits=[t.Hit(session="one", seq=4, type=said, text=said)],
        running="k",
    )  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("caller", [ALL, READER], ids=["all", "read"])
def test_every_page_is_sound_and_readable_by_machines(path: str, caller: Caller) -> None:
    page = shown(filled(), path, caller)
    assert page.find("html", lang="en")
    assert len(page.find("title")) == len(page.find("h1")) == len(page.find("main", id="main")) == 1
    assert page.find("a", href="#main")
    ids = [known["id"] for _, known in page.all if "id" in known]
    assert len(ids) == len(set(ids))
    labelled = {known["for"] for known in page.find("label")}
    typed = [known for tag in ("input", "select", "textarea") for known in page.find(tag)]
    assert [known for known in typed if known.get("type") != "hidden" and known["id"] not in labelled] == []
    navs = [known["aria-label"] for known in page.find("nav")]
    assert len(navs) == len(set(navs))
    assert {known["form"] for known in page.find("button") if "form" in known} <= set(ids)


@pytest.mark.parametrize("path", [path for path in PAGES if not path.startswith("/signin")])
@settings(max_examples=COUNT.examples(3), deadline=None)
@given(said=st.one_of(st.text(max_size=60), st.sampled_from([HOSTILE, "# a\n<b onclick=x>", "\ud800"])))
def test_what_anybody_said_is_only_text(path: str, said: str) -> None:
    expected = shown(filled("said"), path)
    page = shown(filled(said), path)
    harmless = (
        "a",
        *SAID,
        "h3",
        "small",
        "mark",
        "dt",
        "dd",
        "details",
        "summary",
        "div",
        "span",
        "li",
        "time",
    )
    assert [tag for tag, _ in page.all if tag not in harmless] == [
        tag for tag, _ in expected.all if tag not in harmless
    ]


@pytest.mark.parametrize(
    "said",
    [
        "[a](javascript:alert(1))", "[a](JavaScript:alert(1))", "<javascript:alert(1)>", "[a](data:,x)",
        "[a][b]\n\n[b]: vbscript:x", "![a](https://evil.example/x.png)", "<img src=x onerror=alert(1)>",
        "[a](//evil.example)", "[a](/sessions/one/close)", "<script>alert(1)</script>", "[a](java\tscript:x)",
        "`<b>`", "```\n</pre><script>\n```", "```x\" onclick=\"y\n```", "[a](<https://x\" onclick=\"y>)",
    ],
)  # fmt: skip
def test_markdown_is_inert(said: str) -> None:
    page = Outline(f"<!doctype html>\n<html>{markdown(said)}</html>")
    assert {tag for tag, _ in page.all} <= {*SAID, "html", "div"}
    assert all(known["href"].startswith("https://") for known in page.find("a"))


def test_markdown_is_read() -> None:
    made = markdown("# Title\n\n*a* **b** `c` [d](https://e.example)\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n")
    assert '<p class="heading">Title</p>' in made
    assert '<a href="https://e.example" rel="noopener noreferrer" target="_blank">d</a>' in made
    assert '<td class="number">2</td>' in made
    assert "<em>a</em> <strong>b</strong> <code>c</code>" in made


# What is where.


def test_sessions_are_trees() -> None:
    html = request(filled(), "GET", "/").text
    assert re.search(r'<li><div class="row">.*?/sessions/one.*?<ul class="bare"><li>.*?/sessions/two', html)
    assert "terminal" in html
    assert "3 requests for you" in html
    assert "forked at 4" in html


def test_a_chain_of_forks_of_any_length_is_shown() -> None:
    chain = {f"s{n}": info(f"s{n}", parent=f"s{n - 1}" if n else None, fork_seq=1) for n in range(400)}
    page = shown(Double(infos=chain), "/")
    assert sum(known["href"].startswith("/sessions/s") for known in page.find("a")) == 400


def test_a_session_shows_its_transcript_folded_where_it_is_long() -> None:
    page = shown(filled(), "/sessions/one")
    assert page.find("div", role="log", **{"aria-live": "polite"})
    assert ids_of(page) == [
        "e2",
        "e4",
        "e5",
        "e6",
        "e7",
        "e8",
    ]
    html = request(filled(), "GET", "/sessions/one").text
    assert html.count('<details class="thinking">') == 2
    assert html.count('<details class="tool">') == 1
    assert '<details class="tool" open>' in html  # a picture
    assert "Result</span><code>said</code>" in html  # the tool's name, by its call
    assert "$0.5000" in page.text
    assert "1\N{NARROW NO-BREAK SPACE}234" in page.text  # tokens


def test_entries_have_what_their_steps_have_cost_and_thought() -> None:
    service = Double(infos={"one": info("one", seq=20)})
    service.entries["one"] = [entry(n, "assistant", f"no {n}") for n in (12, 15)]
    service.feed = [
        event(10, "step_completed", usage={"input_tokens": 1200, "output_tokens": 34}),
        event(11, "transcript_event", kind="private_reasoning", text="Hm."),
        event(14, "step_completed", usage={"input_tokens": "many"}),
    ]
    service.feed[0].cost = 0.25  # type: ignore[union-attr]
    page = shown(service, "/sessions/one")
    assert page.text.count("1\N{NARROW NO-BREAK SPACE}200 in, 34 out$0.2500") == 1
    assert page.text.count("Thinking") == 1


def test_a_long_session_shows_its_last_entries_and_leads_to_the_rest() -> None:
    service = Double(infos={"one": info("one", seq=5001)})
    service.entries["one"] = [entry(n * 5, "user", f"no {n}") for n in range(1, 1001)]
    page = shown(service, "/sessions/one")
    ids = ids_of(page)
    assert (len(ids), ids[0], ids[-1]) == (200, "e4005", "e5000")
    assert page.find("a", href="/sessions/one?before=4005", rel="prev")
    assert page.find("section", class_="conversation") == []
    older = shown(service, "/sessions/one?before=4005")
    ids = ids_of(older)
    assert (len(ids), ids[0], ids[-1]) == (200, "e3005", "e4000")
    assert not [known for _, known in older.all if "data-live" in known]  # nothing comes behind these


def test_a_very_long_text_is_cut_with_a_link_to_all_of_it() -> None:
    service = filled()
    service.entries["one"] = [entry(9, "assistant", "x" * 1_000_000)]
    response = request(service, "GET", "/sessions/one")
    assert len(response.content) < 60_000
    assert Outline(response.text).find("a", href="/v1/sessions/one/events?after=8&limit=1")


def test_who_is_in_control_decides_what_can_be_done() -> None:
    service = filled()
    watching, own = shown(service, "/sessions/one"), shown(service, "/sessions/one?client=terminal")
    assert watching.find("form", action="/sessions/one/control")
    assert not watching.find("textarea")
    assert own.find("textarea", id="prompt")
    assert own.find("form", action="/sessions/one/release")
    assert len(own.find("input", type="hidden", name="client", value="terminal")) == 6  # each form's
    assert own.find("data", value="terminal", **{"data-to": "/v1/sessions/one/heartbeat"})
    service.clients_of["one"].clients[0].stale = True
    assert "Nobody is in control" in shown(service, "/sessions/one").text
    assert shown(service, "/sessions/two").find("textarea", id="prompt")  # nobody is


def test_the_page_names_the_principal_who_is_in_control() -> None:
    service = filled()
    for principal, told in (
        ("eve", "eve is in control."),
        ("ada", "You are in control elsewhere, as terminal."),
    ):
        service.clients_of["one"].clients[0].principal = principal
        page = shown(service, "/sessions/one")
        assert told in " ".join(page.text.split())
        assert bool(page.find("b", title="terminal")) == (principal == "eve")
    assert page.find("span", title="terminal")


def test_a_session_is_shared_from_its_page_by_its_owner() -> None:
    service = filled()
    service.shares = {"bob": ["read"]}
    page = shown(service, "/sessions/one")
    assert page.find("form", action="/sessions/one/share")
    assert page.find("form", action="/sessions/one/unshare")
    form = {"principal": " eve ", "scopes": "write,approve"}
    assert request(service, "POST", "/sessions/one/share", data=form).status_code == 303
    assert request(service, "POST", "/sessions/one/unshare", data={"principal": "bob"}).status_code == 303
    assert service.calls[-2:] == [("share", "one", "eve", ["write", "approve"]), ("unshare", "one", "bob")]
    assert request(service, "POST", "/sessions/one/share", data={**form, "scopes": "own"}).status_code == 422
    reading = shown(service, "/sessions/one", READER)
    assert "Shared with" in reading.text
    assert not reading.find("form", action="/sessions/one/share")


def test_a_turn_that_asks_waits_for_whoever_may_answer() -> None:
    service = filled()
    assert service.requests_open
    assert "waits for you" in shown(service, "/sessions/one").text
    assert "waits for somebody else" in shown(service, "/sessions/one", READER).text
    service.requests_open.clear()
    assert "waits for" not in shown(service, "/sessions/one").text


def test_each_page_has_a_key_of_its_own() -> None:
    keys = [shown(filled(), "/sessions/two").find("input", name="key")[0]["value"] for _ in range(2)]
    assert keys[0] != keys[1]
    own = [shown(filled(), "/sessions/two?client=me").find("input", name="key")[0]["value"] for _ in range(2)]
    assert own[0] == own[1]  # a page that is made again while somebody types is the same


def test_who_may_only_read_has_no_forms_for_more() -> None:
    for path in ("/", "/sessions/one", "/runs/going"):
        actions = {known.get("action") for known in shown(filled(), path, READER).find("form")}
        assert actions <= {"/search", "/signout", None, ""}
    assert not [
        known for known in shown(filled(), "/sessions/one", READER).find("button") if "formaction" in known
    ]


def test_two_branches_are_side_by_side_with_ids_of_their_own() -> None:
    page = shown(filled(), "/sessions/one/compare/two")
    assert ids_of(page) == [
        "left-5", "left-6", "left-7", "left-8", "right-5",
    ]  # fmt: skip
    assert "Both have the first 2 events." in page.text


def test_a_run_shows_its_steps_as_bars_and_a_record_its_report() -> None:
    page = shown(filled(), "/runs/going")
    assert [known["x"] for known in page.find("foreignobject")] == ["0.00%", "47.06%"]
    record = shown(filled(), "/runs/graph")
    assert record.find("section", id="artifacts")
    assert not record.find("foreignobject")
    assert "Error said" in shown(filled(), "/runs/broken").text


def test_a_search_marks_what_was_sought_and_leads_to_it() -> None:
    service = filled()
    service.hits = [t.Hit(session="a/b", seq=4, type="message_added", text="Who SAID that?")]
    html = request(service, "GET", "/search?q=said").text
    assert "Who <mark>SAID</mark> that?" in html
    assert 'href="/sessions/a%2Fb?before=5#e4"' in html
    assert ("search", "said") in service.calls


# Forms.


@pytest.mark.parametrize(
    ("path", "fields", "call", "where"),
    [
        ("/sessions", {"agent": "support", "label": " L "}, ("create", "support", "L"), "/sessions/new"),
        ("/sessions/one/control", {"client": "w"}, ("takeover", "one", "w"), "/sessions/one?client=w"),
        ("/sessions/one/release", {"client": "w"}, ("detach", "one", "w"), "/sessions/one"),
        (
            "/sessions/one/send",
            {"prompt": "Hi ü", "client": "w", "key": "k"},
            ("send", "one", "Hi ü", "w", "k"),
            "/sessions/one?client=w",
        ),
        ("/sessions/one/send", {"prompt": "Hi"}, ("send", "one", "Hi", None, None), "/sessions/one"),
        ("/sessions/one/cancel", {}, ("cancel", "one"), "/sessions/one"),
        ("/sessions/one/fork", {"at": "4"}, ("fork", "one", 4, "said, from 4"), "/sessions/forked"),
        ("/sessions/one/rewind", {"at": "4", "client": "w"}, ("rewind", "one", 4), "/sessions/one?client=w"),
        ("/sessions/one/close", {}, ("close", "one"), "/sessions/one"),
        ("/requests/r%2F1", {"decision": "allow"}, ("answer", "r/1", "allow", ""), "/sessions/one"),
        (
            "/requests/r%2F1",
            {"decision": "x", "reason": "no"},
            ("answer", "r/1", "deny", "no"),
            "/sessions/one",
        ),
        ("/requests/r2", {"answer": "42"}, ("answer", "r2", "42", ""), "/sessions/one"),
        (
            "/requests/r2",
            {"answer": "42", "client": "w"},
            ("answer", "r2", "42", ""),
            "/sessions/one?client=w",
        ),
        ("/requests/r3", {"answer": "42"}, ("answer", "r3", "42", ""), "/runs/going"),
        ("/runs/going/steer", {"message": "left"}, ("steer", "going", "left"), "/runs/going"),
        ("/runs/going/cancel", {}, ("cancel_run", "going"), "/runs/going"),
        ("/runs/broken/resume", {}, ("resume", "broken"), "/runs/broken"),
    ],
)
def test_a_form_does_one_thing_and_leads_to_its_page(
    path: str, fields: dict[str, str], call: tuple[Any, ...], where: str
) -> None:
    service = filled()
    response = request(service, "POST", path, data=fields or {"nothing": ""})
    assert (response.status_code, response.headers["location"]) == (303, where)
    assert service.calls[-1] == call


def test_a_fork_behind_an_answer_goes_on_behind_its_turn() -> None:
    service = filled()
    kinds = ((4, "message_added"), (5, "step_completed"), (6, "turn_completed"), (7, "turn_started"))
    service.feed = [
        t.Event(id=str(n), seq=n, type=kind, time="", turn=3, cost=None, data={}) for n, kind in kinds
    ]
    request(service, "POST", "/sessions/one/fork", data={"at": "4"})
    request(service, "POST", "/sessions/one/rewind", data={"at": "6"})
    assert [call[2] for call in service.calls] == [6, 6]


@pytest.mark.parametrize(
    ("path", "more", "status", "said"),
    [
        ("/sessions/one/send", {"data": {"prompt": "  "}}, 422, "`prompt` is empty"),
        ("/sessions/one/fork", {"data": {"at": "soon"}}, 422, "number of an event"),
        ("/sessions/one/explode", {"data": {"a": "b"}}, 404, "no form `explode`"),
        ("/sessions/one/send", {"json": {"prompt": "Hi"}}, 415, "not as application/json"),
        ("/requests/r2", {"data": {"answer": ""}}, 422, "`answer` is empty"),
        (
            "/sessions/one/send",
            {"content": b"prompt=%ff", "headers": {"content-type": "application/x-www-form-urlencoded"}},
            400,
            "no form of the portal",
        ),
    ],
)
def test_a_wrong_form_is_refused_with_a_sentence(
    path: str, more: dict[str, Any], status: int, said: str
) -> None:
    service = filled()
    response = request(service, "POST", path, **more)
    assert response.status_code == status
    assert said in Outline(response.text).text
    assert service.calls == []


def test_what_the_service_refuses_is_a_page_with_its_status_and_reason() -> None:
    service = filled()
    service.refusal = Refused(409, "not_controller", "client 'terminal' controls <this>")
    response = request(service, "POST", "/sessions/one/send", data={"prompt": "Hi"})
    assert response.status_code == 409
    assert Outline(response.text).find("p", role="alert")
    assert "controls <this>" in Outline(response.text).text


# What an open page is sent.


def event(seq: int, type: str, **data: Any) -> t.Event:
    return t.Event(id=f"id-{seq}", seq=seq, type=type, time=TIME.format(seq), turn=10, cost=None, data=data)


def test_an_open_page_is_sent_what_happens() -> None:
    service = filled()
    service.feed = [
        event(10, "turn_started"),
        t.Chunk(turn=10, text="Hel", start=True),
        t.Chunk(turn=10, text="lo"),
        event(11, "message_added", role="assistant", content=HOSTILE),
        None,
        event(12, "turn_completed"),
        t.Chunk(turn=10, text="late"),
        event(13, "leaf_moved"),
    ]
    response = request(service, "GET", "/sessions/one/live?after=9&client=terminal")
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = re.findall(r"event: (\w+)\n(?:id: (\d+)\n)?data: (.*)\n\n", response.text)
    said = [(kind, id) for kind, id, _ in frames if kind != "region"]
    assert said == [("chunk", ""), ("chunk", ""), ("entries", "11"), ("chunk", "12"), ("all", "13")]
    assert {re.search(r'"id":"(\w+)"', data)[1] for kind, _, data in frames if kind == "region"} >= {  # type: ignore[index]
        "state", "facts", "requests", "control", "running", "people", "branches",
    }  # fmt: skip
    assert "<img" not in next(data for kind, _, data in frames if kind == "entries")
    assert "late" not in response.text


@pytest.mark.parametrize("after", ["", "x", "-1", "99", "9" * 30])
def test_a_page_that_does_not_say_where_it_goes_on_is_refused(after: str) -> None:
    assert request(filled(), "GET", f"/sessions/one/live?after={after}").status_code == 400


def test_a_run_is_sent_until_it_ends() -> None:
    text = request(filled(), "GET", "/runs/going/live").text
    assert '"id":"steps"' in text
    assert text.endswith("event: gone\ndata: {}\n\n")


# Files.


def test_files_are_kept_by_what_is_in_them() -> None:
    page = shown(filled(), "/")
    linked = [known["href"] for known in page.find("link")] + [known["src"] for known in page.find("script")]
    for address in linked:
        response = request(None, "GET", address, None)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    for address in (shell.asset("no.js"), "/static/0/portal.js", "/static/x/..%2Fshell.py"):
        assert request(None, "GET", address, None).status_code == 404


def scripts() -> list[Path]:
    return sorted((ROOT / "harnpy/serve/portal/static").glob("*.js"))


def test_scripts_are_small_plain_and_load_nothing_else() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in scripts())
    assert text.count("\n") < 400
    assert not re.search(
        r"https?://|\beval\b|\bFunction\(|\.style\b|document\.write|outerHTML|insertAdjacentHTML", text
    )
    assert text.count("innerHTML") == 1  # pieces that the server has made
    assert set(re.findall(r'from "\./(\w+\.js)"', text)) <= {path.name for path in scripts()}
    style = (ROOT / "harnpy/serve/portal/static/portal.css").read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import", style)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to read the scripts with")
@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.name)
def test_scripts_are_javascript(path: Path) -> None:
    source = path.read_bytes()
    done = subprocess.run(
        ["node", "--check", "--input-type=module", "-"], input=source, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_keys_are_those_that_help_and_documentation_say() -> None:
    source = (ROOT / "harnpy/serve/portal/static/keys.js").read_text(encoding="utf-8")
    table = re.search(r"const KEYS = \{(.*?)\n\};", source, re.S)
    assert table is not None
    known = re.findall(r'^  "?([^\s":]+)"?(?::|,)', table[1], re.M)
    assert [key for key, _ in shell.KEYS if key != "Esc"] == ["j", "k", *known[2:]] == known
    documented = (ROOT / "docs/portal.md").read_text(encoding="utf-8")
    for key, does in shell.KEYS:
        assert f"| `{key}` | {does} |" in documented
        assert does in shown(filled(), "/").text
