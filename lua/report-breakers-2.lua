-- report-breakers: stores the breaker states of one process, and reads those of all live processes.
-- KEYS[1]  sk:{entry}:breakers:votes  processId -> its report
-- KEYS[2]  sk:{entry}:breakers:until  processId, by the time in ms at which it stops being live
-- ARGV[1]  processId      ARGV[2]  its report      ARGV[3]  how long it stays live, ms
-- Returns {processId, report, processId, report ...} of the live ones, 1000 at most
local live_max = 1000
--- include "now-ms"

local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms, 'LIMIT', 0, live_max)
if #gone > 0 then
  redis.call('HDEL', KEYS[1], unpack(gone))
  redis.call('ZREM', KEYS[2], unpack(gone))
end

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now_ms + ARGV[3], ARGV[1])
-- once the breakers are switched off, no process reports again, so both keys expire
redis.call('PEXPIRE', KEYS[1], 3600000)
redis.call('PEXPIRE', KEYS[2], 3600000)

local live = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now_ms, '+inf', 'LIMIT', 0, live_max)
local reports = redis.call('HMGET', KEYS[1], unpack(live))
local reply = {}
for i, process_id in ipairs(live) do
  reply[2 * i - 1] = process_id
  reply[2 * i] = reports[i] or ''
end
return reply
