"""The skills of a loop: matching, the prompt, scoped tools, `load_skill`, resumption (07 §13.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnpy.agent.active_skills import (
    ActiveSkills,
    Matching,
    SkillServers,
    candidates,
    load_skill_tool,
    path_pattern,
    read_matching,
    read_skills,
    read_working_files,
)
from harnpy.agent.runtime import Runtime
from harnpy.agent.skills import SKILLS, FoundSkill
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Options
from harnpy.session import SessionRegistry
from harnpy.session.conversation import Conversation, SessionConversation
from tests.worlds import world_with

REVIEW = {
    "name": "review",
    "description": "Review code diffs",
    "when_to_use": "before a merge",
    "prompt": "Read the diff twice.",
    "allowed_tools": ["read", "namespace:git"],
}
DEPLOY = {"name": "deploy", "description": "Deploy a service", "prompt": "Ship it."}


class Loop:
    """A loop's skills, and what was told of them."""

    def __init__(
        self,
        *skills: dict[str, Any],
        matching: Matching | None = None,
        found: tuple[FoundSkill, ...] = (),
        **env: str,
    ) -> None:
        self.told: list[Any] = []
        self.warnings: list[str] = []
        world = world_with(get=env.get, warn=lambda topic, text: self.warnings.append(text))
        self.skills = ActiveSkills(
            list(skills), matching or Matching(), "s1", world, self.note, self.emit, self.servers(), found
        )

    def servers(self) -> SkillServers:
        """Those of skills that require some: `tests/mcp` has them."""
        return SkillServers(Runtime.__new__(Runtime), self.note)

    def note(self, event: dict[str, Any]) -> None:
        self.told.append((event["kind"], event["text"], event["metadata"]))

    def emit(self, type: str, **fields: Any) -> None:
        self.told.append((type, fields))

    def of(self, kind: str) -> list[Any]:
        return [each[1:] for each in self.told if each[0] == kind]

    def load(self, name: Any, **arguments: Any) -> Any:
        text, good = self.skills.load({"name": name, **arguments})
        return text if good else json.loads(text)


# Options.


def test_skills_come_as_a_registry_or_a_list() -> None:
    assert read_skills(SKILLS.registry_of([REVIEW]), "agent_loop") == [REVIEW]
    assert read_skills([REVIEW], "agent_loop") == [REVIEW]
    assert read_skills(None, "agent_loop") == []
    for wrong in ("review", [1], {"_type": "tool_registry", "tools": []}, [{"prompt": "x"}]):
        with pytest.raises(MisuseError, match="agent_loop: skills must be a skill registry or a list"):
            read_skills(wrong, "agent_loop")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Matching()),
        ({"skill_match": {"strategy": "odd", "top_n": 0}}, Matching()),
        ({"skill_match": {"strategy": "host", "top_n": 3}}, Matching("host", 3)),
        ({"skill_match": {"sticky": False}}, Matching(sticky=False)),
        ({"skill_match": {"sticky": "true"}}, Matching(sticky=False)),
        ({"working_files": "a.py"}, Matching(working_files=("a.py",))),
        ({"working_files": ["a.py", "b.py"]}, Matching(working_files=("a.py", "b.py"))),
    ],
)
def test_how_skills_are_matched(given: dict[str, Any], expected: Matching) -> None:
    options = Options(given)
    matching = read_matching(Options(options.value("skill_match")), read_working_files(options))
    assert matching == expected


# Scores.


def scores(message: str, *skills: dict[str, Any], files: tuple[str, ...] = ()) -> list[Any]:
    found = candidates(skills, message, files)
    return [(each.skill["name"], pytest.approx(each.score), each.reason) for each in found]


def test_keywords_count_in_the_description_and_the_occasion() -> None:
    assert scores("Please look at the CODE diffs before lunch", REVIEW) == [
        ("review", 3 / 4.5, "3 keyword hit(s)")
    ]
    assert scores("to a", REVIEW) == []


def test_the_skill_s_name_in_the_message() -> None:
    assert scores("a DEPLOYment", DEPLOY) == [("deploy", 2.0, "prompt mentions 'deploy'")]


