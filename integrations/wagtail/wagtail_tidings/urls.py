"""The app's addresses. A site includes them: path("tidings/", include("wagtail_tidings.urls"))."""

from __future__ import annotations

from django.urls import path

from wagtail_tidings import views
from wagtail_tidings.delivery import deliver

app_name = "wagtail_tidings"
urlpatterns = [
    path("", views.profile, name="profile"),
    path("mine/<str:token>/", views.profile_by_link, name="profile_by_link"),
    path("ask/", views.ask, name="ask"),
    path("confirm/<str:token>/", views.confirm, name="confirm"),
    path("unsubscribe/<str:token>/", views.unsubscribe, name="unsubscribe"),
    path("deliver/", deliver, name="deliver"),
]
