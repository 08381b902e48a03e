"""Search and tags."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from taggit.models import Tag
from wagtail.models import Page

from newsroom.models import ArticlePage


def search(request: HttpRequest) -> HttpResponse:
    query = request.GET.get("q", "").strip()
    results = Page.objects.live().public().search(query, operator="and") if query else []
    return render(request, "newsroom/search.html", {"query": query, "results": results})


def tag(request: HttpRequest, slug: str) -> HttpResponse:
    found = get_object_or_404(Tag, slug=slug)
    pages = ArticlePage.objects.live().public().filter(tags=found)
    return render(request, "newsroom/tag.html", {"tag": found, "results": pages})
