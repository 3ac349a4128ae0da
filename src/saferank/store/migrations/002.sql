-- The reason given for a rollback, and a quick way to the few events of a context that are neither pages nor clicks.
ALTER TABLE leader ADD COLUMN why TEXT;
CREATE INDEX event_rare ON event (context, kind, at) WHERE kind > 2;
