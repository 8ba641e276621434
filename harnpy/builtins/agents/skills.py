"""Skills: their registries, the catalogue, and their bodies. Spec: 07 §13.1."""

from __future__ import annotations

from functools import partial

from harnpy.agent.skills import (
    CATALOG_BUDGET,
    NO_SKILL_NAME,
    NO_SKILL_REGISTRY,
    SKILLS,
    Library,
    catalog_entries,
    define_skill,
    describe_skills,
    render_catalog,
)
from harnpy.agent.tool_registry import are_entries, find
from harnpy.builtins import settings_of
from harnpy.builtins.agents.tools import need
from harnpy.faults import OptionError
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.values import Builtin, Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="skills")


def library_of(vm: Vm) -> Library | None:
    """Return the skills that were found for the program; None when there was no search."""
    found = settings_of(vm).found_skills
    return (
        None if found is None else Library([skill.entry for skill in found], found, vm.world.environment.get)
    )


@builtin("skill_registry() -> dict")
def skill_registry(vm: Vm) -> Dict:
    """Return a registry without skills.

    Example: skill_list(skill_registry())  // []
    """
    return SKILLS.registry_of([])


@builtin("skill_define(registry: dict, name: string, config: dict) -> dict", counted=True)
def skill_define(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT, config: Value = ABSENT) -> Dict:
    """Return the registry with a skill added, or replaced if its name is taken.

    `config`: `{short?, description?, when_to_use?, prompt?, paths?, allowed_tools?, on_activate?, …}`; other
    keys are kept. Spec: 07 §13.1.

    Example:
        let bolts = {description: "All about bolts", prompt: "Count twice."}
        skill_find(skill_define(skill_registry(), "bolts", bolts), "bolts").prompt  // "Count twice."
    """
    need("skill_define", "registry, name, and config dict", config)
    return define_skill(registry, name, config)


@builtin("skill_list(registry: dict) -> list")
def skill_list(vm: Vm, registry: Value) -> list[Dict]:
    """Return the skills of a registry, without their functions.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        skill_list(skills).map({ found -> found.name })  // ["bolts"]
    """
    entries = SKILLS.entries_of(registry, "skill_list")
    return [
        {key: value for key, value in entry.items() if type(value) not in (Fn, Builtin)} for entry in entries
    ]


@builtin("skill_find(registry: dict, name: string) -> dict | nil", counted=True)
def skill_find(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict | None:
    """Return the skill called `name`, or nil.

    Example: skill_find(skill_registry(), "bolts")  // nil
    """
    need("skill_find", "registry and name", name)
    return find(SKILLS.first_entries(registry, "skill_find"), name)


@builtin("skill_select(registry: dict, names: list) -> dict", counted=True)
def skill_select(vm: Vm, registry: Value = ABSENT, names: Value = ABSENT) -> Dict:
    """Return a registry with only the named skills, in their original order.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        skill_count(skill_select(skills, ["nuts"]))  // 0
    """
    need("skill_select", "registry and names list", names)
    return SKILLS.select(registry, names, lambda name: name)


@builtin("skill_remove(registry: dict, name: string) -> dict", counted=True)
def skill_remove(vm: Vm, registry: Value = ABSENT, name: Value = ABSENT) -> Dict:
    """Return the registry without the skill called `name`.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        skill_count(skill_remove(skills, "bolts"))  // 0
    """
    need("skill_remove", "registry and name", name)
    entries = SKILLS.first_entries(registry, "skill_remove")
    return SKILLS.registry_of(entry for entry in entries if entry["name"] != name)


@builtin("skill_count(registry: dict) -> int")
def skill_count(vm: Vm, registry: Value) -> int:
    """Return the number of skills in a registry.

    Example: skill_count(skill_registry())  // 0
    """
    return len(SKILLS.entries_of(registry, "skill_count"))


@builtin("skill_describe(registry: dict) -> string")
def skill_describe(vm: Vm, registry: Value) -> str:
    """Return a registry's skills as text for people: name, description, when to use it.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        skill_describe(skills).contains("bolts")  // true
    """
    return describe_skills(SKILLS.entries_of(registry, "skill_describe"))


@builtin("skills_catalog_entries(registry: dict) -> list")
def skills_catalog_entries(vm: Vm, registry: Value) -> list[Dict]:
    """Return the catalogue's entry for each skill: `{name, description, when_to_use}`, by id.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        skills_catalog_entries(skills)[0].description  // "All about bolts"
    """
    return catalog_entries(SKILLS.entries_of(registry, "skills_catalog_entries"))


@builtin("render_always_on_catalog(entries: any, budget: int = 2000) -> string", counted=True)
def render_always_on_catalog(vm: Vm, entries: Value = None, budget: Value = CATALOG_BUDGET) -> str:
    """Return the catalogue as a section of a prompt, in at most `budget` bytes. Spec: 07 §13.1.

    `entries` is a registry, or a list as `skills_catalog_entries` returns it, in that order.

    Example:
        let skills = skill_define(skill_registry(), "bolts", {description: "All about bolts"})
        render_always_on_catalog(skills).contains("All about bolts")  // true
    """
    caller = "render_always_on_catalog"
    if SKILLS.is_registry(entries):
        entries = catalog_entries(SKILLS.entries_of(entries, caller))
    if not are_entries(entries):
        raise OptionError(f"{caller}: first argument must be a catalog entry list or skill registry")
    budget = CATALOG_BUDGET if budget is None else budget
    if type(budget) is not int or budget <= 0:
        raise OptionError(f"{caller}: second argument must be a positive integer budget")
    return render_catalog(entries, budget)


@builtin("skill_render(skill: any, args?: list) -> string", counted=True)
def skill_render(vm: Vm, skill: Value = ABSENT, args: Value = None) -> str:
    """Fill in `$ARGUMENTS`, `$1` … and `${HARN_…}` in a skill's body, or a text. Spec: 07 §13.1.

    Example: skill_render("Count the $1.", ["bolts"])  // "Count the bolts."
    """
    arguments = [] if args is None else args
    need("skill_render", "a skill entry or body string", skill)
    is_entry = type(skill) is dict
    if not is_entry and type(skill) is not str:
        raise OptionError("skill_render: first argument must be a skill entry or a string body")
    if type(arguments) is not list or not all(type(argument) is str for argument in arguments):
        raise OptionError("skill_render: second argument must be a list of strings")
    library = library_of(vm) or Library([], [], vm.world.environment.get)
    entry = {"name": "", **skill} if is_entry else {"name": ""}
    body = library.body(entry, "body") if is_entry else skill
    return library.render(entry, body or "", arguments)


@builtin("load_skill(name: string) -> string", counted=True)
def load_skill(vm: Vm, name: Value = None) -> str:
    """Return the body of the program's skill with that id or name. Spec: 07 §13.1.

    Example: try { load_skill("no such skill") } catch (e) { "not found" }  // "not found"
    """
    library = library_of(vm)
    if type(name) is not str or not name.strip():
        raise OptionError(NO_SKILL_NAME)
    if library is None:
        raise OptionError(NO_SKILL_REGISTRY)
    entry = library.find(name)
    return library.render(entry, library.body(entry, "body", "prompt") or "")
