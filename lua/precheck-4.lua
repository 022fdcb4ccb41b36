-- precheck: checks the purchases of a future batch without changes, so that a refusal costs no half message.
-- Purchases count in order: a later one does not find the units of an earlier one.
-- KEYS[1]  sk:{saleId:bucket}:stock      units left
-- KEYS[2]  sk:{saleId:bucket}:sale       state, epoch, window, limit, run_id of the server it was loaded or rebuilt on
-- KEYS[3]  sk:{saleId:bucket}:buyers     userId -> units held or ordered
-- KEYS[4]  sk:{saleId:bucket}:requests   userId/requestId -> entry
-- ARGV[1]  purchases, JSON: [[userId, requestId, quantity in units], ...]
-- ARGV[2]  buckets that the sale has as the caller knows it, or '' for any
-- Returns {epoch (0: not loaded), units left (-1: the sale does not sell), buckets of the sale (0: not known), then index
-- (from 0), word, entry for each refused purchase}; the words, in order of precedence:
--   loading           the sale is not loaded, in repair, or on another server than it was loaded on: data may be lost;
--                     or it was resharded, so that its buyers may belong to another bucket
--   replayed          this key was accepted before; the entry has its state
--   request_conflict  this key was accepted for another quantity
--   paused            the sale is paused
--   closed            the sale is closed, by hand or by its window
--   not_open          the sale has not opened
--   limit_reached     the buyer would have more than limit_per_buyer units
--   sold_out          fewer units are left than asked for
local purchases = cjson.decode(ARGV[1])

--- include "own-run"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'opens_at', 'closes_at', 'limit_per_buyer', 'run_id',
  'buckets')
local state, epoch, limit = sale[1], tonumber(sale[2]) or 0, tonumber(sale[5])
local resharded = ARGV[2] ~= '' and sale[7] and sale[7] ~= ARGV[2]
--- include "window"
local uncertain = not state or state == 'repair' or sale[6] ~= own_run or resharded
local closed = not uncertain and closed_by(state, sale[3], sale[4])

--- include "purchases"

local reply, taken, available = { epoch, (uncertain or closed) and -1 or left, tonumber(sale[7]) or 0 }, {}, left
for i, purchase in ipairs(purchases) do
  local user, quantity, entry = purchase[1], purchase[3], entries[i]
  local units = (taken[user] or 0) + quantity
  local word
  if uncertain then word, entry = 'loading', nil -- the entry may be outdated
  elseif entry then
    word = tonumber(string.match(entry, ':(%d+)$')) == quantity and 'replayed' or 'request_conflict'
  elseif closed then word = closed
  elseif (tonumber(bought[i]) or 0) + units > limit then word = 'limit_reached'
  elseif available < quantity then word = 'sold_out'
  else
    taken[user] = units
    available = available - quantity
  end
  if word then
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = i - 1, word, entry or ''
  end
end
return reply
