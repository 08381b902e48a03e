"""An explanation why an event matches a subscription or not: the clauses that were evaluated, with their evidence.

Every kind explains its part in `Clause`s; `engine/explain.py` combines them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause and whether it held together with those before it; None when it was not reached.

    In a tree `depth` is its depth, and `decides` whether the verdict comes from it. `fate` is what happened
    to a call: "ran", "failed" or "spared".
    """

    text: str
    held: bool | None
    evidence: str = ""
    depth: int = 0
    decides: bool = False
    fate: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdict` is "match", "no match", "undecided" (too much to look through, or an operator failed) or "error".

    `str()` is for reading. There an arrow marks the clauses that decided, where others stand beside them.
    """

    subscription: str
    verdict: str
    clauses: tuple[Clause, ...] = ()
    bindings: dict[str, str] = field(default_factory=dict)
    message: str = ""
    part: int | None = None
    """The part of a divided index that has the subscription."""
    below: str = ""
    """The subscription that contains it and leads there, if one does."""

    def __str__(self) -> str:
        where = "" if self.part is None else f", in part {self.part}"
        where += f", below {self.below}" if self.below else ""
        lines = [
            f"{self.subscription}: {self.verdict}{where}" + (f" ({self.message})" if self.message else "")
        ]
        marks = {True: "✓", False: "✗", None: "·"}
        for clause in self.clauses:
            mark = "?" if clause.fate == "failed" else marks[clause.held]
            evidence = f"   {clause.evidence}" if clause.evidence else ""
            arrow = "   ←" if clause.decides else ""
            lines.append(f"  {'  ' * clause.depth}{mark} {clause.text}{evidence}{arrow}")
        return "\n".join(lines)
