"""Definitions are changed by both clients and by the command line, over real HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.service.conftest import Running
from tidings import AsyncClient, Client, Network
from tidings.cli import main
from tidings.client.responses import ServiceError

EX = "http://example.org/"
TURTLE = f"<{EX}Chess> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{EX}Game> ."


def test_by_clients_and_commands(tmp_path: Path) -> None:
    network = Network()
    for name in ("agency", "reader"):
        network.add_node(name, cost=1.5)
    network.add_edge("agency", "reader", "topic = 'oil'")
    with Running(data=tmp_path / "data") as served:
        with Client(served.url) as client:
            assert client.definitions() == []
            assert client.set_taxonomy(TURTLE).version == 1
            assert client.set_network("exchange", network).version == 1
            assert served.service.definitions.network("exchange").rows() == network.rows()
            changed = client.change_network(
                "exchange", [("set_where", (("agency", "reader"), "topic = 'gas'"))]
            )
            assert (changed.version, changed.origin) == (2, "change")
            with pytest.raises(ServiceError, match="version 1 is not the present one") as refused:
                client.change_network("exchange", [("remove_node", ["reader"])], replaces=1)
            assert refused.value.status == 412

        async def others() -> None:
            async with AsyncClient(served.url) as client:
                assert (await client.set_prefixes({"ex": EX}, replaces=0)).version == 1
                assert (await client.set_taxonomy(TURTLE, format="nt")).version == 2
                assert (await client.set_network("second", network.rows())).name == "second"
                assert (await client.change_network("second", [("add_node", ["new"])])).version == 2
                assert len(await client.definitions()) == 4

        asyncio.run(others())
        commands(served.url, tmp_path)
        rows = served.service.definitions.network("exchange").rows()
        assert {"source": "reader", "target": "agency", "cost": 2.0} in rows["edges"]


def commands(url: str, folder: Path) -> None:
    (folder / "taxonomy.ttl").write_text(TURTLE)
    (folder / "edges.csv").write_text("source,target\nagency,reader\n")
    run = CliRunner()

    def said(*words: str, code: int = 0) -> str:
        result = run.invoke(main, ["define", *words, "--service", url])
        assert result.exit_code == code, result.output
        return result.output

    assert "taxonomy version 3, in the index from v" in said("taxonomy", str(folder / "taxonomy.ttl"))
    assert "prefixes version 2" in said("prefixes", f"ex={EX}")
    assert "network exchange version 3" in said("network", "exchange", str(folder / "edges.csv"))
    added = said("change", "exchange", "add_edge", "reader", "agency", "--cost", "2")
    assert "network exchange version 4" in added
    assert "network exchange version 4, change" in said("list")
    assert "nobody" in said("change", "exchange", "remove_node", "nobody", code=1)
    assert "is no IRI" in said("prefixes", "ex=a b:", code=1)
