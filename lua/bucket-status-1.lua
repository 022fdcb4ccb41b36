-- bucket-status: returns the state of a bucket, and whether this server loaded it, to find sales that need a repair.
-- KEYS[1]  sk:{saleId:bucket}:sale  state, epoch, run_id
-- ARGV     none
-- Returns {state or '' (not loaded), epoch or 0, 1 if it was loaded or rebuilt on this server, else 0}
--- include "own-run"
local sale = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'run_id')
return { sale[1] or '', tonumber(sale[2]) or 0, sale[3] == own_run and 1 or 0 }
