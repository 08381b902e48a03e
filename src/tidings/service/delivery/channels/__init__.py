"""Channels: where messages with the notifications of several subscriptions go, and how often."""
