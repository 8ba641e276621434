"""Keys never reach a tape, whatever a program does with them; a replay of it agrees. Spec: 13 §2."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.durable.values import decode
from harnpy.tape import Recording, Replaying, read_tape
from harnpy.tape.redaction import HIDDEN, Redaction
from harnpy.world.environment import Variables
from harnpy.world.processes import Ended
from harnpy.world.streams import RealStreams
from tests.durable.runs import Outside

KEY = "sk-proj-9f8B2kQ7vX4mT1zR6wL0"


class Keeper(Outside):
    """An outside that has a secret in many places."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.secret = secret
        self.environment = Variables({"SERVICE_TOKEN": secret, "DATABASE": f"db://ann:{secret}@host/x"})
        self.streams = RealStreams(self.print, self.print, StringIO(secret))
        self.processes = _Processes(self.processes, secret)
        self.http = _Http(secret)


class _Processes:
    def __init__(self, real: Any, secret: str) -> None:
        self._real = real
        self._secret = secret

    async def run(self, argv: Any, cwd: str, env: Any = None, timeout: float | None = None) -> Ended:
        if argv[-1] != "keys":
            return Ended(7, 1, b"", f"no {argv[-1]}".encode())
        return Ended(7, 0, f"the key\0is {self._secret}".encode(), b"")


class _Http:
    def __init__(self, secret: str) -> None:
        self._secret = secret

    def behind(self, egress: Any) -> _Http:
        return self

    def client(self, surface: str, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._respond))

    async def _respond(self, request: httpx2.Request) -> httpx2.Response:
        cookie = ("set-cookie", "sid=a1b2c3d4e5f6a1b2; Path=/")
        return httpx2.Response(200, headers=[cookie], text=f"{request.url} {self._secret}")


#: Where a program has a secret from. The first have any, the others a key that is known by its form.
FROM_VARIABLES = ('env("SERVICE_TOKEN") ?? ""',)
ORIGINS = (
    *FROM_VARIABLES,
    'read_file("keys.txt")',
    'read_stdin() ?? ""',
    'exec("tool", "keys").stdout',
    'http_get("https://a.test/").body',
    'to_string((argv ?? ["none"])[0])',
    f'"{KEY}"',
)
#: What it does with it.
USES = (
    "println(secret)",
    'println("a ${secret} b ${secret}")',
    'write_file("out.txt", "long ${secret} " + "x".repeat(300))',
    'write_file("out.txt", secret)',
    'http_post("https://b.test/x", json_stringify({token: secret}), {headers: {authorization: secret}})',
    'println(llm_call("my key is ${secret}", "system ${secret}", {provider: "p", model: "m"}).text)',
    'println(exec("tool", secret).stderr)',
    "println(json_stringify({key: json_stringify([secret])}))",
    'try { throw "no ${secret}" } catch (e) { println("${e}") }',
    'println(env_or("NAME", secret))',
    'try { read_file(secret) } catch (e) { println("none") }',
    "eprintln(secret.repeat(20))",
)


def run(world: Any, outside: Outside, source: str = "", args: tuple[str, ...] = ()) -> str:
    """Return what a program prints, and its error."""
    vm: Any = Vm(world)
    outside.prepare(vm)
    try:
        value = vm.run_source(source, file="main.harn", args=args) if source else vm.run_recorded()
        said = f"{value}"
    except Exception as error:
        said = str(error)
    printed = outside.output().splitlines(keepends=True)
    return "".join(line for line in printed if not line.startswith("warning: tape: ")) + said


