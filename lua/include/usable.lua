-- usable: whether work of this epoch may be done in a bucket: loaded, not in repair, on the server that it was loaded or
-- rebuilt on, and of the same epoch. `sale` begins with state, epoch and run_id.
--- include "own-run"
local function usable(sale, epoch)
  if not sale[1] or sale[1] == 'repair' or sale[3] ~= own_run then return false end
  return tonumber(sale[2]) == tonumber(epoch)
end
