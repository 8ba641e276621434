"""The configuration files and what they change; keys stay secret (07 §1.14)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harnpy import Vm
from harnpy.faults import OptionError
from harnpy.llm.errors import CallError
from tests.support import ROOT
from tests.worlds import OwnWorld

SECRET = "sk-very-secret"
ACME = """
[providers.acme]
base_url = "https://acme.example/v1"
auth_envs = ["ACME_KEY"]
rpm = 7
"""


def test_a_file_adds_a_provider_to_the_built_in_ones(world: Any) -> None:
    providers = world(files={"/c": ACME}, HARN_PROVIDERS_CONFIG="/c").config.known_providers
    assert providers.describe("acme") == {
        "base_url": "https://acme.example/v1",
        "auth_style": "bearer",
        "auth_envs": ["ACME_KEY"],
        "auth_available": False,
        "chat_endpoint": "/chat/completions",
        "rpm": 7,
    }
    assert (providers.rpm("acme"), providers.rpm("openai"), providers.rpm("nobody")) == (7, None, None)
    assert providers.default_model("openai") == "gpt-4o"


def test_keys_of_a_known_provider_replace_its_own(world: Any) -> None:
    text = '[providers.openai]\nrpm = 5\ndefault_model = "o3"\n'
    providers = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_providers
    assert (providers.rpm("openai"), providers.default_model("openai")) == (5, "o3")
    assert providers.configuration("openai").base_url == "https://api.openai.com/v1"


def test_the_named_file_goes_before_the_one_at_home(world: Any) -> None:
    files = {"/c": 'default_provider = "groq"', "/h/.config/harn/providers.toml": 'default_provider = "mlx"'}
    assert world(files=files, HOME="/h").config.known_providers.default == "mlx"
    assert world(files=files, HOME="/h", HARN_PROVIDERS_CONFIG="/c").config.known_providers.default == "groq"
    assert world(files=files).config.known_providers.default == "anthropic"


def test_the_nearest_manifest_lies_over_it(world: Any) -> None:
    files = {
        "/c": 'default_provider = "groq"\n[qc_defaults]\ngroq = "a"\nopenai = "b"',
        "/p/harn.toml": '[llm]\ndefault_provider = "mlx"\n[llm.qc_defaults]\ngroq = "c"',
        "/harn.toml": '[llm]\ndefault_provider = "vllm"',
    }
    config = world(files=files, HARN_PROVIDERS_CONFIG="/c").config
    assert config.known_providers.default == "mlx"
    assert [config.known_models.qc_default(name) for name in ("groq", "openai", "local")] == [
        "c",
        "b",
        "gpt-4o",
    ]


def test_a_variable_goes_before_the_default_provider_of_a_file(world: Any) -> None:
    files = {"/p/harn.toml": '[llm]\ndefault_provider = "mlx"'}
    assert world(files=files, HARN_DEFAULT_PROVIDER="tgi").config.known_providers.default == "tgi"


def test_names_of_models(world: Any) -> None:
    text = """
        [aliases]
        fast = {id = "acme-1", provider = "acme", tool_format = "native"}
        "acme/mid" = {id = "acme-mid", provider = "acme"}
        "openai:small" = {id = "gpt-tiny", provider = "openai"}
        small = {id = "tiny", provider = "ollama"}
        [[inference]]
        exact = "gpt-4o"
        provider = "acme"
        [[inference]]
        glob = "acme-*"
        provider = "acme"
        [[inference]]
        contains = "corp"
        provider = "openai"
        [[tiers]]
        glob = "claude-*"
        tier = "small"
        [models."acme-1"]
        name = "Acme One"
        provider = "acme"
        context_window = 1000
        stream_timeout = 30
        pricing = {input_per_mtok = 1.0, output_per_mtok = 2, cache_read_per_mtok = 0.5}
    """
    known_models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_models
    asked = ("gpt-4o", "acme-x", "my/corp-llm", "ollama:acme-1", "gpt-4")
    assert [known_models.infer_provider(model) for model in asked] == [
        "acme", "acme", "openai", "ollama", "openai"
    ]  # fmt: skip
    assert (known_models.tier("claude-x"), known_models.tier("gpt-4o")) == ("small", "frontier")
    assert known_models.pick("small") == ("tiny", "ollama", "small")
    assert known_models.pick("tier/small").id == "Qwen/Qwen3.5-9B"
    assert known_models.pick("mid", "acme").id == "gpt-4o-mini"  # the plain name is tried first
    assert known_models.resolve("acme/mid") == ("acme-mid", "acme", "acme/mid")
    assert known_models.tool_format("acme-1", "acme") == "native"
    assert known_models.tool_format("acme-1", "openai") == "text"
    assert known_models.tool_format("any", "bedrock") == "native"
    assert known_models.entry("acme-1") == {
        "id": "acme-1",
        "name": "Acme One",
        "provider": "acme",
        "context_window": 1000,
        "stream_timeout": 30.0,
        "capabilities": [],
        "pricing": {
            "input_per_mtok": 1.0,
            "output_per_mtok": 2.0,
            "cache_read_per_mtok": 0.5,
            "cache_write_per_mtok": None,
            "tiers": [],
        },
    }


def test_a_tier_has_a_model_at_each_provider(world: Any) -> None:
    text = (
        '[aliases]\n"acme/big" = {id = "a", provider = "acme"}\n"acme:wide" = {id = "b", provider = "acme"}'
    )
    known_models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_models
    assert [known_models.pick(name, "acme").id for name in ("big", "wide", "deep")] == ["a", "b", "deep"]
    assert known_models.pick("big").id == "big"


def test_the_price_of_the_catalogue_is_what_calls_cost(world: Any) -> None:
    text = (
        '[models.m]\nname = "M"\nprovider = "mock"\npricing = {input_per_mtok = 1000000, output_per_mtok = 0}'
    )
    models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c")
    request = models.request("12345", None, models.options({"provider": "mock", "model": "m"}))
    assert models.ask(request).cost == 5.0
    limited = models.options({"provider": "mock", "model": "m", "max_cost_usd": 1})
    with pytest.raises(CallError, match="would exceed max_cost_usd"):
        models.ask(models.request("12345", None, limited))


def test_what_a_model_samples_with_by_default(world: Any) -> None:
    text = '[model_defaults."m*"]\ntemperature = 0.3\ntop_p = 1\n[model_defaults."mm"]\ntop_p = 0.5'
    models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c")

    def sampling(**options: Any) -> Any:
        return models.request("", None, models.options({"provider": "mock", **options})).sampling

    assert sampling(model="mm") == {"temperature": 0.3, "top_p": 1.0}
    assert sampling(model="mm", temperature=1) == {"temperature": 1.0, "top_p": 1.0}
    assert sampling(model="x") == {}


def test_a_project_overrides_capabilities(world: Any) -> None:
    files = {"/p/harn.toml": '[[capabilities.provider.acme]]\nmodel_match = "*"\naudio = true'}
    matrix = world(files=files).config.capabilities
    assert matrix.of("acme", "x").audio
    matrix.install('[[provider.acme]]\nmodel_match = "*"\npdf = true')
    assert (matrix.of("acme", "x").audio, matrix.of("acme", "x").pdf) == (False, True)
    matrix.clear()
    assert matrix.of("acme", "x").audio


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[", "/c: '[[' is not valid here at line 1 column 3"),
        ("defualt = 1", "/c: unknown key `defualt`"),
        ("[providers.x]\nbase_ulr = 1", "/c: unknown key `providers.x.base_ulr`"),
        ("[providers.x]\nrpm = 1", "/c: `providers.x.base_url` is missing"),
        ("[providers.openai]\nrpm = ''", "/c: `providers.openai.rpm` must be an int, not a string"),
        ("providers = 3", "/c: `providers` must be a dict, not an int"),
        ('[[inference]]\nglobe = "x"', "/c: unknown key `inference[0].globe`"),
        ("default_provider = 3", "/c: `default_provider` must be a string, not an int"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense(world: Any, text: str, message: str) -> None:
    models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c")
    with pytest.raises(OptionError) as caught:
        models.request("hi", None, models.options({"provider": "mock"}))
    assert caught.value.message.startswith(message)


def test_a_named_file_must_exist(world: Any) -> None:
    with pytest.raises(OptionError, match="HARN_PROVIDERS_CONFIG: /nowhere: no such file"):
        _ = world(HARN_PROVIDERS_CONFIG="/nowhere").config.known_providers


@pytest.mark.parametrize(
    ("env", "name", "url"),
    [
        ({}, "ollama", "http://localhost:11434"),
        ({"OLLAMA_HOST": "box:99"}, "ollama", "http://box:99"),
        ({"OLLAMA_HOST": "https://box/"}, "ollama", "https://box"),
        ({"LOCAL_LLM_BASE_URL": "http://h:1/v1"}, "local", "http://h:1"),
        ({"VLLM_BASE_URL": "http://h:1/v1/"}, "vllm", "http://h:1"),
        ({}, "openai", "https://api.openai.com/v1"),
    ],
)
def test_base_urls(world: Any, env: dict[str, str], name: str, url: str) -> None:
    assert world(**env).config.known_providers.configuration(name).base_url == url


@pytest.mark.parametrize(
    ("value", "disabled"),
    [("1", True), ("true", True), ("YES", True), ("on", True), ("0", False), ("", False), ("no", False)],
)
def test_calls_disabled(world: Any, value: str, disabled: bool) -> None:
    models = world(HARN_LLM_CALLS_DISABLED=value)
    assert (models.config.known_providers.refuse_when_disabled("ollama") is not None) == disabled
    request = models.request("hi", None, models.options({"provider": "mock"}))
    assert models.ask(request).provider == "mock"


@pytest.mark.parametrize(
    ("style", "headers"),
    [
        ("bearer", {"authorization": f"Bearer {SECRET}", "x": "1"}),
        ("header", {"x-key": SECRET, "x": "1"}),
        ("none", {"x": "1"}),
    ],
)
def test_how_a_call_is_authorised(world: Any, style: str, headers: dict[str, str]) -> None:
    text = f"""
        [providers.acme]
        base_url = "https://acme"
        auth_style = "{style}"
        auth_header = "x-key"
        auth_envs = ["FIRST", "SECOND"]
        extra_headers = {{x = "1"}}
    """
    models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c", FIRST="", SECOND=SECRET)
    assert models.config.known_providers.configuration("acme").headers() == headers


class SecretHost(OwnWorld):
    """Where every key is set, and one more is in a file."""

    def __init__(self) -> None:
        super().__init__(stdout=self._take, stderr=self._take)
        self.text = ""

    def _take(self, text: str) -> None:
        self.text += text

    def get(self, name: str) -> str | None:
        known = {"HARN_PROVIDERS_CONFIG": "/c", "HARN_LLM_CALLS_DISABLED": "1"}
        return known.get(name) or (SECRET if name.endswith(("_API_KEY", "HF_TOKEN")) else None)

    def read_text(self, path: str) -> str:
        if path != "/c":
            raise FileNotFoundError(path)
        return f"""
            [providers.acme]
            base_url = "https://user:{SECRET}@acme.example"
            api_key = "{SECRET}"
            extra_headers = {{ "x-token" = "{SECRET}", "x-app" = "harn" }}
        """


def test_no_output_shows_a_key() -> None:
    host = SecretHost()
    Vm(host).run_source("""
        println(json_stringify(llm_config()))
        println(json_stringify(llm_provider_catalog()))
        println(json_stringify(llm_model_info("frontier")))
        for name in llm_providers() {
          println(json_stringify(llm_healthcheck(name)))
          println(try { llm_call("hi", nil, {provider: name}) } catch (e) { e })
        }
        println(llm_config("acme"))
    """)
    assert SECRET not in host.text
    assert "auth_available: true" in host.text
    assert "base_url: https://acme.example" in host.text
    assert "extra_headers: {x-app: harn, x-token: [redacted]}" in host.text


def test_neither_does_a_repr(world: Any) -> None:
    text = f"""
        [providers.acme]
        base_url = "https://acme"
        api_key = "{SECRET}"
        extra_headers = {{ "x-token" = "{SECRET}" }}
    """
    providers = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_providers
    assert providers.configuration("acme").headers()["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(providers.configuration("acme")) + repr(providers.find("acme"))


def test_the_examples_of_the_docs_are_configurations(world: Any) -> None:
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    providers, project = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    models = world(
        files={"/c": providers, "/p/harn.toml": project}, HARN_PROVIDERS_CONFIG="/c", ACME_API_KEY="k"
    )
    request = models.request("hi", None, models.options({}))
    assert (request.provider, request.model, request.sampling) == ("acme", "acme-large", {"temperature": 0.2})
    assert models.config.known_models.tier("acme-large") == "frontier"
    assert models.config.capabilities.of("acme", "Acme-Large").native_tools
    assert models.config.capabilities.of("acme", "gpt-4o").audio
