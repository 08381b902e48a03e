"""Content-based publish/subscribe: every event is matched against all subscriptions at once.

>>> from tidings import Engine, Event
>>> engine = Engine()
>>> engine.subscribe("titles", "SELECT ?t WHERE (?item, rss:title, ?t)")
>>> engine.subscribe("grown-ups", "WHERE user.age >= 18")
>>> [n.subscription for n in engine.publish(Event("web", {"user": {"age": 34}}))]
['grown-ups']

Names are loaded when first used, so that `import tidings` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings import dissemination
    from tidings.client.async_client import AsyncClient
    from tidings.client.sync_client import Client
    from tidings.containment.contains import Containment
    from tidings.containment.texts import contains
    from tidings.engine.engine import BroadSubscription, EmptySubscription, Engine
    from tidings.errors import EventError, IndexFileError, SubscriptionError, TaxonomyError, TidingsError
    from tidings.feeds.read import read_feed
    from tidings.kinds.joins.replica import Replica
    from tidings.kinds.joins.schema.table import Table
    from tidings.kinds.networks.faults import NetworkError
    from tidings.kinds.networks.files.sources import read_network
    from tidings.kinds.networks.network import Network
    from tidings.kinds.operators import library
    from tidings.kinds.operators.functions.catalogue import read_operators
    from tidings.kinds.operators.functions.operator import Operator, operator
    from tidings.kinds.operators.functions.signature import OperatorError, Out
    from tidings.kinds.operators.scheduling import schedulers
    from tidings.model.event import Event
    from tidings.model.explanation import Clause, Explanation
    from tidings.model.notification import Notification
    from tidings.model.taxonomy import Taxonomy
    from tidings.storage import versions
    from tidings.storage.event_log import EventLog

_HOMES = {
    "AsyncClient": "client.async_client",
    "BroadSubscription": "engine.engine",
    "Clause": "model.explanation",
    "Client": "client.sync_client",
    "Containment": "containment.contains",
    "EmptySubscription": "engine.engine",
    "Engine": "engine.engine",
    "Event": "model.event",
    "EventError": "errors",
    "EventLog": "storage.event_log",
    "Explanation": "model.explanation",
    "IndexFileError": "errors",
    "Network": "kinds.networks.network",
    "NetworkError": "kinds.networks.faults",
    "Notification": "model.notification",
    "Operator": "kinds.operators.functions.operator",
    "OperatorError": "kinds.operators.functions.signature",
    "Out": "kinds.operators.functions.signature",
    "Replica": "kinds.joins.replica",
    "SubscriptionError": "errors",
    "Table": "kinds.joins.schema.table",
    "Taxonomy": "model.taxonomy",
    "TaxonomyError": "errors",
    "TidingsError": "errors",
    "contains": "containment.texts",
    "dissemination": "dissemination",
    "library": "kinds.operators.library",
    "operator": "kinds.operators.functions.operator",
    "read_feed": "feeds.read",
    "read_network": "kinds.networks.files.sources",
    "read_operators": "kinds.operators.functions.catalogue",
    "schedulers": "kinds.operators.scheduling.schedulers",
    "versions": "storage.versions",
}
_MODULES = ("dissemination", "library", "schedulers", "versions")
__all__ = list(_HOMES)
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings' has no attribute {name!r}")
    module = import_module(f"tidings.{_HOMES[name]}")
    return module if name in _MODULES else getattr(module, name)
