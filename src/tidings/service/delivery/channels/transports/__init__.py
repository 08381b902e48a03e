"""The kinds of channels, each with what sends its messages.

A kind is one module with a function `transport(settings)`, which raises `Unavailable` with a sentence where this service cannot
send messages of the kind. To add one, write the module and name it in `TRANSPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tidings.errors import TidingsError, did_you_mean
from tidings.service.delivery.channels.message import Transport, Unavailable
from tidings.service.delivery.channels.transports import apprise, matrix, ntfy, smtp, webhook
from tidings.service.settings import Settings

TRANSPORTS: Final[Mapping[str, Callable[[Settings], Transport]]] = {
    "email": smtp.transport,
    "ntfy": ntfy.transport,
    "matrix": matrix.transport,
    "apprise": apprise.transport,
    "webhook": webhook.transport,
}
CONFIRMED: Final = frozenset({"email"})
"""The kinds whose holders have to confirm the address before anything else is sent there."""


class Transports:
    """What this service can send with, in one event loop."""

    def __init__(
        self, settings: Settings, known: Mapping[str, Callable[[Settings], Transport]] = TRANSPORTS
    ) -> None:
        self._known: dict[str, Transport] = {}
        self._missing: dict[str, str] = {}
        for kind, build in known.items():
            try:
                self._known[kind] = build(settings)
            except TidingsError as error:
                self._missing[kind] = str(error)

    @property
    def kinds(self) -> list[str]:
        """Those that this service can send."""
        return list(self._known)

    def of(self, kind: str) -> Transport:
        """What sends messages of a kind; Unavailable says why there is none."""
        if kind in self._known:
            return self._known[kind]
        if kind in self._missing:
            raise Unavailable(self._missing[kind])
        advice = did_you_mean(kind, self.kinds, f"this service has {', '.join(self.kinds)}")
        raise Unavailable(f"there is no kind of channel {kind[:40]!r}; {advice}")

    async def close(self) -> None:
        for transport in self._known.values():
            await transport.close()
