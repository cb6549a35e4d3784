"""Versions store how they were measured if the served model was trained on all rows; evaluations store which model."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_versions", sa.Column("refit", sa.JSON(), nullable=True))
    op.add_column("evaluations", sa.Column("measured", sa.Boolean(), nullable=True))


def downgrade() -> None:
    op.drop_column("evaluations", "measured")
    op.drop_column("model_versions", "refit")
