"""`tidings demo`: a service with sample data and its page; or one whose processes are killed (`--chaos`)."""

from tidings.cli.demo.command import demo

__all__ = ["demo"]
