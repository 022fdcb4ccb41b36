-- remember: gives a batch whose units stay held its marker back, if that was lost. Renews the lease of the repair.
-- KEYS[1]  sk:{saleId:bucket}:tx:<batchId>  marker; one that is there is the word of the batch, and stays
-- KEYS[2]  sk:{saleId:bucket}:sale          state, and the repair: token, run_id, lease
-- ARGV[1]  token of this repair      ARGV[2]  the batch, JSON as the broker has it
-- Returns, in order of precedence:
--   superseded   another repair, or another server, came between; nothing was written
--   remembered   it has a marker
local own_run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  .. string.match(redis.call('INFO', 'replication'), 'second_repl_offset:(%S+)')
local sale = redis.call('HMGET', KEYS[2], 'state', 'repair_token', 'repair_run', 'repair_lease_ms')
if sale[1] ~= 'repair' or sale[2] ~= ARGV[1] or sale[3] ~= own_run then return 'superseded' end

local time = redis.call('TIME')
redis.call('HSET', KEYS[2], 'repair_until', time[1] * 1000 + math.floor(time[2] / 1000) + sale[4])
redis.call('SET', KEYS[1], 'deducted' .. ARGV[2], 'NX')
return 'remembered'
