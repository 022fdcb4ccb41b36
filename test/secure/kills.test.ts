import { expect } from 'chai';
import { SERVER_NAMES } from '../../deploy/local/stack/servers/server-spec.js';
import { Buyers, isAccepted } from '../chaos/harness/buyers.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

const STOCK = 20;

describe('the secure stack after a server is killed', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', REPAIR_EVERY_MS: '100', REPAIR_QUIET_MS: '400' } }),
    ]);
  });

  for (const name of SERVER_NAMES) {
    it(`reconnects its programs after ${name}, and gives every purchase its order`, async () => {
      const { stack } = system;
      const sale = await openSale(stack, { stock: STOCK });
      const buyers = new Buyers(sale.saleId, stack.env.JWT_SECRET, () => [api.url]);
      expect(isAccepted(await buyers.buy('before', { tries: 10 }))).to.equal(true);

      const server = stack.servers.server(name);
      await server.stop({ signal: 'SIGKILL' });
      expect(server.pid(), 'it was killed').to.equal(null);
      const meanwhile = await buyers.buy('meanwhile'); // any answer is allowed
      await server.start();
      await server.waitReady();

      const again = async (userId: string): Promise<boolean> =>
        [200, 202].includes((await buyers.buy(userId))?.status ?? 0);
      await until('somebody buys', () => again('after'), { everyMs: 500 });
      await until('who bought meanwhile has an answer', () => again('meanwhile'), { everyMs: 500 });
      for (const userId of ['before', 'meanwhile', 'after']) {
        const ordered = async (): Promise<boolean> => (await buyers.status(userId, 'k1', 5)).json.status === 'ordered';
        await until(`${userId} has an order (meanwhile: ${meanwhile?.status})`, ordered);
      }
      const figures = await expectInvariants(stack, sale.saleId, buyers.opLog);
      expect(figures).to.include({ sold: 3, unitsLeft: STOCK - 3, rows: 3 });
    });
  }
});
