import { connect } from 'node:net';
import { expect } from 'chai';
import { refusesStrangers } from '../../deploy/local/stack/servers/rocketmq.js';
import { masterBrokers } from '../../src/rocketmq/admin/broker-state.js';
import { exchange, type RequestFields } from '../../src/rocketmq/admin/remoting.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import type { BrokerCredentials } from '../../src/rocketmq/credentials.js';
import { createDeliverySource } from '../../src/rocketmq/delivery-source.js';
import { startPlainProducer } from '../../src/rocketmq/plain-channels.js';
import { probeTopics } from '../../src/rocketmq/probe-topics.js';
import { adminPortOf, brokerOf, credentialsIn } from '../helpers/broker.js';
import { silentLog } from '../helpers/silent-log.js';
import { useSystem } from '../helpers/system.js';

/** Response codes (ResponseCode.java of 5.4.0). The proxy answers a refusal with its own error. */
const [OK, SYSTEM_ERROR, NO_PERMISSION] = [0, 1, 16];
/** Outlasts the wait of the broker before it sends the first bytes to a replica. */
const REPLICATION_MS = 30_000;

interface Asked {
  readonly code: number;
  readonly body?: string;
  readonly fields?: RequestFields;
}

const ADMIN_REQUESTS: Readonly<Record<string, Asked>> = {
  'read the topics': { code: 21 },
  'read the settings': { code: 26 },
  'change a setting': { code: 25, body: 'brokerPermission=6\n' },
  'delete a topic': { code: 215, fields: { topic: 'seckill-that-is-not-there' } },
  'end a half message': {
    code: 37,
    fields: {
      producerGroup: TOPICS.purchase,
      tranStateTableOffset: '0',
      commitLogOffset: '0',
      commitOrRollback: '8',
      fromTransactionCheck: 'false',
      msgId: 'none',
    },
  },
  'read a queue': {
    code: 11,
    fields: {
      consumerGroup: GROUPS.writer,
      topic: TOPICS.purchase,
      queueId: '0',
      queueOffset: '0',
      maxMsgNums: '1',
      sysFlag: '0',
      commitOffset: '0',
      suspendTimeoutMillis: '0',
      subVersion: '0',
    },
  },
  'publish a message': {
    code: 10,
    fields: {
      producerGroup: 'somebody',
      topic: TOPICS.orderEvent,
      defaultTopic: 'TBW102',
      defaultTopicQueueNums: '1',
      queueId: '0',
      sysFlag: '0',
      bornTimestamp: '1',
      flag: '0',
      properties: '',
      reconsumeTimes: '0',
    },
    body: 'from somebody',
  },
};

/** Requests that the proxy answers for clients of the remoting protocol. */
const PROXY_REQUESTS: Readonly<Record<string, Asked>> = {
  'read where a topic is': { code: 105, fields: { topic: TOPICS.purchase } },
  'join a group': { code: 34, body: JSON.stringify({ clientID: 'x', consumerDataSet: [], producerDataSet: [] }) },
  'read who consumes': { code: 38, fields: { consumerGroup: GROUPS.writer } },
  'read a queue': ADMIN_REQUESTS['read a queue'] as Asked,
  'publish a message': ADMIN_REQUESTS['publish a message'] as Asked,
};

