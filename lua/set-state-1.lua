-- set-state: opens, pauses or closes one bucket of a sale. Safe to repeat; MySQL decides which changes are allowed.
-- KEYS[1]  sk:{saleId:bucket}:sale  state
-- ARGV[1]  the wanted state: warm, open, paused or closed
-- Returns, in order of precedence:
--   not_warmed   the bucket is not loaded
--   repairing    the bucket is being rebuilt; only the repair opens it again
--   closed       the sale is closed for good: a late `open` must not let buyers in again
--   set          the bucket is in the wanted state now
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return 'not_warmed' end
if state == 'repair' then return 'repairing' end
if state == 'closed' and ARGV[1] ~= 'closed' then return 'closed' end

redis.call('HSET', KEYS[1], 'state', ARGV[1])
return 'set'
