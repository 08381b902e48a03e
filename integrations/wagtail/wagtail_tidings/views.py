"""What visitors see: the answer to an alert that was asked for, its confirmation, the profile, and the end of it all."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from wagtail_tidings import alerts, links
from wagtail_tidings.alerts import AlertError
from wagtail_tidings.models import Alert, Visitor
from wagtail_tidings.profile import cards_of


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Adds an alert that one of the forms asks for."""
    given = request.POST
    kind, value, only_new = given.get("kind", ""), given.get("value", ""), bool(given.get("only_new"))
    try:
        if request.user.is_authenticated:
            visitor = alerts.visitor_of_account(request.user)
        else:
            visitor = alerts.visitor_of_address(given.get("email", ""))
        alert = alerts.ask(visitor, kind, value, only_new)
    except AlertError as error:
        context = {"sentence": str(error), "back": _back(request)}
        return render(request, "wagtail_tidings/refused.html", context, status=400)
    # An address is shown the same answer whether it is known here or not.
    context = {"alert": alert, "email": "" if visitor.user_id else visitor.email, "back": _back(request)}
    return render(request, "wagtail_tidings/asked.html", context)


def _back(request: HttpRequest) -> str:
    given = request.POST.get("back", "")
    allowed = url_has_allowed_host_and_scheme(given, {request.get_host()}, request.is_secure())
    return given if allowed else "/"


@never_cache
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """A GET changes nothing, because mail programs look at links in advance."""
    alert = links.alert_of(token)
    if alert is None:
        sentence = "This link is too old, or was not copied whole. Ask for the alert once more."
        return render(
            request, "wagtail_tidings/refused.html", {"sentence": sentence, "back": "/"}, status=404
        )
    if request.method == "POST" and alert.confirmed_at is None:
        alerts.confirm(alert)
    context = {"alert": alert, "profile": links.profile_link(alert.visitor)}
    return render(request, "wagtail_tidings/confirm.html", context)


@csrf_exempt
@never_cache
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ends all mail to a visitor by one POST, which needs no login and no cookie (RFC 8058)."""
    visitor = links.leaving_visitor(token)
    if visitor is None and not links.is_leaving(token):
        raise Http404
    if visitor is not None and request.method == "POST":
        visitor.delete()
        visitor = None
    return render(request, "wagtail_tidings/unsubscribe.html", {"visitor": visitor})


@never_cache
def profile(request: HttpRequest) -> HttpResponse:
    """The profile of somebody with an account."""
    if not request.user.is_authenticated:
        login = getattr(settings, "WAGTAIL_FRONTEND_LOGIN_URL", None) or reverse("wagtailcore_login")
        return redirect_to_login(request.get_full_path(), login)
    visitor = Visitor.objects.select_related("user").filter(user=request.user).first()
    return _profile(request, visitor or Visitor(user=request.user))


@never_cache
def profile_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """The profile of an address, by the link in its mails."""
    visitor = links.visitor_of(token)
    if visitor is None:
        raise Http404
    return _profile(request, visitor)


def _profile(request: HttpRequest, visitor: Visitor) -> HttpResponse:
    if request.method == "POST":
        return _act(request, visitor)
    cards, answered = cards_of(visitor) if visitor.pk else ([], True)
    context = {
        "visitor": visitor,
        "cards": cards,
        "answered": answered,
        "schedules": [(name, label) for name, (label, _) in alerts.schedules().items()],
        "schedule": alerts.schedule_name(visitor.schedule),
        "unsubscribe": links.unsubscribe_link(visitor) if visitor.pk else "",
    }
    return render(request, "wagtail_tidings/profile.html", context)


def _act(request: HttpRequest, visitor: Visitor) -> HttpResponse:
    if not visitor.pk:
        return redirect(request.get_full_path())
    action, given = request.POST.get("action", ""), request.POST
    try:
        if action == "schedule":
            alerts.reschedule(visitor, given.get("schedule", ""))
            messages.success(request, "Mail comes as you chose.")
        else:
            number = given.get("alert", "")
            alert = get_object_or_404(visitor.alerts, pk=number if number.isdecimal() else 0)
            messages.success(
                request, _change(alert, action, given.get("value", ""), bool(given.get("only_new")))
            )
    except AlertError as error:
        messages.error(request, str(error))
    return redirect(request.get_full_path())


def _change(alert: Alert, action: str, value: str, only_new: bool) -> str:
    steps: dict[str, tuple[Callable[[], object], str]] = {
        "pause": (lambda: alerts.pause(alert), "The alert is paused."),
        "resume": (lambda: alerts.resume(alert), "The alert is active again."),
        "renew": (lambda: alerts.renew(alert), "The alert is valid for another year."),
        "change": (lambda: alerts.change(alert, value, only_new), "The alert was changed."),
        "cancel": (alert.delete, "The alert was cancelled."),
    }
    if action not in steps:
        raise Http404
    step, sentence = steps[action]
    step()
    return sentence
