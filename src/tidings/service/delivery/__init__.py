"""Delivers notifications as JSON, feeds, server-sent events and webhooks."""
