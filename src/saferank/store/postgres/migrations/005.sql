-- How many operations were written: none is ever deleted, and they are numbered from 1, so one that is missing is noticed.
-- A trigger counts: servers of the version before may still be running.
CREATE TABLE saferank.operation_tally (operations bigint NOT NULL);
INSERT INTO saferank.operation_tally SELECT coalesce(max(number), 0) FROM saferank.operation;

CREATE FUNCTION saferank.count_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE saferank.operation_tally SET operations = operations + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER operation_written AFTER INSERT ON saferank.operation
FOR EACH ROW EXECUTE FUNCTION saferank.count_operation();

-- As before, but the newest operation is the last one that was written, whether it is still there or not.
CREATE OR REPLACE FUNCTION saferank.heartbeat(
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
    PERFORM pg_advisory_xact_lock_shared(hashtext('saferank.operation'));
    SELECT operations INTO newest FROM saferank.operation_tally;
END $$;
