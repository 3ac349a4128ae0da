-- Every statement of the SQLite store, by name. Where it says VALUES (?), IN (?) or FROM (?) there are as
-- many rows or keys as needed.

-- --- meta ---

-- name: meta
SELECT value FROM meta WHERE name = ?

-- name: newest_time
SELECT MAX(COALESCE((SELECT MAX(at) FROM operation), 0), COALESCE((SELECT MAX(published_at) FROM publication), 0),
           COALESCE((SELECT MAX(opened_at) FROM context), 0))

-- name: newest_page
SELECT impression FROM page ORDER BY impression DESC LIMIT 1

-- --- locks: none is needed, there is one writer ---

-- name: lock_contexts
SELECT 1

-- name: lock_operations
SELECT 1

-- name: hold_operations
SELECT 1

-- --- servers and leases ---

-- name: set_server
INSERT INTO server (server, lease_until, acknowledged) VALUES (:server, :until, :acknowledged)
ON CONFLICT (server) DO UPDATE SET lease_until = excluded.lease_until, acknowledged = excluded.acknowledged

-- name: forget_servers
DELETE FROM server WHERE lease_until < ?

-- name: servers
SELECT server, lease_until, acknowledged FROM server WHERE lease_until > ? ORDER BY server

-- name: count_servers
SELECT COUNT(*) FROM server WHERE lease_until > ?

-- name: let_go
UPDATE shard SET holder = '', until = 0 WHERE shard IN
(SELECT shard FROM shard WHERE holder = :server AND until > :now ORDER BY shard LIMIT -1 OFFSET :share)

-- name: renew
UPDATE shard SET until = :until WHERE holder = :server AND until > :now

-- name: take
UPDATE shard SET epoch = epoch + 1, holder = :server, until = :until WHERE shard IN
(SELECT shard FROM shard WHERE until <= :now ORDER BY shard LIMIT :free)

-- name: leases
SELECT shard, epoch, until FROM shard WHERE holder = ? AND until > ? ORDER BY shard

-- name: leave_shards
UPDATE shard SET holder = '', until = 0 WHERE holder = ?

-- name: leave
DELETE FROM server WHERE server = ?

-- name: fence
SELECT 1 FROM shard WHERE shard = ? AND epoch = ?

-- name: add_shard
INSERT OR IGNORE INTO shard (shard) VALUES (?)

-- --- contexts and catalogues ---

-- name: find_context
SELECT id, tenant, name, terms, opened_at FROM context WHERE tenant = ? AND name = ?

-- name: context
SELECT id, tenant, name, terms, opened_at FROM context WHERE id = ?

-- name: contexts
SELECT id, tenant, name, terms, opened_at FROM context ORDER BY id

-- name: add_context
INSERT INTO context (id, tenant, name, terms, opened_at)
SELECT (SELECT COALESCE(MAX(id), 0) + 1 FROM context), :tenant, :name, :terms, :now
WHERE (SELECT COUNT(*) FROM context WHERE tenant = :tenant) < :most
RETURNING id, tenant, name, terms, opened_at

-- name: catalogue
SELECT body FROM catalogue WHERE digest = ?

-- name: add_catalogue
INSERT INTO catalogue (digest, body, used_at) VALUES (?)
ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at WHERE used_at < excluded.used_at - 43200000

-- --- pages ---

-- name: closed_through_in
SELECT id, closed_through FROM context WHERE id IN (?)

-- name: clicks_in
SELECT impression, clicks, events FROM page WHERE impression IN (?)

-- name: deliveries_in
-- With (impression, event_id) IN (...) SQLite would read the whole table.
SELECT d.impression, d.event_id, d.digest FROM (?) AS k
CROSS JOIN delivery AS d ON d.impression = k.column1 AND d.event_id = k.column2

-- name: add_delivery
INSERT INTO delivery (impression, event_id, digest, at) VALUES (?)

