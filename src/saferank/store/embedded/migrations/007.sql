-- How many operations were written: none is ever deleted, and they are numbered from 1, so one that is missing is noticed.
ALTER TABLE tally ADD COLUMN operations INTEGER NOT NULL DEFAULT 0;
UPDATE tally SET operations = (SELECT COALESCE(MAX(number), 0) FROM operation);
CREATE TRIGGER operation_written AFTER INSERT ON operation BEGIN UPDATE tally SET operations = operations + 1; END;
