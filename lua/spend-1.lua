-- spend: binds the purchase token of a buyer to the first purchase that shows it. Safe to repeat for that purchase.
-- A buyer who is not known is believed: only a token with a true seal gets here, so the list was lost.
-- KEYS[1]  sk:{entry}:tokens:<saleId>   userId -> '' (handed out) or the requestId that his token was spent for
-- ARGV[1]  userId
-- ARGV[2]  requestId of the purchase
-- ARGV[3]  1 while the token is good, 0 when its time is over
-- ARGV[4]  how long the key is kept when it is new, ms
-- Returns, in order of precedence:
--   spent_before      for this very purchase
--   spent_otherwise   for another one
--   ended             never, and its time is over
--   spent             for this purchase, now
local bound = redis.call('HGET', KEYS[1], ARGV[1])
if bound == ARGV[2] then return 'spent_before' end
if bound and bound ~= '' then return 'spent_otherwise' end
if ARGV[3] ~= '1' then return 'ended' end

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 'spent'
