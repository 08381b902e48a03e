"""Subscriptions and who may do what with them: lifecycle, expiry, access, and preview before one is made."""
