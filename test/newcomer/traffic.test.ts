import { expect } from 'chai';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStack } from '../../deploy/local/stack/stack.js';
import { ask } from '../chaos/harness/http.js';
import { found, until } from '../chaos/harness/wait.js';
import { DemoRun, type DemoUp } from '../helpers/demo-run.js';

/** The first dead letter and the first kill take about half a minute, and minutes on a busy machine. */
const SEEN_WITHIN_MS = 300_000;

/** Does what `npm start -- --traffic --faults` does, in its own folder and on its own ports. */
describe('npm start with traffic and faults', function () {
  this.bail(true); // each step needs the previous step
  let dir: string;
  let demo: DemoRun;
  let up: DemoUp;

  const get = (path: string) => ask(`${up.operatorsUrl}/admin/v1${path}`, { token: up.viewerToken });
  /** Programs whose command line names our folder. */
  const alive = (): string[] =>
    readdirSync('/proc').filter((pid) => {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dir);
      } catch {
        return false; // the process has just ended
      }
    });

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'seckill-demo-'));
  });
  afterEach(function () {
    if (this.currentTest?.state === 'failed') console.log(demo?.stderr.slice(-4_000));
  });
  /** Adds the last output of the demo to the reason. */
  const saying = async <T>(waiting: Promise<T>): Promise<T> =>
    waiting.catch((error: unknown) => {
      throw new Error(`${String(error)}\n${demo.stderr.slice(-2_000)}`, { cause: error });
    });
  after(async () => {
    demo?.interrupt();
    await demo?.ended().catch(() => openStack({ dir }).down());
    rmSync(dir, { recursive: true, force: true });
  });

  it('names its pages, its metrics and the available sign-ins', async () => {
    demo = new DemoRun(dir, ['--traffic', '--faults']);
    up = await demo.up();
    expect(up).to.include({
      consoleUrl: `${up.operatorsUrl}/console`,
      buyerUrl: `${up.url}/s/${String(up.saleId)}#token=${String(up.token)}`,
    });
    for (const url of [`${up.operatorsUrl}/metrics`, ...up.metricsUrls])
      expect((await ask(url)).status, url).to.equal(200);
    expect((await get('/sales')).status, 'the viewer looks').to.equal(200);
    const change = { method: 'POST', body: { sku: 'x' } } as const;
    const asViewer = await ask(`${up.operatorsUrl}/admin/v1/sales`, { ...change, token: up.viewerToken });
    expect(asViewer.json.code, 'and changes nothing').to.equal('role_needed');
    const asAdmin = await ask(`${up.operatorsUrl}/admin/v1/sales`, { ...change, token: String(up.adminToken) });
    expect(asAdmin.json.code, 'the admin may, and is told what is wrong').to.equal('bad_request');
  });

  it('creates orders in several sales and gives buyers every possible answer', async () => {
    const landing = async (): Promise<boolean> => {
      const { sales } = (await get('/sales?state=open')).json as { sales: { sku: string; sold: number }[] };
      return sales.filter(({ sku, sold }) => sku.startsWith('demo-') && sold > 0).length >= 3;
    };
    await until('orders land in three sales', landing, { everyMs: 500, grantedMs: SEEN_WITHIN_MS });
    const heard = ['accepted', 'not_open', 'sold_out', 'limit_reached', 'unauthorized', 'request_conflict'];
    const answers = async (): Promise<string> => (await ask(`${up.operatorsUrl}/metrics`)).text;
    const missing = async (): Promise<string[]> => {
      const text = await answers();
      return heard.filter((code) => !text.includes(`seckill_http_answers_total{route="purchase",code="${code}"`));
    };
    await until('each answer was given', async () => (await missing()).length === 0, {
      everyMs: 500,
      grantedMs: SEEN_WITHIN_MS,
    });
    expect((await get('/rules')).json).to.have.nested.property('rules.queue.mode', 'on');
  });

  it('produces a dead letter, a worker that dies and returns, and an open half message', async () => {
    const { key } = await saying(
      found('a purchase is refused', async () => demo.found('fault', { fault: 'poisoned_batch' }), {
        grantedMs: SEEN_WITHIN_MS,
      }),
    );
    const said = async () => demo.lines.find((line) => line.key === key && line.deadLetterId !== undefined);
    const { deadLetterId } = await saying(found('its dead letter', said, { grantedMs: SEEN_WITHIN_MS }));
    // in any state, because the demo replays the dead letter after a minute
    const why = async (): Promise<unknown> => (await get(`/dead-letters/${String(deadLetterId)}`)).json.reason;
    await saying(until('it says why', async () => (await why()) === 'retries_exhausted'));

    const { pid } = await found('a worker is killed', async () => demo.found('fault', { fault: 'killed_worker' }), {
      grantedMs: SEEN_WITHIN_MS,
    });
    await until('it is gone', () => !isAlive(Number(pid)));
    await until('another one serves', () => /Restarted: worker consumes/.test(demo.stderr));

    const half = await found('an api died', async () => demo.found('fault', { fault: 'half_message' }), {
      grantedMs: SEEN_WITHIN_MS,
    });
    expect(half).to.include({ point: 'after_deduct' });
    const isFound = async (): Promise<boolean> => (await get(`/requests/${String(half.key)}`)).status === 200;
    await saying(until('its purchase is found', isFound));
  });

  it('reports the answers to buyers every half minute', async () => {
    const { counts } = await found('the first counts', async () => demo.found('traffic'));
    expect(counts).to.have.property('accepted').above(10);
    expect(demo.stderr).to.match(
      /Buyers, 30 s: \d+ purchase attempts: \d+ accepted, \d+ ordered.*; refused: .*sold out/,
    );
  });

  it('ends on Ctrl-C with correct books and leaves nothing behind', async () => {
    demo.interrupt();
    expect(await demo.ended(), demo.stderr).to.equal(0);
    const books = demo.found('books');
    expect(books).to.include({ right: true, outcome: 'match', undecided: 0, missing: 0, salesFailed: 0 });
    expect(books?.salesCompared).to.be.at.least(5);
    expect(books).to.have.nested.property('faults.dead_letters').at.least(1);
    expect(books).to.have.nested.property('faults.killed_worker').at.least(1);
    expect(demo.stderr).to.match(/Result: \d+ sales compared\. Redis and MySQL match/);
    expect(demo.found('not_json')).to.equal(undefined);
    expect(alive()).to.deep.equal([]);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
