"""Why a subscription cannot be asked, and whether it needs tables; definitions that are changed while the service runs."""

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
    op.create_table(
        "definitions",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("given", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
    )
