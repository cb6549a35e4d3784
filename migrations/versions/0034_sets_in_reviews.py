"""Decisions of review rows are lists of labels, so that queues can have rows with sets of them."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

_TABLES = ("review_rows", "review_opinions")


def upgrade() -> None:
    array = "json_array" if op.get_bind().dialect.name == "sqlite" else "json_build_array"
    with op.batch_alter_table("reviews") as batch_op:
        batch_op.add_column(sa.Column("label_separator", sa.Text(), nullable=True))
    for table in _TABLES:
        with op.batch_alter_table(table) as batch_op:
            batch_op.add_column(sa.Column("labels", sa.JSON(), nullable=True))
        op.execute(f"UPDATE {table} SET labels = {array}(label) WHERE label IS NOT NULL")
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_column("label")


def downgrade() -> None:
    """Of a set, the first label is kept."""
    first = "json_extract(labels, '$[0]')" if op.get_bind().dialect.name == "sqlite" else "labels ->> 0"
    for table in _TABLES:
        with op.batch_alter_table(table) as batch_op:
            batch_op.add_column(sa.Column("label", sa.Text(), nullable=True))
        op.execute(f"UPDATE {table} SET label = {first} WHERE labels IS NOT NULL")
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_column("labels")
    with op.batch_alter_table("reviews") as batch_op:
        batch_op.drop_column("label_separator")
