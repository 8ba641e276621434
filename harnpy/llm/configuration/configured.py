"""What is known of providers and models, read from the files when first asked for. Spec: 07 §1.14–1.15."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from harnpy.llm.configuration.capabilities import Matrix, read_rules
from harnpy.llm.configuration.capability_rows import BUILT_IN
from harnpy.llm.configuration.config_files import Configuration, load
from harnpy.llm.configuration.known_models import KnownModels
from harnpy.llm.configuration.known_providers import KnownProviders

if TYPE_CHECKING:
    from collections.abc import Callable


class Configured:
    """``read`` returns a file's text, ``directory`` the program's place; without ``read`` no file is read.

    Each property raises `OptionError` for a file that is wrong.
    """

    def __init__(
        self,
        env: Callable[[str], str | None],
        read: Callable[[str], str] | None,
        directory: Callable[[], str],
    ) -> None:
        self._env = env
        self._read = read
        self._directory = directory

    @cached_property
    def _files(self) -> Configuration:
        return Configuration() if self._read is None else load(self._env, self._read, self._directory())

    @cached_property
    def known_providers(self) -> KnownProviders:
        return KnownProviders(self._files.settings, self._env, self._files.source, self._read)

    @cached_property
    def known_models(self) -> KnownModels:
        return KnownModels(self._files.settings, self.known_providers.default)

    @cached_property
    def capabilities(self) -> Matrix:
        table = self._files.capabilities
        where = f"{self._files.manifest}: capabilities"
        return Matrix(BUILT_IN, None if table is None else read_rules(table, where))
