"""Who is pushed which feed by the hub of this service (WebSub)."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hub_subscriptions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("subscription", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("callback", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("secret", sa.Text),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("next_try", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
    )
    op.create_index("hub_subscriptions_subscription", "hub_subscriptions", ["subscription"])
    op.create_index("hub_subscriptions_host", "hub_subscriptions", ["host"])
    op.create_index("hub_subscriptions_until", "hub_subscriptions", ["until"])
