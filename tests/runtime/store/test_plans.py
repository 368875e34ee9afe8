"""Statements are answered through an index: their cost does not grow with what is stored."""

import re
import sqlite3

import pytest

from runtime.store.sqlite import checkpoints, queries, schema, shared_entries, statements


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (shared_entries._ENTRIES, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (shared_entries._POSITION, "entries_by_key (<expr>=? AND key=?)"),
        (shared_entries._LAST_PLACE, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (checkpoints._CHECKPOINT, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (statements._REACH, "shared_by_source (source=?"),
        (statements._LAST_PLACE, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (queries.list_statement(by_cwd=False, continued=False), "sessions_by_change"),
        (queries.list_statement(by_cwd=False, continued=True), "sessions_by_change"),
        (queries.list_statement(by_cwd=True, continued=False), "sessions_by_cwd"),
        (queries.list_statement(by_cwd=True, continued=True), "sessions_by_cwd"),
    ],
)
def test_every_page_is_read_through_an_index(statement, index):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection)
    values = int(max(re.findall(r"\?(\d)", statement), default=statement.count("?")))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", ("1",) * values).fetchall()
    connection.close()
    steps = [detail for *_ids, detail in plan]
    assert any(index in step for step in steps)
    assert not [step for step in steps if "TEMP B-TREE" in step or ("SCAN" in step and index not in step)]
