"""The formats that a session's file can have: which one it is, writing it, reading it. Spec: 10 §C17."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import lines_of
from harnpy.session.arguments import check_session
from harnpy.session.errors import SessionExists, TransferError
from harnpy.session.log import Session
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import (
    admission,
    agently,
    ai_sdk,
    canto,
    claude_code,
    codex,
    cognesy,
    databases,
    foreign,
    inspect_ai,
    langchain,
    listed,
    messages,
    otel,
    pages,
    pydantic_ai,
)
from harnpy.session.transfer.agently import JSON, YAML, load_document, path_or_text_of
from harnpy.session.transfer.canto import are_cantos, read_log
from harnpy.session.transfer.logs import (
    BESIDE,
    dump_beside,
    dump_log,
    holds,
    load_rows,
    read_beside,
    rows_of,
)
from harnpy.session.transfer.messages import FAMILIES
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from harnpy.session.transfer.admission import Loss
    from harnpy.storage import Store

    Json = dict[str, Any]
    Load = Callable[[Store, World, str | None], str]

# A session's state as a JSON or YAML text, and a session by itself made of one. Spec: 10 §A2.7, §C17.


_LANGUAGES = {"json": JSON, "yaml": YAML}


def dump_state(session: Session, format: str = "json", *, plain: bool = False) -> str:
    """Return history, window, memo, settings and what else counts now, as a text in ``json`` or ``yaml``.

    ``plain``: without what only harnpy reads. Raises `TransferError` for another format.
    """
    check_session(session)
    return agently.dumps(session, _language(format), plain=plain)


def load_state(
    path_or_text: str,
    format: str = "json",
    *,
    session_key_path: str | None = None,
    encoding: str = "utf-8",
    id: str | None = None,
) -> Session:
    """Return a session by itself, made of a file or of a text that is no file's path; JSON may be JSON5.

    ``session_key_path`` is a dot path to it in a larger document; ``id`` takes the place of its own. Nothing
    is resized. Raises `TransferError`, its `TransferTypeError`, `EventRejected`,
    `InvalidSessionId`, OSError.
    """
    world = World()
    state = load_document(path_or_text, _language(format), world, part=session_key_path, encoding=encoding)
    stored = agently.load_state(state, MemoryStore(), world, id)
    session = Session.__new__(Session)._attach(stored.origin, stored.stream, stored.view, stored.moment)
    session.saves = None
    return session


def _language(format: str) -> str:
    if not isinstance(format, str) or format not in _LANGUAGES:
        raise TransferError(f"unknown format '{format}' (known: {', '.join(_LANGUAGES)})")
    return _LANGUAGES[format]


# The formats that a session's file can have, and which one a file has. Spec: 10 §C17.


AUTO = "auto"
#: How many lines are looked at to find out which tool wrote a file.
_LOOKED_AT = 20
#: The formats of other tools, whose conversations can be imported again.
TOOLS = (claude_code.TOOL, codex.TOOL, *FAMILIES)
#: Messages of one of `FAMILIES`, which is seen when the file is read.
MESSAGES = "messages"
#: What is only written: pages for people.
PAGES = (pages.MARKDOWN, pages.HTML)
#: What is only read: files that hold many conversations.
READ = (databases.LANGGRAPH, databases.AGENTS, inspect_ai.TOOL, otel.TOOL)
#: How such files are named that a folder is searched for, beside JSON.
MANY_SUFFIXES = (*databases.SUFFIXES, inspect_ai.SUFFIX)
#: Where a directory of Canto says which session was forked from which.
ANCESTRY = "ancestry.jsonl"


class Parsed(NamedTuple):
    """A file's session: ``load(store, world, id)`` makes it, under its own id for None, and returns its id.

    ``grow`` adds what is new to one that is there already, and returns None when that is nothing;
    ``branches`` then are what the session goes on without. ``id``: that of another tool's conversation.
    """

    parent: str | None
    losses: Sequence[Loss]
    load: Load
    grow: Callable[[Store, World, str | None], str | None] | None = None
    branches: Sequence[foreign.Branch] = ()
    id: str | None = None


class Format(NamedTuple):
    """``parse(text, record, path)`` reads a file, or a text, whose path is empty; ``record`` is its session's
    in an ancestry."""

    name: str
    suffix: str
    dumps: Callable[[Session], str]
    lost: Callable[[Session], Sequence[Loss]]
    parse: Callable[[str, Json | None, str], Parsed]


def format_called(name: str) -> Format:
    """Return the format of that name. Raises `TransferError`."""
    found = next((format for format in FORMATS if format.name == name), None)
    if found is None and name in READ:
        raise TransferError(
            f"a file of {name} holds many conversations: it is imported by its path, and not as one"
        )
    if found is None:
        known = ", ".join(format.name for format in FORMATS)
        raise TransferError(f"unknown format '{name}' (known: {known})")
    return found


def format_of(path: str, text: str, name: str = AUTO) -> Format:
    """Return the format of a file: the one called ``name``, else by what is in it. Raises `TransferError`."""
    if name != AUTO:
        return format_called(name)
    suffix = posixpath.splitext(path)[1].lower()
    if suffix in (".md", ".html"):
        pages.refuse()
    if suffix == ".jsonl":
        lines = lines_of(text)
        tool = "canto" if are_cantos(lines) else tool_of(lines) or "jsonl"
        return format_called(messages.format_in(text) or "jsonl" if tool == MESSAGES else tool)
    language = _FORMATS_LANGUAGES.get(suffix)
    if language is not None:
        keys = _value(text, language)
        if isinstance(keys, dict) and keys.keys() >= {"header", "state"}:
            return format_called("cognesy")
        if isinstance(keys, dict) and "full_context" in keys:
            return format_called("agently-json" if language == JSON else "agently-yaml")
        found = next((name for is_one, name in _LISTS if language == JSON and is_one(keys)), None)
        if found is not None:
            return format_called(found)
        if language == JSON and (found := messages.format_in(text)) is not None:
            return format_called(found)
    raise TransferError("cannot tell its format: name it by `format` or `--format`")


def tool_of(lines: Iterable[str | bytes]) -> str | None:
    """Return which other tool wrote these lines, by the first of them; None for none that is known."""
    for line in islice(lines, _LOOKED_AT):
        try:
            row = foreign.read_line(line) if line.strip() else None
        except ValueError:
            return None
        if isinstance(row, dict) and codex.is_rollout(row):
            return codex.TOOL
        if isinstance(row, dict) and claude_code.is_transcript(row):
            return claude_code.TOOL
        if otel.is_export(row):
            return otel.TOOL
        if messages.is_row(row):
            return MESSAGES
    return None


#: Formats of frameworks, by what a JSON value is.
_LISTS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (pydantic_ai.is_history, pydantic_ai.TOOL),
    (ai_sdk.is_chat, ai_sdk.TOOL),
    (langchain.is_dump, langchain.TOOL),
)


def list_in(text: str) -> str | None:
    """Return which framework wrote a list of messages; None for none of them."""
    try:
        value = foreign.read_line(text)
    except (ValueError, RecursionError):
        return None
    return next((name for is_one, name in _LISTS if is_one(value)), None)


def many_of(path: str, world: World) -> str | None:
    """Return which format of many conversations a file has; None for none of them."""
    if path.endswith(inspect_ai.SUFFIX):
        return inspect_ai.TOOL
    return None if path.endswith(".jsonl") else otel.tool_of(path, world) or databases.tool_of(path, world)


def threads_of(path: str, format: str, world: World) -> Iterator[listed.Thread]:
    """Yield the conversations of a file. Raises `TransferError`."""
    if format == inspect_ai.TOOL:
        return inspect_ai.threads(path, world)
    return otel.threads(path, world) if format == otel.TOOL else databases.threads(format, path, world)


_FORMATS_LANGUAGES = {".json": JSON, ".json5": JSON, ".yaml": YAML, ".yml": YAML}


def _value(text: str, language: str) -> Any:
    try:
        return agently.read_text(text, language)
    except ValueError as error:
        raise TransferError(
            f"Cannot load {language} content or file path not existed.\nError: {error}"
        ) from None


# One of each.


def _parse_log(text: str, record: Json | None, path: str) -> Parsed:
    lines = lines_of(text)
    if record is not None or are_cantos(lines):
        rows, losses = read_log(lines, record)
    else:
        rows, losses = rows_of(lines), []
    return Parsed(_parent_of(rows), losses, lambda store, world, id: load_rows(rows, store, world, id).id)


def _parent_of(rows: Sequence[Json]) -> str | None:
    facts = rows[0]["data"] if rows else None
    parent = facts.get("parent_session_id") if isinstance(facts, dict) else None
    return parent if isinstance(parent, str) else None


def _parsed_beside(lines: Sequence[str], format: str) -> Parsed:
    """Return the log that stands beside a file of that format. A session that has it all stays as it is."""

    def grow(store: Store, world: World, id: str | None) -> None:
        name = id or rows[0]["session_id"]
        session = StoredSession.load(name, store, world)
        if session is None or not holds(session, lines):
            raise SessionExists(name, 0 if session is None else session.version)

    rows = rows_of(lines)
    return Parsed(
        _parent_of(rows),
        [],
        lambda store, world, id: load_rows(rows_of(lines), store, world, id).id,
        None if format in _STATES else grow,
    )


#: Formats of one session each, which isn't imported again.
_STATES = ("cognesy", "agently-json", "agently-yaml")


def _parse_cognesy(text: str, record: Json | None, path: str) -> Parsed:
    value = _value(text, JSON)
    header = value.get("header") if isinstance(value, dict) else None
    parent = header.get("parentId") if isinstance(header, dict) else None
    return Parsed(parent, [], lambda store, world, id: cognesy.load_file(value, store, world, id).id)


def _parse_agently(language: str) -> Callable[[str, Json | None, str], Parsed]:
    def parse(text: str, record: Json | None, path: str) -> Parsed:
        value = _value(text, language)
        return Parsed(None, [], lambda store, world, id: agently.load_state(value, store, world, id).id)

    return parse


def _parse_claude_code(text: str, record: Json | None, path: str) -> Parsed:
    return parsed_conversation(claude_code.conversations(foreign.Rows(text))[0])


def _parse_codex(text: str, record: Json | None, path: str) -> Parsed:
    return parsed_conversation(codex.conversation(foreign.Rows(text), lambda id: None))


def _parse_list(read: Callable[[str], foreign.Conversation]) -> Callable[[str, Json | None, str], Parsed]:
    def parse(text: str, record: Json | None, path: str) -> Parsed:
        return parsed_conversation(listed.understood(read, text))

    return parse


def parsed_conversation(conversation: foreign.Conversation) -> Parsed:
    """Return what was read of another tool's file."""
    branches: list[foreign.Branch] = []
    noted = conversation._replace(branches=branches)
    load, grow = partial(foreign.load, noted), partial(foreign.grown, noted)
    return Parsed(conversation.parent, conversation.losses, load, grow, branches, conversation.id)


