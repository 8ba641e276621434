"""Other models on Amazon Bedrock than Claude, by chat completions. The SDK signs requests. Spec: 07 §1.14."""

from __future__ import annotations

import botocore  # noqa: F401  signs requests: without it the SDK fails in the middle of a call
import openai
from openai.providers import bedrock

from harnpy.llm.configuration.clouds import BEARER
from harnpy.llm.providers.openai_compatible import OpenAIProvider


class BedrockChatProvider(OpenAIProvider):
    path = "/chat/completions"

    def new_client(self) -> openai.AsyncOpenAI:
        config, cloud = self.config, self.config.cloud
        token = config.auth_style == BEARER
        return openai.AsyncOpenAI(
            provider=bedrock(
                endpoint="runtime",
                region=cloud.region,
                base_url=f"{config.base_url}/openai/v1",
                api_key=config.api_key if token else None,
                access_key_id=None if token else config.api_key,
                secret_access_key=None if token else cloud.secret,
                session_token=None if token else cloud.session,
            ),
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )
