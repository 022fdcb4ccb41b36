import { expect } from 'chai';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { buildIfOlder } from '../chaos/harness/commands.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

const run = promisify(execFile);
const TSC = join(REPO_DIR, 'node_modules/typescript/bin/tsc');
/** Broker clients start within some seconds each. */
const START_MS = 90_000;
/** Time for the new group of the hook to receive the events of all earlier tests. */
const BACKLOG_MS = 300_000;

/** Returns the code blocks of a page in this language. */
const examplesOf = (page: string, language: string): string[] =>
  [
    ...readFileSync(join(REPO_DIR, page), 'utf8').matchAll(
      new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'),
    ),
  ].map(([, block]) => block as string);

// Starts like a user: with an empty folder, Express, and the packed library.
describe('the library in another project', () => {
  const system = useSystem();
  let dir: string;
  let shop: ChildProcess | undefined;
  let output = '';

  const startShop = async (): Promise<string> => {
    const { stack } = system;
    shop = spawn(process.execPath, ['main.mjs'], {
      cwd: dir,
      env: {
        PATH: process.env.PATH,
        ...stack.env,
        PAYMENT_PROVIDER: 'simulator',
        TEST_OVERRIDES: 'on',
        OUTBOX_EVERY_MS: '100',
        SHOP_PORT: '0',
        SHOP_OPERATORS_PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    output = '';
    for (const stream of [shop.stdout, shop.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
    const address = (): string | undefined => /The shop is at (http:\S+)/.exec(output)?.[1];
    const isOpen = (): boolean => address() !== undefined && operatorsUrl() !== undefined;
    await until('the shop is open', () => isOpen() || shop?.exitCode !== null);
    expect(shop.exitCode, output).to.equal(null);
    return address() as string;
  };
  const operatorsUrl = (): string | undefined => /operators look at (http:\S+)/.exec(output)?.[1];
  const look = async (path: string): Promise<string> => {
    const answer = await fetch(`${operatorsUrl()}${path}`);
    const text = await answer.text();
    expect(answer.status, text).to.equal(200);
    return text;
  };
  const stopShop = async (): Promise<number | null> => {
    if (shop !== undefined && shop.exitCode === null) {
      shop.kill('SIGTERM');
      await once(shop, 'exit');
    }
    return shop?.exitCode ?? null;
  };

  before('npm pack, and npm i of what it made', async () => {
    dir = mkdtempSync(join(tmpdir(), 'seckill-library-'));
    await buildIfOlder();
    const types = ['-p', 'tsconfig.build.json', '--noCheck'];
    await run(process.execPath, [TSC, ...types], { cwd: REPO_DIR });
    const packed = await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', dir], {
      cwd: REPO_DIR,
    });
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'];
    await run('npm', ['i', ...quiet, 'express', '@types/express', `./${packed.stdout.trim()}`], { cwd: dir });
    cpSync(join(REPO_DIR, 'examples/express-app'), dir, { recursive: true });
  });
  after(async () => {
    await stopShop();
    rmSync(dir, { recursive: true, force: true });
  });
  afterEach(function () {
    if (this.currentTest?.state === 'failed') console.error(output.slice(-4_000));
  });

  it('passes npm publish --dry-run', async () => {
    const { stdout } = await run('npm', ['publish', '--dry-run', '--ignore-scripts'], { cwd: REPO_DIR });
    expect(stdout).to.match(/^\+ seckill@/m);
  });

  it('has types that compile the examples of the documentation and reject wrong code', async () => {
    const blocks = [...examplesOf('docs/library.md', 'ts'), ...examplesOf('docs/buying.md', 'ts')];
    expect(blocks.length).to.be.at.least(4);
    const files = blocks.map((block, index) => {
      const file = `example-${index}.ts`;
      writeFileSync(join(dir, file), `${block}\nexport {};\n`);
      return file;
    });
    writeFileSync(
      join(dir, 'wrong.ts'),
      `import { createSeckill } from 'seckill';
import { createClient } from 'seckill/client';
// @ts-expect-error a number
await createSeckill({ settings: { BATCH_SIZE_MAX: '7' } });
// @ts-expect-error no such setting
await createSeckill({ settings: { BATCH_SIZE: 7 } });
// @ts-expect-error a buyer has an id
await createSeckill({ authenticate: () => ({}) });
const result = await createClient({ baseUrl: '' }).buy('7');
// @ts-expect-error only an order has one
result.orderId;
`,
    );
    const options = {
      strict: true,
      noEmit: true,
      target: 'ES2023',
      module: 'NodeNext',
      lib: ['ES2023', 'DOM', 'DOM.Iterable'],
      types: ['node'],
      skipLibCheck: false,
    };
    // Types of other packages may have errors, so only our types are checked.
    writeFileSync(
      join(dir, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: [...files, 'wrong.ts'] }),
    );
    const { stdout } = await run(process.execPath, [TSC, '-p', '.'], { cwd: dir }).catch(
      (error: unknown) => error as { stdout: string },
    );
    const ours = stdout.split('\n').filter((line) => /^(example|wrong|node_modules\/seckill\/)/.test(line));
    expect(ours).to.deep.equal([]);
  });

  it('exports only its public modules', async () => {
    const inside =
      "import('seckill/dist/programs/api.js').then(() => console.log('found'), (e) => console.log(e.code))";
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', inside], { cwd: dir });
    expect(stdout.trim()).to.equal('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it("sells inside an app with the app's client, order, hook and payment, and shuts down cleanly", async () => {
    const made = await runCommand(['topics', '--group', 'shop-orders'], system.stack.env);
    expect(made.code, made.stderr).to.equal(0);
    const url = await startShop();
    expect(await (await fetch(url)).text()).to.equal('A shop.');
    const { saleId } = await openSale(system.stack, { stock: 5, limitPerBuyer: 2 });
    const bought = await run(process.execPath, ['buy.mjs', saleId, 'alice'], {
      cwd: dir,
      env: { PATH: process.env.PATH, SHOP_URL: url },
    });
    const [result = '{}', paid] = bought.stdout.trim().split('\n');
    const { outcome, orderId } = JSON.parse(result) as { outcome: string; orderId: string };
    expect(outcome, bought.stdout).to.equal('ordered');
    expect(paid).to.equal(`order ${orderId} is paid`);
    const isCalled = (): boolean => output.includes(`sale ${saleId}: order ${orderId} of alice`);
    await until('the hook is called', isCalled, { grantedMs: BACKLOG_MS });
    expect(JSON.parse(await look('/readyz'))).to.include({ ready: true });
    const [hooks, worker, keeper] = await Promise.all(
      ['', '/worker', '/keeper'].map((part) => look(`/metrics${part}`)),
    );
    expect(hooks).to.match(
      /^seckill_consumed_messages_total\{group="shop-orders",verdict="done",program="api"\} [1-9]/m,
    );
    expect(hooks).to.match(
      /^seckill_keeper_job_seconds_count\{program="api",task="consume:shop-orders",result="done"\} /m,
    );
    expect(worker).to.contain('seckill_recorded_purchases_total');
    expect(keeper).to.contain('seckill_outbox_undone_rows');

    const refused = await fetch(`${url}/v1/sales/${saleId}/purchases`, { method: 'POST' });
    expect(refused.status, 'nobody').to.equal(401);
    expect(await stopShop(), output).to.equal(0);
    // messages of other suites may become dead letters here, and log errors of their own
    expect(output).not.to.match(new RegExp(`"level":50.*"saleId":"${saleId}"|a bug`));
    await expectInvariants(system.stack, saleId);
  });

  it('explains missing servers and leaves nothing open', async () => {
    const script = `import { createSeckill } from 'seckill';
      await createSeckill({ settings: { REDIS_URL: 'redis://127.0.0.1:1' }, authenticate: () => null }).catch((error) => console.log(error.name, error.dependency));`;
    writeFileSync(join(dir, 'no-redis.mjs'), script);
    const { stdout } = await run(process.execPath, ['no-redis.mjs'], {
      cwd: dir,
      env: { PATH: process.env.PATH, ...system.stack.env },
      timeout: START_MS, // a process that does not exit by itself is killed
    });
    expect(stdout).to.equal('OperationalError redis\n');
  });
});
