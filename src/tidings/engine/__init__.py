"""The engine in one process: subscriptions -> plan -> index; events -> pipeline -> notifications; and why."""