def test_paths_of_the_files_worked_on() -> None:
    skill = {**DEPLOY, "paths": ["**/*.tf", "ops/*", "x?.py"]}
    files = ("infra/a/main.tf", "ops/sub/b", "xy.py")
    assert scores("go", skill, files=files) == [("deploy", 3.0, "2 path glob(s) matched")]


def test_everything_together() -> None:
    skill = {**DEPLOY, "paths": ["ops/*"]}
    reason = "2 keyword hit(s); prompt mentions 'deploy'; 1 path glob(s) matched"
    assert scores("deploy my service", skill, files=("ops/a",)) == [("deploy", 2 / 3.5 + 3.5, reason)]


def test_the_best_comes_first_and_equals_keep_their_order() -> None:
    first, second = {"name": "one", "description": "build"}, {"name": "two", "description": "build"}
    assert [name for name, *_ in scores("build with two", first, second)] == ["two", "one"]
    assert [name for name, *_ in scores("build", first, second)] == ["one", "two"]


@pytest.mark.parametrize("key", ["disable-model-invocation", "disable_model_invocation"])
def test_skills_that_wait_for_the_user_are_no_candidates(key: str) -> None:
    assert scores("deploy", {**DEPLOY, key: True}) == []


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "d/e/a.py", True),
        ("d/**", "d/e/a.py", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a+b", "a+b", True),
    ],
)
def test_path_globs(glob: str, path: str, expected: bool) -> None:
    assert (path_pattern(glob).fullmatch(path) is not None) is expected


# Matching passes.


def test_the_first_turn_chooses() -> None:
    loop = Loop(REVIEW, DEPLOY, matching=Matching(working_files=("x",)))
    loop.skills.match("review this", 0)
    loop.skills.match("deploy this", 1)
    (((text, report)),) = loop.of("skill_matched")
    assert text == ""
    assert report | {"candidates": []} == {
        "strategy": "metadata",
        "iteration": 0,
        "reassess": False,
        "candidates": [],
        "working_files": ["x"],
    }
    assert [each["name"] for each in report["candidates"]] == ["review"]
    reason = "1 keyword hit(s); prompt mentions 'review'"
    ((_, activated),) = [each for each in loop.of("skill_activated") if len(each) == 2]
    assert activated == {
        "name": "review",
        "description": "Review code diffs",
        "iteration": 0,
        "score": pytest.approx(2.4),
        "reason": reason,
        "allowed_tools": ["read", "namespace:git"],
    }
    assert ({"skill_name": "review", "iteration": 0, "reason": reason},) in loop.of("skill_activated")
    tools = ["read", "namespace:git"]
    assert loop.of("skill_scope_tools") == [
        ("review", {"name": "review", "allowed_tools": tools}),
        ({"skill_name": "review", "allowed_tools": tools},),
    ]
    assert loop.skills.active == ["review"]


def test_what_is_not_sticky_is_chosen_anew_every_turn() -> None:
    loop = Loop(REVIEW, DEPLOY, matching=Matching(sticky=False))
    for iteration, message in enumerate(["review", "review", "deploy", "nothing"]):
        loop.skills.match(message, iteration)
    assert [report["reassess"] for _, report in loop.of("skill_matched")] == [False, True, True, True]
    assert [fields for (fields,) in (each for each in loop.of("skill_deactivated") if len(each) == 1)] == [
        {"skill_name": "review", "iteration": 2},
        {"skill_name": "deploy", "iteration": 3},
    ]
    assert ("deploy", {"name": "deploy", "iteration": 3}) in loop.of("skill_deactivated")
    assert loop.skills.active == []


def test_several_may_be_active() -> None:
    loop = Loop(REVIEW, DEPLOY, matching=Matching(top_n=2))
    loop.skills.match("deploy after the review", 0)
    assert sorted(loop.skills.active) == ["deploy", "review"]


def test_a_pass_without_candidates_is_told_and_one_without_skills_is_not() -> None:
    loop = Loop(REVIEW)
    loop.skills.match("xyz", 0)
    assert [report["candidates"] for _, report in loop.of("skill_matched")] == [[]]
    empty = Loop()
    empty.skills.match("xyz", 0)
    assert empty.told == []
    assert not empty.skills


