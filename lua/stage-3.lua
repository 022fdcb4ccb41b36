-- stage: adds requests to the staged data of a bucket, and counts its buyers. Renews the lease of the repair.
-- KEYS[1]  sk:{saleId:bucket}:sale             state, and the repair: token, run_id, lease
-- KEYS[2]  sk:{saleId:bucket}:staged:requests  userId/requestId -> entry
-- KEYS[3]  sk:{saleId:bucket}:staged:buyers    userId -> units held or ordered
-- ARGV[1]  token of this repair      ARGV[2]  JSON: [[userId/requestId, entry], ...]
-- Returns, in order of precedence:
--   superseded   another repair or another server has taken over; nothing was staged
--   staged       all requests are staged; existing entries were not changed
--- include "superseded"
local sale = redis.call('HMGET', KEYS[1], 'state', 'repair_token', 'repair_run', 'repair_lease_ms')
if superseded(sale, ARGV[1]) then return 'superseded' end

--- include "now-ms"
redis.call('HSET', KEYS[1], 'repair_until', now_ms + sale[4])
for _, request in ipairs(cjson.decode(ARGV[2])) do
  local key, entry = request[1], request[2]
  local is_new = redis.call('HSETNX', KEYS[2], key, entry) == 1
  local state, quantity = string.match(entry, '^(%a+):[^:]+:(%d+)$')
  if is_new then -- records the buyer even without units
    redis.call('HINCRBY', KEYS[3], string.match(key, '^(.+)/'), state == 'released' and 0 or quantity)
  end
end
return 'staged'
