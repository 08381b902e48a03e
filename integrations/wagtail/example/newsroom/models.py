"""The pages of the example site: a home page, sections in sections, and articles with tags."""

from __future__ import annotations

from django.db import models
from modelcluster.contrib.taggit import ClusterTaggableManager
from modelcluster.fields import ParentalKey
from taggit.models import TaggedItemBase
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField
from wagtail.models import Page
from wagtail.search import index


class HomePage(Page):
    template = "newsroom/section.html"
    subpage_types = ("newsroom.SectionPage",)


class SectionPage(Page):
    template = "newsroom/section.html"
    intro = models.TextField(blank=True)
    content_panels = (*Page.content_panels, FieldPanel("intro"))
    search_fields = (*Page.search_fields, index.SearchField("intro"))


class ArticleTag(TaggedItemBase):
    content_object = ParentalKey(
        "newsroom.ArticlePage", related_name="tagged_items", on_delete=models.CASCADE
    )


class ArticlePage(Page):
    template = "newsroom/article.html"
    body = RichTextField()
    reading_minutes = models.PositiveIntegerField(default=3)
    tags = ClusterTaggableManager(through=ArticleTag, blank=True)
    content_panels = (
        *Page.content_panels,
        FieldPanel("body"),
        FieldPanel("tags"),
        FieldPanel("reading_minutes"),
    )
    search_fields = (
        *Page.search_fields,
        index.SearchField("body"),
        index.FilterField("reading_minutes"),
        index.RelatedFields("tags", [index.SearchField("name")]),
    )
