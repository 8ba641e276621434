"""A program that embeds Harn, with the types that such a program has: mypy checks it, a test runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from harnpy import (
    CallError,
    Cancelled,
    Checker,
    ExitRequest,
    Host,
    HostError,
    LimitExceeded,
    Limits,
    People,
    Reply,
    Request,
    SourceFault,
    Thrown,
    UnsupportedValue,
    Vm,
    VmError,
    World,
    __version__,
    isolated,
)


class Shouting:
    """A model."""

    async def complete(self, request: Request) -> Reply:
        text = str(request.messages[-1]["content"])
        if not text:
            raise CallError("invalid_request", "nothing to shout")
        return Reply(text.upper(), request.model, "shouting", request.model, input_tokens=3, output_tokens=3)


def open_file(params: dict[str, Any]) -> dict[str, Any]:
    return {"opened": params["path"]}


async def answer(request: dict[str, Any]) -> dict[str, Any]:
    return {"answer": 42}


def parcel(number: int) -> dict[str, str]:
    return {42: {"at": "the station"}}[number]


def made(globals: Mapping[str, object]) -> Vm:
    world = World(host=Host({"editor.open": open_file}), people=People(answer))
    vm = Vm(world, limits=Limits(seconds=60), egress={"default": "deny"})
    vm.provide("shouting", Shouting())
    vm.register("parcel(number: int) -> dict", parcel)
    for name, value in globals.items():
        vm.set_global(name, value)
    return vm


def outcome(vm: Vm, source: str) -> str:
    try:
        return str(vm.run_source(source, file="job.harn", args=["a"]))
    except HostError as error:
        cause: BaseException | None = error.__cause__
        return f"{error} from {type(cause).__name__} at {error.frames[0].line}"
    except Cancelled as error:
        return error.category
    except LimitExceeded as error:
        return error.limit
    except Thrown as error:
        return f"thrown {error.value}"
    except VmError as error:
        return error.text
    except SourceFault as fault:
        return fault.diagnostics[0].code or fault.message
    except ExitRequest as request:
        return f"exit {request.code}"


async def inside(vm: Vm) -> object:
    running = asyncio.create_task(vm.run_async("sleep(1h)"))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    return await vm.run_async("return 1")


def refusal(vm: Vm) -> str:
    try:
        vm.set_global("x", {"f": [print]})
    except UnsupportedValue as error:
        return error.path
    return ""


def main() -> list[object]:
    vm = made({"motto": "sessions are first class"})
    vm.cancel()
    with isolated(seconds=30) as apart:
        one: object = apart.run_source("return 1")
    return [
        outcome(vm, "return motto.len()"),
        outcome(vm, "parcel(41)"),
        outcome(vm, "throw 3"),
        outcome(vm, "exit(2)"),
        outcome(vm, 'return ask_user("How many?")'),
        outcome(vm, 'return llm_call("hi", nil, {provider: "shouting", model: "m"}).text'),
        asyncio.run(inside(vm)),
        refusal(vm),
        one,
        [found.severity for found in Checker(vm=vm).check({"a.harn": "nope()"})["a.harn"]],
        bool(__version__),
    ]
