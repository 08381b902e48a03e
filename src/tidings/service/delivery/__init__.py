"""The way out: notifications as JSON, feeds, server-sent events and webhooks."""
