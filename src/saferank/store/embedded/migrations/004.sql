-- The store of one server in one file, second edition. Versions 1 to 3 were stores of the first edition, which
-- `saferank migrate` converts. sum: a checksum of the row (store/checksums.py). Times: milliseconds.
PRAGMA application_id = 1399935073;

-- Facts about the store: session_key, token_keys.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE context (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    closed_through INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);

-- Base rankings with their candidates, each kept once.
CREATE TABLE catalogue (digest BLOB PRIMARY KEY, body BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;

-- In display order. clicks: a bit for each place, little endian, then a checksum of them.
CREATE TABLE page (
    impression BLOB PRIMARY KEY,
    context INTEGER NOT NULL,
    closes_at INTEGER NOT NULL,
    record BLOB NOT NULL,
    server TEXT NOT NULL,
    number INTEGER NOT NULL,
    clicks BLOB NOT NULL,
    sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX page_context ON page (context, impression);

-- Contexts with pages that are not published yet; one of those closes at this time, and none much earlier.
CREATE TABLE waiting (context INTEGER PRIMARY KEY, closes_at INTEGER NOT NULL);
CREATE INDEX waiting_time ON waiting (closes_at);

-- Every event_id that was accepted, and what it said.
CREATE TABLE delivery (
    tenant TEXT NOT NULL,
    event_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (tenant, event_id)
) WITHOUT ROWID;

CREATE TABLE server (server TEXT PRIMARY KEY, lease_until INTEGER NOT NULL, acknowledged INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE shard (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT '',
    until INTEGER NOT NULL DEFAULT 0
);

-- The newest knowledge of every context.
CREATE TABLE publication (
    context INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    through INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL,
    published_at INTEGER NOT NULL
);
CREATE INDEX publication_time ON publication (published_at);

-- Publications that are kept for ever.
CREATE TABLE snapshot (
    context INTEGER NOT NULL,
    number INTEGER NOT NULL,
    through INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (context, number)
) WITHOUT ROWID;

CREATE TABLE version (
    context INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    leader TEXT NOT NULL,
    impression BLOB,
    evidence TEXT NOT NULL,
    why TEXT,
    sum INTEGER NOT NULL,
    PRIMARY KEY (context, version)
) WITHOUT ROWID;

CREATE TABLE operation (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    context INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL
);

CREATE TABLE alarm (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    context INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX alarm_context ON alarm (context, id);
