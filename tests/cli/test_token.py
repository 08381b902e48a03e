"""`tidings token`: made, listed, ended, and never shown twice."""

import re

import pytest

from tidings.service.model import Role
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.subscriptions import tickets

from .conftest import tidings


@pytest.fixture
def data(tmp_path):
    """The folder of a service that was started before."""
    kept(tmp_path / "data")
    return tmp_path / "data"


def kept(data):
    registry, mailbox = open_stores(Settings(data))
    try:
        return registry.tokens()
    finally:
        registry.close()
        mailbox.close()


def test_a_token_is_made(data):
    result = tidings("token", "add", "news  desk", "--data", data)
    assert result.exit_code == 0, result.output
    secret = result.stdout.strip()
    assert re.fullmatch(r"tid_[A-Za-z0-9_-]{43}", secret)  # alone, for scripts
    (token,) = kept(data)
    assert (token.name, token.role, token.subscriptions) == ("news desk", Role.SUBSCRIBER, 1_000)
    assert tickets.is_secret_of(secret, token.secret)
    assert "shown only now" in result.stderr
    assert token.id in result.stderr


def test_limits_and_roles(data):
    limits = "--subscriptions", 5, "--events-per-second", 2.5, "--requests-per-second", 7
    assert tidings("token", "add", "press", "--role", "publisher", *limits, "--data", data).exit_code == 0
    (token,) = kept(data)
    assert token.role is Role.PUBLISHER
    assert (token.subscriptions, token.events_per_second, token.requests_per_second) == (5, 2.5, 7)
    for wrong in (
        ("--role", "king"),
        ("--subscriptions", -1),
        ("--events-per-second", 0),
        ("--requests-per-second", "many"),
    ):
        assert tidings("token", "add", "x", *wrong, "--data", data).exit_code == 2
    assert len(kept(data)) == 1


def test_listed_without_secrets_and_ended(data):
    secret = tidings("token", "add", "[bold]desk", "--data", data).stdout.strip()
    tidings("token", "add", "chief", "--role", "admin", "--data", data)
    one, two = kept(data)
    listed = tidings("token", "list", "--data", data).stdout
    assert secret not in listed
    assert one.secret not in listed
    assert "[bold]desk" in listed
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [one.id, two.id]
    ended = tidings("token", "end", one.id, "--data", data)
    assert ended.stdout == f"{one.id} is ended\n"
    assert kept(data)[0].ended is not None
    again = tidings("token", "end", one.id, "--data", data)
    assert again.exit_code == 1
    assert "already" in again.stderr


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\x1b[31mb"])
def test_names_that_cannot_be_shown(data, name):
    result = tidings("token", "add", name, "--data", data)
    assert result.exit_code == 1
    assert "is no name for a token" in result.stderr


@pytest.mark.parametrize("command", [("list",), ("end", "t1"), ("add", "desk")])
def test_a_folder_without_a_service_stays_as_it_is(tmp_path, command):
    result = tidings("token", *command, "--data", tmp_path / "none")
    assert result.exit_code == 1
    assert f"there is no service in {tmp_path / 'none'}; name its folder by --data" in result.stderr
    assert not (tmp_path / "none").exists()


def test_mistakes_are_sentences(data):
    tidings("token", "add", "desk", "--data", data)
    result = tidings("token", "end", "nobody", "--data", data)
    assert "there is no token 'nobody'; 'tidings token list' shows" in result.stderr
    (token,) = kept(data)
    assert f"did you mean {token.id}?" in tidings("token", "end", "desk", "--data", data).stderr
    for store, said in (
        ("postgresql://nobody@127.0.0.1:9/none", "the registry does not answer"),
        ("mysql://x/y", "is no address of PostgreSQL"),
    ):
        result = tidings("token", "list", "--store", store)
        assert result.exit_code == 1
        assert said in result.stderr
        assert "psycopg" not in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
