"""Read positions and stars of readers; an index of what is undecided."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "notifications_undecided",
        "notifications",
        [sa.text("(number >> 16)"), "subscription", "number"],
        sqlite_where=sa.text("kind = 'undecided'"),
        postgresql_where=sa.text("kind = 'undecided'"),
    )
    op.create_table(
        "read_positions",
        sa.Column("reader", sa.Text, primary_key=True),
        sa.Column("subscription", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.create_index("read_positions_number", "read_positions", ["number"])
    op.create_table(
        "stars",
        sa.Column("reader", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("subscription", sa.Text, nullable=False),
    )
    op.create_index("stars_number", "stars", ["number"])
