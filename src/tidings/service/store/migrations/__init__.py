"""How databases of earlier versions become those of this one, by Alembic. Two chains: registry and mailbox."""
