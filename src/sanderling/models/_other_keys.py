"""Models by the keys of providers that have an API of their own, and by a saved token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ._access import is_installed, saved_hub_token
from ._endpoints import HUB

if TYPE_CHECKING:
    from ._base import Model

Keys: TypeAlias = Mapping[str, str]
#: A model, and a line that says which one and why; `None` where there is no key for it.
Found: TypeAlias = "tuple[Model, str] | None"

_ANTHROPIC, _BEDROCK = "claude-sonnet-5", "us.amazon.nova-pro-v1:0"


def from_other_keys(model_id: str | None, keys: Keys) -> Found:
    """Returns the model of the first key that is there.

    Args:
        model_id: The provider's name of the model, if one was asked for.
        keys: The environment.

    Raises:
        ValueError: Azure has no model of a usual name, and none was asked for.
        MissingExtraError: The package of the provider is not installed.
    """
    found = (make(model_id, keys) for make in _WAYS)
    return next((each for each in found if each is not None), None)


def _anthropic(model_id: str | None, keys: Keys) -> Found:
    from ._anthropic import AnthropicModel

    name, base = model_id or _ANTHROPIC, keys.get("ANTHROPIC_BASE_URL") or None
    if key := keys.get("ANTHROPIC_API_KEY"):
        return _told(AnthropicModel(name, key, base_url=base), "ANTHROPIC_API_KEY is set")
    if token := keys.get("ANTHROPIC_AUTH_TOKEN"):
        model = AnthropicModel(name, base_url=base, client_kwargs={"auth_token": token})
        return _told(model, "ANTHROPIC_AUTH_TOKEN is set")
    return None


def _azure(model_id: str | None, keys: Keys) -> Found:
    names = ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    name = next(filter(keys.get, names), None)
    if name is None:
        return None
    if model_id is None:
        raise ValueError(f"{name} is set: name your deployment on Azure with --model-id")
    from ._azure import AzureOpenAIModel

    token = {"azure_ad_token": keys[name]} if name == names[1] else {}
    model = AzureOpenAIModel(
        model_id,
        keys.get("AZURE_OPENAI_ENDPOINT") or None,
        None if token else keys[name],
        keys.get("OPENAI_API_VERSION") or None,
        client_kwargs=token,
    )
    return _told(model, f"{name} is set")


def _bedrock(model_id: str | None, keys: Keys) -> Found:
    region = keys.get("AWS_REGION") or keys.get("AWS_DEFAULT_REGION")
    if keys.get("AWS_BEARER_TOKEN_BEDROCK"):
        name = "AWS_BEARER_TOKEN_BEDROCK"
    elif region and is_installed("boto3"):  # keys that are there for something else are no reason
        others = ("AWS_SECRET_ACCESS_KEY", "AWS_PROFILE")
        name = next(filter(keys.get, others), "")
    else:
        name = ""
    if not name:
        return None
    from ._bedrock import AmazonBedrockModel

    settings = {"region_name": region} if region else None
    return _told(AmazonBedrockModel(model_id or _BEDROCK, client_kwargs=settings), f"{name} is set")


def _hub(model_id: str | None, keys: Keys) -> Found:
    if (token := saved_hub_token(keys)) is None:
        return None
    from ._openai import OpenAIModel

    model = OpenAIModel(model_id or HUB.model_id, api_base=HUB.url, api_key=token)
    return _told(model, "a token of the Hub is saved (hf auth login)")


def _told(model: Model, why: str) -> Found:
    return model, f"Model: {model.model_id} by {type(model).__name__}, because {why}."


_WAYS: Final[tuple[Callable[[str | None, Keys], Found], ...]] = (_anthropic, _azure, _bedrock, _hub)
