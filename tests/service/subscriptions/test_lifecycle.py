"""A subscription from its beginning to its end, and who may bring about which."""

import threading
from dataclasses import replace

import pytest

from tests.service.stores import opened
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError
from tidings.feeds.addresses import AddressRefused
from tidings.service.model import Notice, NotificationKind, Principal, Role, State
from tidings.service.settings import DAY, Settings
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import (
    AccessControl,
    Forbidden,
    NotFound,
    OverQuota,
    TooMany,
)
from tidings.service.subscriptions.lifecycle import Ended, Lifecycle, Refused, read_validity, title_of_text
from tidings.service.subscriptions.preview import Preview

NOBODY = Principal("", Role.ADMIN)
TEXT = "WHERE topic = 'finance'"
QUESTIONS = Preview(Engine())


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


class Index:
    """Takes what is in the outbox, as the index does, and knows the texts that are asked."""

    def __init__(self, registry):
        self.registry, self.texts, self.failure = registry, {}, None

    def wait_for(self, number):
        if self.failure is not None:
            raise self.failure
        assert number <= self.registry.last_change()
        for change in self.registry.changes():
            if change.text is None:
                self.texts.pop(change.id)
            else:
                self.texts[change.id] = change.text
            self.registry.applied(change.number)


class World:
    def __init__(self, folder, **settings):
        self.clock = Clock()
        self.settings = Settings(folder, **settings)
        self.registry, self.mailbox = opened(self.settings)
        self.index = Index(self.registry)
        self.access = AccessControl(self.registry, self.settings, self.clock)
        self.lifecycle = Lifecycle(
            self.registry, self.mailbox, self.index, QUESTIONS, self.access, self.settings, clock=self.clock
        )

    def token(self, name, role=Role.SUBSCRIBER, **limits):
        _, secret = self.access.grant(name, role, **limits)
        return self.access.principal(f"Bearer {secret}")

    def close(self):
        self.registry.close()
        self.mailbox.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture
def lifecycle(world):
    return world.lifecycle


def test_begun_it_is_asked_and_its_ticket_is_kept_nowhere(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT, title=" Money \n talks ")
    kept = world.registry.find(made.subscription.id)
    assert kept == made.subscription
    assert (kept.title, kept.state, kept.owner, kept.public) == ("Money talks", State.ACTIVE, "", False)
    assert kept.valid_until == world.clock.now + DAY
    assert world.index.texts == {kept.id: TEXT}
    assert tickets.is_secret_of(made.ticket, kept.ticket)
    assert made.webhook is None
    for file in world.settings.data.iterdir():
        assert made.ticket.encode() not in file.read_bytes()
    assert world.registry.by_feed(kept.feed) == kept
    assert len({made.ticket, kept.feed, kept.id, kept.ticket}) == 4


def test_a_title_is_made_where_none_is_given(lifecycle):
    assert lifecycle.subscribe(NOBODY, f"\n{TEXT}  ").subscription.title == TEXT
    long = title_of_text("WHERE topic IN (" + ", ".join(f"'word {n}'" for n in range(100)) + ")")
    assert len(long) <= 80
    assert long.endswith("…")


def test_a_broad_question_is_accepted_with_a_warning(lifecycle):
    assert lifecycle.subscribe(NOBODY, TEXT).warnings == ()
    said = lifecycle.subscribe(NOBODY, "WHERE (?a, ?b, ?c)").warnings
    assert said == ("it would match nearly every event",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("WHERE topic = ", "at 1:"),
        ("", "text is empty|the text ends"),
        ("WHERE a = '" + "x" * 70_000 + "'", "at most 65,536"),
        ("WHERE a = 'ä" + "ü" * 33_000 + "'", "at most 65,536"),
        ("WHERE a = '\0'", "U+0000"),
        ("WHERE a = '\x1b[31m'", "U+001B"),
        ("WHERE a = '\x85'", "U+0085"),
        ("WHERE a = '\ud800'", "U+D800"),
        ("WHERE a = '\uffff'", "U+FFFF"),
    ],
)
def test_a_text_that_cannot_be_asked_is_refused_before_anything_is_kept(world, lifecycle, text, said):
    with pytest.raises(SubscriptionError, match=said.replace("+", r"\+")):
        lifecycle.subscribe(NOBODY, text, webhook="https://example.org/")
    assert world.registry.page(owner=None) == []
    assert world.registry.last_change() == 0


