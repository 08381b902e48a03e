"""`manage.py tidings_sync`: sends what waits in the outbox, rebuilds the taxonomy, and forgets old rows. Run it by cron."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from tidings.client import ServiceError
from wagtail_tidings import outbox
from wagtail_tidings.actions import push_taxonomy
from wagtail_tidings.links import CONFIRM_WITHIN
from wagtail_tidings.models import Alert, MailedMessage, OutboxEntry, Visitor

KEEP_MESSAGES = timedelta(days=30)  # far longer than the service repeats a message


class Command(BaseCommand):
    help = (
        "Sends to Tidings what it has not got yet, and replaces its taxonomy by the page tree and the tags."
    )

    def handle(self, *arguments: Any, **options: Any) -> None:
        now = timezone.now()
        MailedMessage.objects.filter(claimed_at__lt=now - KEEP_MESSAGES).delete()
        Alert.objects.filter(confirmed_at=None, created_at__lt=now - CONFIRM_WITHIN).delete()
        Visitor.objects.filter(user=None, alerts=None, created_at__lt=now - CONFIRM_WITHIN).delete()
        try:
            push_taxonomy(always=True)
            sent = outbox.send_waiting()
        except (outbox.Away, ServiceError) as error:
            raise CommandError(f"Tidings is not reached: {error}; {outbox.waiting()} calls wait") from error
        self.stdout.write(f"The taxonomy was replaced; {sent} waiting calls were sent.")
        for entry in OutboxEntry.objects.exclude(error=""):
            self.stderr.write(f"Tidings refused {entry}: {entry.error}")
