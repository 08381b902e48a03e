"""The subscriber's side of the schemes: rebuilds its contents from the messages that its filter accepts.

From semijoin and selection messages it keeps each table's rows and joins them on request; from join messages the joined
rows themselves. It applies no selection, except conditions that the scheme did not use (`attributes.py`).
Select-joins, 3.1, 4 and Appendix C.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from tidings.dissemination.schemes.filters import Subscription, accepts
from tidings.dissemination.schemes.message import GAINED, Message
from tidings.dissemination.schemes.signature import Signature
from tidings.kinds.joins.schema.table import Row

Joined = tuple[Row, ...]


class Client:
    def __init__(self, subscription: Subscription, admits: Callable[[str, Row], bool] | None = None) -> None:
        """`admits` says of a table's row whether it fulfils the conditions that are left to the subscriber."""
        self.subscription = subscription
        self._admits = admits
        self.rows: dict[str, Counter[Row]] = {table: Counter() for table in subscription.signature.tables}
        self._joined: Counter[Joined] | None = None

    def receive(self, message: Message) -> bool:
        """Applies a message if it is for this subscription; whether it was."""
        if not accepts(message, self.subscription):
            return False
        if self._admits and not all(self._admits(image.table, image.row) for image in message.rows):
            return False
        if isinstance(message.form, Signature):
            self._joined = Counter() if self._joined is None else self._joined
            _count(self._joined, tuple(image.row for image in message.rows), message.sign)
        else:
            (image,) = message.rows
            _count(self.rows[image.table], image.row, message.sign)
        return True

    def result(self) -> Counter[Joined]:
        """The joined rows, with their numbers of copies."""
        return joined(self.subscription.signature, self.rows) if self._joined is None else self._joined


def joined(signature: Signature, rows: dict[str, Counter[Row]]) -> Counter[Joined]:
    """The join of bags of rows, one table after another."""
    reached = [0]
    found: Counter[Joined] = Counter({(row,): count for row, count in rows[signature.tables[0]].items()})
    while len(reached) < len(signature.tables):
        edges = [edge for edge in signature.edges if (edge.left in reached) != (edge.right in reached)]
        slot = edges[0].right if edges[0].left in reached else edges[0].left
        # Where the columns are: (part that is there, its column, column of the table that comes).
        equal = [
            (reached.index(there), column, own)
            for edge in edges
            for there, here, theirs, ours in (
                (edge.left, edge.right, edge.left_columns, edge.right_columns),
                (edge.right, edge.left, edge.right_columns, edge.left_columns),
            )
            if here == slot and there in reached
            for column, own in zip(theirs, ours, strict=True)
        ]
        partners: defaultdict[Row, list[tuple[Row, int]]] = defaultdict(list)
        for row, count in rows[signature.tables[slot]].items():
            value = tuple(row[own] for _, _, own in equal)
            if None not in value:
                partners[value].append((row, count))
        longer: Counter[Joined] = Counter()
        for parts, count in found.items():
            for row, copies in partners[tuple(parts[part][column] for part, column, _ in equal)]:
                longer[(*parts, row)] = count * copies
        reached.append(slot)
        found = longer
    order = [reached.index(slot) for slot in range(len(reached))]
    return Counter({tuple(parts[slot] for slot in order): count for parts, count in found.items()})


def _count(bag: Counter[Row], row: Row, sign: str) -> None:
    bag[row] += 1 if sign == GAINED else -1
    if not bag[row]:
        del bag[row]
