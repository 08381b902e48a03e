"""Pages as events, the tree as a taxonomy, and what people ask for as texts that match them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.examples import examples
from tidings import Client, Engine, Event, Taxonomy

pytestmark = pytest.mark.usefixtures("site")


def matched(event: dict[str, Any], **texts: str) -> set[str]:
    """The names of the texts that an event matches, by the taxonomy of the site."""
    from wagtail_tidings.page_taxonomy import site_taxonomy

    engine = Engine(taxonomy=Taxonomy.from_rdf(site_taxonomy(), "nt"))
    for name, text in texts.items():
        engine.subscribe(name, text)
    return {notification.subscription for notification in engine.publish(Event.from_cloudevent(event))}


def text(kind: str, value: str, only_new: bool = False) -> str:
    from wagtail_tidings.conditions import text_of

    return text_of(kind, value, only_new)


def test_an_alert_finds_pages_by_words_tags_and_sections(pages: Any, article: Any) -> None:
    from wagtail_tidings.page_event import page_event

    page = article(
        "Energy", "Panels for the town hall", "A roof of <b>solar</b> panels &amp; batteries.", "Climate"
    )
    event = page_event(page, "published")
    assert event["body"] == "Panels for the town hall\nA roof of solar panels & batteries.\nClimate"
    assert matched(
        event,
        words=text("search", "Solar ROOF"),
        title=text("search", "town"),
        other_words=text("search", "solar wind"),
        tag=text("tag", "climate"),
        other_tag=text("tag", "opera"),
        section=text("section", str(pages("Energy").pk)),
        above=text("section", str(pages("Policy").pk)),
        beside=text("section", str(pages("Culture").pk)),
        itself=text("section", str(page.pk)),
        filter="WHERE section = '/policy/' AND reading_minutes < 5 AND tags = 'Climate' AND model = 'newsroom.ArticlePage'",
        pattern="SELECT ?t WHERE (?page, rss:title, ?t), (?page, dc:subject, 'Climate'), (?page, dc:language, 'en')",
    ) == {"words", "title", "tag", "section", "above", "itself", "filter", "pattern"}


def test_only_new_pages(article: Any) -> None:
    from wagtail_tidings.page_event import page_event

    page = article("Energy", "Dam", "Water.", "Climate")
    texts = {
        "all": text("search", "water"),
        "new": text("search", "water", True),
        "tag": text("tag", "climate", True),
    }
    assert matched(page_event(page, "published"), **texts) == {"all", "new", "tag"}
    assert matched(page_event(page, "changed"), **texts) == {"all"}


def test_an_unpublished_page_says_nothing_of_its_contents(article: Any) -> None:
    from wagtail_tidings.page_event import page_event

    page = article("Energy", "Secret merger", "Confidential.", "Climate")
    event = page_event(page, "unpublished")
    assert event["change"] == "unpublished"
    rest = str(event).replace(page.slug, "")
    assert "ecret" not in rest
    assert "onfidential" not in rest
    assert matched(event, words=text("search", "merger"), tag=text("tag", "climate")) == set()


def test_changes_are_in_the_outbox_in_order(pages: Any, article: Any) -> None:
    from wagtail_tidings.models import OutboxEntry

    page = article("Energy", "Dam", "Water.")
    page.save_revision().publish()
    page.unpublish()
    page.move(pages("Culture"), pos="last-child")
    page.save_revision().publish()
    page.delete()
    entries = OutboxEntry.objects.order_by("pk")
    events = [entry.content["event"] for entry in entries if entry.action == "event"]
    assert [event["change"] for event in events] == [
        "published",
        "changed",
        "unpublished",
        "changed",
        "unpublished",
    ]
    assert [event["url"].rsplit("8000")[1] for event in events] == [
        *3 * ["/policy/energy/dam/"],
        *2 * ["/culture/dam/"],
    ]
    assert entries.first().action == "taxonomy"


def test_a_new_page_in_a_section_leaves_the_taxonomy_as_it_is(article: Any, pages: Any) -> None:
    from wagtail_tidings.page_taxonomy import site_taxonomy

    before = site_taxonomy()
    page = article("Energy", "Dam", "Water.", "Climate")
    assert site_taxonomy() == before
    page.tags.add("Water")
    page.save_revision().publish()
    assert "/tag/water>" in site_taxonomy()


def test_a_moved_section_and_a_private_one(pages: Any) -> None:
    from wagtail.models import PageViewRestriction
    from wagtail_tidings.page_taxonomy import site_taxonomy

    PageViewRestriction.objects.create(page=pages("Energy"), restriction_type="login")
    document = site_taxonomy()
    assert '"Transport"' in document
    assert '"Energy"' not in document
    pages("Energy").move(pages("Culture"), pos="last-child")
    taxonomy = Taxonomy.from_rdf(site_taxonomy(), "nt")
    name = f"http://site.example:8000/tidings/id/page/{pages('Energy').pk}"
    assert set(taxonomy.classes_above(name)) >= {
        f"http://site.example:8000/tidings/id/page/{pages('Culture').pk}"
    }


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=4))
def test_any_words_can_be_asked_for(typed: list[str]) -> None:
    """Whatever is typed into a search becomes a text that the language reads, and that finds a page with these words."""
    from wagtail_tidings.conditions import plain_words

    words = plain_words(" ".join(typed))
    assume(words)
    body = "before " + " ".join(reversed(words)) + " after"
    engine = Engine()
    engine.subscribe("s", text("search", " ".join(typed)))
    assert len(list(engine.publish(Event("site", {"body": body})))) == 1


def test_words_are_plain() -> None:
    from wagtail_tidings.conditions import plain_words

    assert plain_words(' "wind power" -nuclear (OR & it\'s e-mail) ') == [
        "wind",
        "power",
        "nuclear",
        "or",
        "it's",
        "e-mail",
    ]
    assert plain_words('-- & … "') == []


def test_the_app_uses_the_public_client_alone() -> None:
    from tests.integrations.wagtail.conftest import FOLDER

    lines = [line for path in FOLDER.rglob("*.py") for line in path.read_text().splitlines()]
    used = {line.split()[1] for line in lines if line.strip().startswith(("from tidings", "import tidings"))}
    assert used == {"tidings", "tidings.client"}
    assert Client.__module__.startswith("tidings.client")
