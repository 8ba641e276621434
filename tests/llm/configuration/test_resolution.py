"""Which provider and model answer, by options and environment (07 §1.14)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import OptionError

DEFAULT = "claude-sonnet-4-20250514"
KEY = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}
LOCAL = {"LOCAL_LLM_BASE_URL": "http://h"}


def resolved(world: Any, env: dict[str, str], options: dict[str, Any]) -> tuple[str, str]:
    models = world(**env)
    return tuple(models.router.route(models.options(options)).first)


@pytest.mark.parametrize(
    ("env", "options", "provider", "model"),
    [
        # 1. The option, before everything else.
        ({"HARN_LLM_PROVIDER": "groq"}, {"provider": "openai"}, "openai", "gpt-4o"),
        ({}, {"provider": "openai", "model": "claude-x"}, "openai", "claude-x"),
        ({"HARN_LLM_PROVIDER": "groq"}, {"provider": "auto", "model": "gpt-4.1"}, "openai", "gpt-4.1"),
        ({"HARN_LLM_PROVIDER": "groq"}, {"provider": "AUTO"}, "groq", DEFAULT),
        # 2. The environment, before the model.
        ({"HARN_LLM_PROVIDER": "groq"}, {"model": "gpt-4o"}, "groq", "gpt-4o"),
        ({"HARN_LLM_PROVIDER": "auto"}, {"model": "gpt-4o"}, "openai", "gpt-4o"),
        ({"HARN_LLM_PROVIDER": ""}, {"model": "gpt-4o"}, "openai", "gpt-4o"),
        # 3. A local server, once a model is known.
        (LOCAL, {"model": "gpt-4o"}, "local", "gpt-4o"),
        ({**LOCAL, "LOCAL_LLM_MODEL": "mine"}, {}, "local", "mine"),
        ({**LOCAL, "HARN_LLM_MODEL": "ours"}, {}, "local", "ours"),
        ({**LOCAL, "HARN_LLM_MODEL": "ours", "LOCAL_LLM_MODEL": "mine"}, {}, "local", "mine"),
        (LOCAL, {}, "ollama", "llama3.2"),
        # 4. and 5. The model, then the tier.
        ({}, {"model": "gpt-4o", "model_tier": "small"}, "openai", "gpt-4o"),
        ({}, {"model": "small"}, "openrouter", "Qwen/Qwen3.5-9B"),
        ({"HARN_LLM_MODEL": "o3"}, {"model_tier": "small"}, "openrouter", "Qwen/Qwen3.5-9B"),
        # 6. The model of the environment.
        ({"HARN_LLM_MODEL": "gpt-4.1"}, {}, "openai", "gpt-4.1"),
        ({"HARN_LLM_MODEL": "mid"}, {}, "openai", "gpt-4o-mini"),
        ({"HARN_LLM_MODEL": "gpt-4.1"}, {"provider": "anthropic"}, "anthropic", DEFAULT),
        ({"HARN_LLM_MODEL": "gpt-4.1"}, {"provider": "openai"}, "openai", "gpt-4.1"),
        # 7. The default provider, if it can be called.
        (KEY, {}, "anthropic", DEFAULT),
        ({**KEY, "HARN_DEFAULT_PROVIDER": "openai"}, {}, "openai", "gpt-4o"),
        ({"HARN_DEFAULT_PROVIDER": "mlx"}, {}, "mlx", DEFAULT),
        ({"HARN_DEFAULT_PROVIDER": "mlx", "MLX_MODEL_ID": "m"}, {}, "mlx", "m"),
        ({"ANTHROPIC_API_KEY": ""}, {}, "ollama", "llama3.2"),
        # What the id of a model doesn't tell, the default provider answers for.
        ({"HARN_DEFAULT_PROVIDER": "groq"}, {"model": "strange"}, "groq", "strange"),
        ({}, {"provider": "local"}, "local", "gpt-4o"),
    ],
)
def test_resolution(
    world: Any, env: dict[str, str], options: dict[str, Any], provider: str, model: str
) -> None:
    assert resolved(world, env, options) == (provider, model)


OURS = {"HARN_PROVIDERS_CONFIG": "/c"}
RULES = """
    [[inference]]
    glob = "opnai/*"
    provider = "groq"
    [models."anthropc/claude"]
    [aliases]
    "grok/fast" = {id = "g", provider = "openai"}
