"""Known servers that speak chat completions, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's OpenAI-compatible endpoint.

    Attributes:
        name: The provider.
        url: The base address.
        key_variable: The environment variable that holds the key.
        model_id: The model that is used where none is named.
    """

    name: str
    url: str
    key_variable: str
    model_id: str

    def is_at(self, url: str) -> bool:
        """Tells whether `url` is this provider's: a longer name of a host is somebody else."""
        return url == self.url or url.startswith(f"{self.url}/")


OPENAI = Endpoint("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5-mini")

HUB = Endpoint(
    "Hugging Face Inference Providers",
    "https://router.huggingface.co/v1",
    "HF_TOKEN",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
)

# In the order in which their keys are looked for.
ENDPOINTS = (
    OPENAI,
    HUB,
    Endpoint(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "qwen/qwen3-next-80b-a3b-instruct",
    ),
    Endpoint(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-2.5-flash",
    ),
    Endpoint("Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-medium-latest"),
    Endpoint("DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek-chat"),
    Endpoint("Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
)


def key_variable(url: str) -> str:
    """Returns the environment variable for the key of the server at `url`."""
    for endpoint in ENDPOINTS:
        if endpoint.is_at(url):
            return endpoint.key_variable
    return OPENAI.key_variable
