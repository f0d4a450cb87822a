"""Models of OpenAI on Microsoft's Azure, through the `openai` package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from sanderling.errors import AgentGenerationError

from ._access import as_address, key_of_environment
from ._failures import Asked, missing_key
from ._openai import OpenAIModel, openai_sdk

if TYPE_CHECKING:
    import openai

    from ._messages import RoleConversions

_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
_VERSION = "OPENAI_API_VERSION"
_KEY = "AZURE_OPENAI_API_KEY"
_TOKEN = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable
_ADDRESS = (
    "that azure_endpoint is the address of the resource, without a path, and that api_version is "
    "one it knows"
)
_CREDENTIALS = ("azure_ad_token", "azure_ad_token_provider", "workload_identity")


class AzureOpenAIModel(OpenAIModel):
    """A model that is deployed on Azure.

    Args:
        model_id: The name of the deployment.
        azure_endpoint: Such as ``"https://example.openai.azure.com"``; by default the environment
            variable AZURE_OPENAI_ENDPOINT.
        api_key: By default the environment variable AZURE_OPENAI_API_KEY; or give a token of
            Microsoft Entra by AZURE_OPENAI_AD_TOKEN, or in `client_kwargs`.
        api_version: By default the environment variable OPENAI_API_VERSION.
        client_kwargs: Further arguments of `openai.AzureOpenAI`.
        custom_role_conversions: As for `OpenAIModel`.
        **kwargs: As for `OpenAIModel`.

    Raises:
        MissingExtraError: The package `openai` is not installed.
    """

    provider: ClassVar[str] = "azure"
    form_settings = OpenAIModel.form_settings | {"api_version"}
    # With a key passed in, older packages still send AZURE_OPENAI_AD_TOKEN.
    _with_key = frozenset()

    def __init__(
        self,
        model_id: str,
        azure_endpoint: str | None = None,
        api_key: str | None = None,
        api_version: str | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        **kwargs: Any,
    ) -> None:
        self.azure_endpoint = as_address("azure_endpoint", azure_endpoint)
        self.api_version = api_version
        super().__init__(
            model_id,
            api_key=api_key,
            client_kwargs=client_kwargs,
            custom_role_conversions=custom_role_conversions,
            **kwargs,
        )

    def create_client(self) -> openai.AzureOpenAI:
        """Returns a client of the `openai` package, for blocking code."""
        return cast("openai.AzureOpenAI", openai_sdk().AzureOpenAI(**self._blocking_arguments()))

    def create_async_client(self) -> openai.AsyncAzureOpenAI:
        """Returns a client of the `openai` package, for the event loop that runs."""
        arguments = self._async_arguments()
        return cast("openai.AsyncAzureOpenAI", openai_sdk().AsyncAzureOpenAI(**arguments))

    def _client_arguments(self) -> dict[str, Any]:
        own = {"organization": self.organization, "project": self.project}
        return self._with_access(self._with_usual({**self._access(), **own}))

    def _check_key(self) -> None:
        there = {name: value for name, value in self._access().items() if value is not None}
        self._with_access({**there, **self.client_kwargs})

    def _access(self) -> dict[str, object]:
        return {
            "azure_endpoint": self.azure_endpoint,
            "api_key": self._api_key,
            "api_version": self.api_version,
            "base_url": self.api_base,
        }

    def _with_access(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Adds the keys of the environment, where none are given."""
        for name, variable in (("azure_endpoint", _ENDPOINT), ("api_version", _VERSION)):
            replaced = name == "azure_endpoint" and "base_url" in arguments
            if name not in arguments and not os.environ.get(variable) and not replaced:
                raise AgentGenerationError(
                    f"AzureOpenAIModel needs {name}: pass it, or set the environment variable "
                    f"{variable}."
                )
        given = "api_key" in arguments or any(name in arguments for name in _CREDENTIALS)
        if given:
            return arguments
        keys = {"api_key": key_of_environment(_KEY), "azure_ad_token": key_of_environment(_TOKEN)}
        there = {name: key for name, key in keys.items() if key is not None}
        if not there:
            raise missing_key(self._asked())
        return {**arguments, **there}

    def _asked(self) -> Asked:
        given = self.client_kwargs.get("base_url") or self.api_base or self.azure_endpoint
        url = str(given or os.environ.get(_ENDPOINT) or "Azure").rstrip("/")
        key_given = self._api_key is not None or "api_key" in self.client_kwargs
        return Asked(self.model_id, url, key_given, _KEY, address=_ADDRESS)

    def _settings(self) -> dict[str, object]:
        given = {"azure_endpoint": self.azure_endpoint, "api_version": self.api_version}
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


AzureOpenAIServerModel = AzureOpenAIModel
