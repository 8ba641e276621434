"""What a branch changes: what its models are asked, and what its program reads. Spec: 13 §5.1."""

from __future__ import annotations

import dataclasses
import os.path
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harnpy.durable.journal import ENV, MODEL, READ, WRITE
from harnpy.durable.values import encode
from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.formats.json import compact_json
from harnpy.formats.options import expected
from harnpy.formats.suggestions import hint
from harnpy.llm.call_options import CALL
from harnpy.llm.request import SETTINGS, Request, with_settings
from harnpy.llm.routing import Stop
from harnpy.tape.description import kind_of, task_of
from harnpy.tape.tapes import Asking, Tape, TapeError
from harnpy.workflow.engines.contract import Step
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harnpy.llm.call import Models
    from harnpy.tape.journal import TapeJournal
    from harnpy.workflow.engines.contract import Json
    from harnpy.world.files import Files


@dataclass(frozen=True, slots=True)
class Changes:
    """How a branch differs from its run.

    ``message`` replaces the last user message of the call: a text, or a message dict. ``model`` is that of
    the call and of all behind it, ``options`` are the call's own (`llm_call`'s). ``files`` are files that the
    program reads as they are by now, each with the file whose text it has (itself, mostly). ``code`` is the
    file of another program. Paths are from the working directory.
    """

    message: Json = None
    model: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None

    @property
    def is_of_call(self) -> bool:
        """Whether something changes what models are asked."""
        return self.message is not None or self.model is not None or bool(self.options)

    def told(self) -> list[str]:
        """Return the changes in words, as the header of a branch has them."""
        words = [f"message {compact_json(self.message)}"] if self.message is not None else []
        words += [f"model {self.model}"] if self.model is not None else []
        words += [f"set {name}={compact_json(value)}" for name, value in self.options.items()]
        for file, other in self.files.items():
            words.append(f"edit {file}" if file == other else f"edit {file}={other}")
        return words + ([f"code {self.code}"] if self.code is not None else [])

    def check(self) -> None:
        """Raise `TapeError` for what no call can have."""
        message = self.message
        is_message = (
            isinstance(message, dict) and message.get("role", "user") == "user" and "content" in message
        )
        if message is not None and not isinstance(message, str) and not is_message:
            raise TapeError('the message of a branch is a text, or a dict {role: "user", content: …}')
        for name, value in self.options.items():
            _check_option(name, value)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,), "dict": (dict,), "float": (int, float), "int": (int,), "list": (list,), "string": (str,)
}  # fmt: skip


def _check_option(name: str, value: Json) -> None:
    """Raise `TapeError` for an option that a branch can't set, or not to that."""
    if name not in SETTINGS:
        if name in CALL.own:
            known = ", ".join(SETTINGS)
            raise TapeError(f"'{name}' isn't part of what a model is asked: a branch sets {known}")
        raise TapeError(f"a model's call has no option '{name}' ({expected(name, SETTINGS)})")
    types = CALL.own[name].type
    fits = any(type(value) in _TYPES[each] for each in types.split(" | "))
    if value is not None and not fits:
        raise TapeError(f"'{name}' can't be {compact_json(value)}: it takes {types.replace(' | ', ' or ')}")
    try:
        with_settings(Request([], None, "", ""), Options({name: value}))
    except OptionError as error:
        raise TapeError(f"'{name}' can't be {compact_json(value)}: {error}") from None


class ChangedRequests:
    """What models are asked in place of what the program asks, from a call of a branch on.

    ``known`` are the keys of the calls before it, which stay as they are.
    """

    def __init__(self, asking: Asking, known: Iterable[str]) -> None:
        self._asking = asking
        self._known = frozenset(known)
        self._is_made = False
        #: Where the message is that was replaced, what it was and what it is.
        self._replaced: tuple[int, Json, dict[str, Json]] | None = None
        #: The models of the program, once it has some.
        self.models: Models | None = None

    def changed(self, key: str, request: Request) -> Request:
        """Return what is asked in place of ``request`` by the call with that key.

        Raises `TapeError` where a change can't be made.
        """
        if key in self._known:
            return request
        if not self._is_made and self._is_call(key):
            self._is_made = True
            request = self._as_call(request)
        elif self._replaced is not None:
            place, former, message = self._replaced
            if len(request.messages) > place and request.messages[place] == former:
                request = _with_message(request, place, message)
        return request if self._asking.model is None else self._on_model(request, self._asking.model)

    def _is_call(self, key: str) -> bool:
        call = self._asking.call
        if call is None:
            return True
        return task_of(key) == task_of(call) if self._asking.is_other else key == call

    def _as_call(self, request: Request) -> Request:
        message = self._asking.message
        if message is not None:
            place = _last_of_user(request.messages)
            if place is None:
                raise TapeError("the call has no user message to replace: branch at another call")
            made = (
                {"role": "user", "content": message}
                if isinstance(message, str)
                else {"role": "user", **message}
            )
            self._replaced = place, request.messages[place], made
            request = _with_message(request, place, made)
        if self._asking.options:
            request = with_settings(request, Options(self._asking.options))
        return request

    def _on_model(self, request: Request, model: str) -> Request:
        assert self.models is not None, "a request is made by them"
        config = self.models.config
        lead, slash, rest = model.partition("/")
        provider = request.provider
        if slash and (lead in self.models.provided or lead in config.known_providers.names()):
            provider, model = lead, rest
        elif config.known_models.assigns(model):
            known = config.known_models.resolve(model)
            provider, model = known.provider, known.id
        if provider not in self.models.provided and not self.models.mock.intercepts(provider):
            try:
                config.known_providers.require_known(provider)
                config.known_providers.require(provider)
            except OptionError as error:
                raise TapeError(f"the branch can't ask {provider}/{model}: {error}") from None
        return request.at(Stop(provider, model), config)


