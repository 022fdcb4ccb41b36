-- edit: changes the units left in a loaded bucket and the end of its window; makes each edit once.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id, closes_at (ms), edit: <id>:<epoch>:<word> of the last one
-- ARGV[1]  id of the edit; larger than that of the sale's previous edit, which has ended
-- ARGV[2]  epoch that the edit belongs to      ARGV[3]  units to add; if negative: units to take, all or none
-- ARGV[4]  closes_at, ms      ARGV[5]  1: if too few units are left, refuse the edit for good
-- Returns {word, units left}, in order of precedence:
--   unavailable   the bucket is not loaded, in repair or in need of it, or has an older epoch
--   moved         the bucket was rebuilt since; nothing was changed
--   refused       this edit was refused for good, now or before
--   done          this edit was made, now or before
--   not_enough    too few units are left to take; nothing was changed
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id', 'edit')
local left, epoch, units = tonumber(redis.call('GET', KEYS[1])), tonumber(sale[2]), tonumber(ARGV[3])
--- include "own-run"
if not left or not sale[1] or sale[1] == 'repair' or sale[3] ~= own_run then return { 'unavailable', left or 0 } end
if epoch < tonumber(ARGV[2]) then return { 'unavailable', left } end
if epoch > tonumber(ARGV[2]) then return { 'moved', left } end

local id, of, ended = string.match(sale[4] or '', '^(%d+):(%d+):(%a+)$')
if id and tonumber(of) == epoch and tonumber(id) >= tonumber(ARGV[1]) then
  if id == ARGV[1] and ended == 'refused' then return { 'refused', left } end
  return { 'done', left }
end
local mark = ARGV[1] .. ':' .. ARGV[2] .. ':'
if left + units < 0 then
  if ARGV[5] ~= '1' then return { 'not_enough', left } end
  redis.call('HSET', KEYS[2], 'edit', mark .. 'refused')
  return { 'refused', left }
end
if units ~= 0 then left = redis.call('INCRBY', KEYS[1], units) end
redis.call('HSET', KEYS[2], 'closes_at', ARGV[4], 'edit', mark .. 'done')
return { 'done', left }
