import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import { Endpoints, Producer, SimpleConsumer, type BaseClient } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import messages from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import sinon from 'sinon';
import { silentLog } from '../../helpers/silent-log.js';
import { baseClientOptions } from '../../../src/rocketmq/client-options.js';
import { PatchedConsumer, PatchedProducer } from '../../../src/rocketmq/clients-with-workarounds.js';
import { Transport } from '../../../src/rocketmq/transport.js';
import { makeAuthority } from '../../../deploy/local/stack/certificates.js';
import { Tls } from '../../../src/core/tls.js';
import { ROCKETMQ_TLS_NAMES } from '../../../src/rocketmq/credentials.js';

const here = new Endpoints('127.0.0.1:1');
const grpcError = (code: number, details: string): Error => Object.assign(new Error(`${code} X: ${details}`), { code });
async function expectRejected(work: Promise<unknown>): Promise<void> {
  const [outcome] = await Promise.allSettled([work]);
  expect(outcome.status).to.equal('rejected');
}
const queryRoute = (client: BaseClient, endpoints: Endpoints): Promise<unknown> =>
  client['rpcClientManager'].queryRoute(endpoints, new messages.QueryRouteRequest(), 1000);
const address = { endpoint: '127.0.0.1:1', topic: 't', group: 'g' }; // nothing listens there
const options = { ...baseClientOptions(address, { ...address, credentials: null, log: silentLog }), topics: ['t'] };
const newProducer = (): PatchedProducer => new PatchedProducer(options);
const newConsumer = (): PatchedConsumer =>
  new PatchedConsumer({ ...options, consumerGroup: 'g', subscriptions: new Map([['t', '*']]) });

for (const [name, create, base] of [
  ['producer', newProducer, Producer],
  ['consumer', newConsumer, SimpleConsumer],
] as const) {
  describe(`patched ${name}: telemetry stream`, () => {
    it('raises no uncaught error after its release', () => {
      const stream = new EventEmitter();
      sinon.stub(base.prototype, 'createTelemetryStream').returns(stream as never);
      const opened = create().createTelemetryStream(here);
      const onError = sinon.spy();
      opened.on('error', onError);
      opened.removeAllListeners(); // releases it as the client does
      expect(() => stream.emit('error', new Error('1 CANCELLED'))).not.to.throw();
      expect(onError.callCount, 'the client no longer listens').to.equal(0);
    });

    it('is not opened by each failed call while no proxy can be reached', async () => {
      const proxies = new Endpoints('127.0.0.1:1;127.0.0.1:2');
      const streams: EventEmitter[] = [];
      sinon.stub(base.prototype, 'createTelemetryStream').callsFake(() => {
        streams.push(new EventEmitter());
        return streams.at(-1) as never;
      });
      const refresh = sinon.spy();
      const client = create();
      Object.assign(client, { getTotalRouteEndpoints: () => [proxies], getTelemetrySession: () => ({ refresh }) });
      client.createTelemetryStream(proxies);
      const fail = (): Promise<void> => expectRejected(queryRoute(client, proxies));
      await fail();
      const before = refresh.callCount;
      streams[0]?.emit('error', new Error('14 UNAVAILABLE'));
      await fail();
      expect(refresh.callCount, 'a timer of the client opens it').to.equal(before);
      client.createTelemetryStream(proxies);
      await fail();
      expect(refresh.callCount, 'it is open again').to.be.above(before);
      await client.shutdown().catch(() => undefined); // its last call finds no server
    });

    it('is not reopened by the timer that outlives a shutdown', async () => {
      const open = sinon.stub(base.prototype, 'createTelemetryStream').returns(new EventEmitter() as never);
      const client = create();
      await client.shutdown();
      const stream = client.createTelemetryStream(here);
      expect(open.callCount).to.equal(0);
      stream.write(new messages.TelemetryCommand());
      stream.end();
    });
  });
}

