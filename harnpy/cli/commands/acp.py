"""`harnpy acp`: an agent for editors, over the Agent Client Protocol. Spec: 11 §4."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import complain

if TYPE_CHECKING:
    from typing import BinaryIO

    from harnpy import Vm


@click.command("acp", short_help="Serve an agent to an editor (ACP).")
@click.argument("agent")
@click.option(
    "--store", metavar="URL", help="The session store, instead of the configured one; also memory:."
)
@trust_option
@click.option("--debug", is_flag=True, help="Show the Python traceback of a failure.")
def command(agent: str, store: str | None, debug: bool) -> int:
    """Serve AGENT to the editor that starts this command, over stdin and stdout, until it disconnects.

    AGENT is a Harn file with `pub fn agent()` or a pipeline, or NAME of a table [agents.NAME] in harn.toml.
    Needs the extra: pip install 'harnpy[acp]'.
    """
    if find_spec("acp") is None:
        complain("error: `harnpy acp` needs the Agent Client Protocol's library: pip install 'harnpy[acp]'")
        return FAILED
    from harnpy.cli.console import report_failure
    from harnpy.cli.process import take_streams
    from harnpy.serve.program import NotServed
    from harnpy.storage.errors import StorageError
    from harnpy.vm.errors import ExitRequest

    reader, writer = take_streams()
    try:
        asyncio.run(_serve(agent, store, reader, writer))
    except (NotServed, StorageError) as error:
        complain(f"error: {error}")
        return FAILED
    except ExitRequest as request:
        return request.code
    except Exception as error:
        return report_failure(error, debug)
    return OK


async def _serve(agent: str, url: str | None, reader: BinaryIO, writer: BinaryIO) -> None:
    from harnpy.serve.acp import AcpAgent, serve_acp
    from harnpy.serve.agents import Agents
    from harnpy.session.aio import AsyncSessionRuntime
    from harnpy.session.stores import store_settings
    from harnpy.storage.opening import open_store, placed
    from harnpy.world import World

    world = World()
    here = world.files.cwd()
    # The sessions decide where the process works, and files are those of here.
    given = os.path.join(here, agent) if agent.endswith(".harn") or os.path.isfile(agent) else agent
    store = open_store(store_settings(world).url if url is None else placed(url, here))
    try:
        async with (
            Agents([given], store, new_vm=_vm, world=world) as agents,
            AsyncSessionRuntime(store, agents=agents.loops, share_chunks=True) as runtime,
        ):
            await serve_acp(AcpAgent(agents, runtime, world, os.chdir), reader, writer)
    finally:
        store.close()


def _vm(file: str) -> Vm:
    from harnpy import Vm
    from harnpy.cli.project_setup import bind_project

    vm = Vm()
    bind_project(vm, file)
    return vm
