"""Review queues, their rows and opinions."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("job_id", sa.String(32), nullable=False),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.String(32), nullable=True),
        sa.Column("dataset_version", sa.Integer(), nullable=False),
        sa.Column("sure_share", sa.Double(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("opinions", sa.Integer(), nullable=False),
        sa.Column("promised", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("owner", sa.String(128), nullable=True),
        sa.Column("workspace", sa.String(128), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace", "name"),
    )
    op.create_index("ix_reviews_dataset_id", "reviews", ["dataset_id"])
    op.create_table(
        "review_rows",
        sa.Column("review_id", sa.String(32), nullable=False),
        sa.Column("row", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("row_id", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("record", sa.JSON(), nullable=True),
        sa.Column("alternatives", sa.JSON(), nullable=False),
        sa.Column("sure", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.String(128), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("job_id", sa.String(32), nullable=True),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("review_id", "row"),
    )
    op.create_index("ix_review_rows_place", "review_rows", ["review_id", "state", "place"])
    op.create_table(
        "review_opinions",
        sa.Column("review_id", sa.String(32), nullable=False),
        sa.Column("row", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.String(128), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("arbiter", sa.Boolean(), nullable=False),
        sa.Column("decided_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("review_id", "row", "person"),
    )


def downgrade() -> None:
    op.drop_table("review_opinions")
    op.drop_table("review_rows")
    op.drop_table("reviews")
