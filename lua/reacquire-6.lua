-- reacquire: takes units and limit for a batch of an older epoch whose deduct may have been lost (protocol rule 13).
-- KEYS[1]  sk:{saleId:bucket}:stock         units left
-- KEYS[2]  sk:{saleId:bucket}:sale          state, epoch, run_id, limit
-- KEYS[3]  sk:{saleId:bucket}:buyers        userId -> units held or ordered
-- KEYS[4]  sk:{saleId:bucket}:requests      userId/requestId -> entry
-- KEYS[5]  sk:{saleId:bucket}:tx:<batchId>  marker
-- KEYS[6]  sk:{saleId:bucket}:pending       batchId by time of deduct
-- ARGV[1]  the batch, JSON as the broker has it      ARGV[2]  epoch of the sale, as MySQL has it
-- ARGV[3]  keys of its purchases that have a row, JSON: [userId/requestId, ...]
-- Returns, in order of precedence:
--   not_warmed          the sale is not loaded
--   unavailable         it is in repair, on another server than it was loaded on, or of another epoch
--   claimed, lost, elsewhere  purchases with neither row nor entry are held now, except those in two lists of keys.
--                       lost: no units or no limit left. Their entries are closed, so that a retry is not let in
--                       before the failure is published; the entry has lost-<batchId> in place of an order id.
--                       elsewhere: another batch holds them, maybe in another quantity, and will record them
--- include "usable"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id', 'limit_per_buyer')
if not sale[1] then return { 'not_warmed' } end
if not usable(sale, ARGV[2]) then return { 'unavailable' } end

local batch, recorded, limit = cjson.decode(ARGV[1]), {}, tonumber(sale[4])
for _, key in ipairs(cjson.decode(ARGV[3])) do recorded[key] = true end
local purchases = batch.purchases
--- include "purchases"
local refused, elsewhere, totals, changes = {}, {}, {}, {}
local lost, held = 'released:lost', 'held:' .. batch.batchId .. ':'
for i, purchase in ipairs(purchases) do
  local user, quantity, key = purchase[1], purchase[3], keys[i]
  local total = (totals[user] or tonumber(bought[i]) or 0) + quantity
  local entry = not recorded[key] and (entries[i] or 'none')
  if entry and string.sub(entry, 1, #lost) == lost then refused[#refused + 1] = key
  elseif entry and string.sub(entry, 1, 5) == 'held:' and string.sub(entry, 1, #held) ~= held then
    elsewhere[#elsewhere + 1] = key
  elseif entry == 'none' then
    local fits = left >= quantity and total <= limit
    if fits then left = left - quantity else total, refused[#refused + 1] = total - quantity, key end
    totals[user] = total -- records the buyer even without units
    changes[#changes + 1] = key
    changes[#changes + 1] = (fits and held or lost .. '-' .. batch.batchId .. ':') .. string.format('%d', quantity)
  end
end

local units = {}
for user, total in pairs(totals) do
  units[#units + 1], units[#units + 2] = user, total
end
if #units > 0 then
  redis.call('SET', KEYS[1], left)
  redis.call('HSET', KEYS[3], unpack(units))
end
if #changes > 0 then redis.call('HSET', KEYS[4], unpack(changes)) end
local marker = redis.call('GET', KEYS[5])
if not marker then
  marker = 'claimed' .. ARGV[1]
  redis.call('SET', KEYS[5], marker)
end
--- include "now-ms"
local has_body = string.find(marker, '{', 1, true) -- it is what a re-drive sends
if has_body then redis.call('ZADD', KEYS[6], 'NX', now_ms, batch.batchId) end
return { 'claimed', refused, elsewhere }
