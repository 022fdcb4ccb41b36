-- superseded: whether another repair or another server has taken over. `sale` begins with state, repair_token and
-- repair_run.
--- include "own-run"
local function superseded(sale, token)
  local in_repair = sale[1] == 'repair'
  return not in_repair or sale[2] ~= token or sale[3] ~= own_run
end
