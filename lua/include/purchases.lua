-- purchases: what a bucket knows about `purchases`: users and keys, entries and units of the buyers in their order, and
-- the units left. KEYS[1] is the stock, KEYS[3] the buyers, KEYS[4] the requests.
local users, keys = {}, {}
for i, purchase in ipairs(purchases) do
  users[i], keys[i] = purchase[1], purchase[1] .. '/' .. purchase[2]
end
local entries = redis.call('HMGET', KEYS[4], unpack(keys))
local bought = redis.call('HMGET', KEYS[3], unpack(users))
local left = tonumber(redis.call('GET', KEYS[1])) or 0
