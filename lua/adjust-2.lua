-- adjust: corrects the units left in one bucket after reconcile found drift, but never while buyers may be accepted.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, run_id, epoch
-- ARGV[1]  units left as they were read      ARGV[2]  units left as they should be
-- ARGV[3]  epoch in which they were read
-- Returns, in order of precedence:
--   not_warmed   the bucket is not loaded
--   selling      the sale is open, in repair, or in need of repair
--   moved        the stock differs from what was read, or the sale was rebuilt or resharded since; nothing was changed
--   adjusted     the units left are now ARGV[2]
local left, sale = redis.call('GET', KEYS[1]), redis.call('HMGET', KEYS[2], 'state', 'run_id', 'epoch')
local state = sale[1]
if not left or not state then return 'not_warmed' end
--- include "own-run"
if state == 'open' or state == 'repair' or sale[2] ~= own_run then return 'selling' end
if left ~= ARGV[1] or sale[3] ~= ARGV[3] then return 'moved' end

redis.call('SET', KEYS[1], ARGV[2])
return 'adjusted'
