"""The page tree and the tags as a taxonomy: `ISA` the class of a page means that page or anything below it.

Pages without children are not in it: their own events say below which page they are, so that publishing a page does not change
the taxonomy. Titles of private sections are left out.
"""

from __future__ import annotations

import hashlib

from wagtail.models import Page, get_page_models

from tidings import Taxonomy
from wagtail_tidings.page_event import tag_managers
from wagtail_tidings.vocabulary import all_tags_iri, page_iri, tag_iri


def site_taxonomy() -> str:
    """The taxonomy of the site as it is now, as N-Triples in a fixed order."""
    taxonomy = Taxonomy()
    _add_sections(taxonomy)
    _add_tags(taxonomy)
    return "".join(sorted(taxonomy.to_ntriples().decode().splitlines(keepends=True)))


def digest(document: str) -> str:
    return hashlib.sha256(document.encode()).hexdigest()


def _add_sections(taxonomy: Taxonomy) -> None:
    sections = Page.objects.filter(depth__gt=1, numchild__gt=0)
    public = set(sections.live().public().values_list("pk", flat=True))
    steplen, by_path = Page.steplen, {}
    for number, path, title in sections.order_by("path").values_list("pk", "path", "title"):
        by_path[path] = number
        parent = by_path.get(path[:-steplen])
        above = [] if parent is None else [page_iri(parent)]
        taxonomy.add_class(page_iri(number), above, label=title if number in public else None)


def _add_tags(taxonomy: Taxonomy) -> None:
    throughs = {manager.through for model in get_page_models() for manager in tag_managers(model)}
    for through in throughs:
        for slug, name in through.objects.values_list("tag__slug", "tag__name").distinct():
            taxonomy.add_class(tag_iri(slug), [all_tags_iri()], label=name)
