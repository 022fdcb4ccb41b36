import { expect } from 'chai';
import { openStack } from '../../deploy/local/stack/stack.js';
import { RocketmqInspection } from '../../src/operate/broker/rocketmq-inspection.js';
import { TOPICS } from '../../src/core/topics.js';
import { until } from '../chaos/harness/wait.js';
import { accessIn } from '../helpers/broker.js';
import { stackEnv } from '../helpers/stack-env.js';
import { freshBatch, REDRIVES_COMPARED, rocketmqWorld, type BrokerWorld } from './broker-worlds.js';

/** Other suites may change values of the broker during a read, which is then repeated. */
const TRIES_MAX = 6;

describe('RocketMQ admin tool and our inspection', () => {
  let world: BrokerWorld;
  let inspection: RocketmqInspection;
  const stack = openStack({ dir: process.env.SECKILL_TEST_STACK });

  before(async () => {
    const env = stackEnv();
    world = await rocketmqWorld();
    inspection = new RocketmqInspection(env.NAMESRV_ADDR, accessIn(env));
  });
  after(() => world?.close());

  /** Returns the output of the tool. Retries, because a busy broker may make the tool fail. */
  async function mqadmin(...args: string[]): Promise<string> {
    for (let tries = 1; ; tries++) {
      const { stdout, stderr, exitCode } = await stack.mqadmin(args);
      if (exitCode === 0) return stdout;
      const frame = /^(\s+at |Picked up |\s+\.\.\. )/;
      const said = `${stdout}${stderr}`.split('\n').filter((line) => !frame.test(line));
      if (tries === TRIES_MAX) throw new Error(`mqadmin ${args.join(' ')} ended with ${exitCode}: ${said.join('\n')}`);
    }
  }

  /** Returns the output of the tool and our values, once our values before and after agree. */
  async function sideBySide<T>(read: () => Promise<T>, ...args: string[]): Promise<{ ours: T; printed: string }> {
    for (let tries = 1; ; tries++) {
      const ours = await read();
      const printed = await mqadmin(...args);
      if (JSON.stringify(await read()) === JSON.stringify(ours)) return { ours, printed };
      if (tries === TRIES_MAX) throw new Error('the figures never stood still');
    }
  }

  /** Returns the rows below a heading that begins with `#`. Columns are separated by blanks. */
  const rowsOf = (printed: string, columns: number): string[][] =>
    printed
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.startsWith('#'))
      .map((line) => line.trim().split(/\s{2,}/))
      .filter((cells) => cells.length >= columns);
  const sum = (numbers: readonly (string | undefined)[]): number => numbers.reduce((all, one) => all + Number(one), 0);

  it('consumerProgress: agree on the lag of a group', async () => {
    const { topic, group } = REDRIVES_COMPARED;
    const source = await world.source(topic, group);
    const channel = await world.redriveChannel();
    await channel.publish(freshBatch());
    await until('the group has begun', async () => (await source.receive(32)).length > 0);
    await source.close();
    for (let nth = 0; nth < 3; nth++) await channel.publish(freshBatch());
    const args = ['consumerProgress', '-g', group];
    // The tool also asks for the route of the retry topic, which the name server learns within half a minute.
    await until('the tool finds the group', async () => (await stack.mqadmin(args)).exitCode === 0);
    const lag = async () => (await inspection.groups([REDRIVES_COMPARED])).find((one) => one.topic === topic)?.lag;
    const { ours, printed } = await sideBySide(lag, ...args);
    expect(ours).to.be.at.least(3);
    // #Topic #Broker Name #QID #Broker Offset #Consumer Offset (#Client IP) #Diff #Inflight #LastTime
    const queues = rowsOf(printed, 6).filter(([name]) => name === topic);
    expect(queues.map(([, broker]) => broker)).to.include('broker-a');
    expect(sum(queues.map(([, , , end, given]) => String(Number(end) - Number(given)))), printed).to.equal(ours);
  });

  it('queryMsgByKey, by unique key and by id: agree on the message and its place', async () => {
    const channel = await world.redriveChannel();
    const batch = freshBatch();
    await channel.publish(batch);
    const [found] = await inspection.messagesOfKey(TOPICS.redrive, batch.batchId);
    const id = String(found?.properties.UNIQ_KEY);
    const printed = await mqadmin('queryMsgByKey', '-t', TOPICS.redrive, '-k', batch.batchId);
    // #Message ID #QID #Offset
    const rows = rowsOf(printed, 1).map((cells) => cells.join(' ').split(/\s+/).slice(0, 3));
    expect(rows, printed).to.deep.equal([[id, String(found?.queueId), String(found?.queueOffset)]]);
    const byUniqueKey = await mqadmin('queryMsgByUniqueKey', '-t', TOPICS.redrive, '-i', id);
    const byId = await mqadmin('queryMsgById', '-t', TOPICS.redrive, '-i', String(found?.offsetId));
    for (const text of [byUniqueKey, byId]) {
      expect(/^Queue ID: +(\d+)$/m.exec(text)?.[1], text).to.equal(String(found?.queueId));
      expect(/^Queue Offset: +(\d+)$/m.exec(text)?.[1]).to.equal(String(found?.queueOffset));
    }
    expect(byId).to.match(new RegExp(`^Keys: +\\[${batch.batchId}\\]$`, 'm'));
  });

  it('exit with 1 if a command fails, although the tool itself exits with 0', async () => {
    expect(await mqadmin('help', 'consumerProgress')).to.contain('--groupName');
    for (const args of [['topicStatus', '-t', 'no-such-topic'], ['noSuchCommand']]) {
      expect((await stack.mqadmin(args)).exitCode, args.join(' ')).to.equal(1);
    }
  });
});
