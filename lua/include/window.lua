-- window: why a loaded sale sells nothing now, or nil while it sells.
--- include "now-ms"
local function closed_by(state, opens_at, closes_at)
  if state == 'paused' then return 'paused' end
  if state == 'closed' or now_ms >= tonumber(closes_at) then return 'closed' end
  if state ~= 'open' or now_ms < tonumber(opens_at) then return 'not_open' end
end