"""


@pytest.mark.parametrize(
    ("env", "options", "near"),
    [
        (LOCAL, {"model": "opnai/gpt-4o"}, "openai"),
        (LOCAL, {"model": "Antropic/claude-x"}, "anthropic"),
        (LOCAL, {"model": "groc/llama"}, "groq"),
        ({**LOCAL, "OPENROUTER_API_KEY": "k"}, {"model": "opnai/gpt-4o"}, "openai"),
        ({**LOCAL, "HARN_LLM_MODEL": "opnai/gpt-4o"}, {}, "openai"),
        ({}, {"model": "opnai/gpt-4o"}, "openai"),
        ({}, {"provider": "auto", "model": "opnai/gpt-4o"}, "openai"),
        ({"HARN_LLM_MODEL": "opnai/gpt-4o"}, {}, "openai"),
    ],
)
def test_a_vendor_that_looks_like_a_provider(
    world: Any, env: dict[str, str], options: dict[str, Any], near: str
) -> None:
    with pytest.raises(OptionError, match=f"did you mean '{near}'") as caught:
        resolved(world, env, options)
    name = (options.get("model") or env["HARN_LLM_MODEL"]).partition("/")[2]
    assert str(caught.value).endswith(
        f'Set provider: "{near}" and model: "{name}", or the provider that knows the whole name'
    )


@pytest.mark.parametrize(
    ("env", "model", "provider"),
    [
        ({"OPENROUTER_API_KEY": "k"}, "opnai/gpt-4o", "openrouter"),  # which knows its vendors
        ({}, "openai/gpt-4o", "openrouter"),
        (LOCAL, "openai/gpt-oss-20b", "local"),
        (LOCAL, "local/m", "local"),
        (LOCAL, "deepseek-ai/DeepSeek-V3", "local"),
        (LOCAL, "HuggingFaceH4/zephyr-7b-beta", "local"),
        (LOCAL, "mlx-community/Llama-3.2-3B", "local"),
        (LOCAL, "qwen/qwen3-8b", "local"),
        (LOCAL, "a/opnai/gpt-4o", "local"),
        ({**LOCAL, "HARN_LLM_PROVIDER": "vllm"}, "opnai/gpt-4o", "vllm"),
        ({**LOCAL, **OURS}, "opnai/gpt-4o", "local"),
        (OURS, "opnai/gpt-4o", "groq"),
        (OURS, "anthropc/claude", "openrouter"),
        (OURS, "grok/fast", "openai"),
    ],
)
def test_other_vendors_stay_what_they_are(world: Any, env: dict[str, str], model: str, provider: str) -> None:
    models = world(files={"/c": RULES}, **env)
    assert models.router.route(models.options({"model": model})).first.provider == provider


def test_the_default_provider_when_neither_ollama_nor_local_is_there(world: Any) -> None:
    keyed = '[providers.ollama]\nauth_style = "bearer"\n[providers.local]\nauth_style = "bearer"\n'
    models = world(files={"/c": keyed}, HARN_PROVIDERS_CONFIG="/c")
    with pytest.raises(OptionError, match=r"Missing API key: set ANTHROPIC_API_KEY .*configured by /c; "):
        models.request("hi", None, models.options({}))


def test_while_mocks_are_queued_the_default_provider_needs_no_key(world: Any) -> None:
    models = world()
    models.mock.add({"text": "x"})
    request = models.request("hi", None, models.options({}))
    assert (request.provider, models.ask(request).text) == ("anthropic", "x")


@pytest.mark.parametrize(
    ("entry", "needs"),
    [
        ('base_url = "http://127.0.0.1:9/v1"', False),
        ('base_url = "localhost:9"', False),
        ('base_url = "http://[::1]:9"\nauth_envs = ["MINE_KEY"]', True),
        ('base_url = "http://127.0.0.1:9"\nauth_style = "bearer"', True),
        ('base_url = "http://10.0.0.1:9"', True),
        ('base_url = "http://10.0.0.1:9"\nauth_style = "none"', False),
    ],
)
def test_a_server_on_this_machine_needs_no_key(world: Any, entry: str, needs: bool) -> None:
    models = world(files={"/c": f"[providers.mine]\n{entry}"}, HARN_PROVIDERS_CONFIG="/c")
    known = models.config.known_providers
    assert known.available("mine") is not needs
    if needs:
        return
    config = known.configuration("mine")
    assert config.headers() == {}
    assert config.base_url.startswith("http://")


def test_the_text_for_a_missing_key_that_may_not_be_needed(world: Any) -> None:
    entry = '[providers.mine]\nbase_url = "http://10.0.0.1:9"'
    models = world(files={"/c": entry}, HARN_PROVIDERS_CONFIG="/c")
    with pytest.raises(OptionError) as caught:
        models.request("hi", None, models.options({"provider": "mine"}))
    assert caught.value.message.startswith(
        'Missing API key: set api_key or auth_envs of [providers.mine], or auth_style = "none" there if the '
        "server needs no key (provider 'mine', configured by /c; "
    )


def test_the_text_for_a_missing_key(world: Any) -> None:
    models = world()
    with pytest.raises(OptionError) as caught:
        models.request("hi", None, models.options({"provider": "anthropic"}))
    assert caught.value.message == (
        "Missing API key: set ANTHROPIC_API_KEY environment variable (provider 'anthropic', configured by "
        '<built-in defaults>; for offline use set HARN_LLM_PROVIDER=mock, or provider: "mock" where a call '
        "names its provider)"
    )


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, {"provider": "anthropic"}),
        ({"HARN_LLM_PROVIDER": "mock"}, {}),
        ({"HARN_LLM_PROVIDER": "mock"}, {"model": "claude-x"}),
        ({}, {"provider": "mock", "model": "claude-x"}),
    ],
)
def test_what_that_text_advises_works(world: Any, env: dict[str, str], options: dict[str, Any]) -> None:
    models = world(**env)
    request = models.request("hi", None, models.options(options))
    assert request.provider == options.get("provider", "mock")


def test_a_provider_without_a_variable_is_told_where_its_key_goes(world: Any) -> None:
    models = world(files={"/c": '[providers.acme]\nbase_url = "https://a"'}, HARN_PROVIDERS_CONFIG="/c")
    with pytest.raises(OptionError, match=r"set api_key or auth_envs of \[providers.acme\], or "):
        models.request("hi", None, models.options({"provider": "acme"}))


@pytest.mark.parametrize("options", [{"provider": "mock"}, {"provider": "ollama"}])
def test_some_need_no_key(world: Any, options: dict[str, Any]) -> None:
    models = world()
    assert models.request("hi", None, models.options(options)).provider == options["provider"]
