-- own-run: own_run names this run of this server: its run id, and the offset at which it was last promoted. A bucket
-- that was loaded on another run may have lost data (protocol rule 11).
local own_run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  .. string.match(redis.call('INFO', 'replication'), 'second_repl_offset:(%S+)')
