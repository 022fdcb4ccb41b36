-- mark-recorded: records in Redis that a batch is in MySQL. Changes only entries that this batch holds (protocol rule 8), and
-- notifies the buyers who wait for its orders.
-- KEYS[1]  sk:{saleId:bucket}:requests      userId/requestId -> entry
-- KEYS[2]  sk:{saleId:bucket}:pending       batchId by time of deduct
-- KEYS[3]  sk:{saleId:bucket}:tx:<batchId>  marker; its body is dropped, because no re-drive needs it now,
--                                           and it ends by itself when no check-back can ask for it any more
-- KEYS[4]  sk:{saleId:bucket}:sale          state, epoch, buckets
-- ARGV[1]  batchId
-- ARGV[2]  live orders of the batch, JSON: {orders: [[userId/requestId, orderId, ...], ...]}; it is the notification too
-- ARGV[3]  channel of the notifications of the sale      ARGV[4]  life of the marker from now on, ms
-- Returns, in order of precedence:
--   repairing   the sale is being rebuilt; nothing was changed
--   recorded, how many requests moved from held to ordered (0 when it was recorded before), epoch and buckets of the sale
--                (0: not known): after a reshard, other buckets have requests of the batch too
local sale = redis.call('HMGET', KEYS[4], 'state', 'epoch', 'buckets')
if sale[1] == 'repair' then return { 'repairing' } end

local batch_id, orders = ARGV[1], cjson.decode(ARGV[2]).orders

local moved, changes = 0, {}
if #orders > 0 then
  local keys = {}
  for i, order in ipairs(orders) do keys[i] = order[1] end
  local entries = redis.call('HMGET', KEYS[1], unpack(keys))
  local prefix = 'held:' .. batch_id .. ':'
  for i, order in ipairs(orders) do
    local entry = entries[i]
    if entry and string.sub(entry, 1, #prefix) == prefix then
      moved = moved + 1
      changes[2 * moved - 1] = order[1]
      changes[2 * moved] = 'ordered:' .. order[2] .. ':' .. string.sub(entry, #prefix + 1)
    end
  end
end

local marker = redis.call('GET', KEYS[3])
local kind = marker and string.match(marker, '^%a+')
-- A marker that was already cut down keeps its expiry. Markers of an earlier version had none.
local ends = not marker or (kind == marker and redis.call('PTTL', KEYS[3]) ~= -1)
if moved > 0 then redis.call('HSET', KEYS[1], unpack(changes)) end
redis.call('ZREM', KEYS[2], batch_id)
if not ends then redis.call('SET', KEYS[3], kind, 'PX', ARGV[4]) end
-- Orders that did not move here may have changed since. Their notification would be stale; the event consumer sends it.
if moved > 0 and moved == #orders then redis.call('PUBLISH', ARGV[3], ARGV[2]) end
return { 'recorded', moved, tonumber(sale[2]) or 0, tonumber(sale[3]) or 0 }
