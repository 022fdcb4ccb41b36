-- restore-marker: writes the lost marker of a batch whose units stay held. Renews the lease of the repair.
-- KEYS[1]  sk:{saleId:bucket}:tx:<batchId>  marker; an existing one is never replaced
-- KEYS[2]  sk:{saleId:bucket}:sale          state, and the repair: token, run_id, lease
-- KEYS[3]  sk:{saleId:bucket}:pending       batchId by time of deduct; a batch that is added counts from now
-- ARGV[1]  token of this repair      ARGV[2]  the batch, JSON as the broker has it
-- ARGV[3]  batchId, to put it into pending too, or ''
-- Returns, in order of precedence:
--   superseded   another repair or another server has taken over; nothing was written
--   restored     the batch has a marker
--- include "superseded"
local sale = redis.call('HMGET', KEYS[2], 'state', 'repair_token', 'repair_run', 'repair_lease_ms')
if superseded(sale, ARGV[1]) then return 'superseded' end

--- include "now-ms"
redis.call('HSET', KEYS[2], 'repair_until', now_ms + sale[4])
redis.call('SET', KEYS[1], 'deducted' .. ARGV[2], 'NX')
local has_body = string.find(redis.call('GET', KEYS[1]), '{', 1, true)
if ARGV[3] ~= '' and has_body then redis.call('ZADD', KEYS[3], 'NX', now_ms, ARGV[3]) end
return 'restored'
