import { createServer, type AddressInfo } from 'node:net';
import { expect } from 'chai';
import sinon from 'sinon';
import { OperationalError } from '../../../src/core/errors.js';
import { Tls } from '../../../src/core/tls.js';
import { ROCKETMQ_TLS_NAMES } from '../../../src/rocketmq/credentials.js';
import { recordingLog } from './recording-log.js';
import { silentLog } from '../../helpers/silent-log.js';
import { startClient, stopClient, within, type StartableClient } from '../../../src/rocketmq/start-client.js';

const never = (): Promise<void> => new Promise(() => undefined);
const address = { endpoint: '127.0.0.1:1', topic: 'seckill-purchase', group: 'seckill-order-writer' };
const limits = { startupTimeoutMs: 20, attempts: 3 };

class FakeClient implements StartableClient {
  shutdowns = 0;
  readonly #start: () => Promise<void>;
  constructor(start: () => Promise<void>) {
    this.#start = start;
  }
  startup(): Promise<void> {
    return this.#start();
  }
  async shutdown(): Promise<void> {
    this.shutdowns += 1;
    throw new Error('the proxy is gone');
  }
}

function series(...starts: (() => Promise<void>)[]): { made: FakeClient[]; make: () => FakeClient } {
  const made: FakeClient[] = [];
  return {
    made,
    make: () => {
      const client = new FakeClient(starts[made.length] ?? never);
      made.push(client);
      return client;
    },
  };
}

async function failureOf(work: Promise<unknown>): Promise<OperationalError> {
  const [outcome] = await Promise.allSettled([work]);
  expect(outcome?.status).to.equal('rejected');
  return (outcome as PromiseRejectedResult).reason as OperationalError;
}

describe('start-client', () => {
  it('fails at once with the server and the reason if access control refuses it [S12]', async () => {
    const refused = Object.assign(new Error('[request-id=undefined, response-code=40100] check signature failed.'), {
      code: 40_100,
    });
    const { made, make } = series(async () => {
      throw new Error('Startup failed', { cause: new Error('Failed to fetch topic routes', { cause: refused }) });
    });
    const error = await failureOf(startClient(make, address, silentLog, limits));
    expect(error.message).to.equal(
      'RocketMQ at 127.0.0.1:1 refuses ROCKETMQ_ACCESS_KEY or ROCKETMQ_ACCESS_SECRET: correct them ' +
        '(it says: check signature failed.).',
    );
    expect([error.retryable, made.length, made[0]?.shutdowns]).to.deep.equal([false, 1, 1]);
  });

  it('starts if one of several proxies completes the handshake, and names the other proxies', async () => {
    const plain = createServer((socket) => void socket.end('no TLS here\r\n'));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const { port } = plain.address() as AddressInfo;
    const tls = new Tls(ROCKETMQ_TLS_NAMES, {});
    const both = { ...address, endpoint: `127.0.0.1:${port},127.0.0.1:1` }; // nothing listens at the second
    const { log, lines } = recordingLog();
    const start = (endpoint: string): Promise<unknown> =>
      startClient(series(async () => undefined).make, { ...both, endpoint }, log, { ...limits, tls });
    await start(both.endpoint);
    expect(lines.map(({ message }) => message).join()).to.match(new RegExp(`^RocketMQ at 127\\.0\\.0\\.1:${port} `));
    expect((await failureOf(start(`127.0.0.1:${port}`))).message).to.include(`RocketMQ at 127.0.0.1:${port}`);
    plain.close();
  });

  it('gives up a hanging start, shuts the client down and tries a new client', async () => {
    const { made, make } = series(never, async () => undefined);
    const client = await startClient(make, address, silentLog, limits);
    expect(client).to.equal(made[1]);
    expect(made.map(({ shutdowns }) => shutdowns)).to.deep.equal([1, 0]);
  });

  it('names endpoint, topic, group and remedy in the error after the last attempt', async () => {
    const { made, make } = series(never, never, never);
    const error = await failureOf(startClient(make, address, silentLog, limits));
    expect(error).to.be.instanceOf(OperationalError);
    expect(error.retryable).to.equal(true);
    expect(error.message).to.include('127.0.0.1:1').and.include('seckill-purchase').and.include('seckill-order-writer');
    expect(error.message).to.include('no answer within 20 ms').and.include('`seckill topics`');
    expect(made).to.have.length(3);
  });

  it('shows the innermost cause, and suggests checking the proxy if the connection is refused', async () => {
    const root = new Error('14 UNAVAILABLE: connect ECONNREFUSED 127.0.0.1:1');
    const wrapped = new Error('Startup failed', { cause: new Error('Failed to fetch topic routes', { cause: root }) });
    const { make } = series(...Array.from({ length: 3 }, () => () => Promise.reject(wrapped)));
    const error = await failureOf(startClient(make, address, silentLog, limits));
    expect(error.message).to.include('ECONNREFUSED').and.include('Check that the proxy runs there.');
    expect(error.cause).to.equal(wrapped);
  });

  it('limits the time of a shutdown that hangs or rejects', async () => {
    await stopClient({ startup: never, shutdown: never }, silentLog, 10);
    await stopClient({ startup: never, shutdown: () => Promise.reject(new Error('no')) }, silentLog, 10);
  });

  it('within: leaves no timer that would keep the process alive', async () => {
    const clock = sinon.useFakeTimers();
    await within(Promise.resolve(), 20_000);
    expect(clock.countTimers()).to.equal(0);
  });

  it('within: returns true if in time and false if late, and ignores a late failure', async () => {
    expect(await within(Promise.resolve(1), 1000)).to.equal(true);
    let fail: (error: Error) => void = () => undefined;
    const late = new Promise((_resolve, reject) => (fail = reject));
    expect(await within(late, 5)).to.equal(false);
    fail(new Error('late')); // an unhandled rejection would fail this run
    await new Promise((resolve) => setImmediate(resolve)); // by now the failure would have surfaced
  });
});
