"""What the next job of each key is found by, and when that key was last served, however many wait."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_jobs_next", "jobs", ["queue", "state", "priority", "workspace", "owner", "created_at", "id"])
    op.create_index("ix_jobs_served", "jobs", ["queue", "workspace", "started_at"])
    op.create_index("ix_jobs_key_served", "jobs", ["queue", "workspace", "owner", "started_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_key_served", "jobs")
    op.drop_index("ix_jobs_served", "jobs")
    op.drop_index("ix_jobs_next", "jobs")
