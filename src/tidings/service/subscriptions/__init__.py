"""Manages subscriptions and access to them: lifecycle, expiry, access control, and previews."""
