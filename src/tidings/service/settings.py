"""The settings of a service. Every value has a default: `tidings serve` alone is a whole system.

data/registry.db        subscriptions, tokens, sources, deliveries   (or PostgreSQL)
data/mailbox.db         notifications, channels                     (or PostgreSQL)
data/feeds.db           the fetch states of followed feeds, subscriptions at their hubs
data/log/               the event log
data/arrivals.db        which events are in the log
data/index/             index versions
data/output/            notifications of joins as Parquet, until they are in the mailbox
data/checkpoint/        of the stream
data/key                the key that signs cookies
data/identity           the id of this service
data/upstream.json      of a relay: how far it has read
data/LOCK               the process that serves
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidings.service.mail_settings import MailSettings

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path
    host: str = "127.0.0.1"
    port: int = 8750
    url: str | None = None  # as which the service is known outside, without a slash at the end
    store: str | None = None  # postgresql://…; SQLite files in `data` without it
    matching: str = "spark"  # or "process": in this process, without Spark
    spark: str = "local[*,4]"
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    small_batch: int | None = None  # events that are matched without a Spark job; None: learnt
    memory: int | None = None  # bytes of the index that one Python process may have open; None: no bound
    parts: int | None = None  # into which the index is divided; None: as it is
    place: str = "auto"  # of the subscriptions in parts
    merge: int = 0  # percentage of the subscriptions that is kept out of the front, by mergers
    apart: bool = False  # subscriptions that match together are in different parts
    stall_after: float = 900.0  # seconds without progress while events wait, after which a driver is replaced
    max_lag: float = 60.0  # seconds that an event may wait to be matched, for the service to be ready
    taxonomy: Path | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, Path] = field(default_factory=dict)
    operators: tuple[str, ...] = ()  # files, or modules
    tables: Path | None = None
    allowed: tuple[str, ...] = ()  # networks (CIDR) inside which feeds and webhooks may be
    mail: MailSettings | None = None  # None: no mail is sent
    open: bool = True  # no token is needed; only where no other machine can connect
    validity: float = DAY  # of a subscription that names none
    longest_validity: float | None = None  # None: "never" is allowed
    retention: float = 7 * DAY  # of events and notifications
    keep_size: int | None = None  # bytes of the event log, and as many of the mailbox; None: no bound
    feed_interval: float = 15 * 60.0
    max_body: int = 16 << 20  # bytes of a request
    upstream: tuple[
        str, ...
    ] = ()  # the services that a relay gets its events from: the first one that answers
    upstream_token: str | None = None
    name: str = ""  # of a relay, on the pages of the services above; empty: that of the host
    protect_metrics: bool = False  # /metrics needs a token, on a service that is not open
    log_format: str = "text"  # or json

    @property
    def address(self) -> str:
        """The address that goes into feeds and links."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url or f"http://{host}:{self.port}"
