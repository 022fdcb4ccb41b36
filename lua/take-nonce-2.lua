-- take-nonce: takes the nonce of a signed request, so that the request is valid once. Nonces that a server forgot look
-- fresh, so it refuses every request that was signed before it forgot.
-- KEYS[1]  sk:{entry}:nonce:<keyId>:<nonce>  exists while the nonce is taken
-- KEYS[2]  sk:{entry}:nonces                 '<run of the server> <since when it forgot no nonce, Unix ms>'
-- ARGV[1]  life of the nonce, ms      ARGV[2]  when the request was signed, Unix ms
-- Returns, in order of precedence:
--   outdated   signed before a restart or a fail-over, at which nonces may have been lost
--   used       taken before
--   fresh      taken now
--- include "complete-since"
local run, since_ms = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) (%d+)$')
if run ~= own_run then
  since_ms = string.format('%.0f', complete_since())
  redis.call('SET', KEYS[2], own_run .. ' ' .. since_ms)
end
if tonumber(ARGV[2]) < tonumber(since_ms) then return 'outdated' end
return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1], 'NX') and 'fresh' or 'used'
