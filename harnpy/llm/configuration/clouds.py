"""What calls to a cloud need besides a key: a place, whom they are from, and what signs them.

A cloud's models are spoken to in the protocol of their makers: Claude in Anthropic's, others in that of chat
completions. Pure. Spec: 07 §1.14.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

#: The protocol of a cloud's models that aren't Claude.
_OF_OTHERS = {"bedrock": "bedrock_chat", "vertex": "vertex_chat"}

#: The protocols whose requests only an SDK can authorise or place.
IN_CLOUDS = ("azure_openai", *_OF_OTHERS, *_OF_OTHERS.values())

_REGIONAL = "{region}-aiplatform.googleapis.com"
#: The places of Vertex AI that are called otherwise.
_WIDE = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}

#: How a call is authorised when the key is a token, and when Google's credentials file makes the tokens.
BEARER, GOOGLE = "bearer", "google"
#: How Amazon's calls are signed: with a secret, and a token when that is a temporary one.
SIGNED = "aws_sigv4"
AWS_SECRET, AWS_SESSION = "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


@dataclass(frozen=True, slots=True)
class Cloud:
    """Where a provider's calls go and whom they are from; None for what it doesn't need.

    ``secret`` and ``session`` sign calls to Amazon; ``credentials`` is the text of a Google service account's
    key, which makes tokens.
    """

    region: str | None = None
    project: str | None = None
    api_version: str | None = None
    secret: str | None = field(default=None, repr=False)
    session: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)

    def secrets(self) -> list[str]:
        """What nothing may show."""
        private = of_account(self.credentials, "private_key")
        return [each for each in (self.secret, self.session, private) if each]


def protocol_of(protocol: str, model: str | None) -> str:
    """The protocol in which a provider of ``protocol`` serves a model.

    The name of an Amazon resource tells nothing of its model: Claude's is assumed, unless the configuration
    names the protocol of the others itself.
    """
    claude = model is None or "claude" in model.lower() or model.startswith("arn:")
    return protocol if claude else _OF_OTHERS.get(protocol, protocol)


def placed(url: str, region: str | None) -> str:
    """An address in a region, whose name takes the place of ``{region}`` in it."""
    if region is None:
        return url
    return url.replace(_REGIONAL, _WIDE.get(region, _REGIONAL)).replace("{region}", region)


def of_account(credentials: str | None, name: str) -> str | None:
    """A text of a service account's key, if that is what ``credentials`` holds."""
    try:
        key = json.loads(credentials or "null")
    except ValueError:
        return None
    value = key.get(name) if isinstance(key, dict) else None
    return value if isinstance(value, str) else None
