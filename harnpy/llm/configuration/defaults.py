"""The providers and models that are known without a configuration file: data. Spec: 07 §1.14."""

from __future__ import annotations

from harnpy.llm.configuration.prices import Price
from harnpy.llm.configuration.settings import Alias, Model, ProviderEntry, Settings, TierRule

_CLOUD = ("native_tools",)

_PROVIDERS = {
    "anthropic": ProviderEntry(
        "https://api.anthropic.com/v1",
        "header",
        ("ANTHROPIC_API_KEY",),
        "/messages",
        protocol="anthropic",
        auth_header="x-api-key",
        extra_headers={"anthropic-version": "2023-06-01"},
        display_name="Anthropic",
    ),
    "openai": ProviderEntry(
        "https://api.openai.com/v1",
        auth_envs=("OPENAI_API_KEY",),
        default_model="gpt-4o",
        display_name="OpenAI",
    ),
    "openrouter": ProviderEntry(
        "https://openrouter.ai/api/v1",
        auth_envs=("OPENROUTER_API_KEY",),
        default_model="anthropic/claude-sonnet-4.6",
        display_name="OpenRouter",
    ),
    "gemini": ProviderEntry(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "header",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        auth_header="x-goog-api-key",
        display_name="Google Gemini",
    ),
    "huggingface": ProviderEntry(
        "https://router.huggingface.co/v1",
        auth_envs=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        display_name="Hugging Face",
    ),
    "together": ProviderEntry(
        "https://api.together.xyz/v1", auth_envs=("TOGETHER_AI_API_KEY",), display_name="Together AI"
    ),
    "groq": ProviderEntry("https://api.groq.com/openai/v1", auth_envs=("GROQ_API_KEY",), display_name="Groq"),
    "deepseek": ProviderEntry(
        "https://api.deepseek.com", auth_envs=("DEEPSEEK_API_KEY",), display_name="DeepSeek"
    ),
    "fireworks": ProviderEntry(
        "https://api.fireworks.ai/inference/v1", auth_envs=("FIREWORKS_API_KEY",), display_name="Fireworks"
    ),
    "dashscope": ProviderEntry(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        auth_envs=("DASHSCOPE_API_KEY",),
        display_name="DashScope",
    ),
    "ollama": ProviderEntry(
        "http://localhost:11434",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/api/tags",
        default_model="llama3.2",
        base_url_env="OLLAMA_HOST",
        display_name="Ollama",
    ),
    "local": ProviderEntry(
        "http://localhost:8000",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        default_model="gpt-4o",
        default_model_envs=("LOCAL_LLM_MODEL", "HARN_LLM_MODEL"),
        base_url_env="LOCAL_LLM_BASE_URL",
        display_name="Local server",
    ),
    "mlx": ProviderEntry(
        "http://localhost:8080",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        default_model_envs=("MLX_MODEL_ID",),
        base_url_env="MLX_BASE_URL",
        display_name="MLX",
    ),
    "vllm": ProviderEntry(
        "http://localhost:8000",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/v1/models",
        base_url_env="VLLM_BASE_URL",
        display_name="vLLM",
    ),
    "tgi": ProviderEntry(
        "http://localhost:8080",
        "none",
        chat_endpoint="/v1/chat/completions",
        health_endpoint="/health",
        base_url_env="TGI_BASE_URL",
        display_name="Text Generation Inference",
    ),
    # Clouds, which authorise and place calls in their own ways.
    "bedrock": ProviderEntry(
        "https://bedrock-runtime.{region}.amazonaws.com",
        "aws_sigv4",
        ("AWS_ACCESS_KEY_ID",),
        "/model/{model}/invoke",
        protocol="bedrock",
        health_endpoint="/foundation-models",
        features=_CLOUD,
        base_url_env="BEDROCK_BASE_URL",
        display_name="Amazon Bedrock",
        region="us-east-1",
        region_envs=("AWS_REGION", "AWS_DEFAULT_REGION"),
        token_envs=("AWS_BEARER_TOKEN_BEDROCK",),
    ),
    "azure_openai": ProviderEntry(
        "",
        "azure_openai",
        ("AZURE_OPENAI_API_KEY",),
        "/openai/deployments/{model}/chat/completions",
        protocol="azure_openai",
        health_endpoint="/models",
        features=_CLOUD,
        base_url_env="AZURE_OPENAI_ENDPOINT",
        display_name="Azure OpenAI",
        api_version="2024-10-21",
        api_version_envs=("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
        token_envs=("AZURE_OPENAI_AD_TOKEN",),
    ),
    "vertex": ProviderEntry(
        "https://{region}-aiplatform.googleapis.com/v1",
        "bearer",
        ("VERTEX_AI_ACCESS_TOKEN",),
        "/projects/{project}/locations/{region}/publishers/anthropic/models/{model}:rawPredict",
        protocol="vertex",
        health_endpoint="/projects/{project}/locations/{region}",
        features=_CLOUD,
        base_url_env="VERTEX_AI_BASE_URL",
        display_name="Vertex AI",
        region="global",
        region_envs=("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"),
        project_envs=("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
        credentials_env="GOOGLE_APPLICATION_CREDENTIALS",
    ),
}

_FRONTIER = Alias("claude-sonnet-4-20250514", "anthropic")
_MID = Alias("gpt-4o-mini", "openai")
_SMALL = Alias("Qwen/Qwen3.5-9B", "openrouter")

_ALIASES = {
    "frontier": _FRONTIER,
    "tier/frontier": _FRONTIER,
    "mid": _MID,
    "tier/mid": _MID,
    "small": _SMALL,
    "tier/small": _SMALL,
    "local-gemma4": Alias("gemma4:26b", "ollama"),
    "local-gemma4-31b": Alias("gemma4:31b", "ollama"),
    "local-qwen3": Alias("qwen3:8b", "ollama"),
}

_MODELS = {
    "claude-sonnet-4-20250514": Model(
        "Claude Sonnet 4",
        "anthropic",
        capabilities=("tools", "vision", "prompt_caching", "thinking"),
        pricing=Price(3.0, 15.0, 0.3, 3.75),
    ),
    "claude-3-5-haiku-20241022": Model(
        "Claude 3.5 Haiku", "anthropic", capabilities=("tools", "prompt_caching")
    ),
    "gpt-4o": Model("GPT-4o", "openai", capabilities=("tools", "vision", "audio")),
    "gpt-4o-mini": Model(
        "GPT-4o mini", "openai", capabilities=("tools", "vision", "audio"), pricing=Price(0.15, 0.60)
    ),
    "google/gemini-2.5-flash": Model("Gemini 2.5 Flash", "openrouter", capabilities=("tools", "vision")),
    "Qwen/Qwen3.5-9B": Model("Qwen 3.5 9B", "openrouter", capabilities=("tools", "thinking")),
    "llama3.2": Model("Llama 3.2", "ollama"),
    "gemma4:26b": Model("Gemma 4 26B", "ollama"),
    "gemma4:31b": Model("Gemma 4 31B", "ollama"),
    "qwen3:8b": Model("Qwen 3 8B", "ollama", capabilities=("tools", "thinking")),
}

_TIERS = (
    *(TierRule(contains=part, tier="small") for part in ("9b", "a3b", "gemma-4-e2b", "gemma-4-e4b")),
    *(TierRule(contains=part, tier="mid") for part in ("gemma-4-26b", "gemma4:26b")),
    *(TierRule(contains=part, tier="frontier") for part in ("gemma-4-31b", "gemma4:31b")),
    TierRule(glob="claude-*", tier="frontier"),
    TierRule(exact="gpt-4o", tier="frontier"),
    *(TierRule(contains=part, ignore_case=True, tier="small") for part in ("9b", "a3b")),
)

DEFAULTS = Settings(
    providers=_PROVIDERS,
    aliases=_ALIASES,
    models=_MODELS,
    tiers=_TIERS,
    qc_defaults={
        "anthropic": "claude-3-5-haiku-20241022",
        "openai": "gpt-4o-mini",
        "openrouter": "google/gemini-2.5-flash",
        "ollama": "llama3.2",
        "local": "gpt-4o",
    },
)
