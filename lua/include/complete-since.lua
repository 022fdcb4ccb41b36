-- complete-since: complete_since() is the time, Unix ms, since which this server has lost no write. A promoted server may
-- lack writes of its master until now. Any other server may lack writes from before its start, which is known only to the
-- second, so the end of that second counts.
--- include "own-run"
--- include "now-ms"
local function complete_since()
  local uptime_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local was_promoted = string.sub(own_run, -2) ~= '-1'
  return was_promoted and now_ms or math.min(now_ms, now_ms - (uptime_s - 1) * 1000)
end