def leaves(value: Any) -> Any:
    """Yield all texts in what a tape holds, decoded."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item)
        if len(value) == 1 and next(iter(value)) in ("$bytes", "$text"):
            found = decode(value)
            yield found.decode("latin-1") if isinstance(found, bytes) else found
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value


def assert_without(tape: Path, secret: str) -> None:
    data = tape.read_text()
    assert secret not in data
    assert json.dumps(secret)[1:-1] not in data
    for line in data.splitlines():
        assert not [text for text in leaves(json.loads(line)) if secret in text]


@given(
    secret=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=30).filter(
        lambda text: text.strip() == text and len(set(text)) > 5
    ),
    origin=st.sampled_from(ORIGINS),
    uses=st.lists(st.sampled_from(USES), min_size=1, max_size=5),
    ends=st.sampled_from(["return secret", 'throw "with ${secret}"', "nil"]),
)
@example(secret='no"t\\é-12', origin=FROM_VARIABLES[0], uses=USES[7:8], ends="nil")
def test_no_secret_reaches_a_tape(
    secret: str, origin: str, uses: list[str], ends: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = secret if origin in FROM_VARIABLES else KEY
    place = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        Path("keys.txt").write_text(f"# mine\nKEY={secret}\n")
        source = "\n".join([f"let secret = {origin}", *uses, ends])
        outside = Keeper(secret)
        printed = run(Recording("run.tape", outside), outside, source, (secret,))
        assert_without(place / "run.tape", secret)
        again = Keeper("another")
        shown = Redaction()
        shown.learn(secret)
        assert run(Replaying("run.tape", again), again) == shown.text(printed)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("origin", ORIGINS)
def test_each_use_of_a_secret(origin: str, use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.txt").write_text(f"# mine\nKEY={KEY}\n")
    outside = Keeper(KEY)
    printed = run(Recording("run.tape", outside), outside, f"let secret = {origin}\n{use}\n", (KEY,))
    assert_without(tmp_path / "run.tape", KEY)
    again = Keeper("another")
    assert run(Replaying("run.tape", again), again) == printed.replace(KEY, HIDDEN)


def told(outside: Outside, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Record a program; return the tape, whose replay agrees."""
    monkeypatch.chdir(tmp_path)
    run(Recording("run.tape", outside), outside, source)
    again = Keeper("another")
    assert "differs" not in run(Replaying("run.tape", again), again)
    return (tmp_path / "run.tape").read_text()


def test_of_a_url_only_the_password_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'println(exec("tool", "db://ann:hunter2+x@host/").stderr)\nexec("tool", "x ann:ann@y")'
    tape = told(Outside(), source, tmp_path, monkeypatch)
    assert "hunter2" not in tape
    assert f"db://ann:{HIDDEN}@host/" in tape
    assert "x ann:ann@y" in tape


def test_a_password_that_is_a_word_is_masked_only_in_its_url() -> None:
    redaction = Redaction()
    redaction.learn_from("postgres://postgres:postgres@localhost/postgres")
    said = redaction.text("postgres://postgres:postgres@localhost/postgres says postgres")
    assert said == f"postgres://postgres:{HIDDEN}@localhost/postgres says postgres"


def test_cookies_of_a_session_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        'let got = http_get("https://a.test/")\nprintln("${got.headers}")\nexec("tool", "${got.headers}")\n'
    )
    tape = told(Keeper("nothing"), source, tmp_path, monkeypatch)
    assert "a1b2c3d4e5f6a1b2" not in tape
    assert "set-cookie" in tape


def test_keys_of_providers_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    config = home / ".config/harn/providers.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[providers.own]\nbase_url = "http://127.0.0.1:9"\napi_key = "wordy-and-known"\n')
    outside = Outside()
    outside.environment = Variables({"HOME": str(home)})
    source = """
try { llm_call("x", nil, {provider: "own", model: "m", llm_retries: 0}) } catch (e) { println("failed") }
println(read_file(env("HOME") + "/.config/harn/providers.toml"))
"""
    assert "wordy-and-known" not in told(outside, source, tmp_path, monkeypatch)


def test_a_key_in_the_programs_text_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Outside()
    warned: list[str] = []
    outside.streams = RealStreams(outside.print, warned.append)
    tape = told(outside, f'let x = 1\nprintln("{KEY}")\n', tmp_path, monkeypatch)
    assert "".join(warned).startswith("warning: tape: main.harn:2 has a key in its text, ")
    assert KEY not in tape
    assert read_tape("run.tape").job.body["files"][str(tmp_path / "main.harn")] == (
        f'let x = 1\nprintln("{HIDDEN}")\n'
    )


