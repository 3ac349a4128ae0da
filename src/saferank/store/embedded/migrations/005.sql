-- Retention: through when the pages of a context may be deleted (a kept snapshot stands for them), and the age of events.
ALTER TABLE context ADD COLUMN pruned_through INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET at = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
CREATE INDEX delivery_time ON delivery (at);
