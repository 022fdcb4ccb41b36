-- read-transfers: reads, in one step, the units of a bucket and its last transfers to and from every other bucket.
-- KEYS[1]  sk:{saleId:bucket}:stock  units left
-- KEYS[2]  sk:{saleId:bucket}:sale   state, epoch, run_id
-- KEYS[3]  sk:{saleId:bucket}:moves  lent:<bucket> -> seq:units:open|closed:time in ms, borrowed:<bucket> -> seq
-- ARGV[1]  buckets of the sale, as the caller knows it
-- Returns {1, or 0 when the bucket is not loaded, in repair, on another server than it was loaded on, or of a sale that
-- has another number of buckets; epoch, units left, time in ms, then for each bucket of the sale, from 0: the last
-- transfer to it or '', seq of the last transfer from it or 0}
--- include "own-run"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id', 'buckets')
local left = redis.call('GET', KEYS[1])
local certain = left and sale[1] and sale[1] ~= 'repair' and sale[3] == own_run
if sale[4] and sale[4] ~= ARGV[1] then certain = false end

local fields = {}
for bucket = 0, ARGV[1] - 1 do
  fields[#fields + 1], fields[#fields + 2] = 'lent:' .. bucket, 'borrowed:' .. bucket
end
local moves = redis.call('HMGET', KEYS[3], unpack(fields))
--- include "now-ms"
local reply = { certain and 1 or 0, tonumber(sale[2]) or 0, tonumber(left) or 0, now_ms }
for i = 1, #fields, 2 do
  reply[i + 4], reply[i + 5] = moves[i] or '', tonumber(moves[i + 1]) or 0
end
return reply
