"""YAML, read in time that grows with the text's length, or refused. Spec: 07 §13.1.

Aliases are refused: a few of them stand for values of any size, and merge keys copy those.
"""

from __future__ import annotations

from typing import Any

import yaml

#: Characters; a text has no use for more, and some numbers take quadratic time.
_LONGEST = 64 * 1024
#: As in JSON.
_DEEPEST = 128


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases are not supported")
        if self._depth > _DEEPEST:
            raise ValueError("recursion limit exceeded")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def parse_yaml(text: str) -> Any:
    """Return the one value in a text. Raises ValueError."""
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    finally:
        loader.dispose()
