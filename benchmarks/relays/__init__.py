"""Live relays, measured: listeners in processes of their own, relays in network namespaces."""
