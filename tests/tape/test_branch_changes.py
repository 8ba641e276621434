"""What a branch changes: a message, the model, options, files, the program. Spec: 13 §5.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy.embedding import Vm
from harnpy.formats.manifest import decision_name, manifest_of
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.tape import Branching, Changes, Recording, Tape, TapeDiverged, TapeError, branch, read_tape
from harnpy.tape.changes import ChangedRequests, calls_of
from harnpy.tape.tapes import Asking
from tests.durable.runs import Outside
from tests.tape.branched import Branch, record

TALK = """
let usual = {provider: "p", model: "m", temperature: 0.9, max_tokens: 100}
var messages = []
for n in 1 to 4 {
  messages = messages + [{role: "user", content: "say ${n}"}]
  let said = llm_call("", nil, {...usual, messages: messages}).text
  messages = messages + [{role: "assistant", content: said}]
  println(said)
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Listening(Outside):
    """One that notes the requests, and knows more than one provider."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return await super().complete(request)

    def prepare(self, vm: Vm) -> None:
        super().prepare(vm)
        vm.provide("q", self)


def branched(tape: Tape, at: int, **changes: Any) -> list[Request]:
    """Run a branch; return what its models were asked live."""
    outside = Listening()
    found = branch(tape, at, world=outside, prepare=outside.prepare, **changes)
    assert found.error is None
    return outside.requests


def users(request: Request) -> list[str]:
    return [each["content"] for each in request.messages if each["role"] == "user"]


def test_a_message_replaces_the_last_of_the_user_wherever_it_is_sent_again(here: Path) -> None:
    tape, _ = record(here, TALK)
    requests = branched(tape, 2, message="say it")
    assert [users(request) for request in requests] == [
        ["say 1", "say it"],
        ["say 1", "say it", "say 3"],
        ["say 1", "say it", "say 3", "say 4"],
    ]


def test_a_message_may_be_a_dict(here: Path) -> None:
    tape, _ = record(here, TALK)
    message = {"content": "say it"}
    assert branched(tape, 4, message=message)[0].messages[-1] == {"role": "user", "content": "say it"}


def test_a_message_replaces_no_result_of_a_tool(here: Path) -> None:
    source = """
let tools = tool_define(tool_registry(), "look", "Looks", {
  parameters: {name: "string"},
  handler: { args -> "seen" },
})
println(agent_loop("go", nil, {
  provider: "p", model: "m", tool_format: "native", tools: tools, max_iterations: 3,
}).text)
"""
    tape, _ = record(here, source)
    (request,) = branched(tape, 2, message="stop")
    assert users(request)[0] == "stop"
    assert "seen" in str(request.messages)


@pytest.mark.parametrize("message", [3, {"role": "assistant", "content": "x"}, {"role": "user"}, ["x"]])
def test_what_is_no_message_is_refused(here: Path, message: Any) -> None:
    tape, _ = record(here, TALK)
    with pytest.raises(
        TapeError, match=r'the message of a branch is a text, or a dict \{role: "user", content: …}'
    ):
        Branching(tape, 2, Changes(message=message))
    assert not list(here.glob("*branch*"))


def test_the_model_is_that_of_the_call_and_all_behind_it(here: Path) -> None:
    tape, _ = record(here, TALK)
    names = [(request.provider, request.model) for request in branched(tape, 2, model="n")]
    assert names == [("p", "n")] * 3
    names = [(request.provider, request.model) for request in branched(tape, 4, model="q/n")]
    assert names == [("q", "n")]
    # A name with a slash that begins with no provider's is the model's.
    assert branched(tape, 4, model="vendor/n")[0].model == "vendor/n"


def test_a_model_that_cant_be_called_ends_the_branch(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    tape, _ = record(here, TALK)
    outside = Listening()
    with pytest.raises(TapeError, match=r"the branch can't ask anthropic/x: .*ANTHROPIC_API_KEY"):
        branch(tape, 2, model="anthropic/x", world=outside, prepare=outside.prepare)
    # The provider of a model that is known needn't be named.
    with pytest.raises(TapeError, match=r"the branch can't ask openai/gpt-4o: .*OPENAI_API_KEY"):
        branch(tape, 2, model="gpt-4o", world=outside, prepare=outside.prepare)
    assert not list(here.glob("*branch*"))


def test_options_are_those_of_the_call_alone(here: Path) -> None:
    tape, _ = record(here, TALK)
    options = {"temperature": 0, "max_tokens": 5, "stop": ["x"], "reasoning_effort": "low", "cache": True}
    first, second, _ = branched(tape, 2, options=options)
    assert (first.sampling, first.max_tokens) == ({"temperature": 0, "stop": ["x"]}, 5)
    assert (first.thinking, first.cache) == ({"mode": "effort", "level": "low"}, True)
    assert (second.sampling, second.max_tokens, second.cache) == ({"temperature": 0.9}, 100, False)
    assert branched(tape, 3, options={"temperature": None})[0].sampling == {}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("temprature", 1, "a model's call has no option 'temprature' .did you mean 'temperature'"),
        (
            "llm_retries",
            1,
            "'llm_retries' isn't part of what a model is asked: a branch sets max_tokens, temp",
        ),
        ("temperature", "hot", "'temperature' can't be \"hot\": it takes float"),
        ("max_tokens", 1.5, "'max_tokens' can't be 1.5: it takes int"),
        ("stop", "END", "'stop' can't be \"END\": it takes list"),
        ("reasoning_effort", "huge", "'reasoning_effort' can't be \"huge\": reasoning_effort: expected"),
    ],
)
def test_options_that_no_call_has_are_refused(here: Path, name: str, value: Any, said: str) -> None:
    tape, _ = record(here, TALK)
    with pytest.raises(TapeError, match=said):
        Branching(tape, 2, Changes(options={name: value}))
    assert not list(here.glob("*branch*"))


def test_what_is_asked_is_on_the_tape_of_the_branch(here: Path) -> None:
    tape, _ = record(here, TALK)
    made = Branch(tape, 3, Changes(message="other", model="n", options={"seed": 7}))
    asked = [made.tape.steps[place].output["asked"] for place in calls_of(made.tape.steps)]
    assert [each["model"] for each in asked] == ["p/m", "p/m", "p/n", "p/n"]
    assert asked[2]["messages"]["new"] == [{"role": "user", "content": "other"}]
    assert asked[2]["sampling"] == {"temperature": 0.9, "seed": 7}


def test_of_parallel_calls_the_one_that_came_in_first_is_changed(here: Path) -> None:
    # Replies come in the order of their length, modulo five.
    source = """
let options = {provider: "p", model: "m"}
println(parallel each ["aaa", "bb", "c"] { text -> llm_call(text, nil, options).text })
"""
    tape, _ = record(here, source)
    requests = branched(tape, 2, message="changed")
    assert sorted(users(request)[0] for request in requests) == ["aaa", "changed"]


# Files.

READING = """
let options = {provider: "p", model: "m"}
for n in 1 to 3 {
  println(llm_call("${n} ${read_file("prompt.txt").trim()}", nil, options).text)
}
"""


def test_an_edited_file_is_read_before_the_call_too(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    tape, _ = record(here, READING)
    (here / "prompt.txt").write_text("new")
    # Answers before the call stay: the models aren't asked again.
    assert (
        Branch(tape, 2, Changes(files={"prompt.txt": "prompt.txt"})).output == "<1 old>\n<2 new>\n<3 new>\n"
    )
    # Without the edit, the program has read the old text before.
    assert Branch(tape, 2).output == "<1 old>\n<2 old>\n<3 new>\n"


def test_another_file_may_give_the_text(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    (here / "other.txt").write_text("other")
    tape, _ = record(here, READING)
    made = Branch(tape, 3, Changes(files={"prompt.txt": "other.txt"}))
    assert made.output == "<1 old>\n<2 old>\n<3 other>\n"
    assert made.tape.header.branch is not None
    assert made.tape.header.branch.changed == ["edit prompt.txt=other.txt"]
    assert (here / "prompt.txt").read_text() == "old"
    # A branch of the branch goes on with it.
    assert Branch(made.tape, 2).output == "<1 old>\n<2 other>\n<3 other>\n"


def test_an_edit_that_changes_more_than_requests_before_the_call_ends_the_branch(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    source = READING.replace(
        "println", 'if n == 1 { write_file("copy.txt", read_file("prompt.txt")) }\n  println'
    )
    tape, _ = record(here, source)
    (here / "prompt.txt").write_text("new")
    with pytest.raises(
        TapeDiverged,
        match=r"at effect 2: recorded was that it writes copy\.txt: .*, now it writes copy\.txt: ",
    ):
        Branch(tape, 3, Changes(files={"prompt.txt": "prompt.txt"}))


def test_what_the_program_has_written_itself_it_reads(here: Path) -> None:
    (here / "prompt.txt").write_text("old")
    source = READING.replace("println(", 'println(read_file("prompt.txt"))\n  println(').replace(
        "\n}\n", '\n  write_file("prompt.txt", "own ${n}")\n}\n'
    )
    tape, _ = record(here, source)
    (here / "prompt.txt").write_text("new")
    made = Branch(tape, 3, Changes(files={"prompt.txt": "prompt.txt"}))
    assert made.output == "new\n<1 old>\nown 1\n<2 own 1>\nown 2\n<3 own 2>\n"


def test_an_edited_module_is_part_of_the_program(here: Path) -> None:
    (here / "words.harn").write_text('pub fn word() { return "old" }\n')
    source = 'import { word } from "words"\n' + READING.replace('read_file("prompt.txt").trim()', "word()")
    tape, _ = record(here, source)
    (here / "words.harn").write_text('pub fn word() { return "new" }\n')
    assert Branch(tape, 2).output == "<1 old>\n<2 old>\n<3 old>\n"
    made = Branch(tape, 2, Changes(files={"words.harn": "words.harn"}))
    assert made.output == "<1 old>\n<2 new>\n<3 new>\n"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("promt.txt", r"the edited file promt\.txt can't be read: No such file or directory"),
        ("unread.txt", r"the program of .*run\.tape doesn't read unread\.txt: known are prompt\.txt"),
        ("prompt.tx", r"the program of .*run\.tape doesn't read prompt\.tx: did you mean `prompt\.txt`\?"),
    ],
)
def test_an_edit_of_a_file_that_isnt_read_is_refused(here: Path, file: str, said: str) -> None:
    for name in ("prompt.txt", "unread.txt", "prompt.tx"):
        (here / name).write_text("text")
    tape, _ = record(here, READING)
    with pytest.raises(TapeError, match=said):
        Branching(tape, 2, Changes(files={file: file}))
    assert not list(here.glob("*branch*"))


# The program.


def test_another_program_goes_on_behind_the_call(here: Path) -> None:
    (here / "prompt.txt").write_text("text")
    tape, _ = record(here, READING)
    (here / "other.harn").write_text(
        READING.replace("for n in 1 to 3", "for n in 1 to 2").replace('"${n} ', '"no. ${n} ')
        + 'println("end")\n'
    )
    made = Branch(tape, 2, Changes(code="other.harn"))
    assert made.output == "<1 text>\n<no. 2 text>\nend\n"
    assert made.tape.job.body["entry"].endswith("other.harn")
    # Its own program is that of the branch's tape.
    assert Branch(made.tape, 3).output == made.output


def test_a_change_of_the_call_holds_in_another_program(here: Path) -> None:
    (here / "prompt.txt").write_text("text")
    tape, _ = record(here, READING)
    (here / "other.harn").write_text(READING.replace("println(", 'println("call ${n}")\n  println('))
    made = Branch(tape, 2, Changes(code="other.harn", message="changed"))
    assert made.output == "call 1\n<1 text>\ncall 2\n<changed>\ncall 3\n<3 text>\n"


def test_an_effect_more_before_the_call_ends_the_branch_of_another_program(here: Path) -> None:
    (here / "prompt.txt").write_text("text")
    tape, _ = record(here, READING)
    # Right before each call the runtime reads the clock, too: the two aren't taken for each other.
    told = 'let text = read_file("prompt.txt")\n  println(now_ms() > 0)\n  println('
    (here / "other.harn").write_text(
        READING.replace("println(", told).replace('read_file("prompt.txt").trim', "text.trim")
    )
    with pytest.raises(TapeDiverged, match="at effect 2: recorded was that it reads the clock"):
        Branch(tape, 2, Changes(code="other.harn"))


def test_the_changed_call_of_another_program_is_the_next_one_of_its_task() -> None:
    changed = ChangedRequests(Asking(2, "task_1/7:model", True, "new"), ["task_1/3:model"])
    request = Request([{"role": "user", "content": "old"}], None, "p", "m")
    for key, said in [
        ("task_1/3:model", "old"),
        ("task_2/1:model", "old"),
        ("task_1/8:model", "new"),
        ("task_1/9:model", "new"),
    ]:
        assert changed.changed(key, request).messages[0]["content"] == said, key


# Trust and people.


def test_trust_is_the_persons_of_now(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "harn.toml").write_text('[[hooks]]\nevent = "PreToolUse"\nhandler = "x.harn::y"\n')
    monkeypatch.setenv("HARN_TRUST", "1")
    outside = Outside()
    vm = Vm(world=Recording("run.tape", outside))
    outside.prepare(vm)
    manifest(vm, here)
    vm.run_source(TALK, file="main.harn")
    monkeypatch.delenv("HARN_TRUST")
    home = here / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with Branching("run.tape", 2, real=Outside()) as world:
        assert not looked_up(world, here).is_trusted
    decisions = home / ".config" / "harn" / "trust"
    decisions.mkdir(parents=True)
    with Branching("run.tape", 2, real=Outside()) as world:
        found = looked_up(world, here)
        (decisions / decision_name(found.root)).write_text(found.decision())
    with Branching("run.tape", 2, real=Outside()) as world:
        assert looked_up(world, here).is_trusted
    assert read_tape("run.tape").end is not None


def looked_up(world: Branching, root: Path) -> Any:
    """Return the manifest as a branch sees it that doesn't run."""
    vm: Any = Vm(world=world)
    try:
        return manifest(vm, root)
    finally:
        vm.journal.close()


def manifest(vm: Vm, root: Path) -> Any:
    found = manifest_of(vm.unguarded, str(root))
    assert found.is_trusted or found.held
    return found


def test_nobody_is_asked_unless_somebody_is_there(here: Path) -> None:
    source = TALK + 'println(ask_user("sure?"))\n'
    outside = Outside()

    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        return {"answer": "yes"}

    outside.people.ask = answer
    tape, _ = record(here, source, outside=outside)
    again = Outside()
    found = branch(tape, 2, world=again, prepare=again.prepare)
    assert "nobody is there to be asked: `harnpy branch --attended` asks at the terminal" in str(found.error)
    again = Outside()
    again.people.ask = answer
    assert branch(tape, 2, world=again, prepare=again.prepare).error is None
