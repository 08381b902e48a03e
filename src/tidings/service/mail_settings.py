"""The settings of outgoing mail: the server that takes it, how the connection is encrypted, who logs in, whom mails are from.

smtp://host:587         encrypted by STARTTLS; without it nothing is sent
smtps://host:465        encrypted from the beginning
smtp+plain://host:25    not encrypted, for a server on this machine or in the same network
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidings.errors import TidingsError
from tidings.service.mail_addresses import Sender, sender


class Encryption(StrEnum):
    STARTTLS = "smtp"
    TLS = "smtps"
    NONE = "smtp+plain"


_LONGEST = 10_000  # characters of a file with a password
_PORTS = {Encryption.STARTTLS: 587, Encryption.TLS: 465, Encryption.NONE: 25}


@dataclass(frozen=True, slots=True)
class MailSettings:
    host: str
    port: int
    encryption: Encryption
    sender: Sender
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def mail_settings(smtp: str, mail_from: str | None, password: str | None = None) -> MailSettings:
    """The settings from the address of a server and what stands beside it; a TidingsError says what is wrong."""
    try:
        parts = urlsplit(smtp.strip())
        host, port = parts.hostname or "", parts.port
        encryption = Encryption(parts.scheme)
    except ValueError:
        host, port = "", None
    if not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise TidingsError(
            f"--smtp {_without_password(smtp)!r} is no mail server; give one like smtp://user@mail.example.org:587, smtps://… or smtp+plain://…"
        )
    if parts.password is not None:
        raise TidingsError(
            "--smtp has a password, which everybody on this machine can see; give it by --smtp-password-file, or by the"
            " environment variable TIDINGS_SMTP_PASSWORD"
        )
    if mail_from is None:
        raise TidingsError("--smtp needs --mail-from too, such as --mail-from 'Tidings <alerts@example.org>'")
    try:
        whom = sender(mail_from)
    except TidingsError as error:
        raise TidingsError(f"--mail-from: {error}") from None
    user = unquote(parts.username) if parts.username else None
    if user is not None and not password:
        raise TidingsError(
            f"--smtp has the user {user!r} and no password; give it by --smtp-password-file, or by the environment"
            " variable TIDINGS_SMTP_PASSWORD"
        )
    if user is not None and encryption is Encryption.NONE and not _is_this_machine(host):
        raise TidingsError(
            f"--smtp would send the password of {user!r} to {host} without encryption; use smtp:// or smtps://"
        )
    if find_spec("aiosmtplib") is None:
        raise TidingsError("--smtp needs another package; install Tidings with the extra 'mail'")
    return MailSettings(host, port or _PORTS[encryption], encryption, whom, user, password if user else None)


def read_password(path: Path) -> str:
    """The password in a file, which has nothing else."""
    try:
        with path.open(encoding="utf-8") as file:
            password = file.read(_LONGEST).rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise TidingsError(
            f"--smtp-password-file {path} cannot be read; it is a text file with the password alone"
        ) from None
    if len(password.splitlines()) != 1:
        raise TidingsError(f"--smtp-password-file {path} has no password; write it alone into its first line")
    return password


def _without_password(smtp: str) -> str:
    """An address for a sentence; who mistypes it may have written the password into it."""
    before, at, after = smtp[:200].rpartition("@")
    return (
        f"{before.rpartition('//')[0]}//…@{after}" if at and ":" in before.rpartition("//")[2] else smtp[:200]
    )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
