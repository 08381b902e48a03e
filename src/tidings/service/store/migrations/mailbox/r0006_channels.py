"""Channels, their subscriptions, and the messages that are not sent yet."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("sent", sa.Text, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("refusals", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("reason", sa.Text),
    )
    op.create_index("channels_owner", "channels", ["owner", "created", "id"])
    op.create_table(
        "channel_subscriptions",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("subscription", sa.Text, primary_key=True),
        sa.Column("since", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until", sa.BigInteger),
    )
    op.create_index(
        "channel_subscriptions_subscription", "channel_subscriptions", ["subscription", "channel"]
    )
    op.create_table(
        "channel_messages",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("after_number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("until_number", sa.BigInteger),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("next_try", sa.Double, nullable=False),
        sa.Column("written", sa.Double, nullable=False),
    )
    for name, condition in (("collecting", "IS NULL"), ("sealed", "IS NOT NULL")):
        op.create_index(
            f"channel_messages_{name}",
            "channel_messages",
            ["next_try"],
            sqlite_where=sa.text(f"until_number {condition}"),
            postgresql_where=sa.text(f"until_number {condition}"),
        )
    # Up to which number the notifications are in messages of channels.
    op.execute(
        "INSERT INTO counters (name, value) SELECT 'assigned', value FROM counters WHERE name = 'number'"
    )
