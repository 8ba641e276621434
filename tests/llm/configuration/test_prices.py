"""What calls cost, worked out by hand from the price lists of the services (07 §1.12)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harnpy.faults import OptionError
from harnpy.llm.call import Models
from harnpy.llm.configuration.prices import Price, Tier, listed, listed_by_maker
from harnpy.llm.reply import Reply
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import ANTHROPIC, OPENAI, Say, Wire

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "harnpy" / "llm" / "configuration" / "prices.json"


def charged(world: Any, model: str, **tokens: Any) -> float | None:
    price = world().config.known_models.price(model)
    used: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, **tokens}
    return Reply(text="", model=model, provider="p", requested_model=model, price=price, **used).cost


def test_claude_opus_with_a_cached_prompt(world: Any) -> None:
    """5 and 25 USD per million, 6.25 written to the cache, 0.50 read from it; cached tokens stand beside."""
    beside = {"input_tokens": 100, "output_tokens": 200, "cached_beside": True}
    written = charged(world, "claude-opus-4-5", cache_write_tokens=150_000, **beside)
    assert written == pytest.approx((100 * 5 + 150_000 * 6.25 + 200 * 25) / 1e6)  # 0.943
    lasting = charged(
        world, "claude-opus-4-5", cache_write_tokens=150_000, cache_hour_tokens=100_000, **beside
    )
    assert lasting == pytest.approx((100 * 5 + 50_000 * 6.25 + 100_000 * 10 + 200 * 25) / 1e6)
    read = charged(world, "claude-opus-4-5-20251101", cache_read_tokens=150_000, **beside)
    assert read == pytest.approx(0.0805)


def test_o3(world: Any) -> None:
    """2 and 8 USD per million, 0.50 read from the cache; cached tokens are among those of the prompt."""
    among = {"input_tokens": 10_000, "output_tokens": 1_000, "cached_beside": False}
    assert charged(world, "o3", **among) == pytest.approx(0.028)
    assert charged(world, "o3", cache_read_tokens=8_000, **among) == pytest.approx(
        (2_000 * 2 + 8_000 * 0.5 + 1_000 * 8) / 1e6  # 0.016
    )


@pytest.mark.parametrize(
    ("prompt", "cached", "cost"),
    [
        (200_000, 0, 0.25 + 0.01),  # 1.25 and 10 USD per million
        (200_001, 0, 0.5000025 + 0.015),  # 2.50 and 15 for all of it
        (300_000, 250_000, 0.125 + 250_000 * 0.25 / 1e6 + 0.015),  # cached ones count for the tier
        (150_000, 100_000, 0.0625 + 100_000 * 0.125 / 1e6 + 0.01),
    ],
)
def test_gemini_pro_under_and_over_200k(world: Any, prompt: int, cached: int, cost: float) -> None:
    used = {"output_tokens": 1_000, "cache_read_tokens": cached, "cached_beside": False}
    assert charged(world, "gemini-2.5-pro", input_tokens=prompt, **used) == pytest.approx(cost)


def test_a_tier_counts_cached_tokens_that_stand_beside_the_others(world: Any) -> None:
    """claude-sonnet-4-5 above 200,000: 6 and 22.50, 0.60 read from the cache."""
    used = {"input_tokens": 1_000, "output_tokens": 1_000, "cached_beside": True}
    assert charged(world, "claude-sonnet-4-5", cache_read_tokens=250_000, **used) == pytest.approx(
        (1_000 * 6 + 250_000 * 0.6 + 1_000 * 22.5) / 1e6  # 0.1785
    )


def test_gpt_5(world: Any) -> None:
    """1.25 and 10 USD per million: five times a million tokens is what the issue was about."""
    assert charged(world, "gpt-5", input_tokens=1_000_000) == 1.25
    assert charged(world, "gpt-5", output_tokens=1_000_000) == 10.0


def test_an_unknown_price_is_none_and_a_cache_saves_nobody_knows_what(world: Any) -> None:
    assert charged(world, "gpt-of-tomorrow", input_tokens=5) is None
    reply = Reply("", "m", "p", "m", 5, 5, cache_read_tokens=3)
    assert (reply.cost, reply.usage()["cache_savings_usd"]) == (None, None)
    assert Reply("", "m", "p", "m", 5, 5).usage()["cache_savings_usd"] == 0.0


def test_the_highest_tier_that_is_passed_counts() -> None:
    price = Price(1.0, 2.0, tiers=(Tier(100, 10.0, 20.0), Tier(10, 3.0, 6.0, cache_read_per_mtok=0.0)))
    million = 1_000_000
    assert [price.cost(n, 0) * million for n in (10, 11, 100, 101)] == pytest.approx([10, 33, 300, 1010])
    assert price.cache_savings(11, 1, 0) * million == pytest.approx(3)
    assert price.cache_savings(10, 1, 0) == 0.0


# Whose price it is.


@pytest.mark.parametrize(
    ("model", "provider", "rates"),
    [
        ("claude-opus-4-5", "anthropic", (5.0, 25.0)),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "bedrock", (5.5, 27.5)),
        ("anthropic/claude-opus-4.5", "openrouter", (5.0, 25.0)),
        ("claude-opus-4-5", "azure_openai", (5.0, 25.0)),  # sells what Anthropic makes
        ("gemini-2.5-pro", "gemini", (1.25, 10.0)),
        ("GPT-5", "openai", (1.25, 10.0)),
        ("gpt-5", "mock", (1.25, 10.0)),
        ("gpt-5", "local", (1.25, 10.0)),  # which can only pass it on
        ("gpt-5", "acme", (1.25, 10.0)),  # its maker's
        ("mistral-large-2411", "le-chat", (2.0, 6.0)),  # known by its address
        ("gpt-oss-20b", "vllm", (0.0, 0.0)),
        ("mistral-large-2411", "ollama", (0.0, 0.0)),
        ("anything", "mock", (0.0, 0.0)),
        ("anything", "here", (0.0, 0.0)),
        ("anything", "near", None),  # keyless, but somewhere else
        ("anything", "guarded", None),  # on this machine, with a key: what is behind it?
        ("anything", "acme", None),
        ("anything", "flat", (2.0, 4.0)),
        ("gpt-5", "flat", (2.0, 4.0)),
        ("gpt-5", "half", (1.25, 10.0)),
        ("mine", "acme", (7.0, 8.0)),
        ("mine", "mock", (7.0, 8.0)),
    ],
)
def test_the_price_of_a_model_at_a_provider(
    world: Any, model: str, provider: str, rates: tuple[float, float] | None
) -> None:
    text = """
        [providers.acme]
        base_url = "https://acme.example/v1"
        [providers.le-chat]
        base_url = "https://api.mistral.ai/v1"
        [providers.here]
        base_url = "http://127.0.0.2:8080/v1"
        auth_style = "none"
        [providers.near]
        base_url = "http://192.168.0.7:8080/v1"
        auth_style = "none"
        [providers.guarded]
        base_url = "http://localhost:4000/v1"
        auth_envs = ["GUARD"]
        [providers.flat]
        base_url = "https://flat.example/v1"
        cost_per_1k_in = 0.002
        cost_per_1k_out = 0.004
        [providers.half]
        base_url = "https://half.example/v1"
        cost_per_1k_in = 0.002
        [models.mine]
        pricing = {input_per_mtok = 7, output_per_mtok = 8}
    """
    known_models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_models
    price = known_models.price(model, provider)
    assert rates == (None if price is None else (price.input_per_mtok, price.output_per_mtok))


def test_windows(world: Any) -> None:
    text = "[models.mine]\ncontext_window = 5000"
    known_models = world(files={"/c": text}, HARN_PROVIDERS_CONFIG="/c").config.known_models
    asked = ("claude-opus-4-5", "gpt-5", "gemini-2.5-pro", "gpt-4", "mine", "anything", "any:7b")
    assert [known_models.context_window(model) for model in asked] == [
        200_000, 400_000, 1_048_576, 8_192, 5_000, None, None
    ]  # fmt: skip


def test_a_model_in_a_file_needs_nothing_but_its_price(world: Any) -> None:
    """What the refusal advises, pasted."""
    refused = world().options({"provider": "openai", "model": "my/own:1", "max_cost_usd": 5})
    models = world()
    models.mock.add({"text": "x"})
    with pytest.raises(OptionError) as caught:
        models.ask(models.request("hi", None, refused))
    _, _, advice = str(caught.value).partition("set ")
    header, _, line = advice.removesuffix(" in harn.toml, in USD").partition(" pricing")
    manifest = f"{header}\npricing{line.replace('…', '1.5')}\n"
    assert manifest.startswith('[llm.models."my/own:1"]\n')
    models = world(files={"/p/harn.toml": manifest})
    models.mock.add({"text": "x", "input_tokens": 1_000_000, "output_tokens": 0})
    assert models.ask(models.request("hi", None, refused)).cost == 1.5
    entry = models.config.known_models.entry("my/own:1")
    assert entry is not None
    assert (entry["name"], entry["provider"]) == ("my/own:1", "openrouter")


@pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
def test_what_a_service_counts_is_what_is_charged(tmp_path: Path, protocol: str) -> None:
    """Cached tokens are among the others of chat completions, beside them in Anthropic's protocol."""
    model = {OPENAI: "gpt-5", ANTHROPIC: "claude-opus-4-5"}[protocol]
    say = Say("hi", input_tokens=1_000, output_tokens=100, cache_read=800)
    with Wire(protocol, say) as wire:
        models = Models(WireHost(environment(wire, tmp_path)))
        reply = models.ask(models.request("hi", None, models.options({"model": model})))
        models.waiting.wait(models.connections.aclose())
        models.waiting.close()  # type: ignore[attr-defined]
    cost = {
        OPENAI: (200 * 1.25 + 800 * 0.125 + 100 * 10) / 1e6,
        ANTHROPIC: (1_000 * 5 + 800 * 0.5 + 100 * 25) / 1e6,
    }
    assert reply.cost == models.trace.cost == pytest.approx(cost[protocol])


