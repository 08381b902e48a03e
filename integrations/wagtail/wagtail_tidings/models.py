"""What the site stores: who gets mail, what for, what waits to be sent to the service, and which messages were mailed.

A visitor is an account, or an address that confirmed what it asked for. Deleting a row is how an alert is cancelled and how a
visitor is forgotten: signal handlers put the call to the service into the outbox.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone


def new_key() -> str:
    return secrets.token_hex(12)


class Visitor(models.Model):
    """Somebody who gets mail. `key` names the visitor at the service, where there are no addresses and no names."""

    key = models.CharField(max_length=40, unique=True, default=new_key, editable=False)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    email = models.EmailField(blank=True, help_text="Empty if there is an account, whose address is used.")
    schedule = models.JSONField(default=dict, blank=True)
    channel = models.CharField(max_length=80, blank=True, editable=False)
    secret = models.CharField(max_length=200, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["email"], condition=models.Q(user__isnull=True), name="tidings_one_visitor_an_address"
            ),
        )
        indexes = (models.Index(fields=["channel"]),)

    def __str__(self) -> str:
        return self.address

    @property
    def address(self) -> str:
        return self.user.email if self.user else self.email


class Alert(models.Model):
    """What a visitor asked for. `subscription` is its id at the service, empty until it is made there."""

    class Kind(models.TextChoices):
        SEARCH = "search", "Search"
        TAG = "tag", "Tag"
        SECTION = "section", "Section"
        TEXT = "text", "Own text"

    visitor = models.ForeignKey(Visitor, on_delete=models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    value = models.TextField(help_text="Words, the slug of a tag, the number of a page, or a whole text.")
    only_new = models.BooleanField(default=False, help_text="Changes of published pages do not count.")
    title = models.CharField(max_length=200)
    text = models.TextField(help_text="In the subscription language.")
    subscription = models.CharField(max_length=80, blank=True, editable=False)
    confirmed_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = (
            models.Index(fields=["subscription"]),
            models.Index(fields=["kind", "title"]),
            models.Index(fields=["created_at"]),
        )

    def __str__(self) -> str:
        return self.title


class OutboxEntry(models.Model):
    """A call to the service that is still to be made, written in the transaction of what caused it."""

    class Action(models.TextChoices):
        EVENT = "event"
        TAXONOMY = "taxonomy"
        ACTIVATE = "activate"
        CANCEL = "cancel"
        END_CHANNEL = "end channel"

    action = models.CharField(max_length=20, choices=Action.choices)
    content = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    claimed_until = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, help_text="Why the service refused it for good.")

    class Meta:
        verbose_name_plural = "outbox entries"

    def __str__(self) -> str:
        return f"{self.action} {self.pk}"


class PushedTaxonomy(models.Model):
    """The taxonomy that the service was sent last, as a hash. There is one row."""

    digest = models.CharField(max_length=64)
    pushed_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.digest


class MailedMessage(models.Model):
    """A message of the service that was mailed, or is being mailed: a repetition is not mailed again."""

    message = models.CharField(max_length=200, unique=True)
    claimed_at = models.DateTimeField(default=timezone.now)
    mailed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.message


def state_of(alert: Alert, subscription: Any | None) -> str:
    """The state that people see. An alert without a subscription waits for a confirmation or for the service."""
    if alert.confirmed_at is None:
        return "unconfirmed"
    if not alert.subscription:
        return "waiting"
    return subscription.state if subscription is not None else "unknown"
