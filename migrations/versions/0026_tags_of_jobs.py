"""What jobs with a tag, and those of a kind, are found by where there are many."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_TAGS = {
    "sqlite": "json_each(jobs.tags) AS tag WHERE json_type(jobs.tags) = 'object'",
    "postgresql": "json_each_text(CASE WHEN json_typeof(jobs.tags) = 'object' THEN jobs.tags ELSE '{}' END) AS tag",
}


def upgrade() -> None:
    op.create_table(
        "job_tags",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.Column("workspace", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "name"),
    )
    tags = _TAGS[op.get_bind().dialect.name]
    op.execute(
        "INSERT INTO job_tags (job_id, name, value, workspace) "
        f"SELECT jobs.id, tag.key, tag.value, jobs.workspace FROM jobs, {tags}"
    )
    op.create_index("ix_job_tags_name", "job_tags", ["workspace", "name", "job_id"])
    op.create_index("ix_job_tags_value", "job_tags", ["workspace", "name", "value", "job_id"])
    op.create_index("ix_jobs_workspace_kind_id", "jobs", ["workspace", "kind", "id"])


def downgrade() -> None:
    op.drop_index("ix_jobs_workspace_kind_id", "jobs")
    op.drop_table("job_tags")
