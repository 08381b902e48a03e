"""Slices of micro-batches; notifications without an index over their ids, which are made of what they are about."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEPT = "number, subscription, id, kind, at, event, bindings, part, sequence, changes, message"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _copy_notifications()
    else:
        op.drop_constraint("notifications_id", "notifications")
        op.drop_column("notifications", "query")
        op.drop_column("notifications", "batch")
        op.alter_column("notifications", "id", nullable=True)
    op.create_index(
        "notifications_notice",
        "notifications",
        ["subscription", "id"],
        unique=True,
        sqlite_where=sa.text("event IS NULL"),
        postgresql_where=sa.text("event IS NULL"),
    )
    op.create_table(
        "slices",
        sa.Column("query", sa.Text, primary_key=True),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("byte", sa.BigInteger, nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("notifications", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
    )


def _copy_notifications() -> None:
    """SQLite drops no constraint of a table that is there."""
    op.rename_table("notifications", "notifications_before")
    op.create_table(
        "notifications",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("subscription", sa.Text, nullable=False),
        sa.Column("id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("event", sa.LargeBinary),
        sa.Column("bindings", sa.Text),
        sa.Column("part", sa.Text),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("changes", sa.Text),
        sa.Column("message", sa.Text),
    )
    op.execute(f"INSERT INTO notifications ({KEPT}) SELECT {KEPT} FROM notifications_before")
    op.drop_table("notifications_before")
    op.create_index("notifications_subscription", "notifications", ["subscription", "number"])