def renamed(id: str, prefix: str | None) -> str:
    """Return the id of another tool's session, with a ``prefix`` in the place of the tool's name."""
    tools = (f"{name}-" for name in (*(format.name for format in FORMATS), *READ))
    tool = next((tool for tool in tools if id.startswith(tool)), "")
    return id if prefix is None else prefix + id.removeprefix(tool)


def _messages(name: str) -> Format:
    def parse(text: str, record: Json | None, path: str) -> Parsed:
        found = messages.conversations(text, path, name)
        if len(found) != 1:
            raise TransferError(
                f"there are {len(found)} conversations in it: import_sessions makes a session of each"
            )
        return parsed_conversation(found[0])

    return Format(
        name,
        ".json",
        lambda session: messages.dumps(session, name),
        lambda session: messages.lost(session, name),
        parse,
    )


def _nothing(session: Session) -> Sequence[Loss]:
    return []


def _agently(name: str, suffix: str, language: str) -> Format:
    return Format(
        name,
        suffix,
        lambda session: agently.dumps(session, language),
        agently.lost,
        _parse_agently(language),
    )


FORMATS = (
    Format("jsonl", ".jsonl", lambda session: "".join(dump_log(session)), _nothing, _parse_log),
    Format("canto", ".jsonl", lambda session: "".join(canto.dump_lines(session)), _nothing, _parse_log),
    Format("cognesy", ".json", cognesy.dumps, cognesy.lost, _parse_cognesy),
    _agently("agently-json", ".json", JSON),
    _agently("agently-yaml", ".yaml", YAML),
    Format(claude_code.TOOL, ".jsonl", claude_code.dumps, claude_code.lost, _parse_claude_code),
    Format(codex.TOOL, ".jsonl", codex.dumps, codex.lost, _parse_codex),
    *map(_messages, FAMILIES),
    Format(
        pydantic_ai.TOOL, ".json", pydantic_ai.dumps, pydantic_ai.lost, _parse_list(pydantic_ai.conversation)
    ),
    Format(ai_sdk.TOOL, ".json", ai_sdk.dumps, ai_sdk.lost, _parse_list(ai_sdk.conversation)),
    Format(langchain.TOOL, ".json", langchain.dumps, langchain.lost, _parse_list(langchain.conversation)),
    Format(pages.MARKDOWN, ".md", pages.markdown_of, pages.lost_of_markdown, pages.refuse),
    Format(pages.HTML, ".html", pages.html_of, pages.lost, pages.refuse),
)


