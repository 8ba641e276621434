"""Tokens for Google's services: one that is given, or those that a service account's key makes.

A key makes them by a signature, without asking a server: https://google.aip.dev/auth/4111. Spec: 07 §1.14.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.llm.configuration.clouds import GOOGLE
from harnpy.llm.errors import CallError

if TYPE_CHECKING:
    from harnpy.llm.configuration.known_providers import ProviderConfig

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class GoogleTokens:
    """The tokens of one configuration. A token lives for an hour, and is then replaced."""

    def __init__(self, config: ProviderConfig) -> None:
        self._token = config.api_key
        self._account = _account(config) if config.auth_style == GOOGLE else None

    def header(self) -> dict[str, str]:
        """The header that authorises a request."""
        if self._account is not None:
            if not self._account.valid:
                self._account.refresh(None)
            self._token = self._account.token.decode()
        return {"Authorization": f"Bearer {self._token}"}


def _account(config: ProviderConfig) -> Any:
    """The service account whose key the configuration has. Raises `CallError` for anything else."""
    from google.auth.jwt import Credentials

    try:
        key = json.loads(config.cloud.credentials or "")
        kind = key.get("type") if isinstance(key, dict) else None
        if kind != "service_account":
            raise ValueError(f"expected the key of a service_account, found {kind or 'something else'}")
        load: Any = Credentials.from_service_account_info  # has no types
        return load(key, audience=None, additional_claims={"scope": _SCOPE})
    except ValueError as error:
        raise CallError("auth", f"{config.name}: the file of credentials can't be used: {error}") from None