@pytest.mark.parametrize(
    ("known", "text", "masked"),
    [
        ('a"b\\c d', 'x a"b\\c d', f"x {HIDDEN}"),
        ('a"b\\c d', json.dumps('a"b\\c d'), f'"{HIDDEN}"'),
        ('a"b\\c d', json.dumps(json.dumps('a"b\\c d')), f'"\\"{HIDDEN}\\""'),
        ("p&ss wörd", "?key=p%26ss%20w%C3%B6rd", f"?key={HIDDEN}"),
        ("p&ss wörd", "?key=p%26ss+w%C3%B6rd", f"?key={HIDDEN}"),
        ("short", "short", "short"),
        ("sixsix", "a: c2l4c2l4 b", f"a: {HIDDEN} b"),
        ("p&ss wörd", b64encode("p&ss wörd".encode()).decode(), HIDDEN),
        ("p&ss wörd", f"Basic {b64encode('me:p&ss wörd'.encode()).decode()}, x", f"Basic {HIDDEN}, x"),
        ("p?>ss wörd", f"x {urlsafe_b64encode('ann:p?>ss wörd!'.encode()).decode()} y", f"x {HIDDEN} y"),
        ("x", f"Basic {b64encode(f'me:{HIDDEN}'.encode()).decode()}", f"Basic {HIDDEN}"),
        ("x", "?key=%3Cnot%20on%20the%20tape%3E", f"?key={HIDDEN}"),
    ],
)
def test_the_forms_of_a_secret(known: str, text: str, masked: str) -> None:
    redaction = Redaction()
    redaction.learn(known)
    assert redaction.text(text) == masked
    assert redaction.data(text.encode()) == masked.encode()


def test_what_is_written_stays_readable() -> None:
    redaction = Redaction()
    redaction.learn("harnpy.llm.reply")
    written = {"$object": ["harnpy.llm.reply:Reply", False, ["harnpy.llm.reply"], None]}
    assert redaction.record(written)["$object"] == ["harnpy.llm.reply:Reply", False, [HIDDEN], None]
    assert redaction.record({"type": "harnpy.llm.reply", "message": "harnpy.llm.reply"}) == {
        "type": "harnpy.llm.reply", "message": HIDDEN,
    }  # fmt: skip


def test_base64_of_a_secret_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """let secret = env("SERVICE_TOKEN")
for user in ["", "a:", "ab:", "abc:"] { println(base64_encode(user + secret + "!")) }
write_file("out.txt", base64_encode(secret))
"""
    tape = told(Keeper(KEY), source, tmp_path, monkeypatch)
    assert b64encode(KEY.encode()).decode()[:-4] not in tape


def test_a_short_value_stays_and_its_replay_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outside, again = Keeper("root"), Keeper("another")
    vm: Any = Vm(Recording("run.tape", outside))
    vm.run_source('println(env("SERVICE_TOKEN") == "root")\nprintln("at /root")\n', file="main.harn")
    warning = "warning: tape: the tape has the value of SERVICE_TOKEN, which is too short to be masked\n"
    assert outside.output() == f"{warning}true\nat /root\n"
    assert run(Replaying("run.tape", again), again).startswith("true\nat /root\n")


def test_a_secret_in_the_arguments_of_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """let secret = env("SERVICE_TOKEN")
var tools = tool_registry()
tools = tool_define(tools, "note", "notes", {parameters: {text: "string"}, handler: { a -> a.text }})
llm_mock({text: "", tool_calls: [{name: "note", arguments: {text: secret}}]})
llm_mock({text: "done"})
let session = agent_session_open("day", {store: "sqlite:s.db"})
agent_loop("go", "sys", {provider: "mock", tools: tools, tool_format: "native", session_id: session})
"""
    assert KEY not in told(Keeper(KEY), source, tmp_path, monkeypatch)