# One session out to a file, and in again. Spec: 10 §C17.


#: What to do with a session whose id is taken.
ERROR, SKIP, RENAME = "error", "skip", "rename"
#: Add what is new, to a conversation of another tool that was imported before.
UPDATE = "update"


def export(
    session: Session,
    format: str = "jsonl",
    path: str | None = None,
    *,
    strict: bool = False,
    world: World | None = None,
) -> str:
    """Return a session as the text of a file, and write it to ``path``: as a whole or not at all.

    ``world`` has the files (None: the session's). ``strict``: raise `TransferError` when the format can't
    hold everything of it; see `lost`. Without it, the log stands beside a file that can't, under the file's
    name and `BESIDE`: it is imported with the file.
    """
    chosen = format_called(format)
    if strict:
        admission.refuse(chosen.lost(session))
    text = dumped(session, chosen)
    if path is not None:
        write(session, chosen, path, text, session.origin.world if world is None else world)
    return text


def dumped(session: Session, format: Format) -> str:
    """Return a session as the text of a file. Raises `TransferError` for one with messages that aren't any,
    such as what another program has put there."""
    return listed.understood(format.dumps, session)


def write(session: Session, format: Format, path: str, text: str, world: World) -> Sequence[Loss]:
    """Write a session's file, and beside it what its format can't hold; return what that is."""
    losses = listed.understood(format.lost, session)
    world.files.replace_text(path, text)
    if losses and format.name not in PAGES:
        world.files.replace_text(path + BESIDE, dump_beside(session, format.name, text))
    elif format.lost is not _nothing:
        with suppress(FileNotFoundError):  # of another session, perhaps, of which the same was written
            world.files.remove(path + BESIDE)
    return losses


