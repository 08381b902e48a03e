"""The last number that a base of the index has got."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("INSERT INTO index_change_numbers (name, value) VALUES ('base', 0)")
