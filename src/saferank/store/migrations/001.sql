-- The log of a live service. Everything else in this file is derived from table event, or names what events refer to.

-- Facts about the file itself: session_key, clean (see snapshot).
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE context (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (tenant, name));

-- Base rankings with their candidates, each kept once: zlib of JSON [base, candidates].
CREATE TABLE catalogue (digest BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- What happened, in order. kind: see store/events.py. context 0: all contexts. at: milliseconds, never going back.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    context INTEGER NOT NULL,
    at INTEGER NOT NULL,
    impression BLOB,
    body BLOB
);
CREATE INDEX event_impression ON event (impression) WHERE impression IS NOT NULL;

-- Every event_id that was accepted, and what it said.
CREATE TABLE delivery (
    tenant TEXT NOT NULL,
    event_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tenant, event_id)
) WITHOUT ROWID;

-- Every leader that there was, with what brought it about. Derived, and compared by a replay.
CREATE TABLE leader (
    context INTEGER NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    leader TEXT NOT NULL,
    impression BLOB,
    evidence TEXT NOT NULL,
    PRIMARY KEY (context, version)
) WITHOUT ROWID;

-- States of contexts after the event seq, for a quick start. meta.clean: all events up to it are in snapshots.
CREATE TABLE snapshot (
    context INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (context, seq)
) WITHOUT ROWID;
