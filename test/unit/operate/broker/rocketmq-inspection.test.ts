import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { DiscardedHalf } from '../../../../src/contract/broker.js';
import type { BrowseFrom } from '../../../../src/operate/broker/message-inspection.js';
import { SeenBrokers } from '../../../../src/rocketmq/admin/broker-state.js';
import { RocketmqInspection } from '../../../../src/operate/broker/rocketmq-inspection.js';
import { REQUEST } from '../../../../src/rocketmq/admin/remoting.js';
import { StandInCluster, type Broker, type Said } from '../../../helpers/stand-in-cluster.js';
import { storedMessage } from '../../../helpers/stored-message.js';

const NO_ONE: Said = { code: 0, body: '{"connectionSet":[]}' };
const HALF: DiscardedHalf = {
  broker: 'broker-a',
  topic: 't',
  key: 'k',
  messageId: 'm',
  ageMs: 1,
  checks: 1,
  saleId: null,
  purchases: null,
  discardedAtMs: 1,
  resumedAtMs: null,
  offsetId: 'A0',
};

describe('inspection of RocketMQ with a faulty broker', () => {
  let cluster: StandInCluster | null = null;
  afterEach(() => {
    cluster?.close();
    cluster = null;
  });

  const inspect = async (brokers: Readonly<Record<string, Broker>>): Promise<RocketmqInspection> => {
    cluster = await StandInCluster.start(brokers);
    return new RocketmqInspection(cluster.namesrvAddr, null);
  };
  /** Returns the fault of an inspection. It must be a RocketMQ fault, because any other error ends the program. */
  const faultOf = async (look: Promise<unknown>): Promise<string> => {
    const error = await look.then(
      () => expect.fail('it found something'),
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(OperationalError);
    expect(error).to.include({ dependency: 'rocketmq', retryable: true });
    return (error as OperationalError).message;
  };

  it('asks a broker again if it is silent for a moment', async () => {
    let asked = 0;
    const inspection = await inspect({ 'broker-a': () => (++asked <= 2 ? 'closes' : NO_ONE) });
    expect(await inspection.consumers('g')).to.deep.equal([]);
    expect(asked).to.equal(3);
  });

  it('fails after three attempts if a broker stays silent', async () => {
    let asked = 0;
    const inspection = await inspect({
      'broker-a': () => {
        asked++;
        return 'closes';
      },
    });
    expect(await faultOf(inspection.consumers('g'))).to.match(/closed the connection|ECONNRESET/);
    // each attempt uses the open connection, then a new one
    expect(asked).to.equal(6);
  });

  it('fails at once if a broker refuses', async () => {
    let asked = 0;
    const refuses: Broker = () => {
      asked++;
      return { code: 16, remark: 'the topic[t] pulling message is forbidden' };
    };
    const inspection = await inspect({ 'broker-a': refuses });
    expect(await faultOf(inspection.consumers('g'))).to.contain('is forbidden');
    expect(asked).to.equal(1);
    expect(await faultOf(inspection.resume(HALF))).to.contain('is forbidden');
    expect(await faultOf(inspection.resume({ ...HALF, broker: 'broker-b' }))).to.equal(
      'broker broker-b does not answer',
    );
  });

  it('fails if the answer of a broker is unreadable', async () => {
    const tooLong = Buffer.alloc(8);
    tooLong.writeInt32BE(128 * 1024 * 1024, 0);
    for (const [said, fault] of [
      [{ code: 0, body: 'no JSON' }, 'the answer is not JSON'],
      [{ code: 0, body: Buffer.alloc(200, 1) }, 'the answer contains no complete messages'],
      [{ bytes: tooLong }, 'the answer is not RocketMQ remoting, or is longer than 64 MiB'],
      [
        { bytes: Buffer.from('HTTP/1.1 400 Bad Request') },
        'the answer is not RocketMQ remoting, or is longer than 64 MiB',
      ],
    ] as const) {
      const inspection = await inspect({ 'broker-a': () => said });
      const look = fault.includes('messages') ? inspection.messagesOfKey('t', 'k') : inspection.consumers('g');
      expect(await faultOf(look)).to.equal(fault);
      cluster?.close();
    }
  });

  it('names a broker that it has seen before and that no name server knows now', async () => {
    await inspect({ 'broker-a': () => NO_ONE, 'broker-b': () => NO_ONE });
    const { namesrvAddr } = cluster as StandInCluster;
    const seen = new SeenBrokers();
    const downs = async (): Promise<string[]> => {
      const down: string[] = [];
      const onDown = (broker: { name: string; down: string | null }): void =>
        void down.push(`${broker.name}: ${broker.down}`);
      await new RocketmqInspection(namesrvAddr, null, { onDown, seen }).consumers('g');
      return down;
    };
    expect(await downs()).to.deep.equal([]);
    cluster?.forget('broker-b');
    expect(await downs()).to.deep.equal(['broker-b: no name server knows this broker any more']);
    expect(await downs(), 'and stays down').to.have.length(1);
  });
});

describe('figures for the keeper', () => {
  let cluster: StandInCluster;
  let inspection: RocketmqInspection;
  beforeEach(async () => {
    const empty: Said = { code: 0, body: '{"table":{},"offsetTable":{}}' };
    cluster = await StandInCluster.start({ 'broker-a': () => empty });
    inspection = new RocketmqInspection(cluster.namesrvAddr, null);
  });
  afterEach(() => cluster.close());
  const downs = async (): Promise<unknown> => {
    const { brokers, held } = await inspection.figures([]);
    return { down: brokers.map(({ down }) => down), held: held !== null };
  };

  it('count the only broker as down if no name server knows it any more', async () => {
    expect(await downs()).to.deep.equal({ down: [null], held: true });
    cluster.forget('broker-a');
    expect(await downs()).to.deep.equal({ down: ['no name server knows this broker any more'], held: false });
  });

  it('count a broker as down if a newly started keeper finds no broker', async () => {
    cluster.forget('broker-a');
    const down = [`NAMESRV_ADDR ${cluster.namesrvAddr}: it knows no broker`];
    expect(await downs()).to.deep.equal({ down, held: false });
  });

  it('show no messages if the only known broker is silent', async () => {
    cluster.silence('broker-a');
    expect(await downs()).to.have.nested.property('held', false);
    expect(await downs())
      .to.have.nested.property('down[0]')
      .that.matches(/closed the connection/);
  });

  it('count a broker as down when neither it nor its name server answers', async () => {
    const afterItsNameServer = async (): Promise<boolean[]> => {
      cluster.close();
      return (await inspection.figures([])).brokers.map(({ down }) => down !== null);
    };
    await downs();
    expect(await afterItsNameServer()).to.deep.equal([true]);
    cluster = await StandInCluster.start({ 'broker-a': () => ({ code: 0, body: '{"table":{},"offsetTable":{}}' }) });
    inspection = new RocketmqInspection(cluster.namesrvAddr, null);
    await downs();
    cluster.forget('broker-a');
    await downs();
    expect(await afterItsNameServer()).to.deep.equal([true]);
  });

  it('fail when no name server answers, because the broker may be running', async () => {
    cluster.close();
    const error = await inspection.figures([]).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'rocketmq' });
  });
});

