import { expect } from 'chai';
import { createSocket, type Socket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';
import { ask } from '../chaos/harness/http.js';
import { grantedMsOf, until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openTestStack, type TestStack } from '../helpers/stack.js';
import { buildImage, Container, listImage, type ContainerEnd, type Image } from './containers.js';

/** An unused loopback address for the name server. */
const NAME_SERVER = '127.0.0.153';
/** Host names that only the name server knows. */
const HOSTS = ['redis.seckill.test', 'mysql.seckill.test', 'rocketmq.seckill.test'];

/** Containers share the network of this machine, so programs listen only on loopback. */
const ON_LOOPBACK = { HTTP_HOST: '127.0.0.1', OPERATORS_HOST: '127.0.0.1', METRICS_HOST: '127.0.0.1' };

const say = (line: string): void => console.log(`      · ${line}`);

/**
 * Runs the Dockerfile line by line, and then its image as a container would: read-only, not as root, without a shell.
 * Needs no builder and no daemon; `containers.ts` lists what replaces them.
 */
describe('the image', () => {
  let folder: string;
  let etc: string;
  let image: Image;
  let stack: TestStack;
  let names: Socket | null = null;
  /** Addresses of the servers for the containers. */
  let env: NodeJS.ProcessEnv;
  const running: Container[] = [];

  before(async () => {
    stack = await openTestStack();
    folder = mkdtempSync(join(tmpdir(), 'seckill-image-'));
    etc = join(folder, 'etc');
    mkdirSync(etc);
    writeFileSync(join(etc, 'hosts'), '127.0.0.1 localhost\n');
    writeFileSync(join(etc, 'resolv.conf'), `nameserver ${NAME_SERVER}\n`);
    image = await buildImage(folder, say);
    names = await openNameServer();
    env = names === null ? { ...stack.env } : byName(stack.env);
  });
  afterEach(function () {
    if (this.currentTest?.state !== 'failed') return;
    for (const { output } of running) console.error(output.split('\n').slice(-30).join('\n'));
  });
  after(async () => {
    await Promise.all(running.map((container) => container.stop()));
    names?.close();
    await stack?.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  type Config = Partial<Image['config']>;
  const imageAs = (as: Config): Image => ({ ...image, config: { ...image.config, ...as } });
  const start = (command: readonly string[], more: NodeJS.ProcessEnv = {}, as: Config = {}): Container => {
    const container = new Container(imageAs(as), command, { ...env, ...ON_LOOPBACK, ...more }, etc);
    running.push(container);
    return container;
  };
  /** Runs a command of seckill. @returns its output */
  const seckill = async (args: readonly string[], as: Config = {}): Promise<string> => {
    const { code, output } = await start([...image.config.entrypoint, ...args], {}, as).end;
    const shown = args[0] === 'token' ? '…' : output.trim().split('\n')[0]; // keeps tokens out of the log
    say(`seckill ${args.join(' ')}: ${shown}`);
    expect(code, output).to.equal(0);
    return output;
  };
  const evaluated = (script: string): Promise<ContainerEnd> =>
    new Container(image, ['/usr/local/bin/node', '-e', script], {}, etc).end;

  it('has Node, its libraries and the package, all readable by every user, and no setuid files', () => {
    const files = listImage(image.root);
    const tops = [...files.keys()].filter((path) => path.split('/').length === 2);
    expect(
      tops.filter((top) => !['/app', '/etc', '/lib', '/lib64', '/tmp', '/usr', '/var'].includes(top)),
    ).to.deep.equal([]);
    const outside = [...files].filter(([path, { isFolder }]) => !isFolder && !path.startsWith('/app/'));
    say(`${files.size} files and folders; outside of /app: ${outside.map(([path]) => path).join(' ')}`);
    const programs = outside.map(([path]) => path).filter((path) => /\/s?bin\//.test(path));
    expect(programs, 'programs').to.deep.equal(['/usr/local/bin/node']);
    for (const needed of [
      '/app/dist/cli/main.js',
      '/app/lua',
      '/app/config/topics.json',
      '/app/deploy/prometheus/alerts.yml',
      '/app/dist/boards/seckill-sale.json',
      '/app/dist/web/buyer/index.html',
    ])
      expect(files.has(needed), needed).to.equal(true);
    for (const left of [
      '/app/src',
      '/app/node_modules/typescript',
      '/app/node_modules/mocha',
      '/app/node_modules/vite',
    ])
      expect(files.has(left), left).to.equal(false);
    const isOpen = ({ mode, isFolder }: { mode: number; isFolder: boolean }): boolean =>
      (mode & (isFolder ? 0o005 : 0o004)) === (isFolder ? 0o005 : 0o004);
    const odd = [...files].filter(
      ([path, stat]) =>
        !path.includes(' → ') &&
        path !== '/tmp' &&
        (!isOpen(stat) || (stat.mode & 0o022) !== 0 || (stat.mode & 0o6000) !== 0),
    );
    expect(odd, 'not readable, writable by others, or setuid').to.deep.equal([]);
  });

  it('runs without root, without a shell and on a read-only root', async () => {
    const { code, output } = await evaluated(`
      const { writeFileSync } = require('node:fs');
      const tried = ['/app/x', '/etc/x', '/tmp/x', '/x'].map((file) => {
        try { writeFileSync(file, ''); return 'written'; } catch (error) { return error.code; }
      });
      const shell = require('node:child_process').spawnSync('/bin/sh').error?.code;
      console.log(JSON.stringify({ uid: process.getuid(), pid: process.pid, name: require('node:os').userInfo().username, tried, shell }));`);
    expect(code, output).to.equal(0);
    say(output.trim());
    expect(JSON.parse(output)).to.deep.equal({
      uid: 10001,
      pid: 1,
      name: 'seckill',
      tried: ['EROFS', 'EROFS', 'EROFS', 'EROFS'],
      shell: 'ENOENT',
    });
  });

  it('creates tables and topics, runs the three programs, and turns a purchase into an order', async function () {
    if (names === null) say(`no permission to listen on ${NAME_SERVER}:53, so no host name is resolved`);
    await seckill(['migrate']);
    await seckill(['topics']);
    const free = (): string => String(pickFreePort());
    const [port, operatorsPort, workerPort, keeperPort] = [free(), free(), free(), free()];
    const settings = {
      api: { PORT: port, OPERATORS_PORT: operatorsPort, METRICS_PORT: workerPort },
      worker: { OPERATORS_PORT: operatorsPort, METRICS_PORT: workerPort },
      keeper: { OPERATORS_PORT: operatorsPort, METRICS_PORT: keeperPort },
    };
    const programs = Object.entries(settings).map(([name, more]) => {
      const container = start([...image.config.entrypoint, name], more);
      return { name, more, container };
    });
    for (const { name, container } of programs) {
      const line = (): string | undefined =>
        container.output.split('\n').find((text) => /listens on|consumes|runs \d+ jobs/.test(text));
      await until(`the ${name} is up`, () => line() !== undefined || !container.running);
      expect(container.running, container.output).to.equal(true);
      say((JSON.parse(line() as string) as { msg: string }).msg);
    }
    const sale = await seckill([
      'sale',
      'create',
      '--sku',
      'pen',
      '--title',
      'A pen',
      '--price-cents',
      '250',
      '--stock',
      '10',
      '--json',
    ]);
    const { saleId } = JSON.parse(sale) as { saleId: string };
    await seckill(['sale', 'warm', saleId], { user: 54321 }); // some clusters choose a nameless user
    expect(await seckill(['audit', 'list', '--json'])).to.include('"actor":"uid 54321"');
    await seckill(['sale', 'open', saleId]);
    const token = (await seckill(['token', '--user', 'alice'])).trim();
    const url = `http://127.0.0.1:${port}/v1/sales/${saleId}/purchases`;
    const bought = await ask(url, {
      method: 'POST',
      token,
      headers: { 'Idempotency-Key': 'order-1' },
      body: { quantity: 1 },
    });
    say(`POST /v1/sales/${saleId}/purchases: ${bought.status} ${bought.text}`);
    expect(bought.status).to.equal(202);
    const waited = await ask(`${url}/order-1?wait=20`, { token, timeoutMs: 25_000 });
    say(`GET …/order-1?wait=20: ${waited.status} ${waited.text}`);
    expect(waited.json.status).to.equal('ordered');
    const order = await ask(`http://127.0.0.1:${port}/v1/orders/${String(waited.json.orderId)}`, { token });
    say(`GET /v1/orders/…: ${order.status} ${order.text}`);
    expect([order.status, order.json.state]).to.deep.equal([200, 'pending_payment']);
    const page = await ask(`http://127.0.0.1:${port}/s/${saleId}`);
    expect(page.headers['content-type'], 'the page of the sale').to.include('text/html');
    expect(await expectInvariants(stack, saleId)).to.include({ sold: 1, rows: 1 });

    for (const { name, more, container } of programs) {
      const health = await start(image.config.healthcheck, more).end;
      expect(health.code, `${name}: ${health.output}`).to.equal(0);
      const tookMs = await grantedMsOf(async () => {
        expect((await container.stop()).code, `${name} stops by itself at SIGTERM`).to.equal(0);
      });
      say(`${name}: healthy, then SIGTERM: exit 0 after ${Math.round(tookMs)} ms`);
      expect(tookMs).to.be.below(STOP_TIMEOUT_MS);
    }
    const dead = await start(image.config.healthcheck, settings.api).end;
    expect(dead.code, 'no program runs').to.equal(1);
    say(`HEALTHCHECK without a program: exit 1, ${dead.output.trim()}`);
  });
});

/** Replaces the addresses of the servers by host names. */
function byName(env: TestStack['env']): NodeJS.ProcessEnv {
  const [redis, mysql, rocketmq] = HOSTS as [string, string, string];
  const named = (url: string, host: string): string => url.replace('127.0.0.1', host);
  return {
    ...env,
    REDIS_URL: named(env.REDIS_URL, redis),
    MYSQL_URL: named(env.MYSQL_URL, mysql),
    ROCKETMQ_ENDPOINT: named(env.ROCKETMQ_ENDPOINT, rocketmq),
  };
}

/** Resolves `HOSTS` to loopback. @returns null if it has no permission for the port */
function openNameServer(): Promise<Socket | null> {
  const socket = createSocket('udp4');
  socket.on('message', (question, { port, address }) => socket.send(answerTo(question), port, address));
  return new Promise((resolve) => {
    socket.once('error', () => {
      socket.close();
      resolve(null);
    });
    socket.bind(53, NAME_SERVER, () => resolve(socket));
  });
}

const HEADER_BYTES = 12;
const TYPE_A = 1;

/** Answers a query for one name (RFC 1035, 4.1) with a header, the query, and for type A one record of 16 bytes. */
function answerTo(query: Buffer): Buffer {
  let end = HEADER_BYTES;
  const labels: string[] = [];
  for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
    labels.push(query.toString('latin1', end + 1, end + 1 + length));
    end += 1 + length;
  }
  const question = query.subarray(HEADER_BYTES, end + 5);
  const isKnown = HOSTS.includes(labels.join('.'));
  const isA = query.readUInt16BE(end + 1) === TYPE_A;
  const header = Buffer.from(query.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2); // success, or no such name
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isKnown && isA ? 1 : 0, 6);
  header.fill(0, 8);
  if (!isKnown || !isA) return Buffer.concat([header, question]);
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
  return Buffer.concat([header, question, record]);
}
