-- Times that change: each is kept twice, once with every bit inverted, so that a flipped bit is noticed.
ALTER TABLE context ADD COLUMN closed_inverse INTEGER NOT NULL DEFAULT -1;
ALTER TABLE context ADD COLUMN pruned_inverse INTEGER NOT NULL DEFAULT -1;
UPDATE context SET closed_inverse = ~ closed_through, pruned_inverse = ~ pruned_through;

-- When a catalogue was written last, to half a day: those that nobody names any more are deleted in time.
ALTER TABLE catalogue ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
UPDATE catalogue SET used_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;

-- How many event ids are kept of a page. It is an estimate: a backup does not hold it, and ids are forgotten in time.
ALTER TABLE page ADD COLUMN events INTEGER NOT NULL DEFAULT 0;

-- How many pages were written and not deleted since: pages that are missing are noticed.
CREATE TABLE tally (pages INTEGER NOT NULL);
INSERT INTO tally SELECT COUNT(*) FROM page;
