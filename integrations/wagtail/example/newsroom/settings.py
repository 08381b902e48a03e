"""Settings of the example site. What differs from one machine to the next comes from the environment."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).parent
SECRET_KEY = os.environ.get("NEWSROOM_SECRET", "only for an example on one machine")
DEBUG = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "newsroom.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "Europe/Vienna"
STATIC_URL = "/static/"
MEDIA_ROOT = HERE.parent / "media"
MEDIA_URL = "/media/"

INSTALLED_APPS = [
    "newsroom",
    "wagtail_tidings",
    "wagtail.users",
    "wagtail.images",
    "wagtail.documents",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def database(address: str) -> dict[str, object]:
    """A file of SQLite, or postgresql://user@/name?host=folder."""
    if not address.startswith("postgresql:"):
        # The sender of the outbox writes beside the requests: a transaction waits for its turn when it begins.
        options = {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        }
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": address, "OPTIONS": options}
    parts = urlsplit(address)
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.strip("/"),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": host,
        "PORT": str(parts.port or ""),
    }


DATABASES = {"default": database(os.environ.get("NEWSROOM_DATABASE", str(HERE.parent / "newsroom.db")))}

WAGTAIL_SITE_NAME = "The Example"
WAGTAILADMIN_BASE_URL = os.environ.get("NEWSROOM_URL", "http://localhost:8000")
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database"}}
WAGTAIL_GRAVATAR_PROVIDER_URL = None  # nothing is fetched from other hosts
WAGTAIL_ENABLE_UPDATE_CHECK = False
WAGTAIL_FRONTEND_LOGIN_TEMPLATE = "newsroom/login.html"
LOGIN_REDIRECT_URL = "/"

DEFAULT_FROM_EMAIL = "The Example <alerts@example.org>"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
if mail_server := os.environ.get("NEWSROOM_SMTP"):  # host:port
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, _, EMAIL_PORT = mail_server.rpartition(":")

TIDINGS = {
    "URL": os.environ.get("TIDINGS_URL", "http://localhost:8750"),
    "TOKEN": os.environ.get("TIDINGS_TOKEN", ""),
}
