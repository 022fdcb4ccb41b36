import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import type { Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

/** Starts with the true time. SIGUSR2 sets the clock of the process five minutes ahead, SIGWINCH back. */
const SKEWED_CLOCK = `data:text/javascript,${encodeURIComponent(`
  const now = Date.now;
  const skewTo = (ms) => () => { Date.now = () => now() + ms; };
  process.on('SIGUSR2', skewTo(300000));
  process.on('SIGWINCH', skewTo(-300000));
`)}`;

describe('the window of a sale', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api', { preload: [SKEWED_CLOCK], env: { GATE_SNAPSHOT_CACHE_MS: '200' } }),
      programs.start('worker'),
    ]);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const brief = (answer: Answer | null): string => `${answer?.status} ${answer?.json.code ?? answer?.json.status}`;

  it('follows Redis time when the clock of an API is five minutes off [S8]', async () => {
    const nowMs = Date.now();
    const soon = await openSale(system.stack, { opensAtMs: nowMs + 200_000, closesAtMs: nowMs + 400_000 });
    const ending = await openSale(system.stack, { opensAtMs: nowMs - 60_000, closesAtMs: nowMs + 120_000 });
    const over = await openSale(system.stack, { opensAtMs: nowMs - 120_000, closesAtMs: nowMs - 60_000 });
    const skewOf = async (): Promise<number> => {
      const page = await fetch(`${api.operatorsUrl}/readyz`).then((response) => response.text());
      return Number(/clock skew (-?\d+) ms/.exec(page)?.[1]);
    };
    for (const [signal, skewMs] of [['SIGUSR2', 300_000] as const, ['SIGWINCH', -300_000] as const]) {
      api.signal(signal);
      await until('the clock is off', async () => Math.abs((await skewOf()) - skewMs) < 5000); // the clock was changed
      expect(brief(await buyersOf(soon.saleId).buy(`b${signal}`))).to.equal('409 not_open');
      expect(brief(await buyersOf(ending.saleId).buy(`b${signal}`))).to.equal('202 pending');
      expect(brief(await buyersOf(over.saleId).buy(`b${signal}`))).to.equal('409 closed');
    }
    expect(await expectInvariants(system.stack, ending.saleId)).to.include({ rows: 2, sold: 2 });
  });
});
