"""Alembic's entry: runs the migrations on the connection that ``app.store.migrate`` hands over."""

from alembic import context

from app.store.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    transactional_ddl=True,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
