import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { type Program, readMetric } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

const OUTAGE_MS = 10_000;
/** A breaker that opens after seconds of failures and soon tries again. */
const BREAKER = {
  mode: 'on',
  windowMs: 2000,
  callsMin: 5,
  probe: { firstMs: 300, capMs: 1000 },
  trial: { calls: 2, waitMs: 300 },
};
const GREEDY = 5;
const LIMITS = { mode: 'on', purchase: { user: { limit: GREEDY, windowMs: 600_000 } } };

describe('overload: two APIs', () => {
  let apis: readonly [Program, Program];
  let token: string;
  const system = useSystem(async ({ programs }) => {
    const env = { MYSQL_QUERY_TIMEOUT_MS: '1000', REDIS_REPLY_TIMEOUT_MS: '500' };
    const [one, two] = await Promise.all([
      programs.start('api', { env }),
      programs.start('api', { env }),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } }),
    ]);
    apis = [one, two];
  });
  before(() => {
    token = new Buyers('1', system.stack.env.JWT_SECRET, () => []).token('boss', ['admin']);
  });
  /** Rules outlive the programs of this file. */
  afterEach(() => publish({}));

  const admin = (path: string, body?: object): Promise<Answer> =>
    ask(`${apis[0].operatorsUrl}/admin/v1/${path}`, {
      token,
      ...(body === undefined ? {} : { method: 'PUT' as const, body }),
    });

  async function publish(rules: object): Promise<void> {
    const { version } = (await admin('rules')).json;
    const { status, text } = await admin('rules', { version, rules });
    expect(status, text).to.equal(200);
    const published = Number(version) + 1;
    await until('every api has them', async () => {
      const inForce = await Promise.all(apis.map((api) => readMetric(api, 'seckill_admission_rules_version')));
      return inForce.every((one) => one >= published);
    });
  }

  it('keeps limits, answers reads and fails only with 503 while Redis is stopped, then recovers', async () => {
    await publish({ limits: LIMITS, breaker: BREAKER, degrade: { mode: 'on' } });
    const { saleId } = await openSale(system.stack, { stock: 10_000 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => apis.map(({ url }) => url));
    for (const { url } of [...apis, ...apis])
      expect((await buyers.buy('first', { url }))?.status).to.be.oneOf([200, 202]);
    for (const { url } of apis) await ask(`${url}/v1/sales/${saleId}`);
    const load = buyers.startLoad({ parallel: 8, pauseMs: 20, tries: 1 });

    const redis = system.stack.servers.server('redis');
    expect(redis.kill('SIGSTOP'), 'it was stopped').to.equal(true);
    const stoppedMs = performance.now();
    const answers: Answer[] = [];
    try {
      for (const api of apis) {
        await until('its breaker opens', async () => (await readMetric(api, REDIS_BREAKER)) === 2);
      }
      console.log(`      · both breakers open after ${(performance.now() - stoppedMs).toFixed(0)} ms`);
      for (let turn = 0; performance.now() - stoppedMs < OUTAGE_MS; turn++) {
        const { url } = apis[turn % 2] as Program;
        const token = buyers.token('first');
        answers.push(await ask(`${url}/v1/sales/${saleId}`));
        answers.push(await ask(`${url}/v1/sales/${saleId}/purchases/k1`, { token }));
        answers.push((await buyers.buy(`late-${turn}`, { url })) as Answer);
      }
      for (const api of apis) {
        const words = [];
        for (let i = 0; i <= GREEDY; i++) words.push((await buyers.buy('greedy', { url: api.url }))?.json.code);
        expect(words.at(-1), `${words}`).to.equal('rate_limited');
        expect(words.slice(0, GREEDY)).not.to.include('rate_limited');
        expect(await readMetric(api, 'seckill_admission_limit_requests_total{by="local"}')).to.be.above(0);
      }
    } finally {
      redis.kill('SIGCONT');
    }
    await load.stop();
    const words = countOf(answers.map(({ status, json }) => `${status} ${json.code ?? json.degraded ?? 'full'}`));
    console.log(`      · ${JSON.stringify(words)}`);
    for (const { status, headers, text } of answers.filter((answer) => answer.status >= 500)) {
      expect(status, text).to.equal(503);
      expect(headers, text).to.have.property('retry-after');
    }
    expect(words['200 L1'], 'reads were answered').to.be.above(0);
    expect(words['503 degraded'], 'purchases were refused at once').to.be.above(0);
    const reads = answers.filter((_, index) => index % 3 < 2);
    expect(reads.filter(({ status }) => status === 200).length / reads.length, 'of the reads').to.be.above(0.8);

    for (const { url } of apis) {
      let tries = 0;
      await until(
        'purchases are taken again',
        async () => (await buyers.buy(`back-${url.slice(-5)}-${tries++}`, { url }))?.status === 202,
      );
      await until('pages are full again', async () => {
        const page = await ask(`${url}/v1/sales/${saleId}`);
        return page.status === 200 && !('degraded' in page.json);
      });
    }
    for (const api of apis) {
      let more = 0;
      const closed = async (): Promise<boolean> => {
        await buyers.buy(`more-${api.pid}-${more++}`, { url: api.url });
        return (await readMetric(api, REDIS_BREAKER)) === 0;
      };
      await until('its breaker is closed', closed);
      expect(api.log, 'no bug').not.to.match(/"level":50/);
    }
    await buyers.retryUnknown();
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });
});

const REDIS_BREAKER = 'seckill_admission_breaker{dependency="redis"}';

function countOf(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
