-- Retention: through when the pages of a context may be deleted (a kept snapshot stands for them), and the age of events.
ALTER TABLE saferank.context ADD COLUMN pruned_through bigint NOT NULL DEFAULT 0;
ALTER TABLE saferank.delivery ADD COLUMN at bigint NOT NULL DEFAULT saferank.clock();
CREATE INDEX delivery_time ON saferank.delivery (at);
