"""Indexes join subscriptions as rectangles in clusters, and finds those that a change affects."""
