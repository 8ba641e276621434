"""Models on Azure, Bedrock and Vertex AI: what goes over the wire, and what comes back (07 §1.14)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.llm.call import Models
from harnpy.llm.errors import CallError
from harnpy.llm.providers.health import healthcheck
from harnpy.world.http import RealHttp
from tests.llm.conftest import World
from tests.llm.providers.test_providers import AMBIENT
from tests.llm.wire import ANTHROPIC, KEY, OPENAI, Answer, Call, Fail, Raw, Received, Say, Wire
from tests.worlds import models_with

_SECRET = "aws-secret-9c1e5d7f3b"
_SESSION = "s3ssion-t0ken-1f2e3d"
_ID = "AKIDHARNPYTEST"
_AWS = {"AWS_ACCESS_KEY_ID": _ID, "AWS_SECRET_ACCESS_KEY": _SECRET, "AWS_SESSION_TOKEN": _SESSION}
_AT_GOOGLE = {"GOOGLE_CLOUD_PROJECT": "p-1"}

#: The clouds: provider, model, protocol of the wire, variable of the address, and what authorises a call.
AZURE = ("azure_openai", "gpt-4o", OPENAI, "AZURE_OPENAI_ENDPOINT", {"AZURE_OPENAI_API_KEY": KEY})
BEDROCK = ("bedrock", "us.anthropic.claude-sonnet-4-5-v1:0", ANTHROPIC, "BEDROCK_BASE_URL", _AWS)
BEDROCK_CHAT = ("bedrock", "openai.gpt-oss-120b-1:0", OPENAI, "BEDROCK_BASE_URL", _AWS)
VERTEX = (
    "vertex", "claude-sonnet-4@20250514", ANTHROPIC, "VERTEX_AI_BASE_URL",
    {"VERTEX_AI_ACCESS_TOKEN": KEY, **_AT_GOOGLE},
)  # fmt: skip
VERTEX_CHAT = ("vertex", "gemini-2.5-pro", OPENAI, "VERTEX_AI_BASE_URL", VERTEX[4])
CLOUDS = (AZURE, BEDROCK, BEDROCK_CHAT, VERTEX, VERTEX_CHAT)

ALL = pytest.mark.parametrize(
    "cloud", CLOUDS, ids=["azure", "bedrock", "bedrock_chat", "vertex", "vertex_chat"]
)


class Asked:
    """A call to a cloud that is a server of ours: its ``reply`` or ``error``, and the last request."""

    def __init__(
        self, cloud: tuple[Any, ...], *answers: Answer, env: dict[str, str] | None = None, **options: Any
    ) -> None:
        provider, model, protocol, address, own = cloud
        self.reply: Any = None
        with Wire(protocol, *answers) as wire:
            models = models_with({address: f"http://127.0.0.1:{wire.port}", **(own if env is None else env)})
            given = Options({"provider": provider, "model": model, **options})
            try:
                self.reply = models.ask(models.request("hi", "Be brief.", given))
            except CallError as error:
                self.error = error
            finally:
                models.waiting.wait(models.connections.aclose())
                models.waiting.close()
            self.requests = wire.requests

    @property
    def sent(self) -> Received:
        return self.requests[-1]


@ALL
def test_a_call_streamed_and_whole(cloud: tuple[Any, ...]) -> None:
    say = Say(
        "Hello, wörld", calls=(Call("look", '{"n": 1}'),), input_tokens=20, output_tokens=5, cache_read=3
    )
    bodies = []
    for stream in (True, False):
        asked = Asked(cloud, say, stream=stream, temperature=0.5, env={**cloud[4]})
        reply = asked.reply
        assert (reply.text, reply.provider) == ("Hello, wörld", cloud[0])
        assert [(call["name"], call["arguments"]) for call in reply.tool_calls] == [("look", {"n": 1})]
        assert (reply.input_tokens, reply.output_tokens, reply.cache_read_tokens) == (20, 5, 3)
        assert asked.sent.body["temperature"] == 0.5
        bodies.append({key: value for key, value in asked.sent.body.items() if not key.startswith("stream")})
    assert bodies[0] == bodies[1]


def test_azure_names_the_deployment_in_the_path() -> None:
    for env, header, value in (
        ({"AZURE_OPENAI_API_KEY": KEY}, "api-key", KEY),
        ({"AZURE_OPENAI_AD_TOKEN": KEY, "AZURE_OPENAI_API_KEY": "other"}, "authorization", f"Bearer {KEY}"),
    ):
        sent = Asked(
            AZURE, Say("ok"), env={**env, "AZURE_OPENAI_API_VERSION": "2025-01-01"}, model="my gpt"
        ).sent
        assert sent.path == "/openai/deployments/my%20gpt/chat/completions?api-version=2025-01-01"
        assert sent.headers[header] == value
        assert {"api-key", "authorization"} - {header} - sent.headers.keys()
        assert sent.body["max_completion_tokens"] == 16384
    sent = Asked(AZURE, Say("ok")).sent
    assert sent.path == "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize("cloud", [BEDROCK, BEDROCK_CHAT], ids=["claude", "others"])
def test_bedrock_is_signed_or_has_a_token(cloud: tuple[Any, ...]) -> None:
    for region in ({}, {"AWS_REGION": "eu-west-3"}):
        sent = Asked(cloud, Say("ok"), env={**_AWS, **region}, system="wörld \ud800").sent
        assert sent.headers["authorization"] == _signed(sent, region.get("AWS_REGION", "us-east-1"))
        assert sent.headers["x-amz-security-token"] == _SESSION
    sent = Asked(cloud, Say("ok"), env={**_AWS, "AWS_BEARER_TOKEN_BEDROCK": KEY}).sent
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "x-amz-date" not in sent.headers


def test_bedrock_names_the_model_in_the_path() -> None:
    named = "/model/us.anthropic.claude-sonnet-4-5-v1:0/"
    sent = Asked(BEDROCK, Say("ok")).sent
    assert sent.path == f"{named}invoke-with-response-stream"
    assert sent.body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & sent.body.keys()
    betas = Asked(BEDROCK, Say("ok"), stream=False, anthropic_beta_features=["a", "b"]).sent
    assert betas.path == f"{named}invoke"
    assert betas.body["anthropic_beta"] == ["a", "b"]
    arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
    assert (
        Asked(BEDROCK, Say("ok"), model=arn, stream=False).sent.path
        == f"/model/{arn.replace('/', '%2F')}/invoke"
    )
    assert Asked(BEDROCK_CHAT, Say("ok")).sent.path == "/openai/v1/chat/completions"


def test_vertex_names_the_project_and_the_model_in_the_path() -> None:
    place = "/projects/p-1/locations"
    claude = "publishers/anthropic/models/claude-sonnet-4@20250514"
    sent = Asked(VERTEX, Say("ok")).sent
    assert sent.path == f"{place}/global/{claude}:streamRawPredict"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in sent.body
    sent = Asked(VERTEX, Say("ok"), env={**VERTEX[4], "CLOUD_ML_REGION": "europe-west1"}, stream=False).sent
    assert sent.path == f"{place}/europe-west1/{claude}:rawPredict"
    sent = Asked(VERTEX_CHAT, Say("ok")).sent
    assert sent.path == f"{place}/global/endpoints/openapi/chat/completions"
    assert (sent.body["model"], sent.headers["authorization"]) == ("google/gemini-2.5-pro", f"Bearer {KEY}")


@pytest.mark.parametrize("cloud", [VERTEX, VERTEX_CHAT], ids=["claude", "others"])
def test_a_service_account_makes_its_own_tokens(cloud: tuple[Any, ...], tmp_path: Any) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(_account()), encoding="utf-8")
    sent = Asked(cloud, Say("ok"), env={"GOOGLE_APPLICATION_CREDENTIALS": str(file)}).sent
    assert sent.path.startswith("/projects/p-of-the-key/")
    public = serialization.load_pem_private_key(_account()["private_key"].encode(), None).public_key()
    claims = jwt.decode(sent.headers["authorization"].removeprefix("Bearer "), public, ["RS256"])
    assert claims["iss"] == claims["sub"] == "robot@p.iam.gserviceaccount.com"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert claims["exp"] - claims["iat"] == 3600


def test_other_credentials_are_refused(tmp_path: Any) -> None:
    file = tmp_path / "key.json"
    for text, said in (
        ('{"type": "authorized_user"}', "expected the key of a service_account, found authorized_user"),
        ('{"type": "service_account", "private_key": "x"}', "can't be used"),
        ("no json", "can't be used"),
    ):
        file.write_text(text, encoding="utf-8")
        env = {"GOOGLE_APPLICATION_CREDENTIALS": str(file), **_AT_GOOGLE}
        error = Asked(VERTEX, Say("ok"), env=env).error
        assert error.category == "auth"
        assert said in error.message


@ALL
def test_the_environment_of_the_process_is_not_looked_at(
    cloud: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in AMBIENT:
        monkeypatch.setenv(name, "x-ambient: found")
    sent = Asked(cloud, Say("ok")).sent
    assert not re.search("ambient|found", str(sent))


def test_what_cannot_be_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody's")
    error = Asked(BEDROCK, Say("ok"), env={**_AWS, "AWS_ACCESS_KEY_ID": "AKIDOTHER"}).error
    assert (error.category, "can't be signed" in error.message) == ("auth", True)


# --- what goes wrong ----------------------------------------------------------------------------------


@ALL
def test_errors_have_their_categories_and_no_secrets(cloud: tuple[Any, ...]) -> None:
    hidden = [value for value in cloud[4].values() if value in (KEY, _SECRET, _SESSION)]
    for status, category in ((401, "auth"), (404, "not_found"), (429, "rate_limit"), (503, "overloaded")):
        error = Asked(cloud, Fail(status, message=f"no {' '.join(hidden)}", after="2")).error
        assert error.category == category
        assert error.message.startswith(f"{cloud[0]}: HTTP {status} ")
        assert error.message.endswith("\nretry-after: 2")
        assert not any(each in error.message for each in hidden)


def test_the_forms_that_errors_have() -> None:
    amazon = Asked(BEDROCK, Raw(b'{"message": "The security token is expired"}', status=403)).error
    assert (amazon.category, amazon.message) == (
        "auth", "bedrock: HTTP 403 Forbidden: The security token is expired",
    )  # fmt: skip
    google = b'[{"error": {"code": 403, "message": "Permission denied", "status": "PERMISSION_DENIED"}}]'
    assert Asked(VERTEX_CHAT, Raw(google, status=403)).error.message.endswith(": Permission denied")


@pytest.mark.parametrize(
    ("name", "category"),
    [("throttlingException", "rate_limit"), ("modelStreamErrorException", "server_error"),
     ("serviceUnavailableException", "overloaded"), ("validationException", "generic")],
)  # fmt: skip
def test_a_stream_of_amazons_that_fails(name: str, category: str) -> None:
    error = Asked(BEDROCK, Say("Hello", cut_after=3, error_after={"type": name, "message": "too much"})).error
    assert (error.category, "too much" in error.message) == (category, True)


def test_a_stream_that_is_not_amazons() -> None:
    broken = Raw(b"\0\0\0\x20\0\0\0\0garbage, and more of it than a prelude")
    error = Asked(BEDROCK, broken).error
    assert (error.category, "malformed response" in error.message) == ("server_error", True)
    assert Asked(BEDROCK, Say("Hello", cut_after=3)).error.category == "transient_network"


# --- configuration ------------------------------------------------------------------------------------


def test_where_clouds_are(world: World) -> None:
    def at(provider: str, model: str | None = None, **env: str) -> tuple[Any, ...]:
        config = world(**env).config.known_providers.configuration(provider, model=model)
        return config.protocol, config.auth_style, config.base_url, config.cloud.region

    amazon = "https://bedrock-runtime.{}.amazonaws.com".format
    google = "https://{}aiplatform.googleapis.com/v1".format
    assert at("bedrock", **_AWS) == ("bedrock", "aws_sigv4", amazon("us-east-1"), "us-east-1")
    assert at("bedrock", "amazon.nova", AWS_DEFAULT_REGION="eu-west-3", AWS_BEARER_TOKEN_BEDROCK="t") == (
        "bedrock_chat", "bearer", amazon("eu-west-3"), "eu-west-3",
    )  # fmt: skip
    assert at("vertex", **VERTEX[4]) == ("vertex", "bearer", google(""), "global")
    assert at("vertex", "gemini-2", CLOUD_ML_REGION="us-east5", **VERTEX[4])[::2] == (
        "vertex_chat",
        google("us-east5-"),
    )
    assert at("vertex", CLOUD_ML_REGION="eu", **VERTEX[4])[2] == "https://aiplatform.eu.rep.googleapis.com/v1"
    azure = at("azure_openai", AZURE_OPENAI_ENDPOINT="acme.openai.azure.com/", AZURE_OPENAI_AD_TOKEN="t")
    assert azure == ("azure_openai", "bearer", "https://acme.openai.azure.com", None)


def test_a_file_may_name_all_of_it(world: World) -> None:
    file = """
    [providers.mine]
    base_url = "https://bedrock.acme.example"
    protocol = "bedrock_chat"
    auth_style = "aws_sigv4"
    api_key = "bedrock-key"
    region = "eu-west-3"
    [providers.vertex]
    project = "p-file"
    region = "us"
    """
    known = world(
        {"/c": file}, HARN_PROVIDERS_CONFIG="/c", AWS_BEARER_TOKEN_BEDROCK="no"
    ).config.known_providers
    mine = known.configuration("mine", model="claude-x")
    assert (mine.protocol, mine.auth_style, mine.api_key, mine.cloud.region) == (
        "bedrock_chat", "bearer", "bedrock-key", "eu-west-3",
    )  # fmt: skip
    shown = known.describe("vertex")
    assert shown is not None
    assert (shown["region"], shown["project"]) == ("us", "p-file")
    assert "bedrock-key" not in str(known.describe_all())


def test_what_is_missing_is_named(world: World) -> None:
    def refused(provider: str, **env: str) -> str:
        models = world(**env)
        with pytest.raises(OptionError) as caught:
            models.provider(models.request("hi", None, Options({"provider": provider, "model": "claude-x"})))
        return caught.value.message

    assert refused("bedrock").startswith(
        "Missing API key: set AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY env"
    )
    assert refused("bedrock", AWS_ACCESS_KEY_ID="a").startswith("Missing API key")
    assert refused("vertex").startswith(
        "Missing API key: set VERTEX_AI_ACCESS_TOKEN or GOOGLE_APPLICATION_CREDENTIALS environment variable"
    )
    assert refused("vertex", VERTEX_AI_ACCESS_TOKEN="t") == (
        "provider 'vertex' needs a project: set ANTHROPIC_VERTEX_PROJECT_ID or GOOGLE_CLOUD_PROJECT, "
        "or `project` in the providers file"
    )
    assert refused("vertex", GOOGLE_APPLICATION_CREDENTIALS="/gone") == (
        "GOOGLE_APPLICATION_CREDENTIALS: /gone: No such file or directory"
    )
    assert refused("azure_openai", AZURE_OPENAI_API_KEY="k") == (
        "provider 'azure_openai' needs an address: set AZURE_OPENAI_ENDPOINT, "
        "or `base_url` in the providers file"
    )


@ALL
def test_a_probe_is_authorised_as_calls_are(cloud: tuple[Any, ...]) -> None:
    provider, _, _, address, own = cloud
    paths = {
        "azure_openai": "/openai/models?api-version=2024-10-21",
        "bedrock": "/foundation-models",
        "vertex": "/projects/p-1/locations/global",
    }
    for status in (200, 403, 500):
        with Wire(OPENAI, Raw(b"{}", status=status)) as wire:
            models = models_with({address: f"http://127.0.0.1:{wire.port}", **own})
            report = _probed(models, provider)
        (asked,) = wire.requests
        assert asked.path == paths[provider]
        assert {"authorization", "api-key"} & asked.headers.keys()
        assert (report["valid"], report["status"]) == {
            200: (True, "ok"), 403: (False, "auth_failed"), 500: (False, "http_error"),
        }[status]  # fmt: skip
        assert not re.search(f"{KEY}|{_SECRET}", str(report))
    assert _probed(models, provider)["status"] == "unreachable"


def test_a_probe_of_what_is_half_configured(world: World) -> None:
    report = _probed(world(VERTEX_AI_ACCESS_TOKEN="t"), "vertex")
    assert (report["status"], "needs a project" in report["message"]) == ("not_configured", True)


def test_a_probe_with_credentials_of_another_kind(world: World) -> None:
    files = {"/key.json": '{"type": "authorized_user", "project_id": "p-1"}'}
    report = _probed(world(files, GOOGLE_APPLICATION_CREDENTIALS="/key.json"), "vertex")
    assert (report["valid"], report["status"]) == (False, "not_configured")
    assert report["message"].endswith("expected the key of a service_account, found authorized_user")


def _probed(models: Models, provider: str) -> dict[str, Any]:
    return asyncio.run(healthcheck(RealHttp(), models.config.known_providers, provider, Options({})))


# --- the services' side -------------------------------------------------------------------------------


@cache
def _account() -> dict[str, str]:
    """The key of a service account."""
    key = rsa.generate_private_key(65537, 2048)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return {
        "type": "service_account",
        "project_id": "p-of-the-key",
        "client_email": "robot@p.iam.gserviceaccount.com",
        "private_key": key.private_bytes(*form).decode(),
        "private_key_id": "k1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }


def _signed(request: Received, region: str) -> str:
    """The header that the request must have, by Amazon's Signature Version 4."""
    given = re.search("SignedHeaders=([^,]+)", request.headers["authorization"])
    assert given is not None
    names = given[1].split(";")
    at = request.headers["x-amz-date"]
    path = request.path.replace(":", "%3A")
    rows = [f"{name}:{request.headers[name]}" for name in names]
    canonical = "\n".join(["POST", path, "", *rows, "", given[1], hashlib.sha256(request.raw).hexdigest()])
    scope = f"{at[:8]}/{region}/bedrock/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{_SECRET}".encode()
    for part in (at[:8], region, "bedrock", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"Credential={_ID}/{scope}"
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    return f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={given[1]}, Signature={signature}"
