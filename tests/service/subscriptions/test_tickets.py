"""Secrets: full of chance, kept as a hash, and none fits another's."""

import base64
import re

from standardwebhooks.webhooks import Webhook

from tidings.service.subscriptions import tickets


def test_secrets_are_long_and_say_what_they_are():
    made = {tickets.new_secret("tkt_") for _ in range(100)}
    assert len(made) == 100
    for secret in made:
        assert re.fullmatch(r"tkt_[A-Za-z0-9_-]{43}", secret)


def test_a_webhook_secret_is_one_that_receivers_understand():
    secret = tickets.new_webhook_secret()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    Webhook(secret)


def test_only_the_secret_itself_fits():
    secret, other = tickets.new_secret(), tickets.new_secret()
    kept = tickets.digest(secret)
    assert secret not in kept
    assert tickets.is_secret_of(secret, kept)
    for wrong in (
        other,
        "",
        None,
        secret[:-1],
        secret + " ",
        secret.upper(),
        kept,
        "tkt_ä",
        "\ud800",
        "x" * 100_000,
    ):
        assert not tickets.is_secret_of(wrong, kept)


def test_ids_are_short_letters_without_order():
    made = [tickets.new_id("s") for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert all(re.fullmatch(r"s[a-z2-7]{20}", id) for id in made)
    assert made != sorted(made)
