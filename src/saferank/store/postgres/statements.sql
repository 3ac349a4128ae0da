-- Every statement of the PostgreSQL store, by name. The longer ones are functions (schema.sql).

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
INSERT INTO saferank.schema_version VALUES (%s)

-- name: add_shards
INSERT INTO saferank.shard (shard) SELECT generate_series(0, %s - 1)

-- name: meta
SELECT value FROM saferank.meta WHERE name = %s

-- --- servers and leases ---

-- name: heartbeat
SELECT now_ms, lease_end, newest, alive, shards, epochs FROM saferank.heartbeat(%s, %s, %s, %s)

-- name: leave_shards
UPDATE saferank.shard SET holder = '', until = 0 WHERE holder = %s

-- name: leave
DELETE FROM saferank.server WHERE server = %s

-- name: servers
SELECT server, lease_until, acknowledged FROM saferank.server
WHERE lease_until > saferank.clock() - %s::bigint ORDER BY server

-- --- contexts and catalogues ---

-- name: lock_contexts
SELECT pg_advisory_xact_lock(hashtext('saferank.context'))

-- name: find_context
SELECT id, tenant, name, terms, opened_at FROM saferank.context WHERE tenant = %s AND name = %s

-- name: context
SELECT id, tenant, name, terms, opened_at FROM saferank.context WHERE id = %s

-- name: contexts
SELECT id, tenant, name, terms, opened_at FROM saferank.context ORDER BY id

-- name: add_context
INSERT INTO saferank.context (id, tenant, name, terms, opened_at)
SELECT (SELECT coalesce(max(id), 0) + 1 FROM saferank.context), %(tenant)s, %(name)s, %(terms)s, saferank.clock()
WHERE (SELECT count(*) FROM saferank.context WHERE tenant = %(tenant)s) < %(most)s
RETURNING id, tenant, name, terms, opened_at

-- name: catalogue
SELECT body FROM saferank.catalogue WHERE digest = %b

-- name: add_catalogues
INSERT INTO saferank.catalogue AS c (digest, body)
SELECT * FROM unnest(%b::bytea[], %b::bytea[]) AS u(digest, body) ORDER BY digest
ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at WHERE c.used_at < excluded.used_at - 43200000

-- --- pages ---

-- name: write_group
SELECT outcomes, now_ms, left_out, missing FROM saferank.write_group(
    %s, %b::bytea[], %s::integer[], %s::bigint[], %b::bytea[], %s::text[]::bit(128)[], %s::text[], %b::bytea[])

-- name: page
SELECT impression, context, closes_at, record, clicks::text
FROM saferank.page WHERE impression = %b

-- name: pages_between
SELECT impression, context, closes_at, record, clicks::text
FROM saferank.page WHERE context = %s AND impression >= %b AND impression < %b ORDER BY impression

-- name: count_pages
SELECT count(*) FROM saferank.page WHERE context = %s AND impression >= %b

-- name: pages_after
SELECT impression, context, closes_at, record, clicks::text
FROM saferank.page WHERE impression > %b ORDER BY impression LIMIT %s

-- name: pages_of_context_after
SELECT impression, context, closes_at, record, clicks::text
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
    %s, %s, %s, %s, %s, %s, %b, %s, %s::integer[], %s::bigint[], %s::text[], %s::text[], %b::bytea[], %s::text[],
    %s::text[], %s::bigint[], %s::integer[], %s::text[], %s::text[])

-- name: publication
SELECT context, number, through, operation, body FROM saferank.publication WHERE context = %s

-- name: publications
SELECT context, number, through, operation, body FROM saferank.publication
WHERE context = ANY (%s::integer[]) ORDER BY context

-- name: published
SELECT context, number FROM saferank.publication WHERE published_at >= %s

-- --- retention ---

-- name: contexts_with_pages_before
SELECT c.id FROM saferank.context c WHERE c.id %% %s = ANY (%s::integer[])
AND EXISTS (SELECT 1 FROM saferank.page p WHERE p.context = c.id AND p.impression < %b) ORDER BY c.id

-- name: fence
SELECT 1 FROM saferank.shard WHERE shard = %s AND epoch = %s FOR SHARE

-- name: keep_publication
INSERT INTO saferank.snapshot (context, number, through, operation, body)
SELECT context, number, through, operation, body FROM saferank.publication WHERE context = %s
ON CONFLICT DO NOTHING

-- name: snapshot_heads
SELECT number, through, operation FROM saferank.snapshot WHERE context = %s ORDER BY number

-- name: newer_operation
SELECT 1 FROM saferank.operation WHERE context = %s AND number > %s LIMIT 1

-- name: set_pruned
UPDATE saferank.context SET pruned_through = %(through)s
WHERE id = %(context)s AND pruned_through < %(through)s

