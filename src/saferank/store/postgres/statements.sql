-- Every statement of the PostgreSQL store, by name. The longer ones are functions (migrations/).

-- --- connections ---

-- name: prepare
SELECT set_config('statement_timeout', '5000', false), set_config('idle_in_transaction_session_timeout', '3000', false),
       set_config('search_path', 'pg_catalog', false), set_config('timezone', 'UTC', false),
       set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                                             ELSE current_setting('synchronous_commit') END, false)

-- name: listen
LISTEN saferank

-- --- schema ---

-- name: lock_schema
SELECT pg_advisory_xact_lock(hashtext('saferank.schema'))

-- name: schema
SELECT to_regnamespace('saferank') IS NOT NULL, to_regclass('saferank.schema_version') IS NOT NULL,
       (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('saferank'))

-- name: create_schema
CREATE SCHEMA saferank

-- name: schema_version
SELECT max(version) FROM saferank.schema_version

-- name: set_schema_version
UPDATE saferank.schema_version SET version = %s

-- name: add_meta
INSERT INTO saferank.meta (name, value, sum) VALUES (%s, %b, %s)

-- name: add_shards
INSERT INTO saferank.shard (shard) SELECT generate_series(0, %s - 1)

-- name: meta
SELECT name, value, sum FROM saferank.meta WHERE name = %s

-- --- servers and leases ---

-- name: heartbeat
SELECT now_ms, lease_end, newest, alive, shards, epochs FROM saferank.heartbeat(%s, %s, %s, %s)

-- name: leave
WITH freed AS (UPDATE saferank.shard SET holder = '', until = 0 WHERE holder = %(server)s)
DELETE FROM saferank.server WHERE server = %(server)s

-- name: servers
SELECT server, lease_until, acknowledged FROM saferank.server WHERE lease_until > saferank.clock() ORDER BY server

-- --- contexts and catalogues ---

-- name: lock_contexts
SELECT pg_advisory_xact_lock(hashtext('saferank.context'))

-- name: next_context
SELECT (SELECT coalesce(max(id), 0) + 1 FROM saferank.context),
       (SELECT count(*) FROM saferank.context WHERE tenant = %s), saferank.clock()

-- name: find_context
SELECT id, tenant, name, terms, opened_at, sum FROM saferank.context WHERE tenant = %s AND name = %s

-- name: context
SELECT id, tenant, name, terms, opened_at, sum FROM saferank.context WHERE id = %s

-- name: contexts
SELECT id, tenant, name, terms, opened_at, sum FROM saferank.context ORDER BY id

-- name: add_context
INSERT INTO saferank.context (id, tenant, name, terms, opened_at, sum) VALUES (%s, %s, %s, %s, %s, %s)

-- name: catalogue
SELECT digest, body, sum FROM saferank.catalogue WHERE digest = %b

-- name: add_catalogues
INSERT INTO saferank.catalogue AS c (digest, body, sum)
SELECT * FROM unnest(%b::bytea[], %b::bytea[], %s::bigint[]) AS u(digest, body, sum) ORDER BY digest
ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at WHERE c.used_at < excluded.used_at - 43200000

-- --- pages ---

-- name: write_group
SELECT outcomes, now_ms, left_out, missing, damaged FROM saferank.write_group(
    %s, %b::bytea[], %s::integer[], %s::bigint[], %b::bytea[], %s::text[], %s::bigint[], %s::bigint[],
    %s::text[]::bit(128)[], %s::text[], %s::text[], %b::bytea[])

-- name: count_written
SELECT saferank.count_pages(%s)

-- name: written_and_found
SELECT (SELECT coalesce(sum(pages), 0)::bigint FROM saferank.tally), (SELECT count(*) FROM saferank.page)

-- name: times
SELECT c.id, c.closed_through, c.pruned_through, coalesce(p.through, 0),
       c.closed_inverse = ~ c.closed_through AND c.pruned_inverse = ~ c.pruned_through
