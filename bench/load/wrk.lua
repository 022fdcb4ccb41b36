-- Drives wrk with prepared buyers: every request has its own, none comes twice, and no answer is cut off.
-- Arguments after `--`: file of buyers, bytes per record, first record, records, threads, connections of a thread,
-- ms of load, head and tail of the request. The `request` function returns a whole request, so wrk formats nothing.
-- wrk asks `delay` after every answer and before the first request of a connection. That is where the end is made: a
-- connection that gets PARKED_MS sends nothing more, and when all have their answer the script says so.
local ffi = require('ffi')
ffi.cdef([[
typedef struct { long seconds; long nanoseconds; } bench_time;
int clock_gettime(int clock, bench_time *time);
]])

local PARKED_MS = 3600000
-- What a connection that had to reconnect sends when no buyer is left: it is answered 2xx and counted as stray.
local STRAY = 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

local C, time = ffi.C, ffi.new('bench_time')
local function now_ms()
  C.clock_gettime(0, time)
  return tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1e6
end

local threads = {}
function setup(thread)
  threads[#threads + 1] = thread
  thread:set('thread_index', #threads)
end

local file, record_bytes, head, tail, connections, load_ms, stop_at_ms
local turns, verified, reported = 0, false, false
reserved, sent, stray, started_at_ms, ended_at_ms = 0, 0, 0, 0, 0

function init(args)
  local records, thread_count = tonumber(args[4]), tonumber(args[5])
  record_bytes, connections, load_ms = tonumber(args[2]), tonumber(args[6]), tonumber(args[7])
  head, tail = args[8], args[9]
  buyers = math.floor(records / thread_count)
  file = assert(io.open(args[1], 'rb'))
  file:setvbuf('full', 1048576)
  file:seek('set', (tonumber(args[3]) + (thread_index - 1) * buyers) * record_bytes)
end

-- Before anything else wrk asks the first thread for one request to look at; it is not sent.
function request()
  if thread_index == 1 and not verified then
    verified = true
    return STRAY
  end
  local record = sent < buyers and file:read(record_bytes) or nil
  if not record then
    stray = stray + 1
    return STRAY
  end
  if sent == 0 then
    started_at_ms = now_ms()
    stop_at_ms = started_at_ms + load_ms
  end
  sent = sent + 1
  return head .. record .. tail
end

function delay()
  turns = turns + 1
  local now = now_ms()
  ended_at_ms = now
  if reserved < buyers and not (stop_at_ms and now >= stop_at_ms) then
    reserved = reserved + 1
    return 0
  end
  if not reported and turns - connections >= sent then
    reported = true
    io.stderr:write('drained\n')
    io.stderr:flush()
  end
  return PARKED_MS
end

function done(summary, latency)
  local total = { sent = 0, stray = 0, ran_out = 0 }
  local first, last
  for _, thread in ipairs(threads) do
    local started = thread:get('started_at_ms')
    total.sent = total.sent + thread:get('sent')
    total.stray = total.stray + thread:get('stray')
    if thread:get('reserved') >= thread:get('buyers') then total.ran_out = 1 end
    if started > 0 and (not first or started < first) then first = started end
    last = math.max(last or 0, thread:get('ended_at_ms'))
  end
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"sent":%d,"stray":%d,"ranOut":%d,"startedAtMs":%.3f,"endedAtMs":%.3f,"answered":%d,"refused":%d,' ..
    '"socketErrors":%d,"timeouts":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\n',
    total.sent, total.stray, total.ran_out, first or 0, last or 0, summary.requests, errors.status,
    errors.connect + errors.read + errors.write, errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max
  ))
end
