"""`tidings match` and `tidings explain`: what is read, what is told, and with which exit code."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import EXAMPLES, tidings

TITLE = "http://purl.org/rss/1.0/title"
PRICE = "http://example.org/price"


def test_the_examples_are_matched_and_the_broken_feed_is_one_sentence():
    result = tidings(
        "match", "-s", EXAMPLES / "subscriptions.txt", "-t", EXAMPLES / "taxonomy.ttl", EXAMPLES / "feeds"
    )
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 32
    assert any(line.startswith("late goals ") and "94th minute" in line for line in lines)
    assert any(line.startswith("two wheels ") and "Cyclisme" in line for line in lines)
    remarks = result.stderr.splitlines()
    assert [line for line in remarks if "broken.rss" in line] == [line for line in remarks if line[0] == "!"]
    assert remarks[-1] == "140 events against 10 subscriptions: 32 notifications"


def test_every_subscription_of_the_examples_has_an_answer():
    result = tidings(
        "match",
        "-s",
        EXAMPLES / "subscriptions.txt",
        "-t",
        EXAMPLES / "taxonomy.ttl",
        "-f",
        "ndjson",
        EXAMPLES,
    )
    answered = {json.loads(line)["subscription"] for line in result.stdout.splitlines()}
    shown = tidings("match", "-s", EXAMPLES / "subscriptions.txt", EXAMPLES / "feeds" / "sport.rss").stderr
    assert f"against {len(answered)} subscriptions" in shown


def test_text_says_who_what_and_where(questions, offer, monkeypatch):
    monkeypatch.chdir(offer.parent)  # a long path would be cut
    result = tidings("match", "--subscriptions", questions, offer.name)
    assert sorted(result.stdout.splitlines()) == [
        "cheap bicycles  ?t Racing bicycle  ?p 180  (offer.ttl)",
        "titles          ?t Racing bicycle  (offer.ttl)",
    ]


SYNTAXES = {
    "offer.nt": f'<http://e/1> <{TITLE}> "Boat" .\n<http://e/1> <{PRICE}> "90" .\n',
    "offer.jsonld": json.dumps({"@id": "http://e/1", TITLE: "Boat", PRICE: 90}),
    "offer.json": json.dumps({"@id": "http://e/1", TITLE: "Boat", PRICE: 90}),
    "offer.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/">'
    '<rdf:Description xmlns:r="http://purl.org/rss/1.0/" r:title="Boat" ex:price="90"/></rdf:RDF>',
    "offer.trig": f'<http://e/g> {{ <http://e/1> <{TITLE}> "Boat" ; <{PRICE}> 90 }}',
    "offer.rss": '<rss version="2.0" xmlns:ex="http://example.org/"><channel><item><title>Boat</title>'
    "<ex:price>90</ex:price></item></channel></rss>",
    "offer.xml": '<?xml version="1.0"?><rss xmlns:ex="http://example.org/"><channel><item><title>Boat</title>'
    "<ex:price>90</ex:price></item></channel></rss>",
    "offer": f'<http://e/1> <{TITLE}> "Boat" ; <{PRICE}> 90 .',
    "offer.ndjson": json.dumps(
        {"specversion": "1.0", "id": "1", "source": "s", "datacontenttype": "text/turtle"}
        | {"data": f'<http://e/1> <{TITLE}> "Boat" ; <{PRICE}> 90 .'}
    ),
}


@pytest.mark.parametrize("name", SYNTAXES)
def test_what_a_file_is_follows_from_its_name_or_content(name, questions, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(SYNTAXES[name])
    result = tidings("match", "-s", questions, "-f", "ndjson", tmp_path / "in" / name)
    cheap = [json.loads(line) for line in result.stdout.splitlines() if "cheap" in line]
    assert [row["bindings"] for row in cheap] == [{"t": "Boat", "p": "90"}], result.output


def cloudevents(count):
    for number in range(count):
        graph = f'<http://e/{number}> <{TITLE}> "Boat {number}" .'
        yield json.dumps({"id": f"e{number}", "source": "s", "datacontenttype": "text/turtle", "data": graph})


def test_standard_input_is_ndjson_and_a_bad_line_costs_no_other(questions):
    lines = [*cloudevents(3), "no json", '["no event"]', ""]
    result = tidings("match", "-s", questions, "-f", "ndjson", "-", stdin="\n".join(lines).encode())
    assert [json.loads(line)["event"] for line in result.stdout.splitlines()] == ["e0", "e1", "e2"]
    assert "-:4: not readable as JSON" in result.stderr
    assert "-:5: a CloudEvent is a JSON object" in result.stderr
    assert result.exit_code == 0


REFUSED = {
    '{"source": "s", "a": NaN}': "JSON has no NaN; leave the member out, or write null",
    '{"source": "s", "a": -Infinity}': "JSON has no -Infinity",
    '{"source": "s", "a": 1e999}': "the number '1e999' is too large",
    '{"source": "s", "a": 1, "a": 2}': "an object has two members 'a'; leave one out",
    '{"source": "s", "a": {"b": [{"c": 1, "c": 1}]}}': "two members 'c'",
    '{"source": "s", "a": "\\ud83d"}': "has half a surrogate pair in it; correct its Unicode",
}


@pytest.mark.parametrize("name", ["-", "in.ndjson", "in.json", "array.json"])
def test_what_the_service_refuses_is_refused(name, questions, tmp_path):
    lines = [*REFUSED, *cloudevents(1)]
    text = f"[{','.join(lines)}]" if name == "array.json" else "\n".join(lines)
    (tmp_path / name).write_text(text)
    given, stdin = ("-", text.encode()) if name == "-" else (tmp_path / name, None)
    result = tidings("match", "-s", questions, "-f", "ndjson", given, stdin=stdin)
    assert [json.loads(line)["event"] for line in result.stdout.splitlines()] == ["e0"]
    said = result.stderr.replace("\n", " ")
    for number, reason in enumerate(REFUSED.values(), 1):
        assert f":{number}: " in said
        assert reason in said


def test_two_columns_of_one_name_are_told(offer, tmp_path):
    (tmp_path / "twice.csv").write_text("id,text,text\na,WHERE x = 1,WHERE x = 2\n")
    result = tidings("match", "-s", tmp_path / "twice.csv", offer)
    assert result.exit_code == 1
    assert "two columns 'text'; rename one" in result.stderr.replace("\n", " ")


def test_standard_input_may_be_any_document(questions):
    result = tidings("match", "-s", questions, "-", stdin=SYNTAXES["offer.rss"].encode())
    assert "?p 90" in result.stdout


def test_hostile_documents_are_sentences(questions, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "deep.ndjson").write_text('{"data":' + "[" * 100_000 + "\n" + next(cloudevents(1)))
    (folder / "long.nt").write_bytes(b" " * (17 << 20))
    (folder / "noise.xml").write_bytes(bytes(range(256)))
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa">' + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (folder / "bomb.rdf").write_text(bomb + "]><rss>&i;</rss>")
    (folder / "empty.rss").write_bytes(b"")
    result = tidings("match", "-s", questions, folder)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1
    for name in ("deep.json", "deep.ndjson", "long.nt", "noise.xml", "bomb.rdf", "empty.rss"):
        assert f"! {folder / name}:" in result.stderr, name


def test_an_event_whose_graph_is_broken_is_told_and_the_others_are_matched(questions, tmp_path):
    broken = json.dumps({"id": "bad", "source": "s", "datacontenttype": "text/turtle", "data": "<a"})
    path = tmp_path / "events.ndjson"
    path.write_text("\n".join([broken, *cloudevents(2)]))
    result = tidings("match", "-s", questions, path)
    assert len(result.stdout.splitlines()) == 2
    assert "event bad: not readable as Turtle" in result.stderr
    assert "2 events against" in result.stderr


def test_output_as_ndjson_and_parquet_hold_the_same(questions, offer, tmp_path):
    assert (
        tidings("match", "-s", questions, "-f", "ndjson", "-o", tmp_path / "o.ndjson", offer).exit_code == 0
    )
    assert (
        tidings("match", "-s", questions, "-f", "parquet", "-o", tmp_path / "o.parquet", offer).exit_code == 0
    )
    lines = [json.loads(line) for line in (tmp_path / "o.ndjson").read_text().splitlines()]
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist()
    of_joins = {"part", "sequence", "changes"}  # which only they have
    expected = [{name: row[name] for name in row if name not in of_joins} for row in rows]
    assert lines == [{**row, "bindings": dict(row["bindings"])} for row in expected]
    assert len(lines) == 2


def test_all_bindings_gives_a_notification_for_each(questions, tmp_path):
    path = tmp_path / "two.nt"
    path.write_text(f'<http://e/1> <{TITLE}> "one" .\n<http://e/1> <{TITLE}> "two" .\n')
    assert len(tidings("match", "-s", questions, path).stdout.splitlines()) == 1
    assert len(tidings("match", "-s", questions, "--all-bindings", path).stdout.splitlines()) == 2


def test_subscriptions_come_from_tables_and_indexes_too(questions, offer, tmp_path):
    texts = {"id": ["a", "b"], "text": ["WHERE (?i, rss:title, ?t)", "WHERE (?i, rss:title, 'x')"]}
    pq.write_table(pa.table(texts), tmp_path / "s.parquet")
    (tmp_path / "s.csv").write_text(
        'id,text\na,"WHERE (?i, rss:title, ?t)"\nb,"WHERE (?i, rss:title, \'x\')"\n'
    )
    (tmp_path / "s.ndjson").write_text(
        "\n".join(json.dumps({"id": i, "text": t}) for i, t in zip(*texts.values(), strict=True))
    )
    assert tidings("index", "build", tmp_path / "index", "-s", tmp_path / "s.csv").exit_code == 0
    for name in ("s.parquet", "s.csv", "s.ndjson", "index"):
        result = tidings("match", "-s", tmp_path / name, offer)
        assert [line.split()[0] for line in result.stdout.splitlines()] == ["a"], name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("good: WHERE (?x, rss:title, ?t)\nbad: WHERE topic LIEK 'x'\n", ":2:18: bad: found 'LIEK'; did you mean 'LIKE'?"),
        (
            "good: WHERE (?x, rss:title, ?t)\nbad:\n  # so\n  WHERE\n     (?x, dcc:title, ?t)\n",
            ":5:11: bad: unknown prefix 'dcc'; did you mean 'dc'?",
        ),
        ("good: WHERE (?x, rss:title, ?t)\nbad: WHERE topic =\n", ":2:19: bad: the text ends"),
        ("good: WHERE (?x, rss:title, ?t)\nbad:\n", ":2: bad: the text is empty"),
        ("good: WHERE (?x, dc:title, 't')\ngood: WHERE (?x, rss:title, ?t)\n", ":2: good is there twice"),
        ("good: WHERE (?x, rss:title, ?t)\nbroad: WHERE (?x, ?p, 'nowhere')\nwide: WHERE (?x, ?p, ?o)\n", "'wide' would match"),
    ],
)  # fmt: skip
def test_a_faulty_subscription_is_told_with_its_place_and_the_others_count(text, told, offer, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(text)
    result = tidings("match", "-s", path, offer)
    assert f"{path}{told}" in result.stderr or f"subscription {told}" in result.stderr
    assert "good  ?x http://example.org/1" in result.stdout
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("files", "args", "told"),
    [
        (
            {"s.txt": "bad: WHERE\n", "e.nt": ""},
            ["-s", "s.txt", "e.nt"],
            "holds no subscription that can be used",
        ),
        (
            {"s.txt": "no colon\n", "e.nt": ""},
            ["-s", "s.txt", "e.nt"],
            "s.txt:1: 'no colon' begins no subscription",
        ),
        (
            {"s.txt": "  indented\n", "e.nt": ""},
            ["-s", "s.txt", "e.nt"],
            "s.txt:1: an indented line continues",
        ),
        ({"s.csv": "name,text\n", "e.nt": ""}, ["-s", "s.csv", "e.nt"], "no column 'id'"),
        ({"s.parquet": "no", "e.nt": ""}, ["-s", "s.parquet", "e.nt"], "not readable as Parquet"),
        ({"s.ndjson": "{}\n", "e.nt": ""}, ["-s", "s.ndjson", "e.nt"], "s.ndjson:1: write"),
        (
            {"s.txt": "a: WHERE (?x, rss:title, ?t)"},
            ["-s", "s.txt", "none"],
            "there is no file or folder 'none'",
        ),
        (
            {"s.txt": "a: WHERE (?x, rss:title, ?t)", "e.nt": "<a"},
            ["-s", "s.txt", "e.nt"],
            "no event could be read",
        ),
        (
            {"s.txt": "a: WHERE (?x, rss:title, ?t)", "e.nt": "", "t.ttl": "<a"},
            ["-s", "s.txt", "-t", "t.ttl", "e.nt"],
            "t.ttl: the taxonomy is not readable as Turtle",
        ),
        (
            {"s.txt": "a: WHERE (?x, rss:title, ?t)", "e.nt": ""},
            ["-s", "s.txt", "-p", "ex", "e.nt"],
            "--prefix 'ex' is not NAME=IRI",
        ),
        (
            {"s.txt": "a: WHERE (?x, rss:title, ?t)", "e.nt": ""},
            ["-s", "s.txt", "-f", "parquet", "e.nt"],
            "Parquet needs a file",
        ),
    ],
)
def test_what_leaves_nothing_to_do_is_a_sentence_and_exit_code_1(files, args, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    result = tidings("match", *args)
    assert result.exit_code == 1
    assert told in result.stderr
    assert "Traceback" not in result.output


def test_a_wrong_command_line_is_exit_code_2(questions):
    assert tidings("match", "-s", questions).exit_code == 2
    assert tidings("match", "-s", "nowhere.txt", questions).exit_code == 2


def test_a_prefix_may_come_from_the_command_line(offer, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text("a: SELECT ?p WHERE (?x, shop:price, ?p)\n")
    result = tidings("match", "-s", path, "--prefix", "shop=http://example.org/", offer)
    assert result.stdout.startswith("a  ?p 180")


def test_explain_shows_what_held_and_what_did_not(questions, tmp_path):
    path = tmp_path / "dear.ttl"
    path.write_text(f'<http://e/1> <{TITLE}> "Racing bicycle" ; <{PRICE}> 900 .')
    result = tidings("explain", "-s", questions, "--id", "cheap bicycles", path)
    assert result.exit_code == 0
    assert "cheap bicycles: no match" in result.stdout
    assert "✓ (?item, rss:title, ?t)" in result.stdout
    assert "✗ ?p < 200   does not hold for ?p = 900" in result.stdout


def test_explain_needs_no_id_for_one_subscription(questions, offer, tmp_path):
    one = tidings("explain", "-s", "WHERE (?item, rss:title, ?t)", offer)
    assert one.exit_code == 0
    assert "subscription: match" in one.stdout
    file = tmp_path / "one.txt"
    file.write_text("titles: WHERE (?item, rss:title, ?t)\n")
    assert "titles: match" in tidings("explain", "-s", file, offer).stdout
    several = tidings("explain", "-s", questions, offer)
    assert several.exit_code == 2
    assert "name the subscription to explain by --id; " in several.stderr
    assert "'cheap bicycles'" in several.stderr


def test_explain_tells_an_unknown_id(questions, offer):
    result = tidings("explain", "-s", questions, "--id", "cheap", offer)
    assert result.exit_code == 1
    assert "there is no subscription 'cheap'" in result.stderr


def test_the_text_of_one_subscription(tmp_path):
    events = tmp_path / "events.ndjson"
    events.write_text('{"topic": "sport", "price": 12}\n{"topic": "opera", "price": 12}\n')
    done = tidings("match", "-s", "WHERE topic = 'sport' AND prise < 20 OR topic = 'opera'", str(events))
    assert done.output.splitlines()[0].startswith("subscription  (")
    assert (
        "-s:1:27: subscription: no event of this run has the attribute prise; did you mean price?"
        in done.output
    )
    assert "2 events against 1 subscription: 1 notification" in done.output
    wrong = tidings("match", "-s", "WHERE topic = 'sport' AN price", str(events))
    assert wrong.exit_code == 1
    assert "-s:1:23: subscription: found 'AN'; did you mean 'AND'?" in wrong.output
    assert "not a valid subscription, and no file has that name" in wrong.output
