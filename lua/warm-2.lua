-- warm: loads one bucket of a sale. Never overwrites a loaded bucket: live stock must not be reset.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id, opens_at, closes_at (ms), limit_per_buyer, buckets
-- ARGV[1]  units      ARGV[2]  epoch      ARGV[3]  opens_at, ms      ARGV[4]  closes_at, ms
-- ARGV[5]  limit_per_buyer, units      ARGV[6]  buckets of the sale
-- Returns, in order of precedence:
--   already_warm   stock or sale exist already; nothing was changed
--   warmed         loaded, in state warm
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 'already_warm' end

--- include "own-run"
redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], 'state', 'warm', 'epoch', ARGV[2], 'run_id', own_run,
  'opens_at', ARGV[3], 'closes_at', ARGV[4], 'limit_per_buyer', ARGV[5], 'buckets', ARGV[6])
return 'warmed'
