"""Keys with the right to move protected aliases."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("keys") as batch_op:
        batch_op.add_column(sa.Column("promotes", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("keys") as batch_op:
        batch_op.alter_column("promotes", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("keys") as batch_op:
        batch_op.drop_column("promotes")
