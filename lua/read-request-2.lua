-- read-request: reads one request, and says whether this bucket's answer is certain.
-- KEYS[1]  sk:{saleId:bucket}:sale      state, run_id
-- KEYS[2]  sk:{saleId:bucket}:requests  userId/requestId -> entry
-- ARGV[1]  userId/requestId      ARGV[2]  buckets that the sale has as the caller knows it, or '' for any
-- Returns {1, or 0 when the sale is not loaded, in repair, on another server than it was loaded on, or resharded since;
-- entry or ''}
--- include "own-run"
local sale = redis.call('HMGET', KEYS[1], 'state', 'run_id', 'buckets')
local certain = sale[1] and sale[1] ~= 'repair' and sale[2] == own_run
if ARGV[2] ~= '' and sale[3] and sale[3] ~= ARGV[2] then certain = false end
return { certain and 1 or 0, redis.call('HGET', KEYS[2], ARGV[1]) or '' }
