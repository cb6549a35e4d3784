"""Rules that start retrainings, and what came of each start."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rules",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("model_id", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", sa.String(length=32), nullable=True),
        sa.Column("training", sa.JSON(), nullable=False),
        sa.Column("warm", sa.Boolean(), nullable=False),
        sa.Column("cron", sa.String(length=100), nullable=True),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("feedback", sa.Boolean(), nullable=False),
        sa.Column("feedback_rows", sa.Integer(), nullable=True),
        sa.Column("promote", sa.JSON(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("seen_feedback", sa.String(length=32), nullable=True),
        sa.Column("run_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=True),
        sa.Column("workspace", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace", "name"),
    )
    op.create_index("ix_rules_model_id", "rules", ["model_id"])
    op.create_index("ix_rules_dataset_id", "rules", ["dataset_id"])
    op.create_table(
        "rule_runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("rule_id", sa.String(length=32), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("append_job", sa.String(length=32), nullable=True),
        sa.Column("train_job", sa.String(length=32), nullable=True),
        sa.Column("evaluations", sa.JSON(), nullable=True),
        sa.Column("dataset_version", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("decision", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["rule_id"], ["rules.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_rule_runs_rule", "rule_runs", ["rule_id", "id"])
    op.create_index("ix_rule_runs_stage", "rule_runs", ["stage"])


def downgrade() -> None:
    op.drop_table("rule_runs")
    op.drop_table("rules")