FROM saferank.context c LEFT JOIN saferank.publication p ON p.context = c.id ORDER BY c.id

-- name: now
SELECT saferank.clock()

-- name: page
SELECT impression, context, closes_at, record, server, number, sum, clicks::text, inverse = ~ clicks
FROM saferank.page WHERE impression = %b

-- name: delivery
SELECT digest FROM saferank.delivery WHERE tenant = %s AND event_id = %s

-- name: pages_between
SELECT impression, context, closes_at, record, server, number, sum, clicks::text, inverse = ~ clicks
FROM saferank.page WHERE context = %s AND impression >= %b AND impression < %b ORDER BY impression

-- name: count_pages
SELECT count(*) FROM saferank.page WHERE context = %s AND impression >= %b

-- name: pages_after
SELECT impression, context, closes_at, record, server, number, sum, clicks::text, inverse = ~ clicks
FROM saferank.page WHERE impression > %b ORDER BY impression LIMIT %s

-- name: pages_of_context_after
SELECT impression, context, closes_at, record, server, number, sum, clicks::text, inverse = ~ clicks
FROM saferank.page WHERE context = %s AND impression > %b ORDER BY impression LIMIT %s

-- --- closing and publishing ---

-- name: due
SELECT w.context FROM saferank.waiting w LEFT JOIN saferank.publication b ON b.context = w.context
WHERE w.closes_at <= %(now)s AND w.context %% %(all)s = ANY (%(shards)s::integer[])
AND EXISTS (SELECT 1 FROM saferank.page p WHERE p.context = w.context AND p.closes_at <= %(now)s
            AND p.impression >= saferank.first_id(greatest(%(after)s, coalesce(b.through, 0)) + 1))
ORDER BY w.context

-- name: close_through
SELECT saferank.close_through(%s, %s, %s, %s)

-- name: publish
SELECT saferank.publish(
    %s, %s, %s, %s, %s, %s, %b, %s, %s, %s::integer[], %s::bigint[], %s::text[], %s::text[], %b::bytea[], %s::text[],
    %s::text[], %s::bigint[], %s::bigint[], %s::integer[], %s::text[], %s::text[])

-- name: publication
SELECT context, number, through, operation, body, sum FROM saferank.publication WHERE context = %s

-- name: publications
SELECT context, number, through, operation, body, sum FROM saferank.publication
WHERE context = ANY (%s::integer[]) ORDER BY context

-- name: published
SELECT context, number FROM saferank.publication WHERE published_at >= %s

-- --- retention ---

-- name: contexts_with_pages_before
SELECT c.id FROM saferank.context c WHERE c.id %% %(all)s = ANY (%(shards)s::integer[])
AND EXISTS (SELECT 1 FROM saferank.page p WHERE p.context = c.id AND p.impression < %(before)b) ORDER BY c.id

-- name: fence
SELECT 1 FROM saferank.shard WHERE shard = %s AND epoch = %s FOR SHARE

-- name: keep_publication
INSERT INTO saferank.snapshot (context, number, through, operation, body, sum)
SELECT context, number, through, operation, body, sum FROM saferank.publication WHERE context = %s
ON CONFLICT DO NOTHING

-- name: marks
SELECT number, through, operation FROM saferank.snapshot WHERE context = %s ORDER BY number

-- name: newer_operation
SELECT 1 FROM saferank.operation WHERE context = %s AND number > %s LIMIT 1

-- name: set_pruned
UPDATE saferank.context SET pruned_through = %(through)s, pruned_inverse = ~ %(through)s::bigint
WHERE id = %(context)s AND pruned_through < %(through)s

-- name: forget_snapshots
DELETE FROM saferank.snapshot WHERE context = %s AND number < %s

-- name: forget_pages
DELETE FROM saferank.page WHERE impression IN
(SELECT impression FROM saferank.page WHERE context = %s AND impression < %b ORDER BY impression LIMIT %s)

-- name: delete_pages
DELETE FROM saferank.page WHERE context = %s AND impression < %b AND impression = ANY (%b::bytea[])

