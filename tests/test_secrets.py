"""Secrets are found by the name of what holds them, and by their look."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling._secrets import is_secret, masked, without_secrets

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nowIB\n-----END RSA PRIVATE KEY-----"
TOKENS = [
    "sk-proj-0123456789abcdefghij",
    "sk-ant-api03-0123456789abcdef",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_0123456789abcdefghij_0123456789",
    "glpat-0123456789abcdefghij",
    "hf_abcdefghijklmnopqrstuvwxyz0123",
    "gsk_0123456789abcdefghij0123456789",
    "xoxb-0123456789-abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghij0123456789abc",
    JWT,
    PEM,
]


@pytest.mark.parametrize(
    "name",
    [
        "passphrase",
        "pwd",
        "key",
        "account_key",
        "accountKey",
        "signing_key",
        "jwt",
        "session",
        "session_id",
        "dsn",
        "connection_string",
        "connectionString",
        "authkey",
        "X-Functions-Key",
        "Ocp-Apim-Subscription-Key",
        "Helicone-Auth",
        "api_key",
        "apikey",
        "api_keys",
        "hf_token",
        "accessToken",
        "password",
        "aws_secret_access_key",
        "Cookie",
        "Authorization",
        "private_key",
        "credentials",
        "sig",
    ],
)
def test_a_name_says_that_something_is_secret(name: str) -> None:
    assert is_secret(name, "x")


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "model_id",
        "temperature",
        "tool_name_key",
        "tool_arguments_key",
        "prompt_cache_key",
        "aws_access_key_id",
        "stop",
        "design",
        "author",
    ],
)
def test_other_names_do_not(name: str) -> None:
    assert not is_secret(name, "x")


@pytest.mark.parametrize(
    "value",
    [
        *TOKENS,
        "sk-12345",
        "Bearer x",
        "bearer x",
        "Token x",
        "Basic dXNlcjpwdw==",
        f"the key is {TOKENS[0]}",
        "Server=db;Password=hunter22;",
        "AccountName=a;AccountKey=c2VjcmV0;",
    ],
)
def test_a_value_looks_like_a_secret(value: str) -> None:
    assert is_secret("x", value)


@pytest.mark.parametrize(
    "value", ["gpt-5", "auto", "https://example.org", "Token", "a key", 5, None]
)
def test_other_values_do_not(value: object) -> None:
    assert not is_secret("x", value)


def test_a_parameter_that_is_declared_is_secret() -> None:
    assert is_secret("pin", "1234", declared={"pin"})
    assert not is_secret("pin", "1234")


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("https://u:pw@h/v1", "https://h/v1"),
        ("HTTPS://u:pw@h/v1", "https://h/v1"),
        ("postgres://u:pw@h:5432/db", "postgres://h:5432/db"),
        ("mongodb+srv://u:p@w@h/db", "mongodb+srv://h/db"),
        ("https://token@h", "https://h"),
        ("https://h/v1?key=s&v=2", "https://h/v1?v=2"),
        ("https://h/v1?sig=s", "https://h/v1"),
        ("https://h:8000/v1?v=2", "https://h:8000/v1?v=2"),
        ("me@example.org", "me@example.org"),
        ("no address", "no address"),
    ],
)
def test_an_address_is_kept_without_the_secrets_in_it(address: str, left: str) -> None:
    assert without_secrets(address) == left


@pytest.mark.parametrize("token", TOKENS)
def test_a_secret_in_a_text_is_masked(token: str) -> None:
    assert masked(f"key {token!s}, they said") == "key [secret], they said"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("at postgres://u:pw@h/db", "at postgres://[secret]@h/db"),
        ("at HTTPS://u:p@w@h.", "at HTTPS://[secret]@h."),
        ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [secret]"),
        ("a bearer of good news", "a bearer of good news"),
        ("see https://example.org/a@b", "see https://example.org/a@b"),
        ("risk-averse sk-learn and eyJ", "risk-averse sk-learn and eyJ"),
    ],
)
def test_what_is_masked_in_a_text(text: str, left: str) -> None:
    assert masked(text) == left


def test_a_known_secret_is_masked_whatever_its_look() -> None:
    assert masked("no: my very own key.", ["my very own key"]) == "no: [secret]."


def test_a_known_secret_is_masked_where_the_text_cuts_it_off() -> None:
    assert masked("no: my very own", ["my very own key"]) == "no: [secret]"


def test_what_is_too_short_to_be_a_secret_stays() -> None:
    assert masked("none of it", ["none", "", "it"]) == "none of it"


@given(st.text("sk-Bearer eyJ.://@:012ab\n", max_size=200), st.text("abc", max_size=12))
def test_masking_twice_changes_nothing(text: str, known: str) -> None:
    once = masked(text, [known])
    assert masked(once, [known]) == once


REPEATED = (
    "a|sk-|eyJ|eyJ.|://|://a|@|Bearer |bearer| |A|xoxb-|key=|password|gh|_|-----BEGIN |"
    "-----BEGIN PRIVATE KEY-----"
)


@pytest.mark.parametrize("piece", REPEATED.split("|"))
def test_masking_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    masked(text, ["secret" * 3])
    is_secret("x", text)
    without_secrets(text)
    assert time.process_time() - began < 4  # a quadratic search takes minutes
