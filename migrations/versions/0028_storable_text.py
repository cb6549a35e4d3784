"""Text of older rows that PostgreSQL cannot read: U+0000 and halves of surrogate pairs become U+FFFD."""

from alembic import op

from app.store.text_repair import repair

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    repair(op.get_bind())


def downgrade() -> None:
    """What the characters were is not known any more."""
