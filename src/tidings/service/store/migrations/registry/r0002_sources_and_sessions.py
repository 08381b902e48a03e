"""A quota of sources for each token, sources in pages, and sessions that were ended."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("sources", sa.BigInteger, nullable=False, server_default="1000"))
    op.create_index("sources_added", "sources", ["added", "url"])
    op.create_index("sources_owner", "sources", ["owner"])
    op.create_table(
        "ended_sessions",
        sa.Column("session", sa.Text, primary_key=True),
        sa.Column("until", sa.Double, nullable=False),
    )
