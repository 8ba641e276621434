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


def test_the_default_provider_when_neither_ollama_nor_local_is_there(world: Any) -> None:
    keyed = '[providers.ollama]\nauth_style = "bearer"\n[providers.local]\nauth_style = "bearer"\n'
    models = world(files={"/c": keyed}, HARN_PROVIDERS_CONFIG="/c")
    with pytest.raises(OptionError, match=r"Missing API key: set ANTHROPIC_API_KEY .*@ /c; set HARN_LLM"):
        models.request("hi", None, models.options({}))


def test_while_mocks_are_queued_the_default_provider_needs_no_key(world: Any) -> None:
    models = world()
    models.mock.add({"text": "x"})
    request = models.request("hi", None, models.options({}))
    assert (request.provider, models.ask(request).text) == ("anthropic", "x")


def test_the_text_for_a_missing_key(world: Any) -> None:
    models = world()
    with pytest.raises(OptionError) as caught:
        models.request("hi", None, models.options({"provider": "anthropic"}))
    assert caught.value.message == (
        "Missing API key: set ANTHROPIC_API_KEY environment variable (provider 'anthropic' selected via "
        "LLM_PROVIDER / llm.toml @ <built-in defaults>; set HARN_LLM_PROVIDER=mock or LLM_PROVIDER=mock for "
        "offline use)"
    )


@pytest.mark.parametrize("options", [{"provider": "mock"}, {"provider": "ollama"}])
def test_some_need_no_key(world: Any, options: dict[str, Any]) -> None:
    models = world()
    assert models.request("hi", None, models.options(options)).provider == options["provider"]
