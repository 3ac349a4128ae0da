-- Every statement that the service runs, by name. Those called add_ take any number of rows.

-- name: add_context
INSERT INTO context (id, tenant, name) VALUES

-- name: add_catalogue
INSERT OR IGNORE INTO catalogue (digest, body) VALUES

-- name: add_event
INSERT INTO event (seq, kind, context, at, impression, body) VALUES

-- name: add_delivery
INSERT INTO delivery (tenant, event_id, digest, seq) VALUES

-- name: add_leader
INSERT INTO leader (context, version, seq, at, cause, leader, impression, evidence, why) VALUES

-- name: add_snapshot
INSERT OR REPLACE INTO snapshot (context, seq, body) VALUES

-- name: set_meta
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)

-- name: meta
SELECT value FROM meta WHERE name = ?

-- name: contexts
SELECT id, tenant, name FROM context ORDER BY id

-- name: last_event
SELECT seq, at FROM event ORDER BY seq DESC LIMIT 1

-- name: events_from
SELECT seq, kind, context, at, impression, body FROM event WHERE seq >= ? ORDER BY seq

-- name: events_of_context_from
SELECT seq, kind, context, at, impression, body FROM event WHERE seq >= ? AND context = ? ORDER BY seq

-- name: events_of_impression
SELECT seq, kind, context, at, impression, body FROM event WHERE impression = ? ORDER BY seq

-- name: rare_events
SELECT seq, kind, context, at, impression, body FROM event WHERE kind > 2 AND context = ? AND kind = ? ORDER BY seq

-- name: latest_rare_event
SELECT seq, kind, context, at, impression, body FROM event
WHERE kind > 2 AND context = ? AND kind = ? AND at <= ? AND seq <= ? ORDER BY at DESC, seq DESC LIMIT 1

-- name: first_closing
SELECT seq, kind, context, at, impression, body FROM event
WHERE kind > 2 AND context = ? AND kind = ? AND at >= ? ORDER BY at, seq LIMIT 1

-- name: catalogue
SELECT body FROM catalogue WHERE digest = ?

-- name: delivery
SELECT digest, seq FROM delivery WHERE tenant = ? AND event_id = ?

-- name: leaders
SELECT context, version, seq, at, cause, leader, impression, evidence, why FROM leader WHERE context = ? ORDER BY version

-- name: latest_leaders
SELECT context, version, seq, at, cause, leader, impression, evidence, why FROM leader
WHERE context = ? ORDER BY version DESC LIMIT ?

-- name: leader_of_version
SELECT context, version, seq, at, cause, leader, impression, evidence, why FROM leader WHERE context = ? AND version = ?

-- name: leader_at_moment
SELECT context, version, seq, at, cause, leader, impression, evidence, why FROM leader
WHERE context = ? AND at <= ? ORDER BY version DESC LIMIT 1

-- name: latest_snapshots
SELECT context, MAX(seq), body FROM snapshot GROUP BY context

-- name: snapshots
SELECT context, seq, body FROM snapshot ORDER BY seq, context

-- name: snapshot_before
SELECT context, seq, body FROM snapshot WHERE context = ? AND seq < ? ORDER BY seq DESC LIMIT 1

-- name: page
SELECT seq, kind, context, at, impression, body FROM event WHERE impression = ? AND kind = 1

-- name: count_leaders
SELECT COUNT(*) FROM leader
