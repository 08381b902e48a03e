"""A subscription from its beginning to its end, and who may bring about which."""

import threading
from dataclasses import replace

import pytest

from tests.service.stores import opened
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError
from tidings.feeds.addresses import AddressRefused
from tidings.service.model import Kind, Notice, Principal, Role, State
from tidings.service.settings import DAY, Settings
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import Access, Forbidden, NotFound, OverQuota, TooMany
from tidings.service.subscriptions.lifecycle import Ended, Life, Refused, made_title, read_validity
from tidings.service.subscriptions.preview import Questions

NOBODY = Principal("", Role.ADMIN)
TEXT = "WHERE topic = 'finance'"
QUESTIONS = Questions(Engine())


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
        self.access = Access(self.registry, self.settings, self.clock)
        self.life = Life(
            self.registry, self.mailbox, self.index, QUESTIONS, self.access, self.settings, self.clock
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
def life(world):
    return world.life


def test_begun_it_is_asked_and_its_ticket_is_kept_nowhere(world, life):
    made = life.subscribe(NOBODY, TEXT, title=" Money \n talks ")
    kept = world.registry.find(made.subscription.id)
    assert kept == made.subscription
    assert (kept.title, kept.state, kept.owner, kept.public) == ("Money talks", State.ACTIVE, "", False)
    assert kept.valid_until == world.clock.now + DAY
    assert world.index.texts == {kept.id: TEXT}
    assert tickets.fits(made.ticket, kept.ticket)
    assert made.webhook is None
    for file in world.settings.data.iterdir():
        assert made.ticket.encode() not in file.read_bytes()
    assert world.registry.by_feed(kept.feed) == kept
    assert len({made.ticket, kept.feed, kept.id, kept.ticket}) == 4


def test_a_title_is_made_where_none_is_given(life):
    assert life.subscribe(NOBODY, f"\n{TEXT}  ").subscription.title == TEXT
    long = made_title("WHERE topic IN (" + ", ".join(f"'word {n}'" for n in range(100)) + ")")
    assert len(long) <= 80
    assert long.endswith("…")


def test_a_broad_question_is_accepted_with_a_warning(life):
    assert life.subscribe(NOBODY, TEXT).warnings == ()
    said = life.subscribe(NOBODY, "WHERE (?a, ?b, ?c)").warnings
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
def test_a_text_that_cannot_be_asked_is_refused_before_anything_is_kept(world, life, text, said):
    with pytest.raises(SubscriptionError, match=said.replace("+", r"\+")):
        life.subscribe(NOBODY, text, webhook="https://example.org/")
    assert world.registry.page(owner=None) == []
    assert world.registry.last_change() == 0


def test_the_place_of_a_mistake_is_told_once(life):
    with pytest.raises(SubscriptionError) as refused:
        life.subscribe(NOBODY, "WHERE a = = 1")
    assert refused.value.line == 1
    assert refused.value.column is not None
    assert str(refused.value).count(f"1:{refused.value.column}") == 1


@pytest.mark.parametrize("title", ["x" * 201, "a\0b", "\x07", "\ud83d", "\ufffe"])
def test_a_title_that_cannot_be_shown_is_refused(life, title):
    with pytest.raises(Refused, match="the title has"):
        life.subscribe(NOBODY, TEXT, title=title)


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE subscriptions; --", "{{ 7 * 7 }}", "<script>alert(1)</script>", "%s"]
)
def test_words_of_other_languages_are_words(world, life, text):
    made = life.subscribe(
        NOBODY, f"WHERE a = '{text.replace(chr(39), chr(39) * 2)}'", title=text
    ).subscription
    assert life.find(NOBODY, made.id).title == text
    assert life.page(NOBODY, search=text.upper()) == [made]
    assert life.page(NOBODY, search="' OR '1'='1") == []
    with pytest.raises(NotFound):
        life.find(NOBODY, "' OR 1=1 --")


# Validity


def test_validity_counts_from_now(world, life):
    made = life.subscribe(NOBODY, TEXT, validity=100.0)
    id, ticket = made.subscription.id, made.ticket
    assert made.subscription.valid_until == world.clock.now + 100
    world.clock.now += 50
    renewed = life.renew(NOBODY, id, ticket, 200.0)
    assert renewed == world.registry.find(id)
    assert renewed.valid_until == world.clock.now + 200  # not 50 + 200
    assert renewed.renewed == world.clock.now
    assert life.renew(NOBODY, id, ticket, 10.0).valid_until == world.clock.now + 10  # less, if one likes
    assert life.renew(NOBODY, id, ticket).valid_until == world.clock.now + DAY
    assert life.renew(NOBODY, id, ticket, None).valid_until is None
    assert world.registry.last_change() == 1  # the index has no part in it


