import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { Buyers } from '../chaos/harness/buyers.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { ask } from '../chaos/harness/http.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { found } from '../chaos/harness/wait.js';

interface Trace {
  readonly userId: string;
  readonly state: string;
  readonly sentence: string;
  readonly steps: readonly {
    readonly at: string | null;
    readonly source: string;
    readonly what: string;
    readonly detail: string;
  }[];
  readonly timeline: readonly { readonly stage: string; readonly state: string; readonly at: string | null }[];
}

describe('trace of a purchase', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    const env = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' };
    [api] = await Promise.all([
      programs.start('api', { env: { PAYMENT_PROVIDER: 'simulator' } }),
      programs.start('worker'),
      programs.start('keeper', { env }),
    ]);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const seckill = (...args: string[]): Promise<CommandEnd> => runCommand(args, system.stack.env);
  const byHttp = async (id: string, query = ''): Promise<Trace[]> => {
    const token = buyersOf('1').token('root', ['admin']);
    const { json } = await ask(`${api.operatorsUrl}/admin/v1/requests/${id}${query}`, { token });
    return (json.purchases ?? []) as Trace[];
  };
  const words = ({ steps }: Trace): string[] => steps.map(({ what }) => what);

  async function ordered(buyers: Buyers, userId: string, requestId: string): Promise<string> {
    expect((await buyers.buy(userId, { requestId }))?.status).to.equal(202);
    const { json } = await buyers.status(userId, requestId, 20);
    expect(json.status).to.equal('ordered');
    return String(json.orderId);
  }
  const move = async (buyers: Buyers, userId: string, orderId: string, verb: 'pay' | 'cancel'): Promise<void> => {
    const token = buyers.token(userId);
    const { status, text } = await ask(`${api.url}/v1/orders/${orderId}/${verb}`, { method: 'POST', token });
    expect(status, text).to.equal(200);
  };
  const fresh = (): string => `k-${randomBytes(6).toString('hex')}`;

  it('shows the whole life of a purchase that was paid, released or refused', async () => {
    const { saleId } = await openSale(system.stack, { stock: 2 });
    const buyers = buyersOf(saleId);
    const [key, cancelledKey, refusedKey] = [fresh(), fresh(), fresh()];
    const paidId = await ordered(buyers, 'ann', key);
    await move(buyers, 'ann', paidId, 'pay');
    const cancelledId = await ordered(buyers, 'bob', cancelledKey);
    expect((await buyers.buy('cid', { requestId: refusedKey }))?.json.code).to.equal('sold_out');

    const [refused, paid] = await Promise.all([
      seckill('trace', refusedKey, '--sale', saleId, '--user', 'cid'),
      found('the trace of the paid order', async () => {
        const [trace] = await byHttp(paidId);
        return trace?.sentence.includes('nothing more happens') ? trace : null; // the coupon has arrived
      }),
    ]);
    expect(refused.code).to.equal(1);
    expect(refused.stderr)
      .to.contain(refusedKey)
      .and.to.contain('A request for one unit now would be answered sold_out.');
    expect(paid).to.include({ userId: 'ann', saleId, requestId: key, state: 'paid' });
    expect(words(paid)).to.include.members([
      'recorded',
      'payment',
      'paid',
      'coupon',
      'outbox_written',
      'outbox_done',
      'marker',
      'request',
      'sale',
      'half_stored',
      'committed',
    ]);
    const stations = paid.timeline.map(({ stage, state }) => `${stage} ${state}`);
    expect(stations, 'the events may be under way').to.include.members([
      'half done',
      'deduct done',
      'commit done',
      'delivery done',
      'row done',
      'payment done',
    ]);
    for (const { stage, at } of paid.timeline.filter(({ stage }) => ['half', 'commit', 'row'].includes(stage))) {
      expect(at, stage).not.to.equal(null);
    }
    const atMs = paid.steps.map(({ at }) => (at === null ? Infinity : Date.parse(at)));
    expect(atMs).to.deep.equal(atMs.toSorted((a, b) => a - b));

    await move(buyers, 'bob', cancelledId, 'cancel');
    const released = await found('the units to be back', async () => {
      const [trace] = await byHttp(cancelledKey, `?saleId=${saleId}`);
      return trace?.sentence.includes('nothing more happens') ? trace : null;
    });
    expect(released.state).to.equal('cancelled');
    expect(released.steps.find(({ what }) => what === 'request')?.detail).to.equal(`released:${cancelledId}:1`);
    const command = await seckill('trace', key, '--json');
    expect([command.code, command.lines.length], command.stderr).to.deep.equal([0, 1]);
    const [line] = command.lines as unknown as Trace[];
    const sources = (trace?: Trace) => trace?.steps.filter(({ source }) => source !== 'broker');
    const [again] = await byHttp(paidId); // by now, the units of the other purchase are back
    expect(sources(line)).to.deep.equal(sources(again));
    expect(words(line as Trace)).to.include.members(['half_stored', 'committed']);
  });
});