# The table.


def test_the_table_says_where_and_when_it_was_made() -> None:
    table = json.loads(TABLE.read_bytes())
    assert table["source"].startswith("genai-prices ")
    assert len(table["date"].split("-")) == 3
    for name, section in table["providers"].items():
        assert all(each in table["providers"] for each in section["sells"]), name
        for patterns, _, rates, *tiers in section["models"]:
            for each in (rates, *(dearer for _, dearer in tiers)):
                assert len(each) == 4, patterns
                assert all(rate is None or rate >= 0 for rate in each), patterns


def test_every_row_is_found_by_a_name() -> None:
    """Each plain name of a section is found there: by its own row, or by one before it."""
    for name, section in json.loads(TABLE.read_bytes())["providers"].items():
        for patterns, *_ in section["models"]:
            for pattern in patterns:
                if "*" not in pattern and not pattern.startswith(("^", "huggingface")):
                    assert listed(pattern, name) is not None, (name, pattern)


def test_a_router_of_providers_names_the_one_it_uses() -> None:
    model = "meta-llama/Llama-3.3-70B-Instruct"
    assert listed(f"{model}:together", "huggingface") == listed(model, "huggingface_together")
    assert listed(f"{model}:together", "huggingface") is not None
    assert listed(model, "huggingface") is None
    assert listed_by_maker("nobody-makes-it") is None


def test_a_start_reads_no_prices() -> None:
    code = (
        "import sys, harnpy; vm = harnpy.Vm(); vm.run_source('println(1 + 1)')\n"
        "from harnpy.llm.configuration import prices\n"
        "assert prices._table.cache_info().misses == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
