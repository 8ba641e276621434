"""Other models on Google's Vertex AI than Claude, by chat completions. Spec: 07 §1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from harnpy.llm.providers.google_tokens import GoogleTokens
from harnpy.llm.providers.openai_compatible import OpenAIProvider

if TYPE_CHECKING:
    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.transport import Caps
    from harnpy.world.http import Http


class VertexChatProvider(OpenAIProvider):
    path = "/chat/completions"

    def __init__(self, config: ProviderConfig, http: Http, caps: Caps | None = None) -> None:
        super().__init__(config, http, caps)
        self._tokens = GoogleTokens(config)

    def new_client(self) -> openai.AsyncOpenAI:
        config, cloud = self.config, self.config.cloud
        place = f"projects/{cloud.project}/locations/{cloud.region}"
        return openai.AsyncOpenAI(
            api_key="none",
            base_url=f"{config.base_url}/{place}/endpoints/openapi",
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def model_id(self, model: str) -> str:
        """Models are named with their makers there; ours without one are Google's."""
        return model if "/" in model else f"google/{model}"

    def authorization(self) -> dict[str, Any]:
        return self._tokens.header()
