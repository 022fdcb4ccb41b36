-- redeem-token: binds the purchase token of a buyer to the first purchase that uses it. Safe to repeat for it.
-- A buyer who is not in the list is accepted: the signature was checked before, so the list was lost.
-- KEYS[1]  sk:{entry}:tokens:<saleId>                 userId -> '' or ':<times issued>' (not redeemed), or the requestId
--                                                     that the token was redeemed for
-- KEYS[2]  sk:{entry}:tokens:<saleId>:from:<address>  userIds whose tokens are not redeemed, by their end
-- ARGV[1]  userId
-- ARGV[2]  requestId of the purchase
-- ARGV[3]  1 while the token is good, 0 when its time is over
-- ARGV[4]  how long the key is kept when it is new, ms
-- Returns, in order of precedence:
--   redeemed_before        for this purchase
--   redeemed_for_another   before, for another purchase
--   ended                  not redeemed, and the token has expired
--   redeemed               now, for this purchase
local bound = redis.call('HGET', KEYS[1], ARGV[1])
if bound == ARGV[2] then return 'redeemed_before' end
if bound and bound ~= '' and string.sub(bound, 1, 1) ~= ':' then return 'redeemed_for_another' end
if ARGV[3] ~= '1' then return 'ended' end

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 'redeemed'
