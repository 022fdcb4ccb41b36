-- transfer-end: closes a transfer in the bucket that sent it, once the units have arrived. Then a new transfer may begin.
-- KEYS[1]  sk:{saleId:bucket}:sale   state, epoch, run_id
-- KEYS[2]  sk:{saleId:bucket}:moves  lent:<bucket> -> seq:units:open|closed:time in ms
-- ARGV[1]  bucket that received them      ARGV[2]  epoch      ARGV[3]  seq of the transfer
-- Returns, in order of precedence:
--   unavailable    not loaded, in repair, on another server than it was loaded on, or of another epoch
--   already_ended  the transfer was closed before, or a later one has begun
--   ended          the transfer is closed now
--- include "usable"
local sale = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'run_id')
if not usable(sale, ARGV[2]) then return 'unavailable' end

local last = redis.call('HGET', KEYS[2], 'lent:' .. ARGV[1]) or ''
local seq, units, time_ms = string.match(last, '^(%d+):(%d+):open:(%d+)$')
if seq ~= ARGV[3] then return 'already_ended' end

redis.call('HSET', KEYS[2], 'lent:' .. ARGV[1], seq .. ':' .. units .. ':closed:' .. time_ms)
return 'ended'
