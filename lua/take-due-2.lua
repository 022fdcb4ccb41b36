-- take-due: takes batches that must be published again, so that no other keeper also publishes them.
-- KEYS[1]  sk:{saleId:bucket}:pending   batchId by time of deduct
-- KEYS[2]  sk:{saleId:bucket}:redrives  batchId by the time before which the re-drive leaves it alone; expires after the last
-- ARGV[1]  age from which a batch is due, ms      ARGV[2]  how long taken batches are left alone, ms
-- ARGV[3]  batches taken, at most                 ARGV[4]  batches examined, at most
-- ARGV[5]  time of deduct from which batches are examined that were never taken, Unix ms
-- Returns {time in ms; time of deduct from which the next call must examine; 1 if more may be due now, else 0; then for
-- each batch that was taken: batchId, time of deduct}
--- include "now-ms"
local pending, redrives, max, look, from = KEYS[1], KEYS[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local latest, next_from, more = now_ms - ARGV[1], from, 0
local taken, leases, gone = {}, {}, {}
local function take(batch_id, since)
  taken[#taken + 1], taken[#taken + 2] = batch_id, since
  leases[#leases + 1], leases[#leases + 2] = now_ms + ARGV[2], batch_id
end

-- Batches that were taken before and whose time is over. Forgets batches that were recorded or put back since.
local over = redis.call('ZRANGEBYSCORE', redrives, '-inf', now_ms, 'LIMIT', 0, max)
if #over == max then more = 1 end
local since = #over > 0 and redis.call('ZMSCORE', pending, unpack(over)) or {}
for i, batch_id in ipairs(over) do
  if since[i] and tonumber(since[i]) <= latest then take(batch_id, since[i]) else gone[#gone + 1] = batch_id end
end
if #gone > 0 then redis.call('ZREM', redrives, unpack(gone)) end

-- Batches that were never taken, in the order of their deducts.
local found = redis.call('ZRANGEBYSCORE', pending, from, latest, 'WITHSCORES', 'LIMIT', 0, look)
local names = {}
for i = 1, #found, 2 do names[#names + 1] = found[i] end
local untils = #names > 0 and redis.call('ZMSCORE', redrives, unpack(names)) or {}
local is_new = {}
for i = 1, #leases, 2 do is_new[leases[i + 1]] = false end
for i, batch_id in ipairs(names) do
  next_from = found[2 * i]
  if not untils[i] and is_new[batch_id] == nil then
    if #taken >= 2 * max then more = 1 break end
    take(batch_id, next_from)
  end
  if i == look then
    more = 1
    if next_from == from then next_from = string.format('%.0f', from + 1) end -- all of one moment: go on behind it
  end
end

if #leases > 0 then
  redis.call('ZADD', redrives, unpack(leases))
  local life_ms = ARGV[2] + 60000
  if redis.call('PTTL', redrives) < life_ms then redis.call('PEXPIRE', redrives, life_ms) end
end
return { now_ms, next_from, more, unpack(taken) }
