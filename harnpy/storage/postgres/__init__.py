"""The store on a PostgreSQL server, for sessions that many machines share. Spec: 10 §C6.3.

`database` defines the tables and runs transactions on them, `records` reads and writes rows, `store` keeps
the contract with them; `leases` and `text_search` are its other parts. Needs the extra ``postgres``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.errors import StorageError
from harnpy.version import install_command

if TYPE_CHECKING:
    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Machine
    from harnpy.storage.opening import StoreUrl


def open_postgres(url: StoreUrl, machine: Machine) -> Store:
    """Open the store in the database at ``url``, creating its tables when there are none."""
    try:
        import psycopg
        import psycopg_pool
    except ImportError as error:
        raise StorageError(f"{url} needs psycopg: {install_command('postgres')}") from error
    del psycopg, psycopg_pool
    from harnpy.storage.postgres.store import PostgresStore

    return PostgresStore(url, machine)
