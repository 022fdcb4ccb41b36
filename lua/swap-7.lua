-- swap: replaces the data of a bucket with the staged data, stamps it with this server, and ends the repair.
-- KEYS[1]  sk:{saleId:bucket}:sale             state, epoch, run_id, window, limit, buckets, and the repair: token, run_id
-- KEYS[2]  sk:{saleId:bucket}:stock            units left
-- KEYS[3]  sk:{saleId:bucket}:buyers           userId -> units held or ordered
-- KEYS[4]  sk:{saleId:bucket}:requests         userId/requestId -> entry
-- KEYS[5]  sk:{saleId:bucket}:staged:buyers    staged data
-- KEYS[6]  sk:{saleId:bucket}:staged:requests  staged data
-- KEYS[7]  sk:{saleId:bucket}:moves            transfers sent and received; deleted
-- ARGV[1]  token of this repair      ARGV[2]  units left      ARGV[3]  epoch, later than the present one
-- ARGV[4]  state      ARGV[5]  opens_at, ms      ARGV[6]  closes_at, ms      ARGV[7]  limit_per_buyer, units
-- ARGV[8]  buckets of the sale
-- Returns, in order of precedence:
--   superseded   another repair or another server has taken over, or the epoch was in use; nothing was changed
--   swapped      the staged data is in use
--- include "superseded"
local sale = redis.call('HMGET', KEYS[1], 'state', 'repair_token', 'repair_run', 'epoch')
if superseded(sale, ARGV[1]) then return 'superseded' end
if tonumber(ARGV[3]) <= (tonumber(sale[4]) or 0) then return 'superseded' end

redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[7]) -- RENAME would free them while everybody waits
if redis.call('EXISTS', KEYS[5]) == 1 then redis.call('RENAME', KEYS[5], KEYS[3]) end
if redis.call('EXISTS', KEYS[6]) == 1 then redis.call('RENAME', KEYS[6], KEYS[4]) end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'epoch', ARGV[3], 'run_id', own_run,
  'opens_at', ARGV[5], 'closes_at', ARGV[6], 'limit_per_buyer', ARGV[7], 'buckets', ARGV[8])
redis.call('HDEL', KEYS[1], 'repair_token', 'repair_run', 'repair_lease_ms', 'repair_until')
return 'swapped'
