"""Join subscriptions as rectangles in clusters, and whom a change affects."""
