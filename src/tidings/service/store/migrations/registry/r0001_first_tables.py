"""The first tables of the registry."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("ticket", sa.Text, nullable=False),
        sa.Column("feed", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("valid_until", sa.Double),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("warned", sa.Boolean, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("renewed", sa.Double),
        sa.Column("folded", sa.Text, nullable=False),
        sa.UniqueConstraint("feed", name="subscriptions_feed"),
    )
    op.create_index("subscriptions_created", "subscriptions", ["created", "id"])
    op.create_index("subscriptions_owner_created", "subscriptions", ["owner", "created", "id"])
    op.create_index("subscriptions_owner_state", "subscriptions", ["owner", "state", "created", "id"])
    op.create_index("subscriptions_state_valid_until", "subscriptions", ["state", "valid_until"])
    op.create_table(
        "index_changes",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("text", sa.Text),
    )
    op.create_table(
        "index_change_numbers",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("ended", sa.Double),
        sa.Column("subscriptions", sa.BigInteger, nullable=False),
        sa.Column("events_per_second", sa.Double, nullable=False),
        sa.Column("requests_per_second", sa.Double, nullable=False),
        sa.UniqueConstraint("secret", name="tokens_secret"),
    )
    op.create_table(
        "sources",
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("added", sa.Double, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("subscription", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("next_try", sa.Double, nullable=False),
        sa.Column("failing_since", sa.Double),
        sa.Column("error", sa.Text),
        sa.Column("disabled", sa.Text),
    )
    op.create_index("deliveries_next_try", "deliveries", ["next_try"])
    op.execute("INSERT INTO index_change_numbers (name, value) VALUES ('change', 0)")
