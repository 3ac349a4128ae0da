-- The store of one server in one file. Times: milliseconds of the server's clock.
PRAGMA application_id = 1399935073;

-- Facts about the store: session_key, token_keys.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE context (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_through INTEGER NOT NULL DEFAULT 0,
    pruned_through INTEGER NOT NULL DEFAULT 0, -- pages through this time may be deleted: a kept snapshot stands for them
    UNIQUE (tenant, name)
) STRICT;

-- Base rankings with their candidates, each kept once. used_at: when it was written last, to half a day; those that no
-- context or page names any more are deleted in time.
CREATE TABLE catalogue (
    digest BLOB PRIMARY KEY,
    body BLOB NOT NULL,
    used_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- In display order. clicks: a bit for each place, little endian. events: how many event ids are kept of a page, an estimate
-- that no backup holds.
CREATE TABLE page (
    impression BLOB PRIMARY KEY,
    context INTEGER NOT NULL,
    closes_at INTEGER NOT NULL,
    record BLOB NOT NULL,
    clicks BLOB NOT NULL,
    events INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX page_context ON page (context, impression);

-- Contexts with pages that are not published yet; one of those closes at this time, and none much earlier.
CREATE TABLE waiting (context INTEGER PRIMARY KEY, closes_at INTEGER NOT NULL) STRICT;
CREATE INDEX waiting_time ON waiting (closes_at);

-- Every event_id of a page that was accepted, and what it said.
CREATE TABLE delivery (
    impression BLOB NOT NULL,
    event_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (impression, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_time ON delivery (at);

CREATE TABLE server (server TEXT PRIMARY KEY, lease_until INTEGER NOT NULL, acknowledged INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE shard (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT '',
    until INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The newest knowledge of every context.
CREATE TABLE publication (
    context INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    through INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    body BLOB NOT NULL,
    published_at INTEGER NOT NULL
) STRICT;
CREATE INDEX publication_time ON publication (published_at);

-- Publications that are kept for ever.
CREATE TABLE snapshot (
    context INTEGER NOT NULL,
    number INTEGER NOT NULL,
    through INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (context, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE version (
    context INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    leader TEXT NOT NULL,
    impression BLOB,
    evidence TEXT NOT NULL,
    why TEXT,
    PRIMARY KEY (context, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE operation (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    context INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE alarm (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    context INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