-- name: delete_events
DELETE FROM saferank.delivery WHERE digest = ANY (%b::bytea[])

-- name: pruned_through
SELECT pruned_through, pruned_inverse = ~ pruned_through FROM saferank.context WHERE id = %s

-- name: forget_catalogues
-- The last condition is looked at again when a row was written meanwhile.
DELETE FROM saferank.catalogue WHERE digest IN (
    SELECT c.digest FROM saferank.catalogue c WHERE c.used_at < %(before)s
    AND NOT EXISTS (SELECT 1 FROM saferank.context x WHERE x.terms::jsonb ->> 'catalogue' = encode(c.digest, 'hex'))
    AND NOT EXISTS (SELECT 1 FROM saferank.page p
                    WHERE p.impression < %(behind)b AND substring(p.record FROM %(place)s FOR 16) = c.digest)
    LIMIT %(most)s)
AND used_at < %(before)s

-- name: forget_events
DELETE FROM saferank.delivery WHERE (tenant, event_id) IN
(SELECT tenant, event_id FROM saferank.delivery WHERE at < %s ORDER BY at LIMIT %s)

-- --- operations and alarms ---

-- name: lock_operations
SELECT pg_advisory_xact_lock(hashtext('saferank.operation'))

-- name: hold_operations
SELECT pg_advisory_xact_lock_shared(hashtext('saferank.operation'))

-- name: next_operation
SELECT saferank.clock(), t.operations, (SELECT count(*) FROM saferank.operation),
       (SELECT coalesce(max(number), 0) FROM saferank.operation) FROM saferank.operation_tally t

-- name: operations_written_and_found
SELECT t.operations, (SELECT count(*) FROM saferank.operation),
       (SELECT coalesce(max(number), 0) FROM saferank.operation) FROM saferank.operation_tally t

-- name: add_operation
INSERT INTO saferank.operation (number, at, tenant, context, kind, body, sum) VALUES (%s, %s, %s, %s, %s, %s, %s)

-- name: notify
SELECT pg_notify('saferank', '')

-- name: operations
-- One row at least, of how many were written: what is missing at the end is noticed as well.
SELECT t.operations, o.number, o.at, o.tenant, o.context, o.kind, o.body, o.sum
FROM saferank.operation_tally t LEFT JOIN saferank.operation o ON o.number > %s ORDER BY o.number

-- name: add_alarm
INSERT INTO saferank.alarm (at, context, kind, detail) VALUES (%s, %s, %s, %s)

-- name: alarms
SELECT at, context, kind, detail FROM saferank.alarm WHERE context = %s ORDER BY id

-- name: newest_alarms
SELECT at, context, kind, detail FROM saferank.alarm ORDER BY id DESC LIMIT %s

-- --- the past ---

-- name: versions
SELECT context, version, at, cause, leader, impression, evidence, why, sum FROM saferank.version
WHERE context = %s ORDER BY version DESC LIMIT %s

-- name: snapshots
SELECT context, number, through, operation, body, sum FROM saferank.snapshot WHERE context = %s ORDER BY number

-- name: snapshot_before
SELECT context, number, through, operation, body, sum FROM saferank.snapshot
WHERE context = %s AND through <= %s ORDER BY number DESC LIMIT 1

-- --- migrations from another store ---

-- name: load_pages
INSERT INTO saferank.page (impression, context, closes_at, record, server, number, sum, clicks, inverse)
SELECT impression, context, closes_at, record, server, number, sum, clicks, ~ clicks
FROM unnest(%b::bytea[], %s::integer[], %s::bigint[], %b::bytea[], %s::text[], %s::bigint[], %s::bigint[],
            %s::text[]::bit(128)[])
     AS u(impression, context, closes_at, record, server, number, sum, clicks)

-- name: load_waiting
INSERT INTO saferank.waiting SELECT context, min(closes_at)
FROM unnest(%s::integer[], %s::bigint[]) AS u(context, closes_at) GROUP BY context ON CONFLICT DO NOTHING

