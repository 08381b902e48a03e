"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def subscriptions_of(required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--subscriptions",
        "-s",
        required=required,
        type=click.Path(exists=True, path_type=Path),
        metavar="FILE",
        help="The questions: a text file (its form: 'tidings match --help'); a .csv, .parquet or .ndjson with the"
        " columns id and text; an index; or rules, with --patterns.",
    )


subscriptions = subscriptions_of(required=True)
patterns = click.option(
    "--patterns",
    type=click.Choice(("eventbridge",)),
    help="The questions are rules with event patterns as Amazon EventBridge has them, in JSON.",
)
taxonomy = click.option(
    "--taxonomy",
    "-t",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What is a kind of what, for ISA: RDFS in any RDF syntax.",
)
prefix = click.option(
    "--prefix",
    "-p",
    "prefixes",
    multiple=True,
    metavar="NAME=IRI",
    help="A prefix for the questions, such as ex=http://example.org/. May be repeated.",
)
networks = click.option(
    "--network",
    "-n",
    "networks",
    multiple=True,
    metavar="NAME=PATH",
    help="A network for questions with VIA NAME AT 'node'; its forms: 'tidings network --help'. May be repeated.",
)
tables = click.option(
    "--tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The tables that questions join, in TOML or JSON (its form: 'tidings match --help'), instead of those that the"
    " file of questions names by @tables.",
)
operators = click.option(
    "--operators",
    "modules",
    multiple=True,
    metavar="FILE.py",
    help="Python functions that the questions call, decorated with @tidings.operator: a file, or an installed"
    " package.module. May be repeated.",
)
data = click.option(
    "--data",
    default="tidings-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where the service keeps everything.",
)
store = click.option(
    "--store",
    metavar="URL",
    help="A PostgreSQL database for subscriptions and notifications, postgresql://user@host/database, instead of files in"
    " the folder.",
)