describe('patched consumer: brokers from which it receives', () => {
  /** Running receives, by broker. The test ends each of them. */
  let waiting: { readonly broker: string; readonly end: (error?: Error) => void }[];
  let client: PatchedConsumer;
  beforeEach(async () => {
    waiting = [];
    sinon.stub(Transport.prototype, 'queryRoute').callsFake(async () => {
      const queues = ['a', 'b', 'c'].map((name, index) =>
        new definition.MessageQueue()
          .setTopic(new definition.Resource().setName('t'))
          .setPermission(definition.Permission.READ_WRITE)
          .setAcceptMessageTypesList([definition.MessageType.NORMAL])
          .setBroker(
            new definition.Broker().setName(name).setEndpoints(new Endpoints(`127.0.0.1:${index + 1}`).toProtobuf()),
          ),
      );
      const ok = new definition.Status().setCode(definition.Code.OK);
      return new messages.QueryRouteResponse().setStatus(ok).setMessageQueuesList(queues);
    });
    sinon.stub(Transport.prototype, 'receiveMessage').callsFake((_, request) => {
      const broker = request.getMessageQueue()?.getBroker()?.getName() ?? '';
      return new Promise((resolve, reject) => {
        const ok = new definition.Status().setCode(definition.Code.OK);
        const empty = new messages.ReceiveMessageResponse().setStatus(ok);
        waiting.push({ broker, end: (error) => (error === undefined ? resolve([empty]) : reject(error)) });
      });
    });
    sinon.stub(SimpleConsumer.prototype, 'getTelemetrySession').returns({ syncSettings: () => undefined } as never);
    sinon.stub(SimpleConsumer.prototype, 'isRunning').returns(true);
    client = newConsumer();
  });
  /** Begins a receive, as a loop does. @returns the broker of the receive */
  const begin = async (): Promise<string> => {
    const before = waiting.length;
    void client.receive(1, 10_000).catch(() => undefined);
    while (waiting.length === before) await new Promise((resolve) => setImmediate(resolve));
    return waiting[before]?.broker ?? '';
  };
  const end = async (broker: string, error?: Error): Promise<void> => {
    const index = waiting.findLastIndex((one) => one.broker === broker);
    waiting[index]?.end(error);
    await new Promise((resolve) => setImmediate(resolve));
  };

  it('cover every broker if there are as many receives as brokers, whichever answers first', async () => {
    const first = await begin();
    expect(client.brokers).to.equal(3);
    expect([first, await begin(), await begin()].sort()).to.deep.equal(['a', 'b', 'c']);
    for (const broker of ['b', 'b', 'a', 'c', 'a', 'b']) {
      await end(broker);
      expect(await begin(), 'the broker without a receive').to.equal(broker);
    }
  });

  it('do not move to a failing broker', async () => {
    await Promise.all([begin(), begin(), begin()]);
    await end('b', new Error('14 UNAVAILABLE'));
    const asked: string[] = [];
    for (let nth = 0; nth < 6; nth++) {
      const broker = await begin();
      asked.push(broker);
      await end(broker, broker === 'b' ? new Error('14 UNAVAILABLE') : undefined);
    }
    expect(new Set(asked), 'the broker gets its turn').to.deep.equal(new Set(['a', 'b', 'c']));
  });
});

it('a patched client signs its headers once a second', () => {
  const clock = sinon.useFakeTimers({ now: 1_764_000_000_500, toFake: ['Date'] });
  const client = new PatchedProducer({ ...options, sessionCredentials: { accessKey: 'ak', accessSecret: 'as' } });
  const first = client.getRequestMetadata();
  clock.tick(499);
  expect(client.getRequestMetadata()).to.equal(first);
  clock.tick(1);
  expect(client.getRequestMetadata().get('authorization')).not.to.deep.equal(first.get('authorization'));
});

