"""Hierarchies: label trees with their nodes, and the jobs and versions that need them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_USERS = ("jobs", "model_versions")


def upgrade() -> None:
    op.create_table(
        "hierarchies",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("n_nodes", sa.BigInteger(), nullable=False),
        sa.Column("n_leaves", sa.BigInteger(), nullable=False),
        sa.Column("levels", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "hierarchy_nodes",
        sa.Column("hierarchy_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=1000), nullable=False),
        sa.ForeignKeyConstraint(["hierarchy_id"], ["hierarchies.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hierarchy_id", "number"),
    )
    op.create_index("ix_hierarchy_nodes_parent", "hierarchy_nodes", ["hierarchy_id", "parent"])
    for table in _USERS:
        with op.batch_alter_table(table) as batch_op:
            batch_op.add_column(sa.Column("hierarchy_id", sa.String(length=32), nullable=True))
            batch_op.create_foreign_key(
                f"{table}_hierarchy_id_fkey", "hierarchies", ["hierarchy_id"], ["id"], ondelete="SET NULL"
            )
            batch_op.create_index(f"ix_{table}_hierarchy_id", ["hierarchy_id"])
            if table == "model_versions":
                batch_op.add_column(sa.Column("hierarchy_sha256", sa.String(length=64), nullable=True))


def downgrade() -> None:
    for table in _USERS:
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_index(f"ix_{table}_hierarchy_id")
            batch_op.drop_constraint(f"{table}_hierarchy_id_fkey", type_="foreignkey")
            batch_op.drop_column("hierarchy_id")
            if table == "model_versions":
                batch_op.drop_column("hierarchy_sha256")
    op.drop_index("ix_hierarchy_nodes_parent", "hierarchy_nodes")
    op.drop_table("hierarchy_nodes")
    op.drop_table("hierarchies")
