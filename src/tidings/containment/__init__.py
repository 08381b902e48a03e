"""Which subscription covers which: every event that matches the one matches the other. RSS cluster, 4.2."""
