-- read-line: advances the line of a waiting room at its set rate, and returns it.
-- KEYS[1]  sk:{room:<saleId>}:line    the line, JSON; see lua/include/line.lua
-- KEYS[2]  sk:{room:<saleId>}:places  userId -> '<epoch> <class> <number> <end of the pass, Unix ms; 0 before a pass>'
-- KEYS[3]  sk:{room:<saleId>}:lots    userId by class + lot
-- ARGV[1]  when the sale opens, Unix ms      ARGV[2]  buyers per second      ARGV[3]  time to use a turn, ms
-- ARGV[4]  the line that the caller read last, or ''      ARGV[5]  1 if a new line is by lot
-- Returns the line
--- include "line"
local opens_at_ms = tonumber(ARGV[1])
local line = read_line(KEYS[1], ARGV[4], ARGV[5] == '1')
open_line(line, opens_at_ms)
advance(line, tonumber(ARGV[2]), tonumber(ARGV[3]))
return store_line(line, opens_at_ms, KEYS[1], KEYS[2], KEYS[3])
