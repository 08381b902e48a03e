"""Why a subscription cannot be asked, and whether it needs tables."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("subscriptions", sa.Column("reason", sa.Text))
    op.add_column(
        "subscriptions", sa.Column("over_tables", sa.Boolean, nullable=False, server_default=sa.false())
    )
