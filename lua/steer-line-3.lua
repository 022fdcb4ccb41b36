-- steer-line: lets an operator admit buyers in addition to the set rate, or empty the waiting room.
-- KEYS[1]  sk:{room:<saleId>}:line    the line, JSON; see lua/include/line.lua
-- KEYS[2]  sk:{room:<saleId>}:places  userId -> '<epoch> <class> <number> <end of the pass, Unix ms; 0 before a pass>'
-- KEYS[3]  sk:{room:<saleId>}:lots    userId by class + lot
-- ARGV[1]  buyers to admit, -1 to empty the room
-- Returns {word, number of buyers}; the words, in order of precedence:
--   no_room    no buyer has joined, or the room has ended
--   emptied    the places of these buyers have ended
--   not_open   the sale has not opened
--   admitted   these buyers were let in
--- include "line"
if redis.call('EXISTS', KEYS[1]) == 0 then return { 'no_room', 0 } end
local line, places = read_line(KEYS[1], '', false), tonumber(ARGV[1])
if places < 0 then
  local waiting = 0
  for class = 1, 3 do waiting = waiting + line.joined[class] - line.admitted[class] end
  local empty = new_line(line.epoch + 1, line.byLot)
  empty.opened, empty.atMs = line.opened, line.atMs
  redis.call('SET', KEYS[1], cjson.encode(empty), 'KEEPTTL')
  redis.call('UNLINK', KEYS[2], KEYS[3])
  return { 'emptied', waiting }
end
if not line.opened then return { 'not_open', 0 } end
local admitted = let_in(line, places)
line.granted = line.granted + admitted
redis.call('SET', KEYS[1], cjson.encode(line), 'KEEPTTL')
return { 'admitted', admitted }
