"""When keys end by themselves, and when each was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("keys") as batch_op:
        batch_op.add_column(sa.Column("expires_at", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("last_used_at", sa.Double(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("keys") as batch_op:
        batch_op.drop_column("last_used_at")
        batch_op.drop_column("expires_at")
