"""Several versions from one job: each has its place in the job's path; and what a method reports of its model."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# PostgreSQL and SQLite call the constraints of the first schema, which have no names there, each in its own way.
_NAMES = {"uq": "%(table_name)s_%(column_0_N_name)s_key"}


def upgrade() -> None:
    with op.batch_alter_table("model_versions", naming_convention=_NAMES) as batch_op:
        batch_op.add_column(sa.Column("point", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("report", sa.JSON(), nullable=True))
        batch_op.drop_constraint("model_versions_job_id_key", type_="unique")
        batch_op.create_unique_constraint("model_versions_job_id_point_key", ["job_id", "point"])
    with op.batch_alter_table("steps") as batch_op:
        batch_op.add_column(sa.Column("point", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("steps") as batch_op:
        batch_op.drop_column("point")
    with op.batch_alter_table("model_versions", naming_convention=_NAMES) as batch_op:
        batch_op.drop_constraint("model_versions_job_id_point_key", type_="unique")
        batch_op.create_unique_constraint("model_versions_job_id_key", ["job_id"])
        batch_op.drop_column("report")
        batch_op.drop_column("point")
