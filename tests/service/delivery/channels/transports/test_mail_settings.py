"""Mail addresses, and the settings of a mail server: what is accepted, and one sentence for what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.service.delivery.channels.transports.hostile_messages import NASTY
from tidings.errors import TidingsError
from tidings.service.mail_addresses import (
    AddressError,
    Sender,
    mail_address,
    sender,
)
from tidings.service.mail_settings import Encryption, MailSettings, mail_settings

FROM = "Tidings <alerts@example.org>"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("ann@example.org", "ann@example.org"),
        (" ann@example.org ", "ann@example.org"),
        ("Ann.O'Brien+news@Mail.EXAMPLE.org", "Ann.O'Brien+news@mail.example.org"),
        ("x@bücher.example", "x@xn--bcher-kva.example"),
        ("x@例え.テスト", "x@xn--r8jz45g.xn--zckzah"),
        ("x@xn--bcher-kva.example", "x@xn--bcher-kva.example"),
        ("jo\u0308rg@example.org", "jörg@example.org"),
        ("a" * 64 + "@example.org", "a" * 64 + "@example.org"),
        ("!#$%&'*+/=?^_`{|}~-@example.org", "!#$%&'*+/=?^_`{|}~-@example.org"),
        ("1@a1.co", "1@a1.co"),
    ],
)
def test_addresses(given: str, address: str) -> None:
    assert mail_address(given) == address
    assert mail_address(address) == address


@pytest.mark.parametrize(
    "given",
    [
        "", "@", "ann", "ann@", "@example.org", "ann@localhost", "ann@example", "ann@@example.org", "a b@example.org",
        "Ann <ann@example.org>", "ann@example.org, bob@example.org", "ann@example.org;bob@example.org",
        "ann@example.org\r\nRCPT TO:<bob@example.org>", "ann@example.org\n", "ann\x00@example.org", "ann@exa mple.org",
        '"ann"@example.org', '"a@b"@example.org', "ann@[127.0.0.1]", "ann@127.0.0.1", "ann@-a.org", "ann@a-.org", "ann@.org",
        "ann@a..org", ".ann@example.org", "ann.@example.org", "a..b@example.org", "ann@example.org.", "ann(x)@example.org",
        "<ann@example.org>", "a" * 65 + "@example.org", "ann@" + "a" * 64 + ".org", "ann@" + "a." * 130 + "org",
        "ä" * 33 + "@example.org", "ann@exam\u202eple.org", "a\u202enn@example.org", "a\u200bnn@example.org",
        "ann@\ud800.org", "\ud800@example.org", "x" * 100_000, "x" * 100_000 + "@example.org", "ann@_dmarc.example.org",
    ],
)  # fmt: skip
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(AddressError) as error:
        mail_address(given)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


@examples(200)
@given(st.one_of(st.sampled_from(NASTY), st.text(max_size=30)), st.sampled_from(("@example.org", "@", "")))
def test_an_accepted_address_is_one_word(text: str, end: str) -> None:
    try:
        address = mail_address(text + end)
    except AddressError:
        return
    assert address.isprintable()
    assert not set(address) & set(' \t\r\n<>,;:"()[]\\')
    assert address.count("@") == 1
    address.encode()
    assert mail_address(address) == address


def test_senders() -> None:
    assert sender(FROM) == Sender("Tidings", "alerts@example.org")
    assert sender("alerts@Example.org") == Sender("", "alerts@example.org")
    assert sender('"Ann, of Tidings" <a@example.org>').name == "Ann, of Tidings"
    assert sender("Grüße <a@bücher.example>") == Sender("Grüße", "a@xn--bcher-kva.example")
    for wrong in (
        "",
        "Tidings",
        "Tidings <>",
        "Tidings <a@b>",
        "a\r\nb <a@example.org>",
        "jörg@example.org",
        "a@b.org, c@d.org",
    ):
        with pytest.raises(AddressError):
            sender(wrong)


@pytest.mark.parametrize(
    ("smtp", "password", "expected"),
    [
        ("smtp://mail.example.org", None, ("mail.example.org", 587, Encryption.STARTTLS, None, None)),
        ("smtps://mail.example.org", None, ("mail.example.org", 465, Encryption.TLS, None, None)),
        ("smtp+plain://localhost:2525", None, ("localhost", 2525, Encryption.NONE, None, None)),
        ("smtp://ann%40example.org@mail.example.org:2587/", "x", ("mail.example.org", 2587, Encryption.STARTTLS, "ann@example.org", "x")),
        ("smtp+plain://ann@127.0.0.1", "x", ("127.0.0.1", 25, Encryption.NONE, "ann", "x")),
        ("smtps://[::1]", "unused", ("::1", 465, Encryption.TLS, None, None)),
    ],
)  # fmt: skip
def test_settings(smtp: str, password: str | None, expected: tuple[object, ...]) -> None:
    found = mail_settings(smtp, FROM, password)
    assert (found.host, found.port, found.encryption, found.user, found.password) == expected
    assert found.sender == Sender("Tidings", "alerts@example.org")


@pytest.mark.parametrize(
    ("smtp", "mail_from", "password", "words"),
    [
        ("mail.example.org", FROM, None, "is no mail server; give one like"),
        ("http://mail.example.org", FROM, None, "is no mail server"),
        ("smtp://", FROM, None, "is no mail server"),
        ("smtp://mail.example.org:x", FROM, None, "is no mail server"),
        ("smtp://mail.example.org/path", FROM, None, "is no mail server"),
        ("smtp://[::1", FROM, None, "is no mail server"),
        ("smtp://mail.example.org", None, None, "needs --mail-from"),
        ("smtp://mail.example.org", "nobody", None, "--mail-from: "),
        ("smtp://ann@mail.example.org", FROM, None, "TIDINGS_SMTP_PASSWORD"),
        ("smtp+plain://ann@mail.example.org", FROM, "x", "without encryption"),
    ],
)
def test_wrong_settings_are_a_sentence(
    smtp: str, mail_from: str | None, password: str | None, words: str
) -> None:
    with pytest.raises(TidingsError, match=words):
        mail_settings(smtp, mail_from, password)


@pytest.mark.parametrize(
    "smtp", ["smtp://ann:hunter2@mail.example.org", "smtp://ann:hunter2@mail.example.org:x", "ann:hunter2@x"]
)
def test_a_password_is_never_shown(smtp: str) -> None:
    with pytest.raises(TidingsError) as error:
        mail_settings(smtp, FROM, None)
    assert "hunter2" not in str(error.value)
    known = MailSettings("x", 1, Encryption.TLS, Sender("", "a@example.org"), "ann", "hunter2")
    assert "hunter2" not in repr(known)
