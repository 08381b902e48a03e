"""`tidings relay`: serves subscribers near them."""

from tidings.cli.relay.command import relay

__all__ = ["relay"]
