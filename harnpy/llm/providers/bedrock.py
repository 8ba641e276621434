"""Claude on Amazon Bedrock. The SDK signs requests and unpacks Amazon's streams of events. Spec: 07 §1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import boto3  # noqa: F401  signs requests: without it the SDK fails in the middle of a call

from harnpy.llm.configuration.clouds import BEARER
from harnpy.llm.providers.anthropic import AnthropicProvider

if TYPE_CHECKING:
    from harnpy.llm.request import Request

#: The version of the protocol that this package speaks, under the name that Bedrock has for it.
_VERSION = "bedrock-2023-05-31"


class BedrockProvider(AnthropicProvider):
    rewritten = True  # the model is in the path
    path = "/v1/messages"

    def new_client(self) -> anthropic.AsyncAnthropicBedrock:
        config, cloud = self.config, self.config.cloud
        client = anthropic.AsyncAnthropicBedrock(
            # Without one, the SDK takes a key from the environment.
            api_key=config.api_key,
            aws_region=cloud.region,
            base_url=config.base_url,
            default_headers=self.client_headers(),
            max_retries=0,
            http_client=self.http.sdk_client(self.sdk, self.caps.bytes),
        )
        if config.auth_style != BEARER:
            client.api_key = None
            client.aws_access_key, client.aws_secret_key = config.api_key, cloud.secret
            client.aws_session_token = cloud.session
        return client

    def body(self, request: Request) -> dict[str, Any]:
        return {"anthropic_version": _VERSION, **super().body(request)}

    def health_url(self, endpoint: str) -> str:
        """The list of models is served by another host than the models."""
        return self.config.base_url.replace("//bedrock-runtime.", "//bedrock.", 1) + endpoint
