-- The store of any number of servers. sum: a checksum of the row (store/checksums.py). Times: milliseconds.

CREATE TABLE saferank.schema_version (version integer NOT NULL);
INSERT INTO saferank.schema_version VALUES (0);

-- Facts about the store: session_key, token_keys.
CREATE TABLE saferank.meta (name text PRIMARY KEY, value bytea NOT NULL, sum bigint NOT NULL);

CREATE TABLE saferank.context (
    id integer PRIMARY KEY,
    tenant text NOT NULL,
    name text NOT NULL,
    terms text NOT NULL,
    opened_at bigint NOT NULL,
    sum bigint NOT NULL,
    closed_through bigint NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);

-- Base rankings with their candidates, each kept once.
CREATE TABLE saferank.catalogue (digest bytea PRIMARY KEY, body bytea NOT NULL, sum bigint NOT NULL);

-- clicks: a bit for each place. inverse: the same bits inverted, so that a flipped bit is noticed.
CREATE TABLE saferank.page (
    impression bytea PRIMARY KEY,
    context integer NOT NULL,
    closes_at bigint NOT NULL,
    record bytea NOT NULL,
    server text NOT NULL,
    number bigint NOT NULL,
    sum bigint NOT NULL,
    clicks bit(128) NOT NULL,
    inverse bit(128) NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX page_context ON saferank.page (context, impression);

-- Contexts with pages that are not published yet; one of those closes at this time, and none much earlier.
CREATE TABLE saferank.waiting (context integer PRIMARY KEY, closes_at bigint NOT NULL);
CREATE INDEX waiting_time ON saferank.waiting (closes_at);

-- Every event_id that was accepted, and what it said.
CREATE TABLE saferank.delivery (
    tenant text NOT NULL,
    event_id text NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (tenant, event_id)
);

CREATE TABLE saferank.server (server text PRIMARY KEY, lease_until bigint NOT NULL, acknowledged bigint NOT NULL);

CREATE TABLE saferank.shard (
    shard integer PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    holder text NOT NULL DEFAULT '',
    until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The newest knowledge of every context.
CREATE TABLE saferank.publication (
    context integer PRIMARY KEY,
    number bigint NOT NULL,
    through bigint NOT NULL,
    operation bigint NOT NULL,
    body bytea NOT NULL,
    sum bigint NOT NULL,
    published_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX publication_time ON saferank.publication (published_at);

-- Publications that are kept for ever.
CREATE TABLE saferank.snapshot (
    context integer NOT NULL,
    number bigint NOT NULL,
    through bigint NOT NULL,
    operation bigint NOT NULL,
    body bytea NOT NULL,
    sum bigint NOT NULL,
    PRIMARY KEY (context, number)
);

CREATE TABLE saferank.version (
    context integer NOT NULL,
    version integer NOT NULL,
    at bigint NOT NULL,
    cause text NOT NULL,
    leader text NOT NULL,
    impression bytea,
    evidence text NOT NULL,
    why text,
    sum bigint NOT NULL,
    PRIMARY KEY (context, version)
);

CREATE TABLE saferank.operation (
    number bigint PRIMARY KEY,
    at bigint NOT NULL,
    tenant text NOT NULL,
    context integer NOT NULL,
    kind integer NOT NULL,
    body text NOT NULL,
    sum bigint NOT NULL
);

CREATE TABLE saferank.alarm (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    context integer NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL
);
CREATE INDEX alarm_context ON saferank.alarm (context, id);
