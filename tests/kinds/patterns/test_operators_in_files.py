"""Numbers that saved indexes have for operators: they never change."""

from __future__ import annotations

from tidings.kinds.patterns.table import OPS
from tidings.model.search.stems import LANGUAGES


def test_operators_keep_their_numbers() -> None:
    before = "=|!=|<|<=|>|>=|BETWEEN|KIND|LIKE|CONTAINS|MATCHES|ISA <=|ISA >=|ISA =|SEARCH".split("|")
    assert list(OPS[:15]) == before
    assert OPS[15:] == tuple(f"SEARCH {language}" for language in LANGUAGES)
    assert (OPS[15], OPS[21], OPS[43]) == ("SEARCH arabic", "SEARCH english", "SEARCH yiddish")
