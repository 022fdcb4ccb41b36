-- unpark: puts a parked batch back into `pending`, before a replay publishes it (protocol rule 8).
-- KEYS[1]  sk:{saleId:bucket}:tx:<batchId>  marker; it has its body until the batch is recorded
-- KEYS[2]  sk:{saleId:bucket}:pending       batchId by time of deduct; a replayed batch counts from now
-- ARGV[1]  batchId
-- Returns, in order of precedence:
--   unknown          no marker: it is not known whether the units are held
--   aborted          the units are not held and never will be
--   recorded         it is in MySQL
--   already_pending  it is in pending already
--   unparked         it is in pending
local marker = redis.call('GET', KEYS[1])
if not marker then return 'unknown' end
if marker == 'aborted' then return 'aborted' end
if not string.find(marker, '{', 1, true) then return 'recorded' end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 'already_pending' end

--- include "now-ms"
redis.call('ZADD', KEYS[2], now_ms, ARGV[1])
return 'unparked'
