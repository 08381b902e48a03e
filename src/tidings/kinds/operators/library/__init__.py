"""Operators that come with Tidings: places, keywords, tables. Each is made for the user's own data, and asks for its
library's extra: `tidings[spatial]`, `tidings[lookup]`; keywords need none.
"""
