-- issue-token: issues the one purchase token of a buyer, if it is time and one is left. Safe to repeat.
-- KEYS[1]  sk:{entry}:tokens:<saleId>   userId -> '' (issued) or the requestId that the token was redeemed for
-- ARGV[1]  userId
-- ARGV[2]  from when tokens are issued, Unix ms
-- ARGV[3]  until when, Unix ms
-- ARGV[4]  tokens of this sale
-- ARGV[5]  how long the key is kept after that, ms
-- Returns {word, now on the clock of this server in Unix ms}; the words, in order of precedence:
--   too_early       the time in ARGV[2] has not come
--   too_late        the time in ARGV[3] is over
--   handed_before   the buyer has one already
--   none_left       all tokens are issued
--   handed          the token was issued now
--- include "now-ms"
if now_ms < tonumber(ARGV[2]) then return { 'too_early', now_ms } end
if now_ms >= tonumber(ARGV[3]) then return { 'too_late', now_ms } end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return { 'handed_before', now_ms } end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return { 'none_left', now_ms } end

redis.call('HSET', KEYS[1], ARGV[1], '')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(ARGV[3]) + tonumber(ARGV[5])))
return { 'handed', now_ms }