describe('the local broker', () => {
  const system = useSystem();
  const right = (): BrokerCredentials => credentialsIn(system.stack.env);
  const strangers = (): [string, BrokerCredentials | null, RegExp][] => [
    ['without a key', null, /username cannot be null/],
    ['with a key that does not exist', { ...right(), accessKey: 'nobody' }, /User:nobody is not found/],
    ['with a wrong secret', { ...right(), accessSecret: 'a-wrong-secret' }, /check signature failed/],
  ];
  const ask = async (port: number, { code, body, fields }: Asked, credentials: BrokerCredentials | null) => {
    const answer = await exchange({ host: '127.0.0.1', port, credentials }, code, body, fields);
    return { code: answer.code, remark: answer.remark ?? '' };
  };

  it('refuses clients without the right key on its admin ports and on the remoting port of the proxy [S12]', async () => {
    const { ports } = system.stack.servers;
    const wanted = [
      ...[ports.broker, ports.broker - 2].map((port) => [port, ADMIN_REQUESTS, NO_PERMISSION] as const),
      [ports.remoting, PROXY_REQUESTS, SYSTEM_ERROR] as const,
    ];
    for (const [port, requests, refused] of wanted) {
      for (const [what, asked] of Object.entries(requests)) {
        for (const [who, credentials, why] of strangers()) {
          const answer = await ask(port, asked, credentials);
          expect(answer.code, `${port}, ${what}, ${who}: ${answer.remark}`).to.equal(refused);
          expect(answer.remark, `${port}, ${what}, ${who}`).to.match(why);
        }
      }
    }
    // With the key, the same requests are refused at most for their content.
    for (const [port, what, requests] of [
      [ports.broker, 'read the topics', ADMIN_REQUESTS],
      [ports.broker - 2, 'change a setting', ADMIN_REQUESTS],
      [ports.remoting, 'read where a topic is', PROXY_REQUESTS],
    ] as const) {
      expect((await ask(port, requests[what] as Asked, right())).code, `${port}, ${what}`).to.equal(OK);
    }
    const namesrv = { host: '127.0.0.1', port: ports.namesrv, credentials: right() };
    expect(await masterBrokers(namesrv, null)).to.deep.equal([
      { name: 'broker-a', ...adminPortOf(system.stack.servers) },
    ]);
  });

  it('is reported by `stack status` as closed to strangers', async () => {
    const { ports } = system.stack.servers;
    expect(await refusesStrangers(ports)).to.equal(true);
    expect(await refusesStrangers({ broker: ports.namesrv }), 'a server without access control').to.equal(false);
  });

  it('refuses a gRPC producer and consumer without the right key, in one sentence [S12]', async () => {
    const { endpoint } = brokerOf(system.stack.env);
    const consumed = { topic: TOPICS.orderEvent, group: GROUPS.notifier, invisibleMs: 10_000, awaitMs: 1_000 };
    const clientsOf = (credentials: BrokerCredentials | null) => {
      const options = { endpoint, credentials, log: silentLog };
      return [
        () => startPlainProducer(TOPICS.orderEvent, options),
        () => createDeliverySource({ ...options, ...consumed }),
      ] as const;
    };
    for (const [who, credentials, why] of strangers()) {
      const advice = credentials === null ? /has access control: set ROCKETMQ_ACCESS_KEY/ : why;
      for (const start of clientsOf(credentials)) {
        const error = await start().then(
          () => null,
          (reason: Error) => reason,
        );
        expect(error?.message, who).to.match(advice).and.contain(`RocketMQ at ${endpoint} `);
      }
      expect(await probeTopics({ endpoint, credentials }, [TOPICS.purchase]), who).to.match(advice);
    }
    const opened = await Promise.all(clientsOf(right()).map((start) => start()));
    await Promise.all(opened.map((client) => client.close()));
    expect(await probeTopics({ endpoint, credentials: right() }, Object.values(TOPICS))).to.equal(null);
  });

  it('sends its log to no client on the replication port, which does not support keys [S12]', async () => {
    const { ports, env } = { ...system.stack.servers, env: system.stack.env };
    const producer = await startPlainProducer(TOPICS.orderEvent, { ...brokerOf(env), log: silentLog });
    await producer.send({ body: Buffer.from('{"v":0}') }, 'something to read');
    await producer.close();
    for (const offset of [0n, 1n]) {
      const { bytes, isClosed } = await replicateFrom(ports.broker + 1, offset);
      expect([bytes, isClosed], `from offset ${offset}`).to.deep.equal([0, true]);
    }
  });
});

/** Asks for the log as a replica would (DefaultHAClient.java of 5.4.0). */
function replicateFrom(port: number, offset: bigint): Promise<{ readonly bytes: number; readonly isClosed: boolean }> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const report = Buffer.alloc(8);
    report.writeBigInt64BE(offset);
    const socket = connect({ host: '127.0.0.1', port });
    const timer = setTimeout(() => socket.destroy(), REPLICATION_MS);
    socket.on('connect', () => socket.write(report));
    socket.on('data', (chunk) => (bytes += chunk.length));
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve({ bytes, isClosed: socket.readableEnded });
    });
  });
}