def test_strategies_of_a_host_fall_back_to_the_metadata() -> None:
    loop = Loop(DEPLOY, matching=Matching("embedding"))
    loop.skills.match("deploy", 0)
    assert loop.of("skill_matched")[0][1]["strategy"] == "embedding"
    assert loop.skills.active == ["deploy"]
    assert loop.warnings == ["skill_match strategy 'embedding' needs a host; metadata decides"]


def test_hooks_hear_of_it_and_may_fail() -> None:
    calls: list[str] = []

    def fail() -> None:
        raise ValueError("broken")

    first = {
        **DEPLOY,
        "on_activate": lambda: calls.append("on"),
        "on_deactivate": lambda: calls.append("off"),
    }
    loop = Loop(first, {**REVIEW, "on_activate": fail}, matching=Matching(sticky=False))
    loop.skills.match("deploy", 0)
    loop.skills.match("review", 1)
    assert calls == ["on", "off"]
    assert loop.warnings == ["on_activate of skill 'review': broken"]
    assert loop.skills.active == ["review"]


# The prompt and the tools.


def test_the_section_of_the_system_prompt() -> None:
    loop = Loop(REVIEW, DEPLOY, matching=Matching(top_n=2))
    assert loop.skills.block() == ""
    loop.skills.match("review, then deploy the service", 0)
    assert loop.skills.block() == (
        "## Active skills\n\n"
        "### deploy\nDeploy a service\n\nShip it.\n\n"
        "### review\nReview code diffs\nWhen to use: before a merge\nScoped tools: read, namespace:git\n\n"
        "Read the diff twice."
    )


def test_a_skill_of_a_file_brings_its_body() -> None:
    entry = {"name": "deploy", "short": "Deploy", "description": "Deploy"}
    found = FoundSkill(entry, "Run ${HARN_SKILL_DIR}/go ${HARN_SESSION_ID}\n", "/skills/deploy")
    loop = Loop(entry, found=(found,))
    loop.skills.match("deploy", 0)
    assert loop.skills.block().endswith("\n\nRun /skills/deploy/go s1")


def test_tools_outside_the_scope_are_hidden() -> None:
    loop = Loop(REVIEW, DEPLOY)
    assert loop.skills.allows("exec")
    loop.skills.match("review", 0)
    assert loop.skills.allows("read")
    assert not loop.skills.allows("exec")
    assert loop.skills.allows("commit", {"name": "commit", "namespace": "git"})
    assert not loop.skills.allows("commit", {"name": "commit", "namespace": "web"})
    assert loop.skills.allows("load_skill")
    assert loop.skills.allows("__harn_tool_search")


def test_a_star_lifts_the_scope() -> None:
    loop = Loop(REVIEW, {**DEPLOY, "allowed_tools": ["*"]}, matching=Matching(top_n=2))
    loop.skills.match("review and deploy", 0)
    assert loop.skills.allows("exec")


# load_skill.


def test_loading_a_skill() -> None:
    loop = Loop({**REVIEW, "prompt": "For ${HARN_SESSION_ID}: $$5 ${HARN_X} ${OTHER}"}, HARN_X="x")
    assert loop.load("review") == "For s1: $5 x ${OTHER}"
    unsigned = {"skill_id": "review", "signer_fingerprint": None, "signed": False, "trusted": False}
    assert loop.told == [("skill.loaded", "review", unsigned)]
    assert loop.skills.block().startswith("## Active skills\n\n### review\n")
    assert not loop.skills.allows("exec")
    assert loop.skills.active == []


def test_skills_are_found_by_id_and_by_name() -> None:
    one, other = {**DEPLOY, "namespace": "a"}, {**DEPLOY, "namespace": "b", "prompt": "Other."}
    loop = Loop(one, other, {**REVIEW, "namespace": "a"})
    assert loop.load("b/deploy") == "Other."
    assert loop.load("review") == "Read the diff twice."
    message = "skill 'deploy' is ambiguous; use the fully qualified id from the catalog"
    assert loop.load("deploy") == {"error": "skill_not_found", "message": message, "skill": "deploy"}