def test_the_place_of_a_mistake_is_told_once(lifecycle):
    with pytest.raises(SubscriptionError) as refused:
        lifecycle.subscribe(NOBODY, "WHERE a = = 1")
    assert refused.value.line == 1
    assert refused.value.column is not None
    assert str(refused.value).count(f"1:{refused.value.column}") == 1


@pytest.mark.parametrize("title", ["x" * 201, "a\0b", "\x07", "\ud83d", "\ufffe"])
def test_a_title_that_cannot_be_shown_is_refused(lifecycle, title):
    with pytest.raises(Refused, match="the title has"):
        lifecycle.subscribe(NOBODY, TEXT, title=title)


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE subscriptions; --", "{{ 7 * 7 }}", "<script>alert(1)</script>", "%s"]
)
def test_words_of_other_languages_are_words(world, lifecycle, text):
    made = lifecycle.subscribe(
        NOBODY, f"WHERE a = '{text.replace(chr(39), chr(39) * 2)}'", title=text
    ).subscription
    assert lifecycle.find(NOBODY, made.id).title == text
    assert lifecycle.page(NOBODY, search=text.upper()) == [made]
    assert lifecycle.page(NOBODY, search="' OR '1'='1") == []
    with pytest.raises(NotFound):
        lifecycle.find(NOBODY, "' OR 1=1 --")


# Validity


def test_validity_counts_from_now(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT, validity=100.0)
    id, ticket = made.subscription.id, made.ticket
    assert made.subscription.valid_until == world.clock.now + 100
    world.clock.now += 50
    renewed = lifecycle.renew(NOBODY, id, ticket, 200.0)
    assert renewed == world.registry.find(id)
    assert renewed.valid_until == world.clock.now + 200  # not 50 + 200
    assert renewed.renewed == world.clock.now
    assert lifecycle.renew(NOBODY, id, ticket, 10.0).valid_until == world.clock.now + 10  # less, if one likes
    assert lifecycle.renew(NOBODY, id, ticket).valid_until == world.clock.now + DAY
    assert lifecycle.renew(NOBODY, id, ticket, None).valid_until is None
    assert world.registry.last_change() == 1  # the index has no part in it


