"""The first tables of the mailbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("subscription", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("event", sa.LargeBinary),
        sa.Column("bindings", sa.Text),
        sa.Column("part", sa.Text),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("changes", sa.Text),
        sa.Column("message", sa.Text),
        sa.Column("query", sa.Text),
        sa.Column("batch", sa.BigInteger),
        sa.UniqueConstraint("subscription", "id", name="notifications_id"),
    )
    op.create_index("notifications_subscription", "notifications", ["subscription", "number"])
    op.create_table(
        "events",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("id", sa.Text),
        sa.Column("source", sa.Text),
        sa.Column("type", sa.Text),
        sa.Column("time", sa.Text),
        sa.Column("datacontenttype", sa.Text),
        sa.Column("data", sa.LargeBinary),
        sa.Column("attributes", sa.Text),
        sa.Column("last", sa.BigInteger, nullable=False),
    )
    op.create_index("events_last", "events", ["last"])
    op.create_table(
        "batches",
        sa.Column("query", sa.Text, primary_key=True),
        sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("byte", sa.BigInteger, nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("notifications", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("began", sa.Double, nullable=False),
        sa.Column("ended", sa.Double, nullable=False),
    )
    op.create_index("batches_ended", "batches", ["ended"])
    op.create_table(
        "reached",
        sa.Column("query", sa.Text, primary_key=True),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("byte", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "faults",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    for name in ("number", "fault", "events", "notifications", "errors"):
        op.execute(sa.text("INSERT INTO counters (name, value) VALUES (:name, 0)").bindparams(name=name))
