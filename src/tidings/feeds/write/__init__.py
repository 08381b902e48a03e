"""Writes a channel of entries as RSS 1.0, RSS 2.0, Atom or JSON Feed.

Each writer takes a `Channel` and returns bytes that strict readers accept, whatever text is in it, and that
`tidings.feeds.read` reads back. The same channel gives the same bytes: nothing depends on the clock.
"""

from tidings.feeds.write.channel import Channel, Entry, Property

__all__ = ["Channel", "Entry", "Property"]
