import { claimedPorts } from '../../../deploy/local/stack/ports.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import type { Arena } from '../arena.js';
import { Buyers, userIds } from '../harness/buyers.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { fingerprintOf } from '../harness/fingerprint.js';
import { openSale } from '../harness/open-sale.js';
import { rowsOf } from '../harness/orders-of-sale.js';
import { bootBeside, restBeside } from '../harness/stack-beside.js';
import type { StackHands } from '../harness/stack-hands.js';
import { workLeft } from '../harness/undone-rows.js';
import type { Row } from '../row.js';

// L4: another stack on the same machine.

const LONG_MS = 400_000;

const portsOf = ({ servers }: StackHands): number[] => claimedPorts(servers.ports).map(({ port }) => port);
const pidsOf = ({ servers }: StackHands): (number | null)[] => SERVER_NAMES.map((name) => servers.server(name).pid());

/** Sells in a second system, from the first request to rest. @returns its orders */
async function sellBeside(arena: Arena, beside: StackHands, users: readonly string[]): Promise<number> {
  const [api] = await Promise.all(
    (['api', 'worker', 'keeper'] as const).map((name) => arena.start(name, { env: { ...beside.env } })),
  );
  const { saleId } = await openSale(beside, { stock: users.length });
  const buyers = new Buyers(saleId, beside.env.JWT_SECRET, () => [api?.url ?? '']);
  await buyers.rush(users, 8, { tries: 20 });
  const { rows } = await restBeside(beside, buyers);
  await buyers.close();
  return rows;
}

const BESIDE: Row = {
  id: 'L4',
  title: 'a second stack boots, sells and ends while the first one serves: other ports, no row, key or message touched',
  ...{ fast: false, alone: true },
  timeoutMs: LONG_MS,
  async run(arena) {
    const { stack, random } = arena;
    const [api, , keeper] = await Promise.all([arena.start('api'), arena.start('worker'), arena.start('keeper')]);
    const { saleId } = await arena.openSale({ stock: 500 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(10, 40));
    await buyers.rush(users, 8, { tries: 20 });
    await arena.rest(saleId);
    await arena.until('all news are out', async () => (await workLeft(stack)) === 0, 30_000);
    await keeper.stop(); // it would end what nobody has paid, also of earlier rows
    const [before, pids] = [await fingerprintOf(stack), pidsOf(stack)];
    const watched = buyers.watch(users);

    const beside = await bootBeside(arena, 'beside');
    const taken = new Set(portsOf(stack));
    expectEqual(
      portsOf(beside).filter((port) => taken.has(port)),
      [],
      'ports of both',
    );
    const others = userIds(random.whole(40, 80)); // the same names: in the first they would be found
    const sold = await sellBeside(arena, beside, others);
    await arena.bite(`a second system sold ${sold} units beside the first`, () => sold === others.length);
    await beside.servers.down();
    arena.faultEnded();

    await watched.stop();
    expectEqual(await fingerprintOf(stack), before, 'rows, keys and messages of the first');
    expectEqual(pidsOf(stack), pids, 'servers of the first');
    const late = userIds(5, 'late-');
    await buyers.rush(late, 5, { tries: 20 });
    await arena.until('it sells on', async () => (await rowsOf(stack, saleId)) === users.length + late.length, 30_000);
    expectFields(await arena.rest(saleId), { rows: users.length + late.length, failedRows: 0 }, 'orders of the first');
  },
};

export const SECOND_STACK_ROWS: readonly Row[] = [BESIDE];
