"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from tidings.errors import TidingsError
from tidings.formats.sizes import read_size

if TYPE_CHECKING:
    from tidings.service.mail_settings import MailSettings

Command = TypeVar("Command", bound=Callable[..., Any])


class Size(click.ParamType[int]):
    """Bytes, written as 5GB, 500 MB or 2GiB."""

    name = "size"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            size = read_size(value)
        except TidingsError as error:
            self.fail(str(error), param, ctx)
        if size < self._least:
            self.fail(f"{value!r} is too little; give {self._least // 1_000_000}MB or more", param, ctx)
        return size


class Index(click.Path):
    """The folder of an index, as a path; or its address, as it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if is_address(value) else super().convert(value, param, ctx)


class _Subscriptions(Index):
    """A file or an index, as a path; or the text of one subscription, or the address of an index, as it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if " " in str(value) and not os.path.exists(value):
            return value
        return super().convert(value, param, ctx)


def is_address(value: Any) -> bool:
    """Whether an index is given by an address such as s3://bucket/index."""
    if "://" not in str(value):
        return False
    from tidings.storage import remote_index

    return remote_index.is_address(value)


def subscriptions_of(required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--subscriptions",
        "-s",
        required=required,
        type=_Subscriptions(exists=True, path_type=Path),
        metavar="FILE",
        help="The subscriptions: a text file (see 'tidings match --help'); a .csv, .parquet or .ndjson with the"
        " columns id and text; an index, also at an address such as s3://bucket/index; rules, with --patterns; or the text of"
        " one subscription.",
    )


subscriptions = subscriptions_of(required=True)
patterns = click.option(
    "--patterns",
    type=click.Choice(("eventbridge",)),
    help="The subscriptions are rules in JSON with event patterns as Amazon EventBridge has them.",
)
taxonomy = click.option(
    "--taxonomy",
    "-t",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The taxonomy for ISA, which says what is a kind of what: RDFS in any RDF syntax.",
)
prefix = click.option(
    "--prefix",
    "-p",
    "prefixes",
    multiple=True,
    metavar="NAME=IRI",
    help="A prefix that subscriptions use, such as ex=http://example.org/. May be repeated.",
)
networks = click.option(
    "--network",
    "-n",
    "networks",
    multiple=True,
    metavar="NAME=PATH",
    help="A network for subscriptions with VIA NAME AT 'node' (see 'tidings network --help'). May be repeated.",
)
tables = click.option(
    "--tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The tables that subscriptions join, in TOML or JSON (see 'tidings match --help'), instead of those that the"
    " file of subscriptions names by @tables.",
)
operators = click.option(
    "--operators",
    "modules",
    multiple=True,
    metavar="FILE.py",
    help="Python functions that subscriptions call, decorated with @tidings.operator: a file, or an installed"
    " package.module. May be repeated.",
)
data = click.option(
    "--data",
    default="tidings-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of the service, which holds all its data.",
)
store = click.option(
    "--store",
    metavar="URL",
    help="A PostgreSQL database for subscriptions and notifications, postgresql://user@host/database, instead of files in"
    " the folder.",
)
parts = click.option(
    "--parts",
    type=click.IntRange(1, 1000),
    metavar="NUMBER",
    help="Divide the subscriptions into so many parts, which are opened one by one where memory is short; 1 makes one whole"
    " of them again. Without it, an index stays divided as it is.",
)
place = click.option(
    "--place",
    type=click.Choice(("split", "contain", "auto")),
    default="auto",
    show_default=True,
    help="Which events visit a part: all (split), or those that a subscription in front of the parts has found, which"
    " contains what is there (contain). By default the fastest is chosen by measuring, also one whole index if the memory is enough.",
)
merge = click.option(
    "--merge",
    type=click.IntRange(0, 99),
    default=0,
    metavar="PERCENT",
    help="With containment: keep this percentage of the subscriptions out of the front. Similar patterns that nothing contains are"
    " merged for that, and events that only their merger matches visit parts in vain.",
)
apart = click.option(
    "--apart",
    is_flag=True,
    help="With containment: put subscriptions that match together into different parts. One event is then matched by many"
    " processes at once, and all events visit more parts.",
)
memory = click.option(
    "--memory",
    type=Size(least=1_000_000),
    metavar="SIZE",
    help="How much of the index one Python process may have open, such as 1GB. An index that needs more is refused, with the"
    " number of parts that 'tidings index build --parts' should divide it into.",
)
smtp = click.option(
    "--smtp",
    metavar="URL",
    help="The mail server for channels of the kind email: smtp://user@mail.example.org:587 with STARTTLS, smtps:// with TLS"
    " from the beginning, smtp+plain:// without encryption. Without it no mail is sent.",
)
smtp_password = click.option(
    "--smtp-password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file with the password of the user in --smtp. The variable TIDINGS_SMTP_PASSWORD may hold it instead.",
)
mail_from = click.option(
    "--mail-from",
    metavar="SENDER",
    help="Whom mails are from, such as 'Tidings <alerts@example.org>'.",
)


def chosen_mail(smtp: str | None, password_file: Path | None, mail_from: str | None) -> MailSettings | None:
    """The settings of mail; None if no server is given."""
    if smtp is None:
        if password_file is not None or mail_from is not None:
            raise click.UsageError(
                "--mail-from and --smtp-password-file need a mail server; give --smtp smtp://user@mail.example.org:587"
            )
        return None
    from tidings.service.mail_settings import mail_settings, read_password

    password = (
        os.environ.get("TIDINGS_SMTP_PASSWORD") if password_file is None else read_password(password_file)
    )
    return mail_settings(smtp, mail_from, password)


def check_division(parts: int | None, place: str, merge: int, apart: bool) -> None:
    """Refuses --place where nothing is divided, and --merge and --apart where nothing is divided by containment."""
    source = click.get_current_context().get_parameter_source("place")
    if parts is None and source is not ParameterSource.DEFAULT:
        raise click.UsageError(
            f"--place {place} says how an index is divided; give --parts too, such as --parts 8"
        )
    if (merge or apart) and (place == "split" or parts == 1):
        raise click.UsageError(
            "--merge and --apart divide by containment; give --place contain, or leave --place out"
        )


def need_folder(folder: Path, how: str) -> None:
    """Makes a folder and tries to write to it, before anything else is begun. `how` names another: "by --data"."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TidingsError(
            f"the folder {folder} cannot be written ({reason}); name another one {how}"
        ) from None
