"""The index of notifications by blocks of their numbers; the first number of each event."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("notifications_subscription", "notifications")
    op.create_index(
        "notifications_block", "notifications", [sa.text("(number >> 16)"), "subscription", "number"]
    )
    op.add_column("events", sa.Column("first", sa.BigInteger))
