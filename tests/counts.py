"""How much the tests try: little in CI, much with `pytest --campaign`. Each count is here, with both sizes.

A campaign takes another seed each time, which the head of the run shows; `--campaign-seed SEED` repeats one.
`--campaign-times 0.1` is a campaign of a tenth of the large counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from random import randrange
from typing import Any
from zlib import crc32

import pytest

#: A campaign tries so many times as many examples of a property as its test says.
_EXAMPLES = 100

#: The parameters that say on which store a test is: a kind, or a URL with a place for the test's directory.
_ON = re.compile("(memory|jsonl|sqlite|postgres)|memory:|(jsonl|sqlite):{.*")
#: Whose tests need just a store: all four keep one contract, for which `storage` and `guarantees` stand.
_ABOVE_STORES = ("adapters", "agent", "cli/commands", "eventlog", "session")


class Size:
    """A number with two sizes. One that is smaller in a campaign is a share: one of so many is tried."""

    def __init__(self, usual: int, campaign: int) -> None:
        self.usual = usual
        self.campaign = campaign

    def __get__(self, counts: Counts, owner: type[Counts]) -> int:
        if not counts.campaign:
            return self.usual
        if self.campaign < self.usual:
            return self.campaign
        return max(self.usual, round(self.campaign * counts.campaign))


class Counts:
    """The counts of this run."""

    def __init__(self) -> None:
        #: How much of the large counts is tried; 0 when this is no campaign.
        self.campaign = 0.0
        self.seed = 0

    def examples(self, usual: int) -> int:
        """Return how many examples of a property are tried: in CI half of ``usual``, else many times it."""
        if not self.campaign:
            return (usual + 1) // 2
        return max(usual, round(usual * _EXAMPLES * self.campaign))

    def seeds(self, count: int) -> range:
        """Return the seeds of ``count`` generated programs or walks."""
        return range(self.seed, self.seed + count)

    # Generated programs.
    differential_programs = Size(48, 20_000)
    field_programs = Size(48, 10_000)
    flow_programs = Size(12, 5_000)
    typed_programs = Size(16, 5_000)
    fixed_programs = Size(6, 5_000)
    damaged_programs = Size(48, 2_000)
    cut_programs = Size(30, 2_000)
    #: Sequences of edits in a language server.
    edit_sequences = Size(3, 1_000)
    streamed_edit_sequences = Size(1, 50)
    fuzzed_runs = Size(400, 100_000)
    fuzzed_texts = Size(250, 50_000)
    secret_rounds = Size(2, 5)
    harmless_strings = Size(1_000, 10_000)
    broken_replies = Size(250, 50_000)
    damaged_messages = Size(16, 5_000)
    damaged_records = Size(100, 10_000)
    durable_programs = Size(30, 2_000)
    #: Edits of programs and prompts, each of which a replay tells at the right effect.
    edited_programs = Size(6, 200)
    taped_programs = Size(20, 1_000)
    #: A tape is cut off at one of so many bytes, and has another byte in so many places.
    tape_cuts_share = Size(199, 1)
    #: One of so many programs, and of so many options, is recorded and replayed by commands.
    taped_commands_share = Size(3, 1)
    damaged_tapes = Size(60, 5_000)
    #: Recorded runs in which the debugger goes back and forth.
    stepped_programs = Size(3, 40)
    stepped_conformance = Size(1, 20)
    killed_programs = Size(1, 30)
    killed_graphs = Size(0, 20)
    program_store_share = Size(5, 1)
    #: How often each is killed.
    program_kills = Size(1, 20)
    #: One of so many calls of a run is one that it is branched at.
    branched_share = Size(9, 1)
    #: Generated programs, each branched at every call.
    branched_programs = Size(3, 400)
    #: Random walks over files in an overlay.
    overlay_walks = Size(10, 2_000)
    #: One of so many prefixes of a program.
    prefix_share = Size(19, 1)

    # One of so many of the repository's programs.
    walk_share = Size(3, 1)
    silent_share = Size(37, 1)
    layout_share = Size(101, 1)
    traps_share = Size(17, 1)
    format_share = Size(79, 1)
    names_share = Size(47, 1)
    coloured_share = Size(23, 1)
    fixes_share = Size(121, 1)
    #: One of so many changes to a bundle.
    odd_share = Size(7, 1)
    lark_share = Size(79, 1)
    imported_share = Size(5, 1)
    #: One of so many calls of builtins with a hostile value.
    call_share = Size(200, 1)
    sqlite_share = Size(12, 1)
    jsonl_share = Size(36, 1)

    # Orders of tasks, signals, processes, connections.
    task_orders = Size(2, 200)
    replays = Size(5, 50)
    signals = Size(10, 1_000)
    mcp_ends = Size(2, 200)
    http_requests = Size(50, 10_000)
    streamed_events = Size(1_000, 100_000)
    server_events = Size(500, 100_000)
    #: Connections to two servers that break, while servers are killed.
    reconnects = Size(0, 1_000)
    writes = Size(6, 500)
    path_calls = Size(2_000, 100_000)
    sandbox_calls = Size(400, 100_000)
    #: A reply is cut off at one of so many bytes.
    wire_share = Size(199, 1)
    #: Sessions that move from service to service.
    wire_walks = Size(1, 50)

    #: One of so many policies is in force where a node has its own.
    policies_share = Size(8, 1)

    # Stores.
    store_walks = Size(2, 20)
    store_steps = Size(60, 400)
    store_writers = Size(3, 4)
    store_rounds = Size(20, 500)
    lease_holders = Size(3, 8)
    lease_turns = Size(6, 200)
    killed_writers = Size(3, 50)
    #: On each store.
    kills = Size(3, 3_200)
    server_crashes = Size(1, 200)
    forks = Size(2, 200)
    large_record = Size(1_000_000, 50_000_000)
    waiter_processes = Size(2, 4)
    waiter_runs = Size(1, 8)
    #: Programs with a model that end in each way, and one of so many ways.
    shutdowns = Size(1, 8)
    shutdown_share = Size(5, 1)
    killed_waiters = Size(1, 3)

    # Engines.
    queued_runs = Size(20, 200)
    rivals = Size(3, 8)

    # Sessions.
    killed_loops = Size(2, 120)
    conversations_kept = Size(1, 250)
    conversations_live = Size(2, 250)
    compactions = Size(10, 2_000)
    #: One of so many bytes is where a log is cut.
    cuts_share = Size(19, 1)
    #: One of so many bytes is damaged.
    bytes_share = Size(29, 1)
    database_share = Size(127, 1)
    guarantee_entries = Size(100, 10_000)
    guarantee_size = Size(250_000, 50_000_000)
    #: So many graphs are changed between two processes that run them.
    graph_changes = Size(8, 2_000)
    #: One of so many appends is where a process ends, and another goes on.
    reentry_share = Size(5, 1)
    turns_share = Size(13, 1)
    #: A loop is cancelled at one of so many awaits.
    awaits_share = Size(29, 1)
    cancelled_stores = Size(1, 3)


COUNT = Counts()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("harnpy")
    group.addoption("--campaign", action="store_const", const=1.0, default=0.0, help="try the large counts")
    group.addoption(
        "--campaign-times",
        type=float,
        dest="campaign",
        metavar="TIMES",
        help="so many times the large counts",
    )
    group.addoption("--campaign-seed", type=int, metavar="SEED", help="repeat the campaign with this seed")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the counts before modules of tests are imported."""
    COUNT.campaign = config.option.campaign
    if not COUNT.campaign:
        return
    seed = config.option.campaign_seed
    if seed is None:
        seed = getattr(config, "workerinput", {}).get("campaign_seed", randrange(1_000_000_000))
    COUNT.seed = seed
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave each test above the stores on one of them, chosen by its name; in a campaign on all."""
    if COUNT.campaign:
        return
    above = tuple(f"tests/{folder}/" for folder in _ABOVE_STORES)
    left_out = set(on_other_stores(item for item in items if item.nodeid.startswith(above)))
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def on_other_stores(items: Iterable[pytest.Item]) -> Iterable[pytest.Item]:
    """Yield the tests that are left out: of those that are alike but for their store, all but one."""
    alike = defaultdict[object, list[pytest.Item]](list)
    for item in items:
        call: Any = getattr(item, "callspec", None)
        stores = {name for name, value in call.params.items() if _is_store(value)} if call else ()
        if stores:
            others = frozenset((name, id(value)) for name, value in call.params.items() if name not in stores)
            alike[item.nodeid.partition("[")[0], others].append(item)
    for tests in alike.values():
        chosen = crc32(tests[0].nodeid.encode()) % len(tests)
        yield from tests[:chosen] + tests[chosen + 1 :]


def _is_store(value: object) -> bool:
    return isinstance(value, str) and _ON.fullmatch(value) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the processes of xdist the same seed."""
    node.workerinput["campaign_seed"] = COUNT.seed


def pytest_report_header() -> str | None:
    if not COUNT.campaign:
        return None
    return f"campaign: {COUNT.campaign:g} × the large counts, --campaign-seed {COUNT.seed}"
