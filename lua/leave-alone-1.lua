-- leave-alone: says how long the re-drive leaves batches alone that were just published or that a consumer keeps trying.
-- KEYS[1]  sk:{saleId:bucket}:redrives  batchId by the time before which the re-drive leaves it alone; expires after the last
-- ARGV[1]  JSON: [[batchId, ms from now], ...]; a later time that is already stored stays
-- Returns how many batches got a new time
--- include "now-ms"
local changes, longest = {}, 0
for _, pause in ipairs(cjson.decode(ARGV[1])) do
  local until_ms = now_ms + pause[2]
  if until_ms > (tonumber(redis.call('ZSCORE', KEYS[1], pause[1])) or 0) then
    changes[#changes + 1], changes[#changes + 2] = until_ms, pause[1]
    longest = math.max(longest, pause[2])
  end
end
if #changes == 0 then return 0 end

redis.call('ZADD', KEYS[1], unpack(changes))
local life_ms = longest + 60000
if redis.call('PTTL', KEYS[1]) < life_ms then redis.call('PEXPIRE', KEYS[1], life_ms) end
return #changes / 2
