-- take-place: gives a buyer a place in the line of a waiting room, finds it again, or turns it into a pass. Safe to repeat.
-- KEYS[1]  sk:{room:<saleId>}:line    the line, JSON; see lua/include/line.lua
-- KEYS[2]  sk:{room:<saleId>}:places  userId -> '<epoch> <class> <number> <end of the pass, Unix ms; 0 before a pass>'
-- KEYS[3]  sk:{room:<saleId>}:lots    userId by class + lot
-- ARGV[1]  when the sale opens, Unix ms      ARGV[2]  buyers per second      ARGV[3]  time to use a turn, ms
-- ARGV[4]  the line that the caller read last, or ''      ARGV[5]  1 if a new line is by lot
-- ARGV[6]  userId      ARGV[7]  class, 0 to 2      ARGV[8]  lot, 0 to below 1
-- ARGV[9]  epoch of the ticket, 0 without a ticket      ARGV[10]  number in the ticket, 0 before the draw
-- ARGV[11] waiting buyers, at most      ARGV[12]  life of a pass, ms      ARGV[13]  last number admitted, as the ticket says
-- Returns {word, class, number, end of the pass, line}; the words, in order of precedence:
--   ended        the pass of this ticket is over, its turn has passed, or an operator emptied the room
--   overloaded   no place for a new buyer
--   admitted     the buyer has a pass
--   waiting      the buyer has a place; its number is 0 before the draw
--- include "line"
local WAITS_AGAIN = 1 -- replaces the end of the pass, so that an old ticket no longer counts
local places, lots, user = KEYS[2], KEYS[3], ARGV[6]
local opens_at_ms, class, number = tonumber(ARGV[1]), tonumber(ARGV[7]), tonumber(ARGV[10])
local ticket_epoch, until_ms, is_stored = tonumber(ARGV[9]), 0, false
local line = read_line(KEYS[1], ARGV[4], ARGV[5] == '1')
if ticket_epoch > line.epoch then line = new_line(ticket_epoch, line.byLot) end -- Redis lost the room
open_line(line, opens_at_ms)
local function answer(word)
  local text = store_line(line, opens_at_ms, KEYS[1], places, lots)
  return { word, class, number, string.format('%.0f', until_ms), text }
end

local place = redis.call('HGET', places, user)
local epoch, own_class, own_number, own_until = string.match(place or '', '^(%d+) (%d) (%d+) (%d+)$')
if tonumber(epoch) == line.epoch then
  until_ms, own_number = tonumber(own_until), tonumber(own_number)
  local ticket_fits = until_ms == 0 and ticket_epoch == line.epoch and number > 0 and class == tonumber(own_class)
  is_stored = not ticket_fits or own_number <= number -- a smaller number in a ticket dates from before a fail-over
  class, number = tonumber(own_class), is_stored and own_number or number
elseif ticket_epoch > 0 and ticket_epoch < line.epoch then
  return answer('ended')
end
if until_ms > now_ms then return answer('admitted') end
local is_over = until_ms > WAITS_AGAIN or (number > 0 and number <= line.gone[class + 1])
if is_over and ticket_epoch > 0 then return answer('ended') end
if is_over then number, until_ms, is_stored = 0, until_ms > 0 and WAITS_AGAIN or 0, false end

if number == 0 then
  local score = not is_over and line.byLot and redis.call('ZSCORE', lots, user)
  if score then class = math.floor(tonumber(score)) end
  local waiting = 0
  for each = 1, 3 do waiting = waiting + line.joined[each] - line.admitted[each] end
  if not score and waiting >= tonumber(ARGV[11]) then return answer('overloaded') end
  if line.byLot and not line.opened then
    redis.call('ZADD', lots, 'NX', string.format('%.15f', class + tonumber(ARGV[8])), user)
    local drawn = redis.call('ZCOUNT', lots, class, '(' .. (class + 1))
    line.joined[class + 1] = math.max(line.joined[class + 1], drawn)
    return answer('waiting')
  end
  number = score and redis.call('ZRANK', lots, user) - redis.call('ZCOUNT', lots, 0, '(' .. class) + 1
    or line.joined[class + 1] + 1
end
line.admitted[class + 1] = math.max(line.admitted[class + 1], tonumber(ARGV[13]))
line.joined[class + 1] = math.max(line.joined[class + 1], line.admitted[class + 1], number)
advance(line, tonumber(ARGV[2]), tonumber(ARGV[3]))
local word = 'waiting'
if number <= line.admitted[class + 1] then word, until_ms = 'admitted', now_ms + tonumber(ARGV[12]) end
if not is_stored or word == 'admitted' then
  local text = string.format('%d %d %d %.0f', line.epoch, class, number, until_ms)
  redis.call('HSET', places, user, text)
end
return answer(word)
