-- What is read of a store of the first edition, by name.

-- name: events
SELECT seq, kind, context, at, impression, body FROM event ORDER BY seq

-- name: leaders
SELECT context, version, seq, impression FROM leader ORDER BY seq, version

-- name: catalogue
SELECT body FROM catalogue WHERE digest = ?

-- name: deliveries
SELECT tenant, event_id, digest FROM delivery ORDER BY seq

-- name: session_key
SELECT value FROM meta WHERE name = 'session_key'
