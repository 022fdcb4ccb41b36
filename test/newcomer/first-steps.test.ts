import { expect } from 'chai';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openStack } from '../../deploy/local/stack/stack.js';
import { until } from '../chaos/harness/wait.js';
import { documentedCommands, isCoveredBy } from './documented-commands.js';
import { RUN_BY, RUN_HERE } from './how-commands-run.js';
import { runInShell } from './run-in-shell.js';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../deploy/local/main.mjs', import.meta.url));
const UP_TIMEOUT_MS = 240_000;

/** Does what `npm start` does, in its own folder and on its own ports. */
describe('the first steps of a newcomer', function () {
  this.bail(true); // each step needs the previous step
  let dir: string;
  let system: ChildProcess | undefined;
  let output = '';
  let [buy, look] = ['', ''];
  let order: Record<string, unknown>;

  const seckill = (...args: string[]): string[] => [MAIN, ...args];
  const up = (): string[] => seckill('up', '--dir', dir, '--free-ports', '--port', '0');
  /** Programs whose command line names our folder, and the system itself. */
  const alive = (): string[] =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dir);
        } catch {
          return false; // the process has just ended
        }
      });

  const printedOrder = async (): Promise<Record<string, unknown>> =>
    JSON.parse((await run('sh', ['-c', look])).stdout) as Record<string, unknown>;

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'seckill-up-'));
  });
  after(async () => {
    if (system?.pid !== undefined && system.exitCode === null) process.kill(-system.pid, 'SIGINT');
    await until('nothing is left', () => alive().length === 0).catch(() =>
      run(process.execPath, seckill('stack', 'down', '--force', '--dir', dir)),
    );
    rmSync(dir, { recursive: true, force: true });
  });

  it('starts with `npm start`, opens the printed page and console, and buys on the page', async () => {
    const startedMs = Date.now();
    system = spawn(process.execPath, up(), { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [system.stdout, system.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk));
    await until('it is up', () => output.includes('Ctrl-C stops everything') || system?.exitCode !== null, {
      grantedMs: UP_TIMEOUT_MS,
    });
    expect(system.exitCode, `npm start has ended: ${output}`).to.equal(null);
    console.log(`      · up in ${Math.round((Date.now() - startedMs) / 1000)} s`);

    const greeting = output.slice(output.indexOf('Seckill is up'));
    expect(greeting.trim().split('\n').length, greeting).to.be.at.most(10);
    expect(greeting).to.include('Payments are simulated: no money moves.');
    expect(output, 'no log line of a program').not.to.match(/^\{"level"/m);
    const [, url, saleId, token] = /^Page: +(\S+)\/s\/(\d+)#token=(\S+)$/m.exec(greeting) ?? [];
    const purchases = `${url}/v1/sales/${saleId}/purchases`;
    const signedIn = `-H 'Authorization: Bearer ${token}'`;
    buy = `curl -si -X POST ${purchases} ${signedIn} -H 'Idempotency-Key: first'`;
    look = `curl -s '${purchases}/first?wait=10' ${signedIn}`;
    const [, operatorsUrl, admin] = /^Console: +(\S+)\/console\nToken: +(\S+)$/m.exec(greeting) ?? [];
    const me = await run('curl', ['-s', `${operatorsUrl}/admin/v1/me`, '-H', `Authorization: Bearer ${admin}`]);
    expect(JSON.parse(me.stdout)).to.include({ role: 'admin' });
    const bought = await run('sh', ['-c', buy]);
    expect(bought.stdout)
      .to.match(/^HTTP\/1.1 202 /)
      .and.to.include('"status":"pending"');
    order = await printedOrder();
    expect(order).to.include({ status: 'ordered', orderState: 'pending_payment' });
    expect(order.orderId).to.match(/^\d+$/);
  });

  it('runs the documented commands that need only this system', async () => {
    const { host } = new URL(/http:\/\/[^/]+/.exec(buy)?.[0] ?? '');
    const [, operatorsHost = ''] = /^Console: +http:\/\/([^/]+)/m.exec(output) ?? [];
    const commands = documentedCommands()
      .map(({ text }) => text)
      .filter((text) => RUN_HERE.some((row) => isCoveredBy(row, text)))
      .map((text) => text.replace(/(127\.0\.0\.1|localhost):8080/, host).replace('localhost:9103', operatorsHost));
    const startedCpu = process.cpuUsage();
    const printed = await runInShell([...new Set(commands)], openStack({ dir }).env());
    const { user, system: kernel } = process.cpuUsage(startedCpu);
    console.log(`      · ${commands.length} commands in ${((user + kernel) / 1e6).toFixed(1)} s of CPU`);
    const [bought, waited, paid] = ['purchases -H', 'purchases/order-1?wait=10', '/pay'].map(
      (mark) => printed.split('\n$ ').find((part) => part.startsWith('curl') && part.includes(mark)) ?? '',
    );
    expect(bought).to.include('HTTP/1.1 202');
    expect(waited).to.include('"status":"ordered"');
    expect(paid).to.include('"state":"paid"');
    expect(printed).to.include('seckill_admission_refusals_total');
    expect(printed).to.match(/^open half messages: \d+.*; given up: 0$/m);
    expect(printed).to.match(/^seckill-order-writer +seckill-purchase +0 +- +1$/m);
  });

  it('pays the order of the page once through the documented webhook', async () => {
    const { host } = new URL(/http:\/\/[^/]+/.exec(buy)?.[0] ?? '');
    const rows = RUN_BY['test/newcomer/first-steps.test.ts']?.filter((row) => row !== 'npm start') ?? [];
    const commands = documentedCommands()
      .filter(({ page, text }) => page === 'docs/payments.md' && rows.some((row) => isCoveredBy(row, text)))
      .map(({ text }) => text.replace('127.0.0.1:8080', host).replace('"amountCents":250', '"amountCents":1999'));
    expect(commands).to.have.length(rows.length);
    const env = { ...openStack({ dir }).env(), ORDER: String(order.orderId) };
    const printed = await runInShell([...commands, ...commands.slice(-1)], env);
    expect(printed.match(/"outcome":"paid"/g), printed).to.have.length(2);
    order = await printedOrder();
    expect(order).to.include({ orderState: 'paid' });
  });

  it('refuses a second start', async () => {
    const second = await run(process.execPath, up()).catch(
      (error: unknown) => error as { code: number; stderr: string },
    );
    expect(second).to.include({ code: 1 });
    expect(second.stderr).to.match(/^seckill: Process \d+ already serves this folder\./m);
    expect(await printedOrder(), 'the first one serves on').to.deep.equal(order);
  });

  it('leaves nothing behind after Ctrl-C [L1]', async () => {
    process.kill(-(system?.pid as number), 'SIGINT');
    await until('it has ended', () => system?.exitCode !== null || system?.signalCode !== null);
    expect(system?.exitCode, output).to.equal(0);
    expect(alive()).to.deep.equal([]);
  });
});
