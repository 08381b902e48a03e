"""The straightforward schemes: Enum-J, Rel-Sel, Ref-J and Ref-J+. Select-joins, 2.3; of many tables, Appendix F."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tidings.dissemination.schemes.filters import position
from tidings.dissemination.schemes.joined import JoinedRow, joined_size, joined_with
from tidings.dissemination.schemes.message import Image, Longs, Message, SelectionForm
from tidings.dissemination.schemes.population import Population
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.semijoins import distinct, each_row
from tidings.dissemination.schemes.server import Server, Step
from tidings.dissemination.schemes.signature import Semijoin, Signature


class RelSel(Scheme):
    """Every row goes to those whose range holds it, whether it joins or not; the client joins what it has."""

    name: ClassVar[str] = "Rel-Sel"

    def step(self, step: Step) -> list[Message]:
        return [Message(SelectionForm(step.image.table), (step.image,), step.sign, step.image.size)]


class EnumJ(Scheme):
    """The joined rows that a subscription gains or loses, sent to it alone."""

    name: ClassVar[str] = "Enum-J"

    def step(self, step: Step) -> list[Message]:
        found = []
        for population in self.server.populations:
            if step.image.table in population.signature.tables:
                for rows, targets in interested(self.server, population, step.image):
                    size = joined_size(population.signature, rows)
                    found.append(Message(population.signature, rows, step.sign, size, targets))
        return found


class RefJ(Scheme):
    """Sends the joined rows once for all subscriptions of one signature, whether they match any or not."""

    name: ClassVar[str] = "Ref-J"

    def step(self, step: Step) -> list[Message]:
        signatures = dict.fromkeys(population.signature for population in self.server.populations)
        return [
            Message(signature, rows, step.sign, joined_size(signature, rows))
            for signature in signatures
            if step.image.table in signature.tables
            for rows in self.joined(signature, step.image)
        ]

    def joined(self, signature: Signature, image: Image) -> Iterator[JoinedRow]:
        if len(signature.tables) != 2:
            return joined_with(self.server, signature, image)
        form = next(signature.semijoins(image.table))
        joining = self.server.rows(form.filtering).joining(image, form.base.join)
        return (_in_order(signature, image, other) for other in joining.images)


class RefJPlus(RefJ):
    """Sends the joined rows that match some subscription."""

    name: ClassVar[str] = "Ref-J+"

    def joined(self, signature: Signature, image: Image) -> Iterator[JoinedRow]:
        alike = [population for population in self.server.populations if population.signature == signature]
        if len(signature.tables) == 2:
            form = next(signature.semijoins(image.table))
            members = sum(
                len(population) for population in self.server.populations if form in population.semijoins
            )
            if members == sum(len(population) for population in alike):  # the group has no other subscription
                return self._wanted(form, signature, image)
        return (rows for rows in super().joined(signature, image) if any(map(len, _wanting(alike, rows))))

    def _wanted(self, form: Semijoin, signature: Signature, image: Image) -> Iterator[JoinedRow]:
        joining = self.server.rows(form.filtering).joining(image, form.base.join)
        at = self.server.rows(form.base).at(image)
        points = np.column_stack([joining.keys, joining.keys])
        for index in np.flatnonzero(self.server.groups[form].reaching(at, points)).tolist():
            yield _in_order(signature, image, joining.images[index])


def interested(server: Server, population: Population, image: Image) -> Iterator[tuple[JoinedRow, Longs]]:
    """The joined rows of a row that match some subscription of a population, and which."""
    signature = population.signature
    if len(signature.tables) == 2:
        form = next(signature.semijoins(image.table))
        pairs, joining = server.groups[form], server.rows(form.filtering).joining(image, form.base.join)
        found = pairs.affected(server.rows(form.base).at(image), distinct(joining.keys))
        owners = pairs.owners(found)
        own = population.among(owners)  # a group may hold other populations
        low, high = pairs.filtering(found[own])
        for other, targets in each_row(joining, owners[own], low, high):
            yield _in_order(signature, image, other), targets
        return
    for rows in joined_with(server, signature, image):
        (targets,) = _wanting([population], rows)
        targets = targets[~np.isin(targets, list(server.gone))] if server.gone else targets
        if len(targets):
            yield rows, targets


def _wanting(populations: list[Population], rows: JoinedRow) -> Iterator[Longs]:
    for population in populations:
        wanted = np.ones(len(population), dtype=np.bool_)
        for slot, (image, selection) in enumerate(zip(rows, population.signature.selections, strict=True)):
            at = position(image, selection)
            wanted &= (population.low(slot) <= at) & (at <= population.high(slot))
        yield population.numbers[wanted]


def _in_order(signature: Signature, image: Image, other: Image) -> JoinedRow:
    return (image, other) if image.table == signature.tables[0] else (other, image)
