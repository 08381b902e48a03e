"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

subscriptions = click.option(
    "--subscriptions",
    "-s",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="The questions: a text file (its form: 'tidings match --help'); a .csv, .parquet or .ndjson with the columns id"
    " and text; or an index.",
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
