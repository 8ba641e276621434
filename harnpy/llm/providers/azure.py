"""OpenAI's models on Azure: chat completions of a deployment, which the call names as its model.

Spec: 07 §1.14.
"""

from __future__ import annotations

import openai

from harnpy.llm.configuration.clouds import BEARER
from harnpy.llm.providers.openai_compatible import OpenAIProvider


class AzureProvider(OpenAIProvider):
    rewritten = True  # the deployment is in the path
    path = "/chat/completions"
    limit = "max_completion_tokens"

    def new_client(self) -> openai.AsyncAzureOpenAI:
        config = self.config
        token = config.auth_style == BEARER
        return openai.AsyncAzureOpenAI(
            api_key=None if token else config.api_key,
            azure_ad_token=config.api_key if token else None,
            base_url=f"{config.base_url}/openai",
            api_version=config.cloud.api_version,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )

    def health_url(self, endpoint: str) -> str:
        return f"{self.config.base_url}/openai{endpoint}"
