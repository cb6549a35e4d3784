"""A version may have adopted an edition of another's vocabulary; a model stores what people say about it."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("model_versions") as batch_op:
        batch_op.add_column(sa.Column("edition_of", sa.JSON(), nullable=True))
    with op.batch_alter_table("models") as batch_op:
        batch_op.add_column(sa.Column("about", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("models") as batch_op:
        batch_op.drop_column("about")
    with op.batch_alter_table("model_versions") as batch_op:
        batch_op.drop_column("edition_of")
