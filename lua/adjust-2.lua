-- adjust: corrects the units left of one bucket after reconcile found drift. Never while buyers may be let in.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state
-- ARGV[1]  units left as they were read      ARGV[2]  units left as they should be
-- Returns, in order of precedence:
--   not_warmed   the bucket is not loaded
--   selling      the sale is open, or its books are being rebuilt
--   moved        the stock is not as it was read; nothing was changed
--   adjusted     it is as it should be now
local left, state = redis.call('GET', KEYS[1]), redis.call('HGET', KEYS[2], 'state')
if not left or not state then return 'not_warmed' end
if state == 'open' or state == 'repair' then return 'selling' end
if left ~= ARGV[1] then return 'moved' end

redis.call('SET', KEYS[1], ARGV[2])
return 'adjusted'
