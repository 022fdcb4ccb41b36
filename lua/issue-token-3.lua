-- issue-token: issues the purchase token of a buyer, if it is time and a place is free. Safe to repeat: until its end the
-- token stays the same. It holds its place until its end, redeemed or not; then another buyer may have the place.
-- KEYS[1]  sk:{entry}:tokens:<saleId>                 userId -> '' (issued once), ':<times issued>', or the requestId that
--                                                     the token was redeemed for
-- KEYS[2]  sk:{entry}:tokens:<saleId>:ends            userId by the end of the token, Unix ms
-- KEYS[3]  sk:{entry}:tokens:<saleId>:from:<address>  userIds of one address whose tokens are not redeemed, by their end
-- ARGV[1]  userId      ARGV[2]  from when tokens are issued, Unix ms      ARGV[3]  until when, Unix ms
-- ARGV[4]  when the sale opens, Unix ms      ARGV[5]  life of a token from then, or from now if later, ms
-- ARGV[6]  tokens of the sale at a time      ARGV[7]  tokens of a buyer, one after the other
-- ARGV[8]  unredeemed tokens of an address at a time; 0: any number
-- ARGV[9]  how long the keys are kept after ARGV[3], ms
-- Returns {word, time in Unix ms}; the words, in order of precedence, and after the semicolon the time:
--   too_early        the time in ARGV[2] has not come; now
--   too_late         the time in ARGV[3] is over; now
--   issued_before    the buyer already has a token, or has redeemed one; its end, or now
--   buyer_limit      the buyer let the maximum number of tokens lapse; now
--   address_limit    the address has the maximum number of tokens; when the first of them ends
--   none_left        all places are taken; when the first of them becomes free
--   issued           the token was issued now; its end
--- include "now-ms"
local tokens, ends, of_address, user = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if now_ms < tonumber(ARGV[2]) then return { 'too_early', now_ms } end
if now_ms >= tonumber(ARGV[3]) then return { 'too_late', now_ms } end
local function first_end(key)
  return tonumber(redis.call('ZRANGEBYSCORE', key, '(' .. now_ms, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end
local function is_redeemed(bound) return bound and bound ~= '' and string.sub(bound, 1, 1) ~= ':' end

local bound, own_end = redis.call('HGET', tokens, user), tonumber(redis.call('ZSCORE', ends, user)) or 0
if is_redeemed(bound) or (bound and own_end > now_ms) then return { 'issued_before', math.max(own_end, now_ms) } end
local issued = bound and (tonumber(string.sub(bound, 2)) or 1) or 0
if issued >= tonumber(ARGV[7]) then return { 'buyer_limit', now_ms } end

local places, of_address_max = tonumber(ARGV[6]), tonumber(ARGV[8])
redis.call('ZREMRANGEBYSCORE', of_address, '-inf', now_ms)
if of_address_max > 0 and redis.call('ZCARD', of_address) >= of_address_max then
  return { 'address_limit', first_end(of_address) }
end
local lapsed = redis.call('ZCOUNT', ends, '-inf', now_ms)
if redis.call('ZCARD', ends) - lapsed >= places then return { 'none_left', first_end(ends) } end

-- As many lapsed tokens are remembered as there are places; the oldest others are forgotten, a hundred at a time.
local surplus = math.min(lapsed - places, 100)
if surplus > 0 then
  for _, other in ipairs(redis.call('ZRANGE', ends, 0, surplus - 1)) do
    if not is_redeemed(redis.call('HGET', tokens, other)) then redis.call('HDEL', tokens, other) end
  end
  redis.call('ZREMRANGEBYRANK', ends, 0, surplus - 1)
end

local ends_at = math.max(now_ms, tonumber(ARGV[4])) + tonumber(ARGV[5])
local kept_until = string.format('%.0f', tonumber(ARGV[3]) + tonumber(ARGV[9]))
redis.call('HSET', tokens, user, issued == 0 and '' or ':' .. (issued + 1))
redis.call('ZADD', ends, ends_at, user)
redis.call('PEXPIREAT', tokens, kept_until)
redis.call('PEXPIREAT', ends, kept_until)
if of_address_max > 0 then
  redis.call('ZADD', of_address, ends_at, user)
  redis.call('PEXPIREAT', of_address, string.format('%.0f', ends_at))
end
return { 'issued', ends_at }
