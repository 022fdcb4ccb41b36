-- lock: begins the repair of a bucket. From now on nothing is sold, recorded or released (protocol rule 12).
-- KEYS[1]  sk:{saleId:bucket}:sale             state, epoch, and the repair: token, run_id, lease
-- KEYS[2]  sk:{saleId:bucket}:staged:requests  staged data; the remains of an earlier repair are deleted
-- KEYS[3]  sk:{saleId:bucket}:staged:buyers    the same
-- ARGV[1]  token of this repair      ARGV[2]  lease, ms      ARGV[3]  epoch in which the need was found, or '' for any
-- Returns, in order of precedence:
--   busy    another repair holds its lease, on this server. A lease that ends too late to be real is void: the clock was set back
--   moved   the bucket has another epoch: it was repaired since
--   locked  the bucket is in repair under this token
--- include "own-run"
--- include "now-ms"
local repair = redis.call('HMGET', KEYS[1], 'repair_token', 'repair_run', 'repair_until', 'epoch', 'repair_lease_ms')
local foreign = repair[1] and repair[1] ~= ARGV[1]
local left_ms = (tonumber(repair[3]) or 0) - now_ms
local leased = left_ms > 0 and left_ms <= (tonumber(repair[5]) or 0)
if foreign and repair[2] == own_run and leased then return 'busy' end
if ARGV[3] ~= '' and (tonumber(repair[4]) or 0) ~= tonumber(ARGV[3]) then return 'moved' end

redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('HSETNX', KEYS[1], 'epoch', 0)
redis.call('HSET', KEYS[1], 'state', 'repair', 'repair_token', ARGV[1], 'repair_run', own_run,
  'repair_lease_ms', ARGV[2], 'repair_until', now_ms + ARGV[2])
return 'locked'