-- name: add_delivery
INSERT INTO saferank.delivery (tenant, event_id, digest) VALUES (%s, %s, %b)

-- name: set_meta
UPDATE saferank.meta SET value = %b, sum = %s WHERE name = %s

-- --- backup and restore: every table as store/tables.py has it; the checksum stands behind the columns it is of ---

-- name: no_limits
SELECT set_config('statement_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false)

-- name: copy_meta
SELECT name, value, sum FROM saferank.meta ORDER BY name

-- name: copy_context
SELECT id, tenant, name, terms, opened_at, sum, closed_through, pruned_through,
       closed_inverse = ~ closed_through AND pruned_inverse = ~ pruned_through FROM saferank.context ORDER BY id

-- name: copy_catalogue
SELECT digest, body, sum FROM saferank.catalogue ORDER BY digest

-- name: copy_page
SELECT impression, context, closes_at, record, server, number, sum, clicks::text, inverse = ~ clicks
FROM saferank.page ORDER BY impression

-- name: copy_delivery
SELECT tenant, event_id, digest, at FROM saferank.delivery ORDER BY tenant, event_id

-- name: copy_publication
SELECT context, number, through, operation, body, sum, published_at FROM saferank.publication ORDER BY context

-- name: copy_snapshot
SELECT context, number, through, operation, body, sum FROM saferank.snapshot ORDER BY context, number

-- name: copy_version
SELECT context, version, at, cause, leader, impression, evidence, why, sum FROM saferank.version
ORDER BY context, version

-- name: copy_operation
SELECT number, at, tenant, context, kind, body, sum FROM saferank.operation ORDER BY number

-- name: copy_alarm
SELECT at, context, kind, detail FROM saferank.alarm ORDER BY id

-- name: is_used
SELECT EXISTS (SELECT 1 FROM saferank.context) OR EXISTS (SELECT 1 FROM saferank.operation)
       OR EXISTS (SELECT 1 FROM saferank.delivery),
       (SELECT count(*) FROM saferank.server WHERE lease_until > saferank.clock())

-- name: wait_for_next
INSERT INTO saferank.waiting SELECT c.id, n.closes_at FROM saferank.context c
LEFT JOIN saferank.publication b ON b.context = c.id
CROSS JOIN LATERAL (SELECT p.closes_at FROM saferank.page p WHERE p.context = c.id
                    AND p.impression >= saferank.first_id(coalesce(b.through, 0) + 1) ORDER BY p.impression LIMIT 1) n

-- name: put_meta
INSERT INTO saferank.meta (name, value, sum) VALUES (%s, %b, %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, sum = excluded.sum

-- name: put_context
INSERT INTO saferank.context (
    id, tenant, name, terms, opened_at, sum, closed_through, pruned_through, closed_inverse, pruned_inverse)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: put_catalogue
INSERT INTO saferank.catalogue (digest, body, sum) VALUES (%b, %b, %s)

-- name: put_delivery
INSERT INTO saferank.delivery (tenant, event_id, digest, at) VALUES (%s, %s, %b, %s)

-- name: put_publication
INSERT INTO saferank.publication (context, number, through, operation, body, sum, published_at)
VALUES (%s, %s, %s, %s, %b, %s, %s)

-- name: put_snapshot
INSERT INTO saferank.snapshot (context, number, through, operation, body, sum) VALUES (%s, %s, %s, %s, %b, %s)

-- name: put_version
INSERT INTO saferank.version (context, version, at, cause, leader, impression, evidence, why, sum)
VALUES (%s, %s, %s, %s, %s, %b, %s, %s, %s)

-- name: put_operation
INSERT INTO saferank.operation (number, at, tenant, context, kind, body, sum) VALUES (%s, %s, %s, %s, %s, %s, %s)

-- name: put_alarm
INSERT INTO saferank.alarm (at, context, kind, detail) VALUES (%s, %s, %s, %s)
