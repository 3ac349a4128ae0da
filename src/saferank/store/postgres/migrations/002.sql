-- What must happen in one step is a function: a server that stalls or loses its connection holds no lock meanwhile.

CREATE FUNCTION saferank.clock() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- The smallest id of a page that is issued at this time.
CREATE FUNCTION saferank.first_id(issued_at bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT substr(int8send(issued_at), 3) || '\x00000000000000000000'::bytea $$;

-- A server is alive: it keeps its shards, lets go of those beyond its share and takes free ones up to its share.
-- Heartbeats come one after the other: with the old numbers of two servers nobody could share fairly.
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
    SELECT coalesce(max(number), 0) INTO newest FROM saferank.operation;
END $$;

-- Write reports and issued pages. Closing a context takes an exclusive lock on its row, this a shared one: so a click is
-- either there when the closing reads, or late. Event ids and then pages are locked in the order of their keys: two
-- groups cannot deadlock. The first `reports` rows are reports.
CREATE FUNCTION saferank.write_group(
    reports integer, impressions bytea[], contexts integer[], ends bigint[], records bytea[], servers text[],
    numbers bigint[], sums bigint[], clicked bit(128)[], tenants text[], event_ids text[], digests bytea[],
    OUT outcomes integer[], OUT now_ms bigint, OUT left_out integer, OUT missing integer
) LANGUAGE plpgsql AS $$
DECLARE
    accepted CONSTANT integer := 1;
    duplicate CONSTANT integer := 2;
    late CONSTANT integer := 3;
    conflict CONSTANT integer := 4;
    r record;
    known bytea;
    changed boolean;
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
        SELECT u.*, c.closed_through FROM unnest(impressions, contexts, ends, tenants, event_ids, digests)
            WITH ORDINALITY AS u(impression, context, closes_at, tenant, event_id, digest, place)
        JOIN saferank.context c ON c.id = u.context
        WHERE u.event_id IS NOT NULL ORDER BY u.tenant, u.event_id, u.place
    LOOP
        changed := false;
        IF r.impression >= saferank.first_id(r.closed_through + 1) AND now_ms < r.closes_at THEN
            INSERT INTO saferank.delivery VALUES (r.tenant, r.event_id, r.digest) ON CONFLICT DO NOTHING;
            changed := FOUND;
        END IF;
        IF changed THEN
            outcomes[r.place] := accepted;  -- its page is still to be merged
        ELSE
            SELECT digest INTO known FROM saferank.delivery WHERE tenant = r.tenant AND event_id = r.event_id;
            outcomes[r.place] := CASE WHEN NOT FOUND THEN late WHEN known = r.digest THEN duplicate ELSE conflict END;
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
        INSERT INTO saferank.page AS p (impression, context, closes_at, record, server, number, sum, clicks, inverse)
        VALUES (r.impression, r.context, r.closes_at, r.record, r.server, r.number, r.sum, r.clicks, ~ r.clicks)
        ON CONFLICT (impression) DO UPDATE SET clicks = p.clicks | excluded.clicks, inverse = p.inverse & excluded.inverse
        WHERE p.clicks | excluded.clicks <> p.clicks;
        changed := FOUND;
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
    new_body bytea, new_sum bigint, kept boolean,
    v_version integer[], v_at bigint[], v_cause text[], v_leader text[], v_impression bytea[], v_evidence text[],
    v_why text[], v_sum bigint[], a_at bigint[], a_context integer[], a_kind text[], a_detail text[]
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
    VALUES (of_context, new_number, new_through, new_operation, new_body, new_sum, saferank.clock())
    ON CONFLICT (context) DO UPDATE SET number = excluded.number, through = excluded.through,
        operation = excluded.operation, body = excluded.body, sum = excluded.sum, published_at = excluded.published_at;
    INSERT INTO saferank.version (context, version, at, cause, leader, impression, evidence, why, sum)
    SELECT of_context, u.* FROM unnest(v_version, v_at, v_cause, v_leader, v_impression, v_evidence, v_why, v_sum) u;
    INSERT INTO saferank.alarm (at, context, kind, detail) SELECT * FROM unnest(a_at, a_context, a_kind, a_detail);
    IF kept THEN
        INSERT INTO saferank.snapshot VALUES (of_context, new_number, new_through, new_operation, new_body, new_sum);
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