-- name: add_page
INSERT INTO page (impression, context, closes_at, record, clicks, events) VALUES (?)
ON CONFLICT (impression) DO UPDATE SET clicks = excluded.clicks, events = excluded.events

-- name: add_waiting
INSERT OR IGNORE INTO waiting (context, closes_at) VALUES (?)

-- name: page
SELECT impression, context, closes_at, record, clicks FROM page WHERE impression = ?

-- name: pages_between
SELECT impression, context, closes_at, record, clicks FROM page
WHERE context = ? AND impression >= ? AND impression < ? ORDER BY impression

-- name: count_pages
SELECT COUNT(*) FROM page WHERE context = ? AND impression >= ?

-- name: pages_after
SELECT impression, context, closes_at, record, clicks FROM page
WHERE impression > ? ORDER BY impression LIMIT ?

-- name: pages_of_context_after
SELECT impression, context, closes_at, record, clicks FROM page
WHERE context = ? AND impression > ? ORDER BY impression LIMIT ?

-- --- closing and publishing ---

-- name: due
SELECT w.context FROM waiting AS w LEFT JOIN publication AS b ON b.context = w.context
WHERE w.closes_at <= :now AND w.context % :all IN (SELECT value FROM json_each(:shards))
AND EXISTS (SELECT 1 FROM page AS p WHERE p.context = w.context AND p.closes_at <= :now
            AND p.impression >= first_id(MAX(:after, COALESCE(b.through, 0)) + 1))
ORDER BY +w.context

-- name: first_page
SELECT closes_at FROM page WHERE context = ? AND impression >= ? ORDER BY impression LIMIT 1

-- name: close_through
UPDATE context SET closed_through = MAX(closed_through, :through) WHERE id = :context RETURNING closed_through

