-- now-ms: now_ms is the time of this server, Unix ms.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
