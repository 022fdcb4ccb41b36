import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { applyTopics } from '../../src/rocketmq/admin/apply-topics.js';
import { withGroup, type TopicEntry } from '../../src/rocketmq/admin/topic-lists.js';
import { startPlainProducer } from '../../src/rocketmq/plain-channels.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { accessIn, brokerOf } from '../helpers/broker.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { silentLog } from '../helpers/silent-log.js';
import { useSystem } from '../helpers/system.js';

const EXAMPLE = join(REPO_DIR, 'examples/order-events/main.mjs');

const OWN_TOPIC = { topicName: 'shop-test-events', readQueueNums: 1, writeQueueNums: 1, perm: 6 };

/** Runs the example as a reader of the page would. */
class Example {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, [EXAMPLE], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
  }

  get events(): { eventId: string; type: string; saleId: string; orders: string[]; metadata?: object }[] {
    return this.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  }

  async waits(): Promise<this> {
    await until('it waits', () => this.stderr.includes('waits for messages') || this.child.exitCode !== null);
    expect(this.child.exitCode, this.stderr).to.equal(null);
    return this;
  }

  async stop(): Promise<number | null> {
    if (this.child.exitCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'exit');
    }
    return this.child.exitCode;
  }
}

describe('examples/order-events', () => {
  let api: Program;
  const running: Example[] = [];
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api', { env: { PAYMENT_PROVIDER: 'simulator' } }),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
  });
  after(async () => {
    await Promise.all(running.map((example) => example.stop()));
  });

  const topics = async (group: string): Promise<void> => {
    const { code, stderr } = await runCommand(['topics', '--group', group], system.stack.env);
    expect(code, stderr).to.equal(0);
  };
  /** The broker settings of an external service. */
  const brokerEnv = (): NodeJS.ProcessEnv => {
    const { ROCKETMQ_ENDPOINT, ROCKETMQ_ACCESS_KEY, ROCKETMQ_ACCESS_SECRET } = system.stack.env;
    return { ROCKETMQ_ENDPOINT, ROCKETMQ_ACCESS_KEY, ROCKETMQ_ACCESS_SECRET };
  };
  async function start(env: NodeJS.ProcessEnv = {}): Promise<Example> {
    const example = new Example({ PATH: process.env.PATH, ...brokerEnv(), ...env });
    running.push(example);
    return example.waits();
  }

  it('prints the events of a purchase with its metadata, from a group created by one command', async () => {
    await topics('shop-orders');
    const example = await start();
    const { saleId } = await openSale(system.stack, { stock: 5, limitPerBuyer: 2 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
    const metadata = { cart: '42', note: 'zwei Stück' };
    const bought = await ask(`${api.url}/v1/sales/${saleId}/purchases`, {
      method: 'POST',
      token: buyers.token('ann'),
      headers: { 'Idempotency-Key': 'k1' },
      body: { quantity: 2, metadata },
    });
    expect(bought.status).to.equal(202);
    const again = await ask(`${api.url}/v1/sales/${saleId}/purchases`, {
      method: 'POST',
      token: buyers.token('ann'),
      headers: { 'Idempotency-Key': 'k1' },
      body: { quantity: 2, metadata: { cart: 'another' } },
    });
    expect([200, 202], 'the same purchase, whatever is noted on it').to.include(again.status);
    const orderId = String((await buyers.status('ann', 'k1', 10)).json.orderId);
    const order = await buyers.order('ann', orderId);
    expect(order.json).to.deep.include({ metadata, currency: 'EUR', quantity: 2 });
    const paid = await ask(`${api.url}/v1/orders/${orderId}/pay`, { method: 'POST', token: buyers.token('ann') });
    expect(paid.status).to.equal(200);

    const ofOrder = () => example.events.filter(({ orders }) => orders.includes(orderId));
    await until('both events', () => ofOrder().length === 2);
    const byType = ofOrder().sort((a, b) => (a.type < b.type ? -1 : 1));
    expect(byType.map(({ type, metadata: noted }) => [type, noted])).to.deep.equal([
      ['order.created', { [orderId]: metadata }],
      ['order.paid', { [orderId]: metadata }],
    ]);

    const admin = buyers.token('root', ['admin']);
    const lines = await ask(`${api.operatorsUrl}/admin/v1/orders/export?sale=${saleId}&format=jsonl`, { token: admin });
    expect(JSON.parse(lines.text)).to.deep.include({ orderId, userId: 'ann', metadata, state: 'paid' });
    const { stdout } = await runCommand(['orders', 'export', '--sale', saleId], system.stack.env);
    const csv = await ask(`${api.operatorsUrl}/admin/v1/orders/export?sale=${saleId}`, { token: admin });
    expect(csv.text, 'the command exports the same').to.equal(stdout);
    expect(await example.stop(), example.stderr).to.equal(0);
    await expectInvariants(system.stack, saleId);
  });

  it('moves an unknown body to its dead letters, which another group can read', async () => {
    const group = 'shop-impatient';
    const { NAMESRV_ADDR: namesrvAddr } = system.stack.env;
    await topics('shop-orders-dead');
    // our own group would park the message, too
    const own: TopicEntry = { ...OWN_TOPIC, attributes: { '+message.type': 'NORMAL' } };
    const { topics: ofGroup } = withGroup({ topics: [], groups: [] }, group);
    const lists = { topics: [own, ...ofGroup], groups: [{ groupName: group, retryMaxTimes: 1 }] };
    await applyTopics({ namesrvAddr, ...accessIn(system.stack.env), cluster: null }, lists);
    const dead = await start({ GROUP: 'shop-orders-dead', TOPIC: `%DLQ%${group}` });
    const example = await start({ GROUP: group, TOPIC: own.topicName });
    const producer = await startPlainProducer(own.topicName, { ...brokerOf(system.stack.env), log: silentLog });
    const body = JSON.stringify({ v: 2, events: [] });
    await producer.send({ keys: ['later-version'], body: Buffer.from(body) }, 'an event of a later version');
    await producer.close();
    await until('it is given up', () => /version 2 of the body/.test(dead.stderr));
    expect(example.stderr).to.match(/attempt 1: version 2 of the body, known is 1/);
    expect(example.events.filter(({ type }) => type === undefined)).to.deep.equal([]);
    for (const one of [example, dead]) expect(await one.stop(), one.stderr).to.equal(0);
  });

  it('explains what to do when its group is missing', async () => {
    const example = new Example({ PATH: process.env.PATH, ...brokerEnv(), GROUP: 'shop-nobody-made' });
    running.push(example);
    const saysSo = (): boolean => example.stderr.includes('seckill topics --group shop-nobody-made');
    await until('it says so', saysSo);
    await example.stop();
  });
});