@pytest.mark.parametrize(
    ("skill", "arguments", "error", "message"),
    [
        (DEPLOY, {"name": "x"}, "skill_not_found", "skill 'x' not found"),
        (DEPLOY, {"name": " "}, "invalid_arguments", "load_skill: requires a non-empty skill name"),
        (DEPLOY, {"name": 1}, "invalid_arguments", "load_skill: requires a non-empty skill name"),
        (
            {"name": "deploy", "description": ""},
            {"name": "deploy"},
            "skill_not_found",
            "load_skill: skill 'deploy' is not lazily loadable in this scope",
        ),
        (
            {**DEPLOY, "disable-model-invocation": True},
            {"name": "deploy"},
            "skill_model_invocation_disabled",
            "skill 'deploy' is gated to explicit user invocation",
        ),
        (DEPLOY, {"name": "deploy", "require_signature": True}, "UnsignedSkillError", None),
        ({**DEPLOY, "require_signature": True}, {"name": "deploy"}, "UnsignedSkillError", None),
        ({**DEPLOY, "trusted_signers": ["k"]}, {"name": "deploy"}, "UnsignedSkillError", None),
    ],
)
def test_what_is_not_loaded(
    skill: dict[str, Any], arguments: dict[str, Any], error: str, message: str | None
) -> None:
    loop = Loop(skill)
    answer = loop.load(**arguments)
    assert (answer["error"], answer["skill"]) == (error, arguments["name"])
    assert message is None or answer["message"] == message
    assert len(loop.of("skill.loaded")) == (arguments["name"] == "deploy")
    assert loop.skills.block() == ""


def test_the_environment_may_want_signatures() -> None:
    assert Loop(DEPLOY, HARN_REQUIRE_SIGNED_SKILLS="1").load("deploy")["error"] == "UnsignedSkillError"
    assert Loop(DEPLOY, HARN_REQUIRE_SIGNED_SKILLS="0").load("deploy") == "Ship it."


def test_without_skills_there_is_nothing_to_load() -> None:
    assert Loop().load("deploy")["error"] == "skill_registry_unavailable"


def test_the_tool_has_a_real_schema() -> None:
    schema = load_skill_tool("openai")["function"]["parameters"]
    assert schema["required"] == ["name"]
    assert {name: field["type"] for name, field in schema["properties"].items()} == {
        "name": "string",
        "require_signature": "boolean",
    }
    assert load_skill_tool("anthropic")["input_schema"] == schema


# Resumption.


def test_a_session_s_skills_go_on() -> None:
    loop = Loop(REVIEW, DEPLOY)
    loop.skills.restore(["review", "gone"])
    loop.skills.match("deploy", 0)
    assert (loop.skills.active, loop.told) == (["review"], [])
    assert not loop.skills.allows("exec")


def test_without_anything_to_resume_the_first_turn_chooses() -> None:
    loop = Loop(REVIEW, DEPLOY)
    loop.skills.restore(["gone"])
    loop.skills.match("deploy", 0)
    assert loop.skills.active == ["deploy"]


def test_what_is_not_sticky_may_be_replaced() -> None:
    loop = Loop(REVIEW, DEPLOY, matching=Matching(sticky=False))
    loop.skills.restore(["review"])
    loop.skills.match("deploy", 0)
    assert loop.skills.active == ["deploy"]
    assert loop.of("skill_deactivated")


def test_the_session_keeps_the_active_skills_for_itself() -> None:
    sessions = SessionRegistry()

    def bound(id: str) -> SessionConversation:
        binding = SessionConversation(id, sessions)
        binding.begin(None, "text")
        return binding

    first = bound("a")
    first.end("completed", skills=["review"])
    sessions.reset("a")
    sessions.fork("a", "b")
    assert bound("a").active_skills() == ["review"]
    assert bound("b").active_skills() == []
    anonymous = Conversation("x", sessions.world)
    anonymous.end("completed", skills=["review"])
    assert anonymous.active_skills() == []
