-- decide: makes the fate of one batch final and says it. Asked by the check-back and after a lost reply of deduct.
-- First writer of the marker wins: once `aborted` stands here, a late deduct refuses (protocol rule 1).
-- KEYS[1]  sk:{saleId:bucket}:tx:<batchId>  marker
-- KEYS[2]  sk:{saleId:bucket}:sale          state, epoch
-- ARGV[1]  epoch of the batch      ARGV[2]  life of an aborted marker, ms
-- Returns, in order of precedence:
--   deducted | claimed   the units are held: commit
--   aborted              they are not and never will be: roll back
--   no_answer            no marker, and none may be written: the sale is not loaded, in repair, or of another epoch
local marker = redis.call('GET', KEYS[1])
if marker then return string.match(marker, '^%a+') end

local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch')
if not sale[1] or sale[1] == 'repair' or tonumber(sale[2]) ~= tonumber(ARGV[1]) then return 'no_answer' end

redis.call('SET', KEYS[1], 'aborted', 'PX', ARGV[2])
return 'aborted'
