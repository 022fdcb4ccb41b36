import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import type { Arena } from '../arena.js';
import { biteInTries } from '../harness/bite-in-tries.js';
import { expectEqual } from '../harness/expect.js';
import { endOfLog } from '../harness/lost-writes.js';
import type { Program } from '../harness/programs.js';
import { mendServers } from '../harness/stack-hands.js';
import { KILLS_MAX, underLoad } from '../harness/under-load.js';
import type { Row } from '../row.js';

// L2: the whole machine goes down at once.

/** @returns the api; its batches leave one after the other, so that some are under way at any moment */
async function startAll(arena: Arena): Promise<Program> {
  const env = { BATCH_GATHER_MS: '0' };
  const [api] = await Promise.all([arena.start('api', { env }), arena.start('worker'), arena.start('keeper')]);
  return api;
}

/** kill -9 of every program and every server, none before another. */
async function killEverything(arena: Arena): Promise<void> {
  const { stack, programs } = arena;
  const servers = SERVER_NAMES.map((name) => stack.servers.server(name));
  const ran = servers.every((server) => server.pid() !== null);
  const [exits] = await Promise.all([
    Promise.all(programs.running.map((program) => program.crash())),
    ...servers.map((server) => server.stop({ signal: 'SIGKILL' })),
  ]);
  await arena.bite('every program and every server was killed', () => {
    const gone = servers.every((server) => server.pid() === null);
    return ran && gone && exits.length === 3 && exits.every(({ signal }) => signal === 'SIGKILL');
  });
}

const EVERYTHING: Row = {
  id: 'L2',
  title: 'kill -9 of every program and every server at once under load, then a new start: every open batch ends',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [{ saleId }, first] = await Promise.all([arena.openSale({ stock: 100_000 }), startAll(arena)]);
    let api = first;
    const buyers = arena.buyers(saleId, () => [api]);
    const { opLog } = buyers;
    await biteInTries(arena, 'purchases were under way and batches open', KILLS_MAX, async (tries) => {
      const rush = { parallel: 48, accepted: random.whole(300, 900), prefix: `load-${tries}` };
      const { unheard } = await underLoad(arena, buyers, rush, () => killEverything(arena));
      await mendServers(stack.servers);
      await endOfLog(stack); // we are connected again
      const open = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
      api = await startAll(arena);
      return unheard > 0 && open > 0;
    });
    arena.faultEnded();

    await arena.until(
      'who does not know hears the truth',
      async () => {
        await buyers.askAgain();
        return opLog.count('unknown') === 0;
      },
      60_000,
      1000,
    );
    const { rows, sold } = await arena.rest(saleId);
    expectEqual([rows, sold], [opLog.count('ok'), opLog.count('ok')], 'rows, units, and buyers who heard yes');
  },
};

export const RESTART_ROWS: readonly Row[] = [EVERYTHING];
