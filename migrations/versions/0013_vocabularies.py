"""What vocabularies say of their labels, and deprecated labels without a place in the tree."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("hierarchies") as batch_op:
        batch_op.add_column(sa.Column("report", sa.JSON(), nullable=True))
    with op.batch_alter_table("hierarchy_nodes") as batch_op:
        batch_op.add_column(sa.Column("facts", sa.JSON(), nullable=True))
    op.create_table(
        "retired_labels",
        sa.Column("hierarchy_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=1000), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["hierarchy_id"], ["hierarchies.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hierarchy_id", "name"),
    )


def downgrade() -> None:
    op.drop_table("retired_labels")
    with op.batch_alter_table("hierarchy_nodes") as batch_op:
        batch_op.drop_column("facts")
    with op.batch_alter_table("hierarchies") as batch_op:
        batch_op.drop_column("report")
