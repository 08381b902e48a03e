"""The contract of all schemes: computes the messages of a server for a change. Select-joins, Table 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from tidings.dissemination.schemes.filters import Subscription, accepts
from tidings.dissemination.schemes.message import Message
from tidings.dissemination.schemes.server import Change, Server, Step


class Scheme(ABC):
    """One way to send changes to subscriptions. Schemes of one server share its rows and subscriptions."""

    name: ClassVar[str]

    def __init__(self, server: Server) -> None:
        self.server = server

    def messages(self, change: Change) -> list[Message]:
        """Applies a change to the server's rows; the messages, in the order in which a client applies them."""
        return [message for step in self.server.steps(change) for message in self.step(step)]

    @abstractmethod
    def step(self, step: Step) -> list[Message]:
        """The messages for one row that comes or goes, seen while it is not there. Nothing is changed."""

    def accepts(self, message: Message, subscription: Subscription) -> bool:
        """The filter of a subscriber, or of a node of the network on its behalf."""
        return accepts(message, subscription)
