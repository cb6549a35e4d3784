"""Steps store what is being trained, for methods that train other methods."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("steps", sa.Column("setting", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("steps", "setting")
