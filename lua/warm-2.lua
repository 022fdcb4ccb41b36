-- warm: loads one bucket of a sale. Never overwrites what is loaded: live stock is not to be reset.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id, opens_at, closes_at (ms), limit_per_buyer
-- ARGV[1]  units      ARGV[2]  epoch      ARGV[3]  opens_at, ms      ARGV[4]  closes_at, ms
-- ARGV[5]  limit_per_buyer, units      ARGV[6]  run_id of this server, the stamp
-- Returns, in order of precedence:
--   already_warm   stock or sale stand here already; nothing was changed
--   warmed         loaded, in state warm
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 'already_warm' end

redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], 'state', 'warm', 'epoch', ARGV[2], 'run_id', ARGV[6],
  'opens_at', ARGV[3], 'closes_at', ARGV[4], 'limit_per_buyer', ARGV[5])
return 'warmed'
