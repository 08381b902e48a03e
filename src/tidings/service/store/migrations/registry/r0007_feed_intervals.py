"""Intervals of followed feeds; a source without one has that of the service."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sources", sa.Column("interval", sa.Double))
