"""People whom an identity provider knows: keys without a secret, found by issuer and subject."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("keys") as batch_op:
        batch_op.add_column(sa.Column("issuer", sa.String(length=255), nullable=True))
        batch_op.add_column(sa.Column("subject", sa.String(length=255), nullable=True))
        batch_op.create_unique_constraint("keys_issuer_subject_key", ["issuer", "subject"])


def downgrade() -> None:
    """People stay as keys whose secret nobody knows."""
    with op.batch_alter_table("keys") as batch_op:
        batch_op.drop_constraint("keys_issuer_subject_key", type_="unique")
        batch_op.drop_column("subject")
        batch_op.drop_column("issuer")