-- name: forget_snapshots
DELETE FROM saferank.snapshot WHERE context = %s AND number < %s

-- name: forget_pages
DELETE FROM saferank.page WHERE impression IN
(SELECT impression FROM saferank.page WHERE context = %s AND impression < %b ORDER BY impression LIMIT %s)

-- name: delete_pages
DELETE FROM saferank.page WHERE context = %s AND impression < %b AND impression = ANY (%b::bytea[])
RETURNING impression

-- name: delete_events
DELETE FROM saferank.delivery WHERE impression = ANY (%b::bytea[])

-- name: pruned_through
SELECT pruned_through FROM saferank.context WHERE id = %s

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
DELETE FROM saferank.delivery WHERE (impression, event_id) IN
(SELECT impression, event_id FROM saferank.delivery WHERE at < %s ORDER BY at LIMIT %s)

-- --- operations and alarms ---

-- name: lock_operations
SELECT pg_advisory_xact_lock(hashtext('saferank.operation'))

-- name: hold_operations
SELECT pg_advisory_xact_lock_shared(hashtext('saferank.operation'))

-- name: add_operation
INSERT INTO saferank.operation (number, at, tenant, context, kind, body)
SELECT (SELECT coalesce(max(number), 0) + 1 FROM saferank.operation), saferank.clock(), %(tenant)s, %(context)s,
       %(kind)s, %(body)s
RETURNING number, at, tenant, context, kind, body, pg_notify('saferank', '')::text

-- name: operations
SELECT number, at, tenant, context, kind, body FROM saferank.operation WHERE number > %s ORDER BY number

-- name: newest_alarms
SELECT at, context, kind, detail FROM saferank.alarm ORDER BY id DESC LIMIT %s

-- --- the past ---

-- name: versions
SELECT context, version, at, cause, leader, impression, evidence, why FROM saferank.version
WHERE context = %s ORDER BY version DESC LIMIT %s

-- name: snapshots
SELECT context, number, through, operation, body FROM saferank.snapshot WHERE context = %s ORDER BY number

-- --- backup and restore: every table as COPIED of store/contract.py has it ---

-- name: checksum_failures
-- Null unless the cluster has data checksums.
SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()

-- name: no_limits
SELECT set_config('statement_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false)

-- name: copy_meta
SELECT name, value FROM saferank.meta ORDER BY name

-- name: copy_context
SELECT id, tenant, name, terms, opened_at, closed_through, pruned_through FROM saferank.context ORDER BY id

-- name: copy_catalogue
SELECT digest, body FROM saferank.catalogue ORDER BY digest

-- name: copy_page
SELECT impression, context, closes_at, record, clicks::text
FROM saferank.page ORDER BY impression

-- name: copy_delivery
SELECT impression, event_id, digest, at FROM saferank.delivery ORDER BY impression, event_id

-- name: copy_publication
SELECT context, number, through, operation, body, published_at FROM saferank.publication ORDER BY context

-- name: copy_snapshot
SELECT context, number, through, operation, body FROM saferank.snapshot ORDER BY context, number

-- name: copy_version
SELECT context, version, at, cause, leader, impression, evidence, why FROM saferank.version
ORDER BY context, version

-- name: copy_operation
SELECT number, at, tenant, context, kind, body FROM saferank.operation ORDER BY number

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
INSERT INTO saferank.meta (name, value) VALUES (%s, %b)
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value

-- name: put_context
INSERT INTO saferank.context (id, tenant, name, terms, opened_at, closed_through, pruned_through)
VALUES (%s, %s, %s, %s, %s, %s, %s)

-- name: put_catalogue
INSERT INTO saferank.catalogue (digest, body) VALUES (%b, %b)

-- name: put_pages
INSERT INTO saferank.page (impression, context, closes_at, record, clicks)
SELECT * FROM unnest(%b::bytea[], %s::integer[], %s::bigint[], %b::bytea[], %s::text[]::bit(128)[])

-- name: put_delivery
INSERT INTO saferank.delivery (impression, event_id, digest, at) VALUES (%b, %s, %b, %s)

-- name: put_publication
INSERT INTO saferank.publication (context, number, through, operation, body, published_at)
VALUES (%s, %s, %s, %s, %b, %s)

-- name: put_snapshot
INSERT INTO saferank.snapshot (context, number, through, operation, body) VALUES (%s, %s, %s, %s, %b)

-- name: put_version
INSERT INTO saferank.version (context, version, at, cause, leader, impression, evidence, why)
VALUES (%s, %s, %s, %s, %s, %b, %s, %s)

-- name: put_operation
INSERT INTO saferank.operation (number, at, tenant, context, kind, body) VALUES (%s, %s, %s, %s, %s, %s)

-- name: put_alarm
INSERT INTO saferank.alarm (at, context, kind, detail) VALUES (%s, %s, %s, %s)
