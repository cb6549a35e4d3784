"""What pages of jobs by state, and the times of the last ones that ended, are found by where there are many."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_jobs_workspace_state_id", "jobs", ["workspace", "state", "id"])
    op.create_index("ix_jobs_queue_state_finished", "jobs", ["queue", "state", "finished_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_queue_state_finished", "jobs")
    op.drop_index("ix_jobs_workspace_state_id", "jobs")
