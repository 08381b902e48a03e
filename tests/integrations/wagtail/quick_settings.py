"""The settings of the example site, with tables that are made without migrations: Wagtail has two hundred of them. The slow tests
run them all."""

from newsroom.settings import *  # noqa: F403
from newsroom.settings import INSTALLED_APPS

MIGRATION_MODULES = {name.rpartition(".")[2]: None for name in INSTALLED_APPS} | {
    "wagtailcore": None,
    "wagtailusers": None,
    "wagtailimages": None,
    "wagtaildocs": None,
    "wagtailsearch": None,
    "wagtailadmin": None,
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database.fallback"}}
