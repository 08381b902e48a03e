"""The role of each query, so that a stream without a checkpoint goes on where the last one had come."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("reached", sa.Column("role", sa.Text))
