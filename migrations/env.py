"""Alembic's entry: runs the migrations on the connection that ``app.store.migrate`` hands over."""

from alembic import context

from app.store.tables import Table

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Table.metadata,
    transactional_ddl=True,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
    # They run on SQLite without the enforcement of foreign keys.
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise RuntimeError("the migrated database would have rows that refer to nothing")
