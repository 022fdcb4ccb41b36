-- transfer-in: adds units that another bucket transferred to this one. A known sequence number adds nothing.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id
-- KEYS[3]  sk:{saleId:bucket}:moves  borrowed:<bucket> -> seq of the last transfer that arrived from it
-- ARGV[1]  bucket that sent them      ARGV[2]  epoch      ARGV[3]  seq of the transfer      ARGV[4]  units
-- Returns, in order of precedence:
--   unavailable                   not loaded, in repair, on another server than it was loaded on, or of another epoch
--   already_received, units left  this transfer, or a later one, arrived before
--   received, units left          the units were added
--- include "usable"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id')
if not usable(sale, ARGV[2]) then return { 'unavailable' } end

local seen = tonumber(redis.call('HGET', KEYS[3], 'borrowed:' .. ARGV[1])) or 0
local left = tonumber(redis.call('GET', KEYS[1])) or 0
if tonumber(ARGV[3]) <= seen then return { 'already_received', left } end

redis.call('HSET', KEYS[3], 'borrowed:' .. ARGV[1], ARGV[3])
return { 'received', redis.call('INCRBY', KEYS[1], ARGV[4]) }
