"""Tidings: standing questions, matched against every event at once.

>>> from tidings import Engine, Event
>>> engine = Engine()
>>> engine.subscribe("titles", "SELECT ?t WHERE (?item, rss:title, ?t)")
>>> engine.subscribe("grown-ups", "WHERE user.age >= 18")

Names are loaded when first used, so that `import tidings` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client.awaited import AsyncClient
    from tidings.client.direct import Client
    from tidings.engine import Engine
    from tidings.errors import EventError, IndexFileError, SubscriptionError, TaxonomyError, TidingsError
    from tidings.event import Event
    from tidings.explanation import Explanation
    from tidings.network.faults import NetworkError
    from tidings.network.network import Network
    from tidings.network.sources import read_network
    from tidings.notification import Notification
    from tidings.operators.operator import Operator, operator
    from tidings.operators.signature import OperatorError, Out
    from tidings.taxonomy import Taxonomy

_HOMES = {
    "AsyncClient": "client.awaited",
    "Client": "client.direct",
    "Engine": "engine",
    "Event": "event",
    "EventError": "errors",
    "Explanation": "explanation",
    "IndexFileError": "errors",
    "Network": "network.network",
    "NetworkError": "network.faults",
    "Notification": "notification",
    "Operator": "operators.operator",
    "OperatorError": "operators.signature",
    "Out": "operators.signature",
    "SubscriptionError": "errors",
    "Taxonomy": "taxonomy",
    "TaxonomyError": "errors",
    "TidingsError": "errors",
    "operator": "operators.operator",
    "read_network": "network.sources",
}
__all__ = list(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings' has no attribute {name!r}")
    return getattr(import_module(f"tidings.{_HOMES[name]}"), name)
