import { expect } from 'chai';
import type { Snapshot } from '../../src/contract/live.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { found, until } from '../chaos/harness/wait.js';
import { EventStreamClient } from '../helpers/event-stream-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

interface Second {
  readonly atMs: number;
  readonly won: number | null;
  readonly landed: number;
  readonly refused: Readonly<Record<string, number>> | null;
}

const sumOf = (counts: Readonly<Record<string, number>> | null): number =>
  Object.values(counts ?? {}).reduce((sum, times) => sum + times, 0);

describe('the console API', () => {
  let apis: Program[];
  let token: string;
  const system = useSystem(async ({ programs, stack }) => {
    const [one, other] = await Promise.all([
      programs.start('api'),
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } }),
    ]);
    apis = [one, other];
    token = new Buyers('1', stack.env.JWT_SECRET, () => []).token('ann', ['viewer']);
  });
  const clients: EventStreamClient[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.close()));

  const buyersOf = (saleId: string, urls = (): readonly string[] => apis.map(({ url }) => url)): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, urls);
  const read = (path: string, api: number): Promise<Answer> =>
    ask(`${(apis[api] as Program).operatorsUrl}/admin/v1${path}`, { token, timeoutMs: 30_000 });
  const listen = async (api: number): Promise<EventStreamClient> => {
    const url = `${(apis[api] as Program).operatorsUrl}/admin/v1/live`;
    const client = await EventStreamClient.open(url, { token });
    clients.push(client);
    return client;
  };
  const snapshots = (client: EventStreamClient): Snapshot[] =>
    client.events.map(({ data }) => data as unknown as Snapshot);

  it('streams the totals of both APIs and every running program from each API', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 12, limitPerBuyer: 1 });
    const consoles = await Promise.all([listen(0), listen(1)]);
    /** Collects the counts that a stream reported for each second with answers. */
    const told = (client: EventStreamClient): Map<number, { won: number; refused: number; landed: number }> => {
      const shown = snapshots(client).flatMap(({ sales }) => sales.filter((sale) => sale.saleId === saleId));
      const seconds = shown.map(({ secondAtMs, acceptedPerSecond, refusedPerSecond, landedPerSecond }) => {
        const figures = { won: acceptedPerSecond ?? 0, refused: sumOf(refusedPerSecond), landed: landedPerSecond ?? 0 };
        return [secondAtMs ?? 0, figures] as const;
      });
      return new Map(seconds.filter(([, { won, refused }]) => won + refused > 0));
    };
    const won = [0, 0];
    let asked = 0;
    await until(
      'both streams have told of buyers',
      async () => {
        const one = asked % 2;
        const answer = await buyersOf(saleId, () => [(apis[one] as Program).url]).buy(`buyer${asked++}`);
        if (answer?.status === 202) won[one] = (won[one] ?? 0) + 1;
        return asked >= 20 && consoles.every((client) => told(client).size > 0);
      },
      { everyMs: 20 },
    );
    expect(Math.min(...won), 'each api sold some').to.be.greaterThan(0);

    const seconds = await found('every answer and every order in the history', async () => {
      const { json } = await read(`/sales/${saleId}/seconds`, 1);
      const rows = (json as { seconds?: Second[] }).seconds ?? [];
      const total = (of: (second: Second) => number): number => rows.reduce((sum, second) => sum + of(second), 0);
      const isWhole =
        total((second) => (second.won ?? 0) + sumOf(second.refused)) === asked && total(({ landed }) => landed) === 12;
      return isWhole ? rows : null;
    });
    expect(seconds.reduce((sum, second) => sum + (second.won ?? 0), 0)).to.equal(12);
    for (const client of consoles) {
      for (const [atMs, { won: accepted, refused }] of told(client)) {
        const second = seconds.find((one) => one.atMs === atMs);
        expect([accepted, refused], 'a stream says what both apis answered').to.deep.equal([
          second?.won,
          sumOf(second?.refused ?? null),
        ]);
      }
    }

    const last = await found('a snapshot of the sale at rest', async () => {
      const snapshot = snapshots(consoles[1] as EventStreamClient).at(-1);
      const sale = snapshot?.sales.find((one) => one.saleId === saleId);
      return sale?.sold === 12 && sale.pending === 0 ? { ...snapshot, sale } : null;
    });
    expect(last.sale).to.deep.include({
      state: 'open',
      stock: 12,
      sold: 12,
      held: 0,
      left: 0,
      buckets: 1,
      waiting: null,
    });
    const kinds = (last.programs ?? []).map(({ kind, ready }) => `${kind} ${ready}`);
    expect(kinds).to.include.members(['api true', 'worker true', 'keeper true']);
    expect(kinds.filter((kind) => kind === 'api true')).to.have.length.at.least(2);
    expect(last.missing).to.deep.equal([]);
    await expectInvariants(stack, saleId);
  });
});
