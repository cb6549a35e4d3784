"""Workspaces, which keep things apart and names unique, and the owners of what is in them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_NAMED = ("datasets", "hierarchies", "models", "keys")
_UNNAMED = ("jobs", "evaluations")
# PostgreSQL and SQLite call the constraints of the first schema, which have no names there, each in its own way.
_NAMES = {"uq": "%(table_name)s_%(column_0_N_name)s_key"}


def upgrade() -> None:
    for table in (*_NAMED, *_UNNAMED):
        with op.batch_alter_table(table, naming_convention=_NAMES) as batch_op:
            # All that is there belongs to the workspace of the installation.
            batch_op.add_column(sa.Column("workspace", sa.String(length=128), nullable=False, server_default="default"))
            if table != "keys":
                batch_op.add_column(sa.Column("owner", sa.String(length=128), nullable=True))
            if table in _NAMED:
                batch_op.drop_constraint(f"{table}_name_key", type_="unique")
                batch_op.create_unique_constraint(f"{table}_workspace_name_key", ["workspace", "name"])
        # Nothing gets there again by being forgotten.
        with op.batch_alter_table(table) as batch_op:
            batch_op.alter_column("workspace", server_default=None)
    op.create_index("ix_jobs_workspace_id", "jobs", ["workspace", "id"])


def downgrade() -> None:
    op.drop_index("ix_jobs_workspace_id", "jobs")
    for table in (*_NAMED, *_UNNAMED):
        with op.batch_alter_table(table, naming_convention=_NAMES) as batch_op:
            if table in _NAMED:
                batch_op.drop_constraint(f"{table}_workspace_name_key", type_="unique")
                batch_op.create_unique_constraint(f"{table}_name_key", ["name"])
            if table != "keys":
                batch_op.drop_column("owner")
            batch_op.drop_column("workspace")
