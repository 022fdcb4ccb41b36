-- line: reads, advances and stores the line of a waiting room: one JSON text with a number per class, P0 first.
--   epoch      rises when an operator empties the room; a ticket of a smaller epoch has ended
--   joined     last number given out       admitted   last number whose turn has come
--   previous, gone   `admitted` one and two periods ago; the turns of all numbers up to `gone` passed unused
--   granted    buyers whom an operator admitted in addition to the rate
--- include "now-ms"
local FIGURES = { 'joined', 'admitted', 'previous', 'gone' }
local function new_line(epoch, is_by_lot)
  local line = { epoch = epoch, atMs = 0, credit = 0, period = 0, granted = 0, opened = false, byLot = is_by_lot }
  for _, name in ipairs(FIGURES) do line[name] = { 0, 0, 0 } end
  return line
end

-- `known_text` is what the caller read last. It restores what a fail-over lost; no figure ever falls.
local function read_line(key, known_text, is_by_lot)
  local stored, known = redis.call('GET', key), known_text ~= '' and cjson.decode(known_text) or nil
  local line = stored and cjson.decode(stored) or known or new_line(1, is_by_lot)
  if not known or known.epoch < line.epoch then return line end
  if known.epoch > line.epoch then return known end
  for _, name in ipairs(FIGURES) do
    for class = 1, 3 do line[name][class] = math.max(line[name][class], known[name][class]) end
  end
  line.granted, line.opened = math.max(line.granted, known.granted), line.opened or known.opened
  return line
end

-- Admits buyers, higher classes first, and returns their number.
local function let_in(line, places)
  local left = places
  for class = 1, 3 do
    local next_ones = math.min(left, line.joined[class] - line.admitted[class])
    line.admitted[class], left = line.admitted[class] + next_ones, left - next_ones
  end
  return places - left
end

-- A line that has opened stays open, even if the clock is set back.
local function open_line(line, opens_at_ms)
  if line.opened or now_ms < opens_at_ms then return end
  line.opened, line.atMs = true, opens_at_ms
end

-- Saves up at most one second of turns plus one place, so that no crowd is admitted after a pause. A paused line saves none.
local function advance(line, per_second, claim_ms)
  if not line.opened then return end
  local period = math.floor(now_ms / claim_ms)
  if period ~= line.period then
    line.gone, line.previous = line.previous, { line.admitted[1], line.admitted[2], line.admitted[3] }
    line.period = period
  end
  local earned = per_second * math.max(0, now_ms - line.atMs) / 1000
  local credit_max = per_second > 0 and 1 + per_second or 0
  line.credit, line.atMs = math.min(credit_max, line.credit + earned), now_ms
  line.credit = line.credit - let_in(line, math.floor(line.credit + 1e-9))
end

-- All keys of a room end one hour after the opening, or after the last call if that is later.
local KEPT_MS = 3600000
local function store_line(line, opens_at_ms, key, places, lots)
  local life_ms = string.format('%.0f', math.max(0, opens_at_ms - now_ms) + KEPT_MS)
  local text = cjson.encode(line)
  redis.call('SET', key, text, 'PX', life_ms)
  redis.call('PEXPIRE', places, life_ms)
  redis.call('PEXPIRE', lots, life_ms)
  return text
end
