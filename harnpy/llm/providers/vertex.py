"""Claude on Google's Vertex AI. Spec: 07 §1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic

from harnpy.llm.providers.anthropic import AnthropicProvider
from harnpy.llm.providers.google_tokens import GoogleTokens

if TYPE_CHECKING:
    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.request import Request
    from harnpy.llm.transport import Caps
    from harnpy.world.http import Http

#: The version of the protocol that this package speaks, under the name that Vertex AI has for it.
_VERSION = "vertex-2023-10-16"


class VertexProvider(AnthropicProvider):
    rewritten = True  # the model is in the path
    path = "/v1/messages"

    def __init__(self, config: ProviderConfig, http: Http, caps: Caps | None = None) -> None:
        super().__init__(config, http, caps)
        self._tokens = GoogleTokens(config)

    def new_client(self) -> anthropic.AsyncAnthropicVertex:
        config, cloud = self.config, self.config.cloud
        return anthropic.AsyncAnthropicVertex(
            region=cloud.region or "",
            project_id=cloud.project or "",
            access_token="none",
            base_url=config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def body(self, request: Request) -> dict[str, Any]:
        return {"anthropic_version": _VERSION, **super().body(request)}

    def health_url(self, endpoint: str) -> str:
        cloud = self.config.cloud
        return self.config.base_url + endpoint.format(project=cloud.project, region=cloud.region)

    def authorization(self) -> dict[str, Any]:
        return self._tokens.header()
