"""The rows of all tables, with their texts and orders."""
