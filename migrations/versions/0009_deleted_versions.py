"""Versions that are deleted for a time, their tags and notes, and how many of a model's versions are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("models") as batch_op:
        batch_op.add_column(sa.Column("last_number", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("keep_last", sa.Integer(), nullable=True))
    op.execute(
        "UPDATE models SET last_number = "
        "(SELECT COALESCE(MAX(number), 0) FROM model_versions WHERE model_versions.model_id = models.id)"
    )
    with op.batch_alter_table("model_versions") as batch_op:
        batch_op.add_column(sa.Column("tags", sa.JSON(), nullable=True))
        batch_op.add_column(sa.Column("notes", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("revision", sa.Integer(), nullable=False, server_default="1"))
        batch_op.add_column(sa.Column("deleted_at", sa.Double(), nullable=True))


def downgrade() -> None:
    op.execute("DELETE FROM model_versions WHERE deleted_at IS NOT NULL")
    with op.batch_alter_table("model_versions") as batch_op:
        for column in ("deleted_at", "revision", "notes", "tags"):
            batch_op.drop_column(column)
    with op.batch_alter_table("models") as batch_op:
        batch_op.drop_column("keep_last")
        batch_op.drop_column("last_number")
