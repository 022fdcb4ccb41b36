import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountRefusal, mountVolume, unmountBelow } from '../chaos/harness/disks.js';
import type { Program } from '../chaos/harness/programs.js';
import { until } from '../chaos/harness/wait.js';
import { openOf, samplePrograms } from '../chaos/soak/samples.js';
import { leakedConnections } from '../chaos/soak/soak.js';

describe('volumes of a chaos scenario', () => {
  let dir: string;
  before(function () {
    const refusal = mountRefusal();
    if (refusal === null) return;
    console.log(`    skipped: ${refusal}`);
    this.skip();
  });
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'seckill volume-')))); // a blank in the name, which the kernel lists in octal
  afterEach(() => {
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
  });

  it('are unmounted afterwards; a volume whose name only starts alike stays mounted', () => {
    const [one, other] = [join(dir, 'store'), join(dir, 'store-2')];
    for (const store of [one, other]) mountVolume(store, 64 * 1024 ** 2);
    for (const store of [one, other]) writeFileSync(join(store, 'file'), '');
    unmountBelow(one);
    expect([one, other].map((store) => existsSync(join(store, 'file')))).to.deep.equal([false, true]);
  });
});

describe('samples of a program in a soak', () => {
  let metrics: Server;
  /** A process of its own, so that its open handles can be counted. It opens as many connections as a message asks for. */
  let program: ChildProcess;
  let pid: number;
  let port: number;
  let rssBytes: number;
  before(async () => {
    metrics = createServer((_req, res) => res.end('nodejs_heap_size_used_bytes{program="api"} 4711\n'));
    await new Promise<void>((resolve) => metrics.listen(0, '127.0.0.1', resolve));
    const text = `
      import { connect, createServer } from 'node:net';
      const server = createServer().listen(0, '127.0.0.1', () => {
        process.send({ port: server.address().port, rssBytes: process.memoryUsage.rss() });
      });
      process.on('message', async ({ port, count }) => {
        const open = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
        await Promise.all(open.map((one) => new Promise((resolve) => one.on('connect', resolve))));
        process.send('open');
      });`;
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
    program = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: [...stdio] });
    [{ port, rssBytes }] = (await once(program, 'message')) as [{ port: number; rssBytes: number }];
    pid = program.pid as number;
  });
  after(() => {
    program.kill('SIGKILL');
    metrics.closeAllConnections();
    metrics.close();
  });
  const addressOf = (server: Server): AddressInfo => server.address() as AddressInfo;
  const sample = async (pid: number) => {
    const program = { name: 'api', pid, operatorsUrl: `http://127.0.0.1:${addressOf(metrics).port}` } as Program;
    return samplePrograms({ running: () => [{ program, ageMs: 5 }] });
  };
  const hasInbound = (count: number): Promise<void> =>
    until(`the program has ${count} inbound connections`, () => openOf({ pid })?.inbound === count);

  it('count handles, sockets and inbound connections, and read the heap from its metrics', async () => {
    const [before] = await sample(pid);
    expect(before).to.include({ program: `api ${pid}`, ageMs: 5, heapBytes: 4711, inbound: 0 });
    expect(before?.rssBytes).to.be.within(0.5 * rssBytes, 2 * rssBytes);
    program.send({ port: addressOf(metrics).port, count: 20 });
    await once(program, 'message');
    const clients = Array.from({ length: 30 }, () => connect(port, '127.0.0.1'));
    await hasInbound(30);
    const [after] = await sample(pid);
    for (const client of clients) client.destroy();
    expect(after?.inbound).to.equal(30);
    expect((after?.sockets ?? 0) - (before?.sockets ?? 0), 'its own').to.equal(20);
    expect((after?.handles ?? 0) - (before?.handles ?? 0), 'of them handles').to.equal(20);
    await hasInbound(0);
  });

  it('report connections that stay open when every buyer has closed them', async () => {
    const open = connect(port, '127.0.0.1');
    await hasInbound(1);
    expect(await leakedConnections([{ pid }], 100)).to.deep.equal([
      `api ${pid} holds 1 connections that buyers have closed`,
    ]);
    open.destroy();
    expect(await leakedConnections([{ pid }])).to.deep.equal([]);
  });
});
