"""Networks of intermediaries: events reach a node only along paths whose every node and edge accepts them."""

from tidings.network.faults import NetworkError
from tidings.network.network import Network

__all__ = ["Network", "NetworkError"]
