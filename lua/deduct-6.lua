-- deduct: takes the units of the whole batch or none, and writes its marker either way. This is the local transaction.
-- First writer of the marker wins (protocol rule 1), so the marker is read before everything else.
-- KEYS[1]  sk:{saleId:bucket}:stock         units left
-- KEYS[2]  sk:{saleId:bucket}:sale          state, epoch, window, limit, run_id
-- KEYS[3]  sk:{saleId:bucket}:buyers        userId -> units held or ordered
-- KEYS[4]  sk:{saleId:bucket}:requests      userId/requestId -> entry
-- KEYS[5]  sk:{saleId:bucket}:tx:<batchId>  marker
-- KEYS[6]  sk:{saleId:bucket}:pending       batchId by time of deduct
-- ARGV[1]  the batch, JSON as the broker has it      ARGV[2]  life of an aborted marker, ms
-- Returns, in order of precedence:
--   already_deducted | aborted | claimed   what the marker says
--   not_warmed                             the sale is not loaded
--   stale_epoch                            the batch has another epoch, or the sale is in repair or on another server
--   refused, index, word, entry, ...       nothing is taken; these purchases are the reason, with the words of precheck
--   deducted, units left, time in ms       all units are held
local kind = string.match(redis.call('GET', KEYS[5]) or '', '^%a+')
if kind then return { kind == 'deducted' and 'already_deducted' or kind } end

local batch = cjson.decode(ARGV[1])
--- include "own-run"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'opens_at', 'closes_at', 'limit_per_buyer', 'run_id')
local state, limit = sale[1], tonumber(sale[5])
if not state then return { 'not_warmed' } end
if state == 'repair' or sale[6] ~= own_run or tonumber(sale[2]) ~= batch.epoch then return { 'stale_epoch' } end
--- include "window"
local closed = closed_by(state, sale[3], sale[4])

local purchases = batch.purchases
--- include "purchases"
local refused, totals, held, seen = { 'refused' }, {}, {}, {}
for i, purchase in ipairs(purchases) do
  local user, quantity, entry = purchase[1], purchase[3], entries[i]
  local total = (totals[user] or tonumber(bought[i]) or 0) + quantity
  local word
  if entry then word = tonumber(string.match(entry, ':(%d+)$')) == quantity and 'replayed' or 'request_conflict'
  elseif seen[keys[i]] then word = 'request_conflict'
  elseif closed then word = closed
  elseif total > limit then word = 'limit_reached'
  elseif left < quantity then word = 'sold_out'
  else
    totals[user], left, seen[keys[i]] = total, left - quantity, true
    held[2 * i - 1], held[2 * i] = keys[i], 'held:' .. batch.batchId .. ':' .. string.format('%d', quantity)
  end
  if word then
    local n = #refused
    refused[n + 1], refused[n + 2], refused[n + 3] = i - 1, word, entry or ''
  end
end
if #refused > 1 then
  redis.call('SET', KEYS[5], 'aborted', 'PX', ARGV[2])
  return refused
end
local units = {}
for user, total in pairs(totals) do
  units[#units + 1], units[#units + 2] = user, total
end
redis.call('SET', KEYS[5], 'deducted' .. ARGV[1])
redis.call('SET', KEYS[1], left)
redis.call('HSET', KEYS[3], unpack(units))
redis.call('HSET', KEYS[4], unpack(held))
redis.call('ZADD', KEYS[6], now_ms, batch.batchId)
return { 'deducted', left, now_ms }
