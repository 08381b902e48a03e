"""`tidings index`: every change is a new version, and a refused one changes nothing."""

from tidings.storage import version_opening, versions

from .conftest import EXAMPLES, tidings


def test_build_add_remove_and_show(questions, tmp_path):
    root = tmp_path / "index"
    assert tidings("index", "build", root, "-s", questions).stdout == f"{root} is now v1+0: 2 subscriptions\n"
    added = tidings("index", "add", root, "boats", "SELECT ?t WHERE (?i, rss:title, ?t), (?i, ex:price, 90)")
    assert added.exit_code == 0
    removed = tidings("index", "remove", root, "titles")
    assert f"{root} is now {versions.current(root)}: titles removed" in removed.stdout
    engine = versions.open(root, versions.current(root))
    assert ["boats" in engine, "titles" in engine, "cheap bicycles" in engine] == [True, False, True]
    shown = " ".join(tidings("index", "show", root).stdout.split())
    assert f"version {versions.current(root)}" in shown
    assert "subscriptions 2 of these in the base 2 changes in the tail 2" in shown
    assert "prefixes ex" in shown
    assert "bytes a subscription" in shown
    assert tidings("index", "compact", root).stdout == f"{root} is now v2+0: 2 subscriptions\n"
    assert "changes in the tail 0" in " ".join(tidings("index", "show", root).stdout.split())


def test_damage_is_a_sentence(questions, tmp_path):
    root = tmp_path / "index"
    tidings("index", "build", root, "-s", questions)
    assert "files as they were written" in " ".join(tidings("index", "show", root).stdout.split())
    tidings("index", "add", root, "other", "WHERE a = 1")  # so that there is something to fold
    texts = root / "v1" / "subscriptions" / "text_blob.npy"
    data = texts.read_bytes()
    header = data[:20] + b"(" + data[21:]
    for spoilt, commands in (
        (data[:-1] + bytes([data[-1] ^ 1]), [("show",), ("compact",)]),
        (header, [("show",), ("remove", "titles")]),
    ):
        texts.write_bytes(spoilt)
        for command, *rest in commands:
            version_opening._opened.clear()  # as in a process of its own
            refused = tidings("index", command, root, *rest)
            assert (refused.exit_code, "anew" in refused.stderr) == (1, True), (command, refused.output)
            assert "Traceback" not in refused.stderr
        tidings("index", "build", root, "-s", questions)
        texts = root / f"v{versions.current(root).base}" / "subscriptions" / "text_blob.npy"
        assert tidings("index", "show", root).exit_code == 0


def test_building_again_takes_the_place_of_what_was_there(questions, tmp_path):
    root = tmp_path / "index"
    tidings("index", "build", root, "-s", questions)
    questions.write_text("other: WHERE (?i, rss:title, 'x')\n")
    assert "v2+0: 1 subscription\n" in tidings("index", "build", root, "-s", questions).stdout


def test_a_question_that_nearly_everything_answers_is_remarked_on(questions, tmp_path):
    root = tmp_path / "index"
    tidings("index", "build", root, "-s", questions)
    added = tidings("index", "add", root, "all", "WHERE (?a, ?b, ?c)")
    assert (added.exit_code, "'all' would match nearly every event" in added.stderr) == (0, True)
    assert "UserWarning" not in added.stderr


def test_refused_changes_are_sentences_and_change_nothing(questions, tmp_path):
    root = tmp_path / "index"
    assert "holds no index; make one with 'tidings index build'" in tidings("index", "show", root).stderr
    tidings("index", "build", root, "-s", questions)
    bad = tidings("index", "add", root, "bad", "WHERE topic LIEK 'x'")
    assert (bad.exit_code, "did you mean 'LIKE'?" in bad.stderr) == (1, True)
    missing = tidings("index", "remove", root, "nobody")
    assert (missing.exit_code, "there is no subscription 'nobody'" in missing.stderr) == (1, True)
    assert versions.current(root) == (1, 0)


def test_a_network_is_put_into_an_index_and_questions_into_it(questions, tmp_path):
    root, exchange = tmp_path / "index", EXAMPLES / "exchange"
    questions.write_text("runners: WHERE interests CONTAINS 'run'\n")
    tidings("index", "build", root, "-s", questions)
    placed = "WHERE interests CONTAINS 'run' VIA exchange AT 'fit club'"
    assert "there is no network 'exchange'" in tidings("index", "add", root, "club", placed).stderr
    put = tidings("index", "network", root, "exchange", exchange)
    assert put.stdout == f"{root} is now v2+0: network exchange of 16 nodes\n"
    assert tidings("index", "add", root, "club", placed).exit_code == 0
    bad = tidings("index", "add", root, "x", "WHERE topic = 'oil' VIA exchange AT 'nobody'")
    assert (bad.exit_code, "has no node 'nobody'" in bad.stderr) == (1, True)
    assert "networks exchange: 16 nodes" in " ".join(tidings("index", "show", root).stdout.split())
    found = tidings("match", "-s", root, exchange / "event.json").stdout
    assert "club" in found
    assert "runners" in found
    # Without its node the question stays, and hears of nothing.
    (tmp_path / "edges.csv").write_text("source,target\nmatch centre,acme shoes\n")
    tidings("index", "network", root, "exchange", tmp_path / "edges.csv")
    assert "club" not in tidings("match", "-s", root, exchange / "event.json").stdout
    assert "club" in versions.open(root, versions.current(root))


def test_a_network_that_cannot_be_read_changes_nothing(questions, tmp_path):
    root = tmp_path / "index"
    questions.write_text("runners: WHERE interests CONTAINS 'run'\n")
    (tmp_path / "edges.csv").write_text("from,to\na,b\n")
    built = tidings("index", "build", root, "-s", questions, "--network", f"x={tmp_path / 'edges.csv'}")
    assert (built.exit_code, root.exists(), "has no column 'source'" in built.stderr) == (1, False, True)
    tidings("index", "build", root, "-s", questions)
    put = tidings("index", "network", root, "x", tmp_path / "edges.csv")
    assert (put.exit_code, "has no column 'source'" in put.stderr) == (1, True)
    twice = tidings("index", "build", root, "-s", questions, "-n", "x=a", "-n", "x=b")
    assert "gives 'x' twice" in twice.stderr
    assert versions.current(root) == (1, 0)
