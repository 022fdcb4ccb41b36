-- take-permits: checks requests to one endpoint against its three limits, and counts those that are allowed.
-- A request that one limit refuses is counted by no limit. The windows of addresses and users slide in ten slices: the
-- present one and the ten before count, so every request within the window counts, and some that are up to a tenth
-- older. A subject is one field: its slices, the oldest first, each with its number of requests. Two generations of
-- subjects take turns, each as long as the window, so that inactive subjects are dropped at once. A new subject beyond
-- the cap is not counted, and that limit does not apply to it.
-- KEYS[1]  sk:{entry}:bucket:<endpoint>                 shared: `tokens` left, in millionths, and `at_us`, when
-- KEYS[2]  sk:{entry}:window:<endpoint>:ip:<ms>:even    address -> slices; the field '' is the generation
-- KEYS[3]  sk:{entry}:window:<endpoint>:ip:<ms>:odd     the same
-- KEYS[4]  sk:{entry}:window:<endpoint>:user:<ms>:even  the same, of users
-- KEYS[5]  sk:{entry}:window:<endpoint>:user:<ms>:odd   the same, of users
-- ARGV[1]  requests, JSON: [[address, user], ...]; '' where it is not known
-- ARGV[2]  requests of an address in its window; 0: no such limit
-- ARGV[3]  window of an address, ms
-- ARGV[4]  requests of a user in the window; 0: no such limit
-- ARGV[5]  window of a user, ms
-- ARGV[6]  subjects of one generation, at most
-- ARGV[7]  tokens that come back per second; 0: no such limit
-- ARGV[8]  tokens in a full bucket
-- Returns {now (us), then for each request: word, for the windows of address and user how many requests are left (-1: it
-- does not count here) and how many slices ago its oldest was, and the tokens left, in millionths}; the words:
--   rate_limited  one of the limits is reached
--   allowed       allowed and counted
local SLICES, TOKEN = 10, 1000000
local visits, time, rate, full = cjson.decode(ARGV[1]), redis.call('TIME'), tonumber(ARGV[7]), ARGV[8] * TOKEN
local now_us = time[1] * 1000000 + time[2]

local function slices_of(record, slice)
  local own, old = { total = 0, list = {} }, record and cmsgpack.unpack(record) or {}
  for i = 1, #old, 2 do
    if old[i] >= slice - SLICES and old[i] <= slice then
      own.total, own.list[#own.list + 1], own.list[#own.list + 2] = own.total + old[i + 1], old[i], old[i + 1]
    end
  end
  return own
end

local function open_window(place, most, window_ms, even, odd)
  local slice = math.floor(now_us / (window_ms * 1000 / SLICES))
  local window = { place = place, most = most, slice = slice, subjects = {}, key = even, changes = {} }
  if most == 0 then return window end
  local turn, previous, names = math.floor(slice / SLICES), odd, {}
  if turn % 2 == 1 then window.key, previous = odd, even end
  window.life_ms, window.changes = 2 * window_ms, { '', turn }
  if tonumber(redis.call('HGET', window.key, '')) ~= turn then redis.call('UNLINK', window.key) end
  for i, visit in ipairs(visits) do names[i] = visit[place] end
  local known, before = redis.call('HMGET', window.key, unpack(names)), redis.call('HMGET', previous, unpack(names))
  local crowded = redis.call('HLEN', window.key) > tonumber(ARGV[6])
  for i, name in ipairs(names) do
    local counted = name ~= '' and not window.subjects[name] and (known[i] or not crowded)
    if counted then window.subjects[name] = slices_of(known[i] or before[i], slice) end
  end
  return window
end

local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at_us')
local tokens = math.min(full, (tonumber(bucket[1]) or full) + math.max(0, now_us - (tonumber(bucket[2]) or 0)) * rate)
local windows = { open_window(1, tonumber(ARGV[2]), tonumber(ARGV[3]), KEYS[2], KEYS[3]) }
windows[2] = open_window(2, tonumber(ARGV[4]), tonumber(ARGV[5]), KEYS[4], KEYS[5])
local reply = { now_us }
for _, visit in ipairs(visits) do
  local word, at = rate > 0 and tokens < TOKEN and 'rate_limited' or 'allowed', #reply
  for _, window in ipairs(windows) do
    local own = window.subjects[visit[window.place]]
    if own and own.total >= window.most then word = 'rate_limited' end
  end
  if word == 'allowed' then tokens = tokens - TOKEN end
  for i, window in ipairs(windows) do
    local own, changes, slice = window.subjects[visit[window.place]], window.changes, window.slice
    if own and word == 'allowed' then
      local last = own.list[#own.list - 1] == slice and #own.list - 1 or #own.list + 1
      own.list[last], own.list[last + 1], own.total = slice, (own.list[last + 1] or 0) + 1, own.total + 1
      changes[#changes + 1], changes[#changes + 2] = visit[window.place], cmsgpack.pack(own.list)
    end
    reply[at + 2 * i] = own and math.max(0, window.most - own.total) or -1
    reply[at + 2 * i + 1] = own and own.list[1] and slice - own.list[1] or -1
  end
  reply[at + 1], reply[at + 6] = word, tokens
end
local changes = rate > 0 and { 'tokens', tokens, 'at_us', now_us } or {}
windows[3] = { key = KEYS[1], life_ms = full / rate / 1000, changes = changes } -- by then the bucket is full again
for _, window in ipairs(windows) do
  if #window.changes > 2 then redis.call('HSET', window.key, unpack(window.changes)) end
  if #window.changes > 2 then redis.call('PEXPIRE', window.key, math.ceil(window.life_ms)) end
end
return reply