def _last_of_user(messages: list[dict[str, Any]]) -> int | None:
    """Return the place of the last message of the user, which isn't a tool's result."""
    for place in reversed(range(len(messages))):
        content = messages[place].get("content")
        blocks = content if isinstance(content, list) else ()
        is_result = any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)
        if messages[place].get("role") == "user" and not is_result:
            return place
    return None


def _with_message(request: Request, place: int, message: dict[str, Any]) -> Request:
    messages = [*request.messages[:place], message, *request.messages[place + 1 :]]
    return dataclasses.replace(request, messages=messages)


def calls_of(steps: Sequence[Step]) -> list[int]:
    """Return the places of the records that calls of models came to, or began to come: one for each call."""
    return [place for place, step in enumerate(steps) if kind_of(step.key) == MODEL]


def install(journal: TapeJournal, vm: Any, changes: Sequence[ChangedRequests]) -> None:
    """Have the models of a program that is about to begin be asked what the changes say, one after the
    other. One that can't be made ends the program."""

    def change(key: str, request: Request) -> Request:
        try:
            for each in changes:
                request = each.changed(key, request)
        except TapeError as error:
            raise journal.refuse(error) from None
        return request

    def know(models: Models) -> None:
        for each in changes:
            each.models = models

    journal.change = change
    vm.settings.on_models.append(know)


def inherited(tape: Tape) -> list[ChangedRequests]:
    """Return the changes that a branch was made with: its program is asked for them again."""
    origin = tape.header.branch
    asking = () if origin is None else origin.asking
    keys = [tape.steps[place].key for place in calls_of(tape.steps)] if asking else []
    return [ChangedRequests(each, keys[: each.at - 1]) for each in asking]


# What the program reads.


class EditedFile:
    """A file of the program's at the absolute path ``key``, with the text of the file ``source``."""

    def __init__(self, key: str, source: str, files: Files) -> None:
        self.key = key
        self._status = files.status(source)
        self.data = files.read_bytes(source)

    def answer(self, method: str) -> dict[str, Json] | None:
        """Return what a record says that reads the file; None for what else a record may be about."""
        value: Any
        if method == "read_text":
            value = self.data.decode("utf-8", "replace")
        elif method == "read_bytes":
            value = self.data
        elif method in ("exists", "is_file"):
            value = True
        elif method == "status":
            value = self._status
        elif method == "modified":
            value = self._status.st_mtime_ns
        else:
            return None
        return {"ok": encode(value, utf8=True)}


def edited_files(changes: Changes, files: Files, cwd: str) -> list[EditedFile]:
    """Return the files that a branch edits. Raises `TapeError` for one that can't be read."""
    found = []
    for file, other in changes.files.items():
        key = _key(file, files, cwd)
        try:
            found.append(EditedFile(key, key if file == other else os.path.join(files.cwd(), other), files))
        except OSError as error:
            raise TapeError(f"the edited file {other} can't be read: {system_reason(error)}") from None
    return found


def _key(file: str, files: Files, cwd: str) -> str:
    """Return the path of a file of the run: from the working directory, or from the run's if it isn't in
    there."""
    here, there = (os.path.normpath(os.path.join(base, file)) for base in (files.cwd(), cwd))
    return here if here.startswith(cwd + "/") and files.exists(here) else there


def edited(tape: Tape, edits: list[EditedFile], *, is_other: bool) -> Tape:
    """Return a tape whose program reads the edited files: as long as it hasn't written them itself.

    Raises `TapeError` for a file that the program never looks at, unless it ``is_other`` than the tape's.
    """
    cwd = tape.job.body["cwd"]
    by_key, met = {each.key: each for each in edits}, set()
    steps, left = [], dict(by_key)
    for step in tape.steps:
        for key, method in _looks(step, cwd):
            edit = left.get(key)
            if edit is None:
                continue
            met.add(key)
            answer = edit.answer(method)
            if kind_of(step.key) == WRITE:
                del left[key]
            elif answer is not None:
                kept = {name: step.output[name] for name in ("asked", "at") if name in step.output}
                step = Step(step.key, {**kept, **answer})
        steps.append(step)
    texts = dict(tape.job.body["files"])
    for key in by_key.keys() & texts.keys():
        met.add(key)
        texts[key] = by_key[key].data.decode("utf-8", "replace")
    missed = [key for key in by_key if key not in met]
    if missed and not is_other:
        name = missed[0].removeprefix(cwd + "/")
        read = {
            key.removeprefix(cwd + "/")
            for step in tape.steps
            for key, method in _looks(step, cwd)
            if method.startswith("read_") and "ok" in step.output
        }
        what = hint(name, sorted(read)) if read else "it reads none"
        raise TapeError(f"the program of {tape.path} doesn't read {name}: {what}")
    body = {**tape.job.body, "files": texts}
    header = replace(tape.header, job=replace(tape.job, body=body))
    return replace(tape, header=header, steps=steps)


def _looks(step: Step, cwd: str) -> Iterator[tuple[str, str]]:
    """Yield the absolute paths that a step is about, each with the method that was called."""
    kind = kind_of(step.key)
    if kind == ENV and step.key.startswith("file/"):
        _, method, place = step.key.removesuffix(f":{ENV}").split("/", 2)
        yield place if place.startswith("/") else f"/{place}", method
    asked = step.output.get("asked") if isinstance(step.output, dict) else None
    if kind in (READ, WRITE) and isinstance(asked, list) and len(asked) > 1:
        places = [asked[1], asked[2]] if asked[0] in ("rename", "copy") else [asked[1]]
        for place in places:
            if isinstance(place, str):
                yield os.path.normpath(os.path.join(cwd, place)), asked[0]