describe('browsing a topic', () => {
  let cluster: StandInCluster;
  let inspection: RocketmqInspection;
  /** Lengths of the bodies of each queue. Message `n` was stored at time `n`, slightly later in later queues. */
  let queues: number[][];
  let pulls: number;
  beforeEach(async () => {
    pulls = 0;
    cluster = await StandInCluster.start({
      'broker-a': (code, { queueId, queueOffset, maxMsgNums }) => {
        if (code === REQUEST.topicStats) return { code: 0, body: statsOf(queues) };
        pulls++;
        const from = Number(queueOffset);
        const bodies = (queues[Number(queueId)] ?? []).slice(from, from + Number(maxMsgNums));
        const stored = bodies.map((length, index) => {
          const offset = from + index;
          return storedMessage({ offset, storedAtMs: 10 * offset + Number(queueId), body: Buffer.alloc(length, 0x61) });
        });
        return { code: 0, body: Buffer.concat(stored) };
      },
    });
    inspection = new RocketmqInspection(cluster.namesrvAddr, null);
  });
  afterEach(() => cluster.close());

  const statsOf = (of: readonly (readonly number[])[]): string => {
    const tables = of.map(
      (bodies, queueId) =>
        `{"brokerName":"a","queueId":${queueId},"topic":"t"}:{"lastUpdateTimestamp":1,"maxOffset":${bodies.length},"minOffset":0}`,
    );
    return `{"offsetTable":{${tables.join(',')}}}`;
  };
  const small = (count: number): number[] => Array.from({ length: count }, () => 2);
  const browse = async (from: BrowseFrom | null, max: number): Promise<[number[], boolean]> => {
    const { messages, more } = await inspection.browse('t', from, { max, bodiesMax: 1_000 });
    return [messages.map(({ storedAtMs }) => storedAtMs), more];
  };

  it('returns the newest messages of all queues, or the messages after a position', async () => {
    queues = [small(3), small(2)];
    expect(await browse(null, 10)).to.deep.equal([[0, 1, 10, 11, 20], false]);
    expect(await browse(null, 5)).to.deep.equal([[0, 1, 10, 11, 20], false]);
    expect(await browse(null, 2)).to.deep.equal([[11, 20], true]);
    expect(await browse({ queueId: 0, offset: 0 }, 2)).to.deep.equal([[0, 10], true]);
    expect(await browse({ queueId: 0, offset: 1 }, 2)).to.deep.equal([[10, 20], false]);
    queues = [small(100)];
    expect(await browse(null, 40)).to.deep.equal([Array.from({ length: 40 }, (_, index) => 600 + 10 * index), true]);
  });

  it('stops at the size limit for bodies, but returns at least one message', async () => {
    queues = [[600, 300, 600], [600]];
    expect(await browse(null, 10)).to.deep.equal([[10, 20], true]);
    expect(await browse({ queueId: 0, offset: 0 }, 10)).to.deep.equal([[0, 10], true]);
    queues = [[5_000]];
    expect(await browse(null, 10)).to.deep.equal([[0], false]);
    queues = [[5_000, 5_000]];
    expect(await browse(null, 10)).to.deep.equal([[10], true]);
  });

  it('reads no more of a queue than it may return', async () => {
    queues = [Array.from({ length: 400 }, () => 900), Array.from({ length: 400 }, () => 900)];
    expect(await browse(null, 400)).to.deep.equal([[3991], true]);
    expect(pulls, 'the last message of each queue').to.equal(2);
    expect(await browse({ queueId: 1, offset: 0 }, 400)).to.deep.equal([[1], true]);
    expect(pulls).to.equal(3);
  });
});
