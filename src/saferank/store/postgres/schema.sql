-- The store of any number of servers. Times: milliseconds of the database's clock.
-- What must happen in one step is a function: a server that stalls or loses its connection holds no lock meanwhile.

CREATE FUNCTION saferank.clock() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- The smallest id of a page that is issued at this time.
CREATE FUNCTION saferank.first_id(issued_at bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT substr(int8send(issued_at), 3) || '\x00000000000000000000'::bytea $$;

CREATE TABLE saferank.schema_version (version integer NOT NULL);

-- Facts about the store: session_key, token_keys.
CREATE TABLE saferank.meta (name text PRIMARY KEY, value bytea NOT NULL);

CREATE TABLE saferank.context (
    id integer PRIMARY KEY,
    tenant text NOT NULL,
    name text NOT NULL,
    terms text NOT NULL,
    opened_at bigint NOT NULL,
    closed_through bigint NOT NULL DEFAULT 0,
    pruned_through bigint NOT NULL DEFAULT 0,  -- pages through this time may be deleted: a kept snapshot stands for them
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);

-- Base rankings with their candidates, each kept once. used_at: when it was written last, to half a day; those that no
-- context or page names any more are deleted in time.
CREATE TABLE saferank.catalogue (
    digest bytea PRIMARY KEY,
    body bytea NOT NULL,
    used_at bigint NOT NULL DEFAULT saferank.clock()
);

-- clicks: a bit for each place. events: how many event ids are kept of a page, an estimate that no backup holds.
CREATE TABLE saferank.page (
    impression bytea PRIMARY KEY,
    context integer NOT NULL,
    closes_at bigint NOT NULL,
    record bytea NOT NULL,
    clicks bit(128) NOT NULL,
    events integer NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX page_context ON saferank.page (context, impression);

-- Contexts with pages that are not published yet; one of those closes at this time, and none much earlier.
CREATE TABLE saferank.waiting (context integer PRIMARY KEY, closes_at bigint NOT NULL);
CREATE INDEX waiting_time ON saferank.waiting (closes_at);

-- Every event_id of a page that was accepted, and what it said.
CREATE TABLE saferank.delivery (
    impression bytea NOT NULL,
    event_id text NOT NULL,
    digest bytea NOT NULL,
    at bigint NOT NULL DEFAULT saferank.clock(),
    PRIMARY KEY (impression, event_id)
);
CREATE INDEX delivery_time ON saferank.delivery (at);

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
    PRIMARY KEY (context, version)
);

CREATE TABLE saferank.operation (
    number bigint PRIMARY KEY,
    at bigint NOT NULL,
    tenant text NOT NULL,
    context integer NOT NULL,
    kind integer NOT NULL,
    body text NOT NULL
);

CREATE TABLE saferank.alarm (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    context integer NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL
);

-- A server is alive: it keeps its shards, lets go of those beyond its share and takes free ones up to its share.
-- Heartbeats come one after the other: two servers with old numbers could not share fairly.
-- Who adds an operation waits until the commit of a heartbeat that has not read it. Otherwise a kill switch could return
-- between the two: it would not see the server, and the server would not know of the switch.
CREATE FUNCTION saferank.heartbeat(
    me text, obeyed bigint, lease_ms bigint, all_shards integer,
    OUT now_ms bigint, OUT lease_end bigint, OUT newest bigint, OUT alive integer, OUT shards integer[], OUT epochs bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    share integer;
    held integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('saferank.heartbeat'));
    now_ms := saferank.clock();
    lease_end := now_ms + lease_ms;
    INSERT INTO saferank.server AS s VALUES (me, lease_end, obeyed)
    ON CONFLICT (server) DO UPDATE SET lease_until = excluded.lease_until, acknowledged = excluded.acknowledged;
    DELETE FROM saferank.server WHERE lease_until < now_ms - 86400000;
    SELECT count(*) INTO alive FROM saferank.server WHERE lease_until > now_ms;
    share := (all_shards + alive - 1) / alive;
    UPDATE saferank.shard SET holder = '', until = 0 WHERE shard IN (
        SELECT shard FROM saferank.shard WHERE holder = me AND until > now_ms ORDER BY shard OFFSET share);
    UPDATE saferank.shard SET until = lease_end WHERE holder = me AND until > now_ms;
    GET DIAGNOSTICS held = ROW_COUNT;
    UPDATE saferank.shard SET epoch = epoch + 1, holder = me, until = lease_end WHERE shard IN (
        SELECT shard FROM saferank.shard WHERE until <= now_ms ORDER BY shard LIMIT greatest(0, share - held));
    SELECT array_agg(s.shard ORDER BY s.shard), array_agg(s.epoch ORDER BY s.shard) INTO shards, epochs
    FROM saferank.shard s WHERE holder = me AND until > now_ms;
    PERFORM pg_advisory_xact_lock_shared(hashtext('saferank.operation'));
    SELECT coalesce(max(number), 0) INTO newest FROM saferank.operation;
END $$;

-- Write reports and issued pages. Closing a context takes an exclusive lock on its row, this a shared one: so a click is
-- either there when the closing reads, or late. Event ids and then pages are locked in the order of their keys: two
-- groups cannot deadlock. The first `reports` rows are reports.
CREATE FUNCTION saferank.write_group(
    reports integer, impressions bytea[], contexts integer[], ends bigint[], records bytea[], clicked bit(128)[],
    event_ids text[], digests bytea[],
    OUT outcomes integer[], OUT now_ms bigint, OUT left_out integer, OUT missing integer
) LANGUAGE plpgsql AS $$
DECLARE
    accepted CONSTANT integer := 1;
    duplicate CONSTANT integer := 2;
    late CONSTANT integer := 3;
    conflict CONSTANT integer := 4;
    most_event_ids CONSTANT integer := 64;  -- MOST_EVENT_IDS of store/contract.py
    no_clicks CONSTANT bit(128) := 0::bit(128);
    r record;
    known bytea;
    open boolean;
    changed boolean;
    ids integer;
BEGIN
    outcomes := array_fill(0, ARRAY[reports]);
    left_out := 0;
    PERFORM 1 FROM saferank.context WHERE id = ANY (contexts) ORDER BY id FOR SHARE;
    now_ms := saferank.clock();
    SELECT min(u.id) INTO missing FROM unnest(contexts) u(id) LEFT JOIN saferank.context c USING (id) WHERE c.id IS NULL;
    IF missing IS NOT NULL THEN
        RETURN;
    END IF;
    FOR r IN
        SELECT u.*, c.closed_through, coalesce(p.events, 0) + row_number() OVER earlier AS ids,
               p.impression IS NULL AND row_number() OVER earlier = 1 OR u.clicks <> u.clicks
               & (coalesce(p.clicks, no_clicks) | coalesce(bit_or(u.clicks) OVER before, no_clicks)) AS news
        FROM unnest(impressions, contexts, ends, clicked, event_ids, digests)
            WITH ORDINALITY AS u(impression, context, closes_at, clicks, event_id, digest, place)
        JOIN saferank.context c ON c.id = u.context
        LEFT JOIN saferank.page p ON p.impression = u.impression
        WHERE u.event_id IS NOT NULL
        WINDOW earlier AS (PARTITION BY u.impression ORDER BY u.place),
               before AS (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ORDER BY u.impression, u.event_id, u.place
    LOOP
        changed := false;
        open := r.impression >= saferank.first_id(r.closed_through + 1) AND now_ms < r.closes_at;
        IF open AND (r.news OR r.ids <= most_event_ids) THEN
            INSERT INTO saferank.delivery VALUES (r.impression, r.event_id, r.digest) ON CONFLICT DO NOTHING;
            changed := FOUND;
        END IF;
        IF changed THEN
            outcomes[r.place] := accepted;  -- its page is still to be merged
        ELSE
            SELECT digest INTO known FROM saferank.delivery WHERE impression = r.impression AND event_id = r.event_id;
            IF FOUND THEN
                outcomes[r.place] := CASE WHEN known = r.digest THEN duplicate ELSE conflict END;
            ELSIF NOT open THEN
                outcomes[r.place] := late;
            END IF;  -- otherwise its id is not kept: it is merged like a report without one
        END IF;
    END LOOP;
    FOR r IN
        SELECT u.*, c.closed_through FROM unnest(impressions, contexts, ends, records, clicked)
            WITH ORDINALITY AS u(impression, context, closes_at, record, clicks, place)
        JOIN saferank.context c ON c.id = u.context ORDER BY u.impression, u.place
    LOOP
        CONTINUE WHEN r.place <= reports AND outcomes[r.place] > accepted;
        IF r.impression < saferank.first_id(r.closed_through + 1) OR now_ms >= r.closes_at THEN
            IF r.place <= reports THEN outcomes[r.place] := late; ELSE left_out := left_out + 1; END IF;
            CONTINUE;
        END IF;
        ids := CASE WHEN r.place <= reports AND outcomes[r.place] = accepted THEN 1 ELSE 0 END;
        INSERT INTO saferank.page (impression, context, closes_at, record, clicks, events)
        VALUES (r.impression, r.context, r.closes_at, r.record, r.clicks, ids)
        ON CONFLICT DO NOTHING;
        changed := FOUND;
        IF NOT changed THEN
            UPDATE saferank.page SET clicks = clicks | r.clicks, events = events + ids
            WHERE impression = r.impression AND (ids > 0 OR clicks | r.clicks <> clicks);
            changed := FOUND;
        END IF;
        IF r.place <= reports AND outcomes[r.place] = 0 THEN
            outcomes[r.place] := CASE WHEN changed THEN accepted ELSE duplicate END;
        END IF;
    END LOOP;
    INSERT INTO saferank.waiting
    SELECT u.context, min(u.closes_at) FROM unnest(impressions, contexts, ends) AS u(impression, context, closes_at)
    JOIN saferank.context c ON c.id = u.context
    WHERE u.impression >= saferank.first_id(c.closed_through + 1) AND now_ms < u.closes_at
    GROUP BY u.context ORDER BY u.context
    ON CONFLICT DO NOTHING;
END $$;

-- Close the pages of a context; null when the lease is not the newest of its shard.
CREATE FUNCTION saferank.close_through(of_shard integer, of_epoch bigint, of_context integer, upto bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    closed bigint;
BEGIN
    PERFORM 1 FROM saferank.shard WHERE shard = of_shard AND epoch = of_epoch FOR SHARE;
    IF FOUND THEN
        UPDATE saferank.context SET closed_through = greatest(closed_through, upto) WHERE id = of_context
        RETURNING closed_through INTO closed;
    END IF;
    RETURN closed;
END $$;

-- Replace the publication of a context by the next one. Returns the number that is the newest afterwards; null when the
-- lease is not the newest of its shard. The exclusive lock on the context waits for groups that are being written: when
-- no page is waiting then, none is.
CREATE FUNCTION saferank.publish(
    of_shard integer, of_epoch bigint, of_context integer, new_number bigint, new_through bigint, new_operation bigint,
    new_body bytea, kept boolean,
    v_version integer[], v_at bigint[], v_cause text[], v_leader text[], v_impression bytea[], v_evidence text[],
    v_why text[], a_at bigint[], a_context integer[], a_kind text[], a_detail text[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    following bigint;
BEGIN
    PERFORM 1 FROM saferank.shard WHERE shard = of_shard AND epoch = of_epoch FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM 1 FROM saferank.context WHERE id = of_context FOR UPDATE;
    SELECT number INTO newest FROM saferank.publication WHERE context = of_context;
    newest := coalesce(newest, 0);
    IF new_number <> newest + 1 THEN
        RETURN newest;
    END IF;
    INSERT INTO saferank.publication
    VALUES (of_context, new_number, new_through, new_operation, new_body, saferank.clock())
    ON CONFLICT (context) DO UPDATE SET number = excluded.number, through = excluded.through,
        operation = excluded.operation, body = excluded.body, published_at = excluded.published_at;
    INSERT INTO saferank.version (context, version, at, cause, leader, impression, evidence, why)
    SELECT of_context, u.* FROM unnest(v_version, v_at, v_cause, v_leader, v_impression, v_evidence, v_why) u;
    INSERT INTO saferank.alarm (at, context, kind, detail) SELECT * FROM unnest(a_at, a_context, a_kind, a_detail);
    IF kept THEN
        INSERT INTO saferank.snapshot VALUES (of_context, new_number, new_through, new_operation, new_body);
    END IF;
    SELECT closes_at INTO following FROM saferank.page
    WHERE context = of_context AND impression >= saferank.first_id(new_through + 1) ORDER BY impression LIMIT 1;
    IF FOUND THEN
        UPDATE saferank.waiting SET closes_at = following WHERE context = of_context;
    ELSE
        DELETE FROM saferank.waiting WHERE context = of_context;
    END IF;
    PERFORM pg_notify('saferank', '');
    RETURN 0;
END $$;
