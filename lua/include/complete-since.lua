-- complete-since: complete_since() is the time since when this server has forgotten nothing that it was told, Unix ms. One
-- that was promoted may lack what its master had until now; another one, what there was before its start, which is known to
-- the second: the end of that second counts.
--- include "own-run"
--- include "now-ms"
local function complete_since()
  local uptime_s = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  local was_promoted = string.sub(own_run, -2) ~= '-1'
  return was_promoted and now_ms or math.min(now_ms, now_ms - (uptime_s - 1) * 1000)
end
