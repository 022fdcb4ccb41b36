-- resolve: makes the outcome of one batch final and returns it, for the check-back and after a lost reply of deduct.
-- First writer of the marker wins: once it says `aborted`, a late deduct refuses (protocol rule 1).
-- KEYS[1]  sk:{saleId:bucket}:tx:<batchId>  marker
-- KEYS[2]  sk:{saleId:bucket}:sale          state, epoch, run_id
-- ARGV[1]  epoch of the batch      ARGV[2]  life of an aborted marker, ms
-- Returns, in order of precedence:
--   deducted | claimed   the units are held: commit
--   aborted              the units are not held and never will be: roll back
--   no_answer            no marker, and none may be written: the sale is not loaded, in repair, on another server than
--                        it was loaded on, or of an earlier epoch than the batch
--   outlived             no marker, but the sale was rebuilt since: marker and units may be lost. Commit (rule 13)
local marker = redis.call('GET', KEYS[1])
if marker then return string.match(marker, '^%a+') end

--- include "own-run"
local sale = redis.call('HMGET', KEYS[2], 'state', 'epoch', 'run_id')
if not sale[1] or sale[1] == 'repair' or sale[3] ~= own_run then return 'no_answer' end
local epoch, batch_epoch = tonumber(sale[2]), tonumber(ARGV[1])
if batch_epoch > epoch then return 'no_answer' end
if batch_epoch < epoch then return 'outlived' end

redis.call('SET', KEYS[1], 'aborted', 'PX', ARGV[2])
return 'aborted'
