"""Reads feeds (RSS 0.9x, 1.0 and 2.0, Atom, JSON Feed) into events in the terms of RSS 1.0, and writes them.

The fetcher is in `tidings.feeds.fetch`: it alone needs an HTTP client.
"""
