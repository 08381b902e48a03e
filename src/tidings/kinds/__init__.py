"""The kinds of subscription, each in a folder of its own. Kinds do not import each other (networks use filters)."""