-- name: set_publication
INSERT INTO publication (context, number, through, operation, body, published_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (context) DO UPDATE SET number = excluded.number, through = excluded.through,
operation = excluded.operation, body = excluded.body, published_at = excluded.published_at

-- name: set_waiting
UPDATE waiting SET closes_at = ? WHERE context = ?

-- name: end_waiting
DELETE FROM waiting WHERE context = ?

-- name: publication
SELECT context, number, through, operation, body FROM publication WHERE context = ?

-- name: publications
SELECT context, number, through, operation, body FROM publication
WHERE context IN (SELECT value FROM json_each(?)) ORDER BY context

-- name: published
SELECT context, number FROM publication WHERE published_at >= ?

-- --- retention ---

-- name: contexts_with_pages_before
SELECT id FROM context WHERE id % ? IN (SELECT value FROM json_each(?))
AND EXISTS (SELECT 1 FROM page WHERE page.context = context.id AND page.impression < ?) ORDER BY id

-- name: keep_publication
INSERT OR IGNORE INTO snapshot (context, number, through, operation, body)
SELECT context, number, through, operation, body FROM publication WHERE context = ?

-- name: snapshot_heads
SELECT number, through, operation FROM snapshot WHERE context = ? ORDER BY number

-- name: newer_operation
SELECT 1 FROM operation WHERE context = ? AND number > ? LIMIT 1

-- name: set_pruned
UPDATE context SET pruned_through = :through
WHERE id = :context AND pruned_through < :through

-- name: forget_snapshots
DELETE FROM snapshot WHERE context = ? AND number < ?

-- name: forget_pages
DELETE FROM page WHERE impression IN
(SELECT impression FROM page WHERE context = ? AND impression < ? ORDER BY impression LIMIT ?)

-- name: delete_page
DELETE FROM page WHERE impression = ? AND context = ? AND impression < ?

-- name: delete_events
DELETE FROM delivery WHERE impression = ?

-- name: pruned_through
SELECT pruned_through FROM context WHERE id = ?

-- name: forget_catalogues
DELETE FROM catalogue WHERE digest IN (
    SELECT digest FROM catalogue WHERE used_at < :before
    AND lower(hex(digest)) NOT IN (
        SELECT ifnull(CASE WHEN json_valid(terms) THEN json_extract(terms, '$.catalogue') END, '') FROM context)
    AND digest NOT IN (SELECT CAST(substr(record, :place, 16) AS BLOB) FROM page WHERE impression < :behind)
    LIMIT :most)

-- name: touch_catalogues
UPDATE catalogue SET used_at = ?

-- name: forget_events
DELETE FROM delivery WHERE (impression, event_id) IN
(SELECT impression, event_id FROM delivery WHERE at < ? ORDER BY at LIMIT ?)

-- --- operations and alarms ---

-- name: last_operation
SELECT COALESCE(MAX(number), 0) FROM operation

-- name: operations
SELECT number, at, tenant, context, kind, body FROM operation WHERE number > ? ORDER BY number

-- name: add_operation
INSERT INTO operation (number, at, tenant, context, kind, body)
SELECT (SELECT COALESCE(MAX(number), 0) + 1 FROM operation), :now, :tenant, :context, :kind, :body
RETURNING number, at, tenant, context, kind, body

-- name: newest_alarms
SELECT at, context, kind, detail FROM alarm ORDER BY id DESC LIMIT ?

-- --- the past ---

-- name: versions
SELECT context, version, at, cause, leader, impression, evidence, why FROM version
WHERE context = ? ORDER BY version DESC LIMIT coalesce(?, -1)

-- name: snapshots
SELECT context, number, through, operation, body FROM snapshot WHERE context = ? ORDER BY number

-- --- backup and restore: every table as COPIED of store/contract.py has it ---

-- name: copy_meta
SELECT name, value FROM meta ORDER BY name

-- name: copy_context
SELECT id, tenant, name, terms, opened_at, closed_through, pruned_through FROM context ORDER BY id

-- name: copy_catalogue
SELECT digest, body FROM catalogue ORDER BY digest

-- name: copy_page
SELECT impression, context, closes_at, record, clicks FROM page ORDER BY impression

-- name: copy_delivery
SELECT impression, event_id, digest, at FROM delivery ORDER BY impression, event_id

-- name: copy_publication
SELECT context, number, through, operation, body, published_at FROM publication ORDER BY context

-- name: copy_snapshot
SELECT context, number, through, operation, body FROM snapshot ORDER BY context, number

-- name: copy_version
SELECT context, version, at, cause, leader, impression, evidence, why FROM version ORDER BY context, version

-- name: copy_operation
SELECT number, at, tenant, context, kind, body FROM operation ORDER BY number

-- name: copy_alarm
SELECT at, context, kind, detail FROM alarm ORDER BY id

-- name: is_used
SELECT EXISTS (SELECT 1 FROM context) OR EXISTS (SELECT 1 FROM operation) OR EXISTS (SELECT 1 FROM delivery)

-- name: published_through
SELECT context.id, COALESCE(publication.through, 0) FROM context
LEFT JOIN publication ON publication.context = context.id ORDER BY context.id

-- name: put_meta
INSERT OR REPLACE INTO meta (name, value) VALUES (?)

-- name: put_context
INSERT INTO context (id, tenant, name, terms, opened_at, closed_through, pruned_through) VALUES (?)

-- name: put_catalogue
INSERT INTO catalogue (digest, body) VALUES (?)

-- name: put_page
INSERT INTO page (impression, context, closes_at, record, clicks) VALUES (?)

-- name: put_delivery
INSERT INTO delivery (impression, event_id, digest, at) VALUES (?)

-- name: put_publication
INSERT INTO publication (context, number, through, operation, body, published_at) VALUES (?)

-- name: put_snapshot
INSERT INTO snapshot (context, number, through, operation, body) VALUES (?)

-- name: put_version
INSERT INTO version (context, version, at, cause, leader, impression, evidence, why) VALUES (?)

-- name: put_operation
INSERT INTO operation (number, at, tenant, context, kind, body) VALUES (?)

-- name: put_alarm
INSERT INTO alarm (at, context, kind, detail) VALUES (?)
