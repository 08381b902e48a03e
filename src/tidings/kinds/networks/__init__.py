"""Networks of intermediaries: events reach a node only along paths whose every node and edge accepts them."""

from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.network import Network

__all__ = ["Network", "NetworkError"]
