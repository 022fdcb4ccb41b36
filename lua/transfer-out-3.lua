-- transfer-out: takes units out of a bucket for another one, and records them until the transfer is closed.
-- At most one transfer of a pair is open: while it is, a call returns the same units again, and no others leave.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id
-- KEYS[3]  sk:{saleId:bucket}:moves  lent:<bucket> -> seq:units:open|closed:time in ms
-- ARGV[1]  bucket that receives them      ARGV[2]  epoch      ARGV[3]  units that it needs at least
-- Returns, in order of precedence:
--   unavailable              not loaded, in repair, on another server than it was loaded on, or of another epoch
--   transferred, seq, units  units of the open transfer: half of what was there or ARGV[3] if more, all at most
--   empty                    the bucket has no units
--- include "usable"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id')
if not usable(sale, ARGV[2]) then return { 'unavailable' } end

local last = redis.call('HGET', KEYS[3], 'lent:' .. ARGV[1]) or '0:0:closed:0'
local seq, units, kind = string.match(last, '^(%d+):(%d+):(%a+)')
if kind == 'open' then return { 'transferred', tonumber(seq), tonumber(units) } end
local left = tonumber(redis.call('GET', KEYS[1])) or 0
if left <= 0 then return { 'empty' } end

units = math.min(left, math.max(math.ceil(left / 2), tonumber(ARGV[3])))
--- include "now-ms"
redis.call('SET', KEYS[1], string.format('%d', left - units))
redis.call('HSET', KEYS[3], 'lent:' .. ARGV[1], string.format('%d:%d:open:%.0f', seq + 1, units, now_ms))
return { 'transferred', seq + 1, units }
