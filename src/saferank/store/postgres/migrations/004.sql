-- Times that change: each is kept twice, once with every bit inverted, so that a flipped bit is noticed.
ALTER TABLE saferank.context ADD COLUMN closed_inverse bigint NOT NULL DEFAULT -1;
ALTER TABLE saferank.context ADD COLUMN pruned_inverse bigint NOT NULL DEFAULT -1;
UPDATE saferank.context SET closed_inverse = ~ closed_through, pruned_inverse = ~ pruned_through;

-- When a catalogue was written last, to half a day: those that nobody names any more are deleted in time.
ALTER TABLE saferank.catalogue ADD COLUMN used_at bigint NOT NULL DEFAULT saferank.clock();

-- How many event ids are kept of a page. It is an estimate: a backup does not hold it, and ids are forgotten in time.
ALTER TABLE saferank.page ADD COLUMN events integer NOT NULL DEFAULT 0;

-- How many pages were written and not deleted since, in parts that are added up: pages that are missing are noticed.
-- Two connections seldom share a part, so that no group waits for another.
CREATE TABLE saferank.tally (part integer PRIMARY KEY, pages bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO saferank.tally SELECT 0, count(*) FROM saferank.page;

-- So many pages were written, or (a negative number) deleted. The last thing in a transaction: nothing is waited for
-- while a part is locked.
CREATE FUNCTION saferank.count_pages(change bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO saferank.tally AS t SELECT pg_backend_pid() % 256, change WHERE change <> 0
    ON CONFLICT (part) DO UPDATE SET pages = t.pages + excluded.pages
$$;

DROP FUNCTION saferank.write_group;

-- Write reports and issued pages. Closing a context takes an exclusive lock on its row, this a shared one: so a click is
-- either there when the closing reads, or late. Event ids and then pages are locked in the order of their keys: two
-- groups cannot deadlock. The first `reports` rows are reports.
CREATE FUNCTION saferank.write_group(
    reports integer, impressions bytea[], contexts integer[], ends bigint[], records bytea[], servers text[],
    numbers bigint[], sums bigint[], clicked bit(128)[], tenants text[], event_ids text[], digests bytea[],
    OUT outcomes integer[], OUT now_ms bigint, OUT left_out integer, OUT missing integer,
    OUT damaged integer
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
    added integer := 0;
BEGIN
    outcomes := array_fill(0, ARRAY[reports]);
    left_out := 0;
    PERFORM 1 FROM saferank.context WHERE id = ANY (contexts) ORDER BY id FOR SHARE;
    now_ms := saferank.clock();
    SELECT min(u.id) FILTER (WHERE c.id IS NULL), min(u.id) FILTER (WHERE c.closed_inverse <> ~ c.closed_through)
    INTO missing, damaged FROM unnest(contexts) u(id) LEFT JOIN saferank.context c USING (id);
    IF missing IS NOT NULL OR damaged IS NOT NULL THEN
        RETURN;
    END IF;
    FOR r IN
        SELECT u.*, c.closed_through, coalesce(p.events, 0) + row_number() OVER earlier AS ids,
               p.impression IS NULL AND row_number() OVER earlier = 1 OR u.clicks <> u.clicks
               & (coalesce(p.clicks, no_clicks) | coalesce(bit_or(u.clicks) OVER before, no_clicks)) AS news
        FROM unnest(impressions, contexts, ends, clicked, tenants, event_ids, digests)
            WITH ORDINALITY AS u(impression, context, closes_at, clicks, tenant, event_id, digest, place)
        JOIN saferank.context c ON c.id = u.context
        LEFT JOIN saferank.page p ON p.impression = u.impression
        WHERE u.event_id IS NOT NULL
        WINDOW earlier AS (PARTITION BY u.impression ORDER BY u.place),
               before AS (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ORDER BY u.tenant, u.event_id, u.place
    LOOP
        changed := false;
        open := r.impression >= saferank.first_id(r.closed_through + 1) AND now_ms < r.closes_at;
        IF open AND (r.news OR r.ids <= most_event_ids) THEN
            INSERT INTO saferank.delivery VALUES (r.tenant, r.event_id, r.digest) ON CONFLICT DO NOTHING;
            changed := FOUND;
        END IF;
        IF changed THEN
            outcomes[r.place] := accepted;  -- its page is still to be merged
        ELSE
            SELECT digest INTO known FROM saferank.delivery WHERE tenant = r.tenant AND event_id = r.event_id;
            IF FOUND THEN
                outcomes[r.place] := CASE WHEN known = r.digest THEN duplicate ELSE conflict END;
            ELSIF NOT open THEN
                outcomes[r.place] := late;
            END IF;  -- otherwise its id is not kept: it is merged like a report without one
        END IF;
    END LOOP;
    FOR r IN
        SELECT u.*, c.closed_through FROM unnest(impressions, contexts, ends, records, servers, numbers, sums, clicked)
            WITH ORDINALITY AS u(impression, context, closes_at, record, server, number, sum, clicks, place)
        JOIN saferank.context c ON c.id = u.context ORDER BY u.impression, u.place
    LOOP
        CONTINUE WHEN r.place <= reports AND outcomes[r.place] > accepted;
        IF r.impression < saferank.first_id(r.closed_through + 1) OR now_ms >= r.closes_at THEN
            IF r.place <= reports THEN outcomes[r.place] := late; ELSE left_out := left_out + 1; END IF;
            CONTINUE;
        END IF;
        ids := CASE WHEN r.place <= reports AND outcomes[r.place] = accepted THEN 1 ELSE 0 END;
        INSERT INTO saferank.page (impression, context, closes_at, record, server, number, sum, clicks, inverse, events)
        VALUES (r.impression, r.context, r.closes_at, r.record, r.server, r.number, r.sum, r.clicks, ~ r.clicks, ids)
        ON CONFLICT DO NOTHING;
        changed := FOUND;
        IF changed THEN
            added := added + 1;
        ELSE
            UPDATE saferank.page SET clicks = clicks | r.clicks, inverse = inverse & ~ r.clicks, events = events + ids
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
    PERFORM saferank.count_pages(added);
END $$;

-- Close the pages of a context; null when the lease is not the newest of its shard, -1 when the context is damaged.
CREATE OR REPLACE FUNCTION saferank.close_through(of_shard integer, of_epoch bigint, of_context integer, upto bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    closed bigint;
BEGIN
    PERFORM 1 FROM saferank.shard WHERE shard = of_shard AND epoch = of_epoch FOR SHARE;
    IF FOUND THEN
        UPDATE saferank.context
        SET closed_through = greatest(closed_through, upto), closed_inverse = ~ greatest(closed_through, upto)
        WHERE id = of_context AND closed_inverse = ~ closed_through RETURNING closed_through INTO closed;
        closed := coalesce(closed, -1);
    END IF;
    RETURN closed;
END $$;

-- A server is alive: it keeps its shards, lets go of those beyond its share and takes free ones up to its share.
-- Heartbeats come one after the other: with the old numbers of two servers nobody could share fairly.
-- Who adds an operation waits until the commit of a heartbeat that has not read it. Otherwise a kill switch could return
-- between the two: it would not see the server, and the server would not know of the switch.
CREATE OR REPLACE FUNCTION saferank.heartbeat(
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