def lost(session: Session, format: str) -> Sequence[Loss]:
    """Return what of a session a file of that format doesn't hold."""
    return format_called(format).lost(session)


def import_(
    path_or_text: str,
    store: Store,
    format: str = AUTO,
    *,
    id: str | None = None,
    on_conflict: str | None = None,
    strict: bool = False,
    world: World | None = None,
) -> StoredSession | None:
    """Make a session of a file, or of a text whose ``format`` is named; return None if it was skipped.

    ``id`` takes the place of its own. ``on_conflict`` says what happens when that is taken: `UPDATE`, which
    adds what is new and is the default of other tools' formats, `ERROR`, the default of the others, `SKIP`,
    or `RENAME`, a new id. Nothing is resized or run. Raises `TransferError`, `SessionExists` and OSError;
    nothing is stored then.
    """
    world = World() if world is None else world
    path_or_text = path_or_text_of(path_or_text)
    is_path = "\n" not in path_or_text and world.files.is_file(path_or_text)
    if is_path:
        parsed = parsed_file(path_or_text, world, format, {})
    else:
        parsed = format_of("the text", path_or_text, format).parse(path_or_text, None, "")
    if strict:
        admission.refuse(parsed.losses)
    made = admitted(parsed, store, world, id, on_conflict)
    return None if made is None else StoredSession.load(made, store, world)


def admitted(
    parsed: Parsed, store: Store, world: World, id: str | None, on_conflict: str | None
) -> str | None:
    """Store what was read and return its id; None when it was skipped, or had nothing new. Raises
    `SessionExists`."""
    try:
        return parsed.load(store, world, id)
    except SessionExists:
        if on_conflict in (None, UPDATE) and parsed.grow is not None:
            return parsed.grow(store, world, id)
        if on_conflict in (None, UPDATE, ERROR):
            raise
        return None if on_conflict == SKIP else parsed.load(store, world, world.ids.new())


def parsed_one(path: str, world: World, format: str) -> Parsed:
    """Read a file of one session. Raises `TransferError` for a file of several."""
    tool = format if format in READ else many_of(path, world) if format == AUTO else None
    if tool is None:
        return parsed_file(path, world, format, {})
    ids = [thread.id for thread in threads_of(path, tool, world)]
    if len(ids) != 1:
        names = ", ".join(ids[:6]) + (", …" if len(ids) > 6 else "")
        raise TransferError(
            f"it holds {admission.counted(len(ids), 'session')} ({names}), and an id is for one: "
            "import it without --id; with --prefix '' each keeps its own"
        )
    # Each is read while its file is open.
    [conversation] = [listed.understood(thread.read) for thread in threads_of(path, tool, world)]
    return parsed_conversation(conversation)


def parsed_file(path: str, world: World, format: str, records: dict[str, Json]) -> Parsed:
    """Read a file, and what stands beside it. ``records`` are those of an ancestry, by the name of the file
    that each is about."""
    beside = read_beside(path, world)
    if beside.lines is not None:
        return _parsed_beside(beside.lines, beside.format)
    text = world.files.read_text(path)
    record = records.get(path)
    if record is not None:
        format = "canto"
    chosen = format_of(path, text, format)
    parsed = chosen.parse(text, record, path)
    if beside.loss is None or chosen.lost is _nothing:
        return parsed
    return parsed._replace(losses=[*parsed.losses, beside.loss])