describe('patched producer: brokers to which it sends', () => {
  const TOPIC = 't';
  const response = <R extends { setStatus(status: InstanceType<typeof definition.Status>): R }>(of: R): R =>
    of.setStatus(new definition.Status().setCode(definition.Code.OK));
  /** Brokers by name, each with one queue and the port of its own proxy. */
  let ports: Record<string, number>;
  let isAway: (port: number) => boolean;
  let asked: number[];
  let client: PatchedProducer;
  /** Updates the routes as its timer does. */
  const updateRoutes = (): Promise<void> => (client as unknown as { updateRoutes(): Promise<void> }).updateRoutes();

  beforeEach(() => {
    ports = { a: 1, b: 2 };
    isAway = () => false;
    asked = [];
    const portOf = (endpoints: Endpoints): number => Number(endpoints.getGrpcTarget().split(':').at(-1));
    sinon.stub(Transport.prototype, 'queryRoute').callsFake(async () => {
      const queues = Object.entries(ports).map(([name, port]) => {
        const at = new Endpoints(`127.0.0.1:${port}`).toProtobuf();
        return new definition.MessageQueue()
          .setTopic(new definition.Resource().setName(TOPIC))
          .setPermission(definition.Permission.READ_WRITE)
          .setAcceptMessageTypesList([definition.MessageType.NORMAL])
          .setBroker(new definition.Broker().setName(name).setEndpoints(at));
      });
      return response(new messages.QueryRouteResponse()).setMessageQueuesList(queues);
    });
    sinon.stub(Transport.prototype, 'sendMessage').callsFake(async (endpoints) => {
      asked.push(portOf(endpoints));
      if (isAway(portOf(endpoints))) throw new Error('14 UNAVAILABLE');
      const entry = new messages.SendResultEntry().setStatus(new definition.Status().setCode(definition.Code.OK));
      return response(new messages.SendMessageResponse()).setEntriesList([entry]);
    });
    sinon.stub(Producer.prototype, 'getTelemetrySession').returns({ syncSettings: () => undefined } as never);
    sinon.stub(Producer.prototype, 'isRunning').returns(true);
    client = newProducer();
  });
  const send = async (times: number): Promise<Set<number>> => {
    asked = [];
    for (let nth = 0; nth < times; nth++)
      await client.send({ topic: TOPIC, body: Buffer.from('x') }).catch(() => undefined);
    return new Set(asked);
  };

  it('exclude a failed broker until it answers a heartbeat', async () => {
    expect(await send(4)).to.deep.equal(new Set([1, 2]));
    isAway = (port) => port === 1;
    await send(4);
    isAway = () => false;
    expect(await send(4), 'it has failed').to.deep.equal(new Set([2]));
    sinon
      .stub(services.MessagingServiceClient.prototype, 'heartbeat')
      .callsFake(((...args: unknown[]) =>
        (args[3] as CallableFunction)(null, response(new messages.HeartbeatResponse()))) as never);
    await client.getRpcClientManager().heartbeat(new Endpoints('127.0.0.1:1'), new messages.HeartbeatRequest(), 1000);
    expect(await send(4), 'it is back').to.deep.equal(new Set([1, 2]));
  });

  it('follow a broker to its new address, and notice new and removed brokers', async () => {
    expect(await send(4)).to.deep.equal(new Set([1, 2]));
    ports = { a: 7, b: 2, c: 3 };
    await updateRoutes();
    expect(await send(6)).to.deep.equal(new Set([7, 2, 3]));
    expect([client.brokers, client.addresses]).to.deep.equal([3, 3]);
    ports = { a: 7, b: 7 };
    await updateRoutes();
    expect([client.brokers, client.addresses]).to.deep.equal([2, 1]);
    ports = { b: 2 };
    await updateRoutes();
    expect(await send(4)).to.deep.equal(new Set([2]));
  });

  it('keep the last brokers while the route has no broker', async () => {
    expect(await send(4)).to.deep.equal(new Set([1, 2]));
    ports = {};
    await updateRoutes();
    expect(await send(4)).to.deep.equal(new Set([1, 2]));
  });
});