@pytest.mark.parametrize("validity", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_validities_that_are_none(lifecycle, validity):
    with pytest.raises(Refused, match="a validity of .* is none"):
        lifecycle.subscribe(NOBODY, TEXT, validity=validity)


def test_policy_of_the_longest_validity(tmp_path):
    world = World(tmp_path, validity=DAY, longest_validity=3_600.0)
    lifecycle = world.lifecycle
    made = lifecycle.subscribe(NOBODY, TEXT)
    assert made.subscription.valid_until == world.clock.now + 3_600
    lifecycle.subscribe(NOBODY, TEXT, validity=3_600.0)
    for validity, said in ((3_601.0, "longer than the 3,600"), (None, "no subscription is for good")):
        with pytest.raises(Refused, match=said):
            lifecycle.subscribe(NOBODY, TEXT, validity=validity)
        with pytest.raises(Refused, match=said):
            lifecycle.renew(NOBODY, made.subscription.id, made.ticket, validity)
    world.close()


def test_validities_as_they_are_written():
    assert [read_validity(given) for given in (None, "", "never", " Never ", 5, "5", 2.5)] == [
        "default", "default", None, None, 5.0, 5.0, 2.5,
    ]  # fmt: skip
    for given in ("tomorrow", True, [], {}, 10**400, object()):
        with pytest.raises(Refused, match="a number of seconds, or 'never'"):
            read_validity(given)


# Tickets


def test_only_the_right_ticket_changes_anything(world, lifecycle):
    mine, other = lifecycle.subscribe(NOBODY, TEXT), lifecycle.subscribe(NOBODY, TEXT)
    id = mine.subscription.id
    for step in (
        lifecycle.renew,
        lifecycle.pause,
        lifecycle.resume,
        lifecycle.cancel,
        lifecycle.remove_webhook,
    ):
        with pytest.raises(Forbidden, match="only who has the ticket"):
            step(NOBODY, id)
        with pytest.raises(Forbidden, match="is not the ticket"):
            step(NOBODY, id, other.ticket)
        with pytest.raises((Forbidden, TooMany)):
            step(NOBODY, id, mine.subscription.ticket)  # the hash of it
        world.clock.now += 60
    assert world.registry.find(id) == mine.subscription
    assert lifecycle.cancel(NOBODY, id, mine.ticket).state is State.CANCELLED


def test_a_ticket_that_is_played_again_after_the_end_opens_nothing(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT)
    id = made.subscription.id
    lifecycle.cancel(NOBODY, id, made.ticket)
    assert world.index.texts == {}
    for step in (lifecycle.renew, lifecycle.pause, lifecycle.resume, lifecycle.cancel):
        with pytest.raises(Ended, match="was cancelled and stays so") as refused:
            step(NOBODY, id, made.ticket)
        assert refused.value.status == 410
    with pytest.raises(Ended):
        lifecycle.set_webhook(NOBODY, id, made.ticket, "https://example.org/")
    assert world.registry.find(id).valid_until == world.clock.now


def test_guessing_is_slowed_down_without_keeping_the_owner_out(lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT)
    refusals = []
    for n in range(20):
        with pytest.raises((Forbidden, TooMany)) as refused:
            lifecycle.renew(NOBODY, made.subscription.id, f"tkt_{n}")
        refusals.append(type(refused.value))
    assert refusals == [Forbidden] * 5 + [TooMany] * 15
    lifecycle.renew(NOBODY, made.subscription.id, made.ticket)


# Owners


def test_a_subscriber_sees_only_its_own(world, lifecycle):
    one, two = world.token("one"), world.token("two")
    admin, press = world.token("chief", Role.ADMIN), world.token("press", Role.PUBLISHER)
    mine = lifecycle.subscribe(one, TEXT)
    theirs = lifecycle.subscribe(two, TEXT, public=True)
    id = mine.subscription.id
    assert lifecycle.page(one) == [mine.subscription]
    assert lifecycle.page(two) == [theirs.subscription]
    assert lifecycle.titles(two, limit=9) == {theirs.subscription.id: theirs.subscription.title}
    assert {each.id for each in lifecycle.page(admin)} == {id, theirs.subscription.id}
    assert list(lifecycle.titles(admin, limit=9)) == [each.id for each in lifecycle.page(admin)]
    assert lifecycle.counts(one)[State.ACTIVE] == 1
    assert lifecycle.find(admin, id).owner == one.token
    answers = set()
    for asked in (id, "s" + "a" * 20, "", "s' OR 1=1 --"):
        for step in (lifecycle.find, lifecycle.renew, lifecycle.pause, lifecycle.resume, lifecycle.cancel):
            with pytest.raises(NotFound) as refused:
                step(two, asked)
            answers.add((refused.value.status, str(refused.value).replace(repr(asked), "ID")))
    for step in (lifecycle.renew, lifecycle.cancel):
        with pytest.raises(NotFound) as refused:
            step(two, id, "tkt_wrong")
        answers.add((refused.value.status, str(refused.value).replace(repr(id), "ID")))
    assert len(answers) == 1  # another's and nobody's are not told apart
    for forbidden in (lambda: lifecycle.page(press), lambda: lifecycle.subscribe(press, TEXT)):
        with pytest.raises(Forbidden, match="takes the role subscriber"):
            forbidden()


def test_the_owners_token_needs_no_ticket_and_the_ticket_no_token(world, lifecycle):
    one, two, admin = world.token("one"), world.token("two"), world.token("chief", Role.ADMIN)
    made = lifecycle.subscribe(one, TEXT)
    id = made.subscription.id
    assert lifecycle.pause(one, id).state is State.PAUSED
    assert lifecycle.resume(admin, id).state is State.ACTIVE
    assert lifecycle.renew(two, id, made.ticket).owner == one.token
    with pytest.raises(Forbidden):
        lifecycle.cancel(NOBODY, id)  # nobody's token is no admin's
    assert lifecycle.cancel(one, id).state is State.CANCELLED


def test_a_quota_holds_for_many_at_once(world, lifecycle):
    one = world.token("one", subscriptions=5)
    refused = []

    def subscribe():
        try:
            lifecycle.subscribe(one, TEXT)
        except OverQuota as error:
            refused.append(error)

    threads = [threading.Thread(target=subscribe) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert lifecycle.counts(one)[State.ACTIVE] == 5
    lifecycle.cancel(one, lifecycle.page(one)[0].id)
    lifecycle.subscribe(one, TEXT)


# Steps


def test_a_paused_one_is_not_asked_and_its_time_goes_on(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT, validity=100.0)
    id, ticket = made.subscription.id, made.ticket
    paused = lifecycle.pause(NOBODY, id, ticket)
    assert world.index.texts == {}
    assert lifecycle.pause(NOBODY, id, ticket) == paused  # once is enough
    assert paused.valid_until == made.subscription.valid_until
    assert lifecycle.renew(NOBODY, id, ticket).state is State.PAUSED
    assert lifecycle.resume(NOBODY, id, ticket).state is State.ACTIVE
    assert world.index.texts == {id: TEXT}
    assert world.registry.find(id).revision == 4


def test_an_expired_one_lives_again_when_it_is_renewed(world, lifecycle):
    one = world.token("one", subscriptions=1)
    made = lifecycle.subscribe(one, TEXT)
    id = made.subscription.id
    world.index.wait_for(world.registry.update(replace(made.subscription, state=State.EXPIRED, warned=True)))
    assert world.index.texts == {}
    for step in (lifecycle.pause, lifecycle.resume):
        with pytest.raises(Ended, match="has expired; renew it first"):
            step(one, id)
    second = lifecycle.subscribe(one, TEXT).subscription
    with pytest.raises(OverQuota):
        lifecycle.renew(one, id)
    lifecycle.cancel(one, second.id)
    again = lifecycle.renew(one, id)
    assert (again.state, again.warned) == (State.ACTIVE, False)
    assert world.index.texts == {id: TEXT}


def test_an_expired_one_can_be_cancelled(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT, validity=10.0)
    world.registry.update(replace(made.subscription, state=State.EXPIRED))
    until = made.subscription.valid_until
    world.clock.now += 100
    assert lifecycle.cancel(NOBODY, made.subscription.id, made.ticket).valid_until == until


def test_steps_at_the_same_time_do_not_undo_each_other(world, lifecycle):
    made = lifecycle.subscribe(NOBODY, TEXT)
    id, ticket = made.subscription.id, made.ticket
    find, raced = world.registry.find, []

    def find_and_be_late(asked):
        found = find(asked)
        if not raced:
            raced.append(1)
            world.registry.update(replace(found, warned=True))
        return found

    world.registry.find = find_and_be_late
    paused = lifecycle.pause(NOBODY, id, ticket)
    assert (paused.state, paused.warned, paused.revision) == (State.PAUSED, True, 3)


def test_what_the_index_does_not_take_leaves_nothing_behind(world, lifecycle):
    world.index.failure = TidingsError("the disk is full; make room")
    with pytest.raises(TidingsError, match="disk is full"):
        lifecycle.subscribe(NOBODY, TEXT)
    world.index.failure = None
    assert [one.state for one in lifecycle.page(NOBODY)] == [State.CANCELLED]
    lifecycle.subscribe(NOBODY, TEXT)
    assert len(world.index.texts) == 1


# Webhooks


def test_a_webhook_begins_where_the_mailbox_ends(world, lifecycle):
    first = lifecycle.subscribe(NOBODY, TEXT).subscription.id
    world.mailbox.notify(
        [Notice(first, NotificationKind.EXPIRES_SOON, f"n{n}", 1.0, "soon") for n in range(3)]
    )
    made = lifecycle.subscribe(NOBODY, TEXT, webhook="https://example.org/hook")
    assert made.webhook.cursor == world.mailbox.last() == 3
    assert made.webhook == world.registry.delivery(made.subscription.id)
    assert made.webhook.secret.startswith("whsec_")
    id = made.subscription.id
    world.mailbox.notify([Notice(id, NotificationKind.EXPIRES_SOON, "x", 1.0, "soon")])
    moved = lifecycle.set_webhook(NOBODY, id, made.ticket, "https://example.org/other")
    assert (moved.cursor, moved.url) == (3, "https://example.org/other")  # what waits is not lost
    assert moved.secret != made.webhook.secret
    lifecycle.remove_webhook(NOBODY, id, made.ticket)
    assert world.registry.delivery(id) is None
    assert lifecycle.set_webhook(NOBODY, id, made.ticket, "https://example.org/").cursor == 4
    lifecycle.cancel(NOBODY, id, made.ticket)
    assert world.registry.delivery(id) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "file:///etc/passwd",
        "http://10.0.0.1/",
        "x",
    ],
)
def test_a_webhook_never_points_inside(world, lifecycle, url):
    with pytest.raises(AddressRefused):
        lifecycle.subscribe(NOBODY, TEXT, webhook=url)
    assert lifecycle.page(NOBODY) == []
    made = lifecycle.subscribe(NOBODY, TEXT)
    with pytest.raises(AddressRefused):
        lifecycle.set_webhook(NOBODY, made.subscription.id, made.ticket, url)
    assert world.registry.delivery(made.subscription.id) is None


def test_a_webhook_may_be_in_a_network_that_is_allowed(tmp_path):
    world = World(tmp_path, allowed=("127.0.0.0/8",))
    assert world.lifecycle.subscribe(NOBODY, TEXT, webhook="http://127.0.0.1:9/").webhook is not None
    world.close()