@pytest.mark.parametrize("validity", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_validities_that_are_none(life, validity):
    with pytest.raises(Refused, match="a validity of .* is none"):
        life.subscribe(NOBODY, TEXT, validity=validity)


def test_policy_of_the_longest_validity(tmp_path):
    world = World(tmp_path, validity=DAY, longest_validity=3_600.0)
    life = world.life
    made = life.subscribe(NOBODY, TEXT)
    assert made.subscription.valid_until == world.clock.now + 3_600
    life.subscribe(NOBODY, TEXT, validity=3_600.0)
    for validity, said in ((3_601.0, "longer than the 3,600"), (None, "no subscription is for good")):
        with pytest.raises(Refused, match=said):
            life.subscribe(NOBODY, TEXT, validity=validity)
        with pytest.raises(Refused, match=said):
            life.renew(NOBODY, made.subscription.id, made.ticket, validity)
    world.close()


def test_validities_as_they_are_written():
    assert [read_validity(given) for given in (None, "", "never", " Never ", 5, "5", 2.5)] == [
        "default", "default", None, None, 5.0, 5.0, 2.5,
    ]  # fmt: skip
    for given in ("tomorrow", True, [], {}, 10**400, object()):
        with pytest.raises(Refused, match="a number of seconds, or 'never'"):
            read_validity(given)


# Tickets


def test_only_the_right_ticket_changes_anything(world, life):
    mine, other = life.subscribe(NOBODY, TEXT), life.subscribe(NOBODY, TEXT)
    id = mine.subscription.id
    for step in (life.renew, life.pause, life.resume, life.cancel, life.remove_webhook):
        with pytest.raises(Forbidden, match="is changed with its ticket"):
            step(NOBODY, id)
        with pytest.raises(Forbidden, match="is not the ticket"):
            step(NOBODY, id, other.ticket)
        with pytest.raises((Forbidden, TooMany)):
            step(NOBODY, id, mine.subscription.ticket)  # the hash of it
        world.clock.now += 60
    assert world.registry.find(id) == mine.subscription
    assert life.cancel(NOBODY, id, mine.ticket).state is State.CANCELLED


def test_a_ticket_that_is_played_again_after_the_end_opens_nothing(world, life):
    made = life.subscribe(NOBODY, TEXT)
    id = made.subscription.id
    life.cancel(NOBODY, id, made.ticket)
    assert world.index.texts == {}
    for step in (life.renew, life.pause, life.resume, life.cancel):
        with pytest.raises(Ended, match="was cancelled and stays so") as refused:
            step(NOBODY, id, made.ticket)
        assert refused.value.status == 410
    with pytest.raises(Ended):
        life.set_webhook(NOBODY, id, made.ticket, "https://example.org/")
    assert world.registry.find(id).valid_until == world.clock.now


def test_guessing_is_slowed_down_without_keeping_the_owner_out(life):
    made = life.subscribe(NOBODY, TEXT)
    refusals = []
    for n in range(20):
        with pytest.raises((Forbidden, TooMany)) as refused:
            life.renew(NOBODY, made.subscription.id, f"tkt_{n}")
        refusals.append(type(refused.value))
    assert refusals == [Forbidden] * 5 + [TooMany] * 15
    life.renew(NOBODY, made.subscription.id, made.ticket)


# Owners


def test_a_subscriber_sees_only_its_own(world, life):
    one, two = world.token("one"), world.token("two")
    admin, press = world.token("chief", Role.ADMIN), world.token("press", Role.PUBLISHER)
    mine = life.subscribe(one, TEXT)
    theirs = life.subscribe(two, TEXT, public=True)
    id = mine.subscription.id
    assert life.page(one) == [mine.subscription]
    assert life.page(two) == [theirs.subscription]
    assert {each.id for each in life.page(admin)} == {id, theirs.subscription.id}
    assert life.counts(one)[State.ACTIVE] == 1
    assert life.find(admin, id).owner == one.token
    answers = set()
    for asked in (id, "s" + "a" * 20, "", "s' OR 1=1 --"):
        for step in (life.find, life.renew, life.pause, life.resume, life.cancel):
            with pytest.raises(NotFound) as refused:
                step(two, asked)
            answers.add((refused.value.status, str(refused.value).replace(repr(asked), "ID")))
    for step in (life.renew, life.cancel):
        with pytest.raises(NotFound) as refused:
            step(two, id, "tkt_wrong")
        answers.add((refused.value.status, str(refused.value).replace(repr(id), "ID")))
    assert len(answers) == 1  # another's and nobody's are not told apart
    for forbidden in (lambda: life.page(press), lambda: life.subscribe(press, TEXT)):
        with pytest.raises(Forbidden, match="takes the role subscriber"):
            forbidden()


def test_the_owners_token_needs_no_ticket_and_the_ticket_no_token(world, life):
    one, two, admin = world.token("one"), world.token("two"), world.token("chief", Role.ADMIN)
    made = life.subscribe(one, TEXT)
    id = made.subscription.id
    assert life.pause(one, id).state is State.PAUSED
    assert life.resume(admin, id).state is State.ACTIVE
    assert life.renew(two, id, made.ticket).owner == one.token
    with pytest.raises(Forbidden):
        life.cancel(NOBODY, id)  # nobody's token is no admin's
    assert life.cancel(one, id).state is State.CANCELLED


def test_a_quota_holds_for_many_at_once(world, life):
    one = world.token("one", subscriptions=5)
    refused = []

    def subscribe():
        try:
            life.subscribe(one, TEXT)
        except OverQuota as error:
            refused.append(error)

    threads = [threading.Thread(target=subscribe) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert life.counts(one)[State.ACTIVE] == 5
    life.cancel(one, life.page(one)[0].id)
    life.subscribe(one, TEXT)


# Steps


def test_a_paused_one_is_not_asked_and_its_time_goes_on(world, life):
    made = life.subscribe(NOBODY, TEXT, validity=100.0)
    id, ticket = made.subscription.id, made.ticket
    paused = life.pause(NOBODY, id, ticket)
    assert world.index.texts == {}
    assert life.pause(NOBODY, id, ticket) == paused  # once is enough
    assert paused.valid_until == made.subscription.valid_until
    assert life.renew(NOBODY, id, ticket).state is State.PAUSED
    assert life.resume(NOBODY, id, ticket).state is State.ACTIVE
    assert world.index.texts == {id: TEXT}
    assert world.registry.find(id).revision == 4


def test_an_expired_one_lives_again_when_it_is_renewed(world, life):
    one = world.token("one", subscriptions=1)
    made = life.subscribe(one, TEXT)
    id = made.subscription.id
    world.index.wait_for(world.registry.update(replace(made.subscription, state=State.EXPIRED, warned=True)))
    assert world.index.texts == {}
    for step in (life.pause, life.resume):
        with pytest.raises(Ended, match="has expired; renew it first"):
            step(one, id)
    second = life.subscribe(one, TEXT).subscription
    with pytest.raises(OverQuota):
        life.renew(one, id)
    life.cancel(one, second.id)
    again = life.renew(one, id)
    assert (again.state, again.warned) == (State.ACTIVE, False)
    assert world.index.texts == {id: TEXT}


def test_an_expired_one_can_be_cancelled(world, life):
    made = life.subscribe(NOBODY, TEXT, validity=10.0)
    world.registry.update(replace(made.subscription, state=State.EXPIRED))
    until = made.subscription.valid_until
    world.clock.now += 100
    assert life.cancel(NOBODY, made.subscription.id, made.ticket).valid_until == until


def test_steps_at_the_same_time_do_not_undo_each_other(world, life):
    made = life.subscribe(NOBODY, TEXT)
    id, ticket = made.subscription.id, made.ticket
    find, raced = world.registry.find, []

    def find_and_be_late(asked):
        found = find(asked)
        if not raced:
            raced.append(1)
            world.registry.update(replace(found, warned=True))
        return found

    world.registry.find = find_and_be_late
    paused = life.pause(NOBODY, id, ticket)
    assert (paused.state, paused.warned, paused.revision) == (State.PAUSED, True, 3)


def test_what_the_index_does_not_take_leaves_nothing_behind(world, life):
    world.index.failure = TidingsError("the disk is full; make room")
    with pytest.raises(TidingsError, match="disk is full"):
        life.subscribe(NOBODY, TEXT)
    world.index.failure = None
    assert [one.state for one in life.page(NOBODY)] == [State.CANCELLED]
    life.subscribe(NOBODY, TEXT)
    assert len(world.index.texts) == 1


# Webhooks


def test_a_webhook_begins_where_the_mailbox_ends(world, life):
    first = life.subscribe(NOBODY, TEXT).subscription.id
    world.mailbox.notify([Notice(first, Kind.EXPIRES_SOON, f"n{n}", 1.0, "soon") for n in range(3)])
    made = life.subscribe(NOBODY, TEXT, webhook="https://example.org/hook")
    assert made.webhook.cursor == world.mailbox.last() == 3
    assert made.webhook == world.registry.delivery(made.subscription.id)
    assert made.webhook.secret.startswith("whsec_")
    id = made.subscription.id
    world.mailbox.notify([Notice(id, Kind.EXPIRES_SOON, "x", 1.0, "soon")])
    moved = life.set_webhook(NOBODY, id, made.ticket, "https://example.org/other")
    assert (moved.cursor, moved.url) == (3, "https://example.org/other")  # what waits is not lost
    assert moved.secret != made.webhook.secret
    life.remove_webhook(NOBODY, id, made.ticket)
    assert world.registry.delivery(id) is None
    assert life.set_webhook(NOBODY, id, made.ticket, "https://example.org/").cursor == 4
    life.cancel(NOBODY, id, made.ticket)
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
def test_a_webhook_never_points_inside(world, life, url):
    with pytest.raises(AddressRefused):
        life.subscribe(NOBODY, TEXT, webhook=url)
    assert life.page(NOBODY) == []
    made = life.subscribe(NOBODY, TEXT)
    with pytest.raises(AddressRefused):
        life.set_webhook(NOBODY, made.subscription.id, made.ticket, url)
    assert world.registry.delivery(made.subscription.id) is None


def test_a_webhook_may_be_in_a_network_that_is_allowed(tmp_path):
    world = World(tmp_path, allowed=("127.0.0.0/8",))
    assert world.life.subscribe(NOBODY, TEXT, webhook="http://127.0.0.1:9/").webhook is not None
    world.close()
