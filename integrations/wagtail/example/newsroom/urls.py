"""The addresses of the example site."""

from django.conf import settings
from django.urls import include, path
from django.views.static import serve
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as wagtailadmin_urls

from newsroom import views

urlpatterns = [
    path("admin/", include(wagtailadmin_urls)),
    path("tidings/", include("wagtail_tidings.urls")),
    path("search/", views.search, name="search"),
    path("tag/<slug:slug>/", views.tag, name="tag"),
    path("media/<path:path>", serve, {"document_root": settings.MEDIA_ROOT}),
    path("", include(wagtail_urls)),
]
