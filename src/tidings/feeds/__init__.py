"""Feeds: RSS 0.9x, 1.0 and 2.0, Atom and JSON Feed, read into events in the terms of RSS 1.0.

The fetcher is in `tidings.feeds.fetch`: it alone needs an HTTP client.
"""
