"""Operations on texts before they are subscribed to: check, try on recent events, complete; and the taxonomy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response

from tidings.errors import SubscriptionError
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.matching.backtests import Backtest
from tidings.service.model import READERS, DefinitionKind, Role
from tidings.service.subscriptions.class_search import NamedClass
from tidings.service.subscriptions.coverage import Coverage
from tidings.service.web.api import models, responses
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.problems import Problem

api = router("texts")


@api.post("/check", operation_id="check", summary="Check the text of a subscription")
def check(caller: CurrentCaller, given: models.TextToCompare) -> models.Checked:
    """A text that cannot be subscribed to is no error here: the answer says what is wrong with it, and where."""
    # A publisher sees no events of others, nor what is in them.
    is_reader, scope = caller.principal.role in READERS, caller.service.access.scope(caller.principal)
    found = caller.service.preview.check(
        given.text, about_events=is_reader and not scope, scope=scope if is_reader else ""
    )
    covered: Coverage | None = Coverage([], False)
    if found.ok:
        covered = caller.service.coverage.covering(given.text, caller.principal.token, given.edited)
    return models.Checked(
        ok=found.ok,
        kinds=list(found.kinds),
        message=found.message,
        line=found.line,
        column=found.column,
        warnings=[models.TextWarning(**asdict(warning)) for warning in found.warnings],
        covered_by=None
        if covered is None
        else [models.Covering(**each._asdict()) for each in covered.covering],
        covered_by_more=covered is not None and covered.more,
    )


@api.post("/try", operation_id="try", summary="Try a text on the latest events", responses=problems(403, 422))
def try_(caller: CurrentCaller, given: models.TextToCheck) -> models.Trial:
    """Tried on the last 1,000 events, with the reason for each match and near miss."""
    service = caller.service
    need_subscribable(caller, given.text)
    events, rows = service.recent_events(caller.principal), service.table_rows.present
    trial = service.preview.try_on(given.text, events, rows=rows)
    return models.Trial(
        looked=trial.looked,
        matched=trial.matched,
        matches=[responses.reason(reason, service.settings) for reason in trial.matches],
        near=[responses.reason(reason, service.settings) for reason in trial.near],
        late=trial.late,
        warning=service.preview.flood_warning(given.text, service.access.scope(caller.principal)),
        rows=None if trial.rows is None else responses.row_changes(trial.rows[: models.MOST_ROWS]),
    )


@api.post(
    "/backtests",
    operation_id="begin_backtest",
    summary="Try a text on the events of the last days",
    status_code=202,
    responses=problems(403, 422, 429),
)
def begin_backtest(caller: CurrentCaller, response: Response, given: models.NewBacktest) -> models.Backtest:
    """All events of the last days that are kept are matched, in the background: ask for the result with the id. It is given up
    if nobody has asked for half a minute. Subscriptions over tables are refused."""
    begun = new_backtest(caller, given.text, given.schedule, given.days)
    response.headers["Location"] = f"{caller.service.settings.address}/api/backtests/{begun.id}"
    return responses.backtest(begun, caller.service.settings)


@api.get(
    "/backtests/{id}",
    operation_id="get_backtest",
    summary="Read how far a backtest is, and its result",
    responses=problems(404),
)
def get_backtest(caller: CurrentCaller, id: str) -> models.Backtest:
    """Results are kept for ten minutes."""
    found = caller.service.backtests.find(caller.principal, id)
    return responses.backtest(found, caller.service.settings)


@api.delete(
    "/backtests/{id}", operation_id="cancel_backtest", summary="Cancel a backtest", responses=problems(404)
)
def cancel_backtest(caller: CurrentCaller, id: str) -> models.Backtest:
    cancelled = caller.service.backtests.cancel(caller.principal, id)
    return responses.backtest(cancelled, caller.service.settings)


def new_backtest(caller: Caller, text: str, schedule: Mapping[str, Any] | None, days: int) -> Backtest:
    """Begins a backtest, as far as the caller may see events."""
    need_subscribable(caller, text)
    service, principal = caller.service, caller.principal
    planned = Schedule.from_json({"digest": "daily"} if schedule is None else schedule)
    return service.backtests.begin(principal, text, planned, days=days, scope=service.access.scope(principal))


def need_subscribable(caller: Caller, text: str) -> None:
    """Refuses a text that the caller cannot subscribe to."""
    caller.need(Role.SUBSCRIBER)
    found = caller.service.preview.check(text)
    if not found.ok:
        error = SubscriptionError(found.message)
        error.line, error.column = found.line, found.column
        raise error
    caller.service.scopes.check(caller.principal, text)


@api.get(
    "/complete",
    operation_id="complete",
    summary="Complete a text that is being written",
    responses=problems(403),
)
def complete(
    caller: CurrentCaller,
    text: Annotated[str, Query(max_length=4_000, description="The text so far, or its end.")] = "",
    at: Annotated[
        int | None, Query(ge=0, le=4_000, description="Where the caret is; the end without.")
    ] = None,
) -> models.Completions:
    """By the names and values that events have."""
    caller.need(Role.SUBSCRIBER)
    if caller.service.access.scope(caller.principal):
        return models.Completions(items=[])  # names and values are those of all events
    found = caller.service.completer.complete(text, len(text) if at is None else at)
    return models.Completions(items=[models.Completion(**asdict(found_class)) for found_class in found])


@api.get(
    "/taxonomy",
    operation_id="get_taxonomy",
    summary="List or search the classes of the taxonomy",
    responses=problems(404),
)
def get_taxonomy(
    caller: CurrentCaller,
    response: Response,
    iri: Annotated[
        str | None, Query(alias="class", max_length=2_000, description="The IRI of a class to show.")
    ] = None,
    search: Annotated[str, Query(max_length=200, description="Words of a name or label.")] = "",
) -> models.TaxonomyAnswer:
    """The roots, those with certain words, or one class with its relatives."""
    classes = caller.service.class_search
    version = caller.service.definitions.version(DefinitionKind.TAXONOMY)
    response.headers["ETag"] = f'"{version}"'
    if iri is None:
        items = classes.search(search) if search.strip() else classes.roots()
        return models.TaxonomyAnswer(version=version, classes=len(classes), items=_named(items))
    about = classes.about(iri)
    if about is None:
        raise Problem(404, f"the taxonomy has no class {iri[:200]!r}; search for its name")
    return models.TaxonomyAnswer(
        version=version,
        classes=len(classes),
        items=[],
        about=models.AboutClass(
            **asdict(about.named),
            labels=list(about.labels),
            parents=_named(about.parents),
            children=_named(about.children),
            instances=_named(about.instances),
            instances_in_all=about.instances_in_all,
        ),
    )


def _named(them: tuple[NamedClass, ...]) -> list[models.NamedClass]:
    return [models.NamedClass(**asdict(found_class)) for found_class in them]
