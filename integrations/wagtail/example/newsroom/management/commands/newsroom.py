"""`manage.py newsroom`: fills an empty site with sections, articles, an editor and a reader, both with the password "example"."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from wagtail.models import Collection, Locale, Page, Site

from newsroom.models import ArticlePage, HomePage, SectionPage

SECTIONS = {
    "Policy": {"Energy": {}, "Transport": {}},
    "Culture": {"Music": {}},
    "Staff": {},
}
ARTICLES = {
    "Energy": [
        (
            "Solar power on every school",
            "The council pays for solar power on the roofs of all schools.",
            "Climate",
        ),
        ("Wind farm approved", "Twelve turbines will be built off the coast.", "Climate"),
    ],
    "Transport": [("Night trains return", "Three lines run again through the night.", "Rail")],
    "Music": [("A new opera season", "Tosca opens the season in the old house.", "Opera")],
}


class Command(BaseCommand):
    help = "Fills an empty site with pages and two accounts."

    def handle(self, *arguments: Any, **options: Any) -> None:
        home = _home()
        sections: dict[str, SectionPage] = {}
        _add_sections(home, SECTIONS, sections)
        for name, articles in ARTICLES.items():
            for title, body, tag in articles:
                page = ArticlePage(title=title, body=f"<p>{body}</p>")
                sections[name].add_child(instance=page)
                page.tags.add(tag)
                page.save_revision().publish()
        users = get_user_model().objects
        users.create_superuser("editor", "editor@example.org", "example")
        users.create_user("reader", "reader@example.org", "example")
        self.stdout.write("Pages, and the accounts editor and reader (password: example), were made.")


def _home() -> HomePage:
    """A home page in the place of Wagtail's welcome page, and the site at the address of the settings."""
    Locale.objects.get_or_create(language_code="en")
    if not Collection.objects.exists():
        Collection.add_root(name="Root")
    root = Page.get_first_root_node() or Page.add_root(instance=Page(title="Root", slug="root"))
    Site.objects.all().delete()
    for page in root.get_children():
        page.delete()
    root.refresh_from_db()
    home = root.add_child(instance=HomePage(title="The Example", slug="home"))
    address = urlsplit(settings.WAGTAILADMIN_BASE_URL)
    Site.objects.create(
        hostname=address.hostname,
        port=address.port or (443 if address.scheme == "https" else 80),
        root_page=home,
        is_default_site=True,
        site_name=settings.WAGTAIL_SITE_NAME,
    )
    return home


def _add_sections(parent: Page, names: dict[str, Any], made: dict[str, SectionPage]) -> None:
    for name, below in names.items():
        made[name] = parent.add_child(instance=SectionPage(title=name, show_in_menus=True))
        made[name].save_revision().publish()
        _add_sections(made[name], below, made)
