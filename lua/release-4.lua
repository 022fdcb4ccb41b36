-- release: returns the units of one ended request to the stock, at most once (protocol rule 7).
-- KEYS[1]  sk:{saleId:bucket}:stock     units left
-- KEYS[2]  sk:{saleId:bucket}:buyers    userId -> units held or ordered
-- KEYS[3]  sk:{saleId:bucket}:requests  userId/requestId -> entry
-- KEYS[4]  sk:{saleId:bucket}:sale      state
-- ARGV[1]  userId      ARGV[2]  requestId      ARGV[3]  batchId that may hold them, or '' for any
-- ARGV[4]  orderId of the row that ended      ARGV[5]  1: units go back; 0: they never existed
-- Returns, in order of precedence, with units left and time in ms:
--   repairing   the sale is being rebuilt; nothing was changed
--   nothing     never accepted, released before, or held by another batch
--   released    the request is closed
local key = ARGV[1] .. '/' .. ARGV[2]
--- include "now-ms"
local left = tonumber(redis.call('GET', KEYS[1])) or 0
if redis.call('HGET', KEYS[4], 'state') == 'repair' then return { 'repairing', left, now_ms } end

local entry = redis.call('HGET', KEYS[3], key)
if not entry then return { 'nothing', left, now_ms } end
local state, id, quantity = string.match(entry, '^(%a+):([^:]+):(%d+)$')
-- The order belongs to the row, even if their ids differ: MySQL has one row per request, and may have lost an earlier one.
local ours = state == 'ordered' or (state == 'held' and (ARGV[3] == '' or id == ARGV[3]))
if not ours then return { 'nothing', left, now_ms } end

redis.call('HSET', KEYS[3], key, 'released:' .. ARGV[4] .. ':' .. quantity)
redis.call('HINCRBY', KEYS[2], ARGV[1], -quantity)
if ARGV[5] == '1' then left = redis.call('INCRBY', KEYS[1], quantity) end
return { 'released', left, now_ms }