describe('RocketMQ transport', () => {
  const client = { sslEnabled: false, getRequestMetadata: () => undefined } as never;
  const ignore = { forgotten: (): void => undefined, heard: (): void => undefined, moved: (): void => undefined };
  const receiving = (transport: Transport, endpoints: Endpoints): unknown =>
    transport.telemetry(endpoints, undefined as never);

  /** Records the channels opened from now on, by address. */
  function watchChannels(): string[] {
    const targets: string[] = [];
    sinon.stub(services.MessagingServiceClient.prototype, 'telemetry').callsFake(function (
      this: InstanceType<typeof services.MessagingServiceClient>,
    ) {
      targets.push(this.getChannel().getTarget());
      return Object.assign(this, { once: () => undefined }) as never;
    });
    return targets;
  }

  it('uses one channel per address, however many objects name it', () => {
    const targets = watchChannels();
    const transport = new Transport(client, ignore, { pinnedTo: null, tls: null });
    const first = receiving(transport, here);
    expect(receiving(transport, new Endpoints('127.0.0.1:1'))).to.equal(first);
    expect(receiving(transport, new Endpoints('127.0.0.1:2'))).not.to.equal(first);
    expect(targets.map((target) => target.split(':').at(-1))).to.deep.equal(['1', '1', '2']);
    transport.close();
  });

  it('sends everything to the pinned endpoint', () => {
    const targets = watchChannels();
    const transport = new Transport(client, ignore, { pinnedTo: '127.0.0.1:9', tls: null });
    receiving(transport, here);
    expect(targets[0]).to.match(/127\.0\.0\.1:9$/);
    transport.close();
  });

  it('sends the acks of one turn in a request per address, and returns to each its own result', async () => {
    const asked: string[] = [];
    sinon.stub(services.MessagingServiceClient.prototype, 'ackMessage').callsFake(function (...args: unknown[]) {
      const ids = (args[0] as messages.AckMessageRequest).getEntriesList().map((entry) => entry.getMessageId());
      asked.push(ids.join());
      const entries = ids.map((id) => new messages.AckMessageResultEntry().setMessageId(id));
      (args[3] as CallableFunction)(null, new messages.AckMessageResponse().setEntriesList(entries));
      return {} as never;
    });
    const transport = new Transport(client, ignore, { pinnedTo: null, tls: null });
    const ack = async (id: string, endpoints = here): Promise<string> => {
      const request = new messages.AckMessageRequest();
      request.addEntries().setMessageId(id);
      const answer = await transport.ackMessage(endpoints, request, 1000);
      return answer
        .getEntriesList()
        .map((entry) => entry.getMessageId())
        .join();
    };
    const there = new Endpoints('127.0.0.1:2');
    const acks = [ack('1'), ack('2', there), ack('3'), ack('4')];
    expect(await Promise.all(acks)).to.deep.equal(['1', '2', '3', '4']);
    expect(await ack('5')).to.equal('5');
    expect(asked).to.deep.equal(['1,3,4', '2', '5']);
    transport.close();
  });

  it('opens another channel and closes the old one if the certificates have changed', async () => {
    watchChannels();
    const closing = sinon.spy(services.MessagingServiceClient.prototype, 'close');
    const [first, second] = await Promise.all([makeAuthority('first'), makeAuthority('second')]);
    let ca = first.cert;
    const tls = new Tls(ROCKETMQ_TLS_NAMES, { tlsCa: () => ca });
    const transport = new Transport(client, ignore, { pinnedTo: null, tls });
    const before = receiving(transport, here);
    expect(receiving(transport, here)).to.equal(before);
    expect(closing.callCount).to.equal(0);
    ca = second.cert;
    expect(receiving(transport, here)).not.to.equal(before);
    expect(closing.callCount).to.equal(1);
    transport.close();
  });

  describe('with several proxies', () => {
    const both = new Endpoints('127.0.0.1:1;127.0.0.1:2');
    const refused = grpcError(14, 'No connection established. Last error: connect ECONNREFUSED');
    let failures: Map<string, Error>;
    let asked: string[];
    let moved: sinon.SinonSpy;
    let transport: Transport;
    beforeEach(() => {
      failures = new Map();
      asked = [];
      moved = sinon.spy();
      sinon.stub(services.MessagingServiceClient.prototype, 'queryRoute').callsFake(function (
        this: InstanceType<typeof services.MessagingServiceClient>,
        ...args: unknown[]
      ) {
        const port = this.getChannel().getTarget().split(':').at(-1) ?? '';
        asked.push(port);
        (args[3] as CallableFunction)(failures.get(port) ?? null, new messages.QueryRouteResponse());
        return this as never;
      });
      transport = new Transport(client, { ...ignore, moved }, { pinnedTo: null, tls: null });
    });
    afterEach(() => transport.close());
    const ask = (): Promise<unknown> => transport.queryRoute(both, new messages.QueryRouteRequest(), 1000);
    const other = (port: string): string => (port === '1' ? '2' : '1');
    /** Makes one call and returns the proxy that answered. */
    const first = async (): Promise<string> => {
      await ask();
      return asked.pop() as string;
    };

    it('repeats no call that may have been sent, but makes the next call elsewhere', async () => {
      const dead = await first();
      failures.set(dead, grpcError(14, 'Connection dropped'));
      await expectRejected(ask());
      await ask();
      expect(asked).to.deep.equal([dead, other(dead)]);
    });

    it('stays with a proxy that answers with an error, or late once', async () => {
      const here = await first();
      for (const [code, text] of [
        [13, 'internal'],
        [4, 'Deadline exceeded after 3s,remote_addr=127.0.0.1:1'],
      ] as const) {
        failures.set(here, grpcError(code, text));
        await expectRejected(ask());
      }
      expect(asked).to.deep.equal([here, here]);
    });

    it('leaves a proxy that gives no answer three times in a row', async () => {
      const here = await first();
      const late = grpcError(4, 'Deadline exceeded after 3s,remote_addr=127.0.0.1:1');
      for (const failure of [late, late, undefined, late, late, late]) {
        if (failure === undefined) failures.delete(here);
        else failures.set(here, failure);
        await ask().catch(() => undefined);
      }
      expect(moved.callCount).to.equal(1);
      await ask();
      expect(asked).to.deep.equal([...Array<string>(6).fill(here), other(here)]);
    });

    it('opens the telemetry stream at the next proxy after an error of the stream', () => {
      const targets: string[] = [];
      const stream = new EventEmitter();
      sinon.stub(services.MessagingServiceClient.prototype, 'telemetry').callsFake(function (
        this: InstanceType<typeof services.MessagingServiceClient>,
      ) {
        targets.push(this.getChannel().getTarget());
        return stream as never;
      });
      for (let nth = 0; nth < 2; nth++) {
        transport.telemetry(both, undefined as never);
        stream.emit('error', refused);
      }
      expect(new Set(targets).size).to.equal(2);
    });

    it('asks each proxy once if none can be reached', async () => {
      for (const port of ['1', '2']) failures.set(port, refused);
      await expectRejected(ask());
      expect(asked.sort()).to.deep.equal(['1', '2']);
    });
  });

  it('requests the settings again if the proxy does not recognise a heartbeat', async () => {
    const answer = sinon.stub(services.MessagingServiceClient.prototype, 'heartbeat');
    const answerWith = (code: number): void => {
      const status = new definition.Status().setCode(code);
      const response = new messages.HeartbeatResponse().setStatus(status);
      answer.callsFake(((_request: unknown, _metadata: unknown, _options: unknown, done: CallableFunction) =>
        done(null, response)) as never);
    };
    const [forgotten, heard] = [sinon.spy(), sinon.spy()];
    const transport = new Transport(client, { ...ignore, forgotten, heard }, { pinnedTo: null, tls: null });
    answerWith(definition.Code.OK);
    await transport.heartbeat(here, new messages.HeartbeatRequest(), 1000);
    expect(forgotten.callCount).to.equal(0);
    answerWith(definition.Code.UNRECOGNIZED_CLIENT_TYPE);
    await transport.heartbeat(here, new messages.HeartbeatRequest(), 1000);
    expect([forgotten.args, heard.args]).to.deep.equal([[[here]], [[here]]]);
    transport.close();
  });

  it('leaves stack traces unchanged if a call cannot start', async () => {
    sinon.stub(Error, 'stackTraceLimit').value(7);
    sinon.stub(services.MessagingServiceClient.prototype, 'queryRoute').throws(new Error('no'));
    const transport = new Transport(client, ignore, { pinnedTo: null, tls: null });
    const [outcome] = await Promise.allSettled([transport.queryRoute(here, new messages.QueryRouteRequest(), 1000)]);
    expect(outcome.status).to.equal('rejected');
    expect(Error.stackTraceLimit).to.equal(7);
    transport.close();
  });
});
