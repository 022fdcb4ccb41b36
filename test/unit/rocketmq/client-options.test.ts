import { expect } from 'chai';
import { Endpoints, MessageIdFactory } from 'rocketmq-client-nodejs';
import { OperationalError } from '../../../src/core/errors.js';
import {
  baseClientOptions,
  clientLogger,
  isClientShutdownNoise,
  parseEndpoint,
} from '../../../src/rocketmq/client-options.js';
import { useRandomMessageIds } from '../../../src/rocketmq/start-client.js';
import { silentLog } from '../../helpers/silent-log.js';
import { recordingLog } from './recording-log.js';

const address = { endpoint: '127.0.0.1:18081', topic: 'seckill-purchase' };

describe('client-options', () => {
  for (const endpoint of ['127.0.0.1:18081', 'broker-a.example.com:8081', 'proxy:80']) {
    it(`accepts ${endpoint}`, () => expect(() => parseEndpoint(endpoint)).not.to.throw());
  }

  for (const endpoint of [
    '',
    'proxy',
    'proxy:',
    'proxy:0',
    'proxy:70000',
    'http://proxy:80',
    'a:1;b:2',
    'a:1,b:2',
    '[::1]:80',
  ]) {
    it(`refuses "${endpoint}" with the expected format`, () => {
      expect(() => parseEndpoint(endpoint))
        .to.throw(OperationalError, 'ROCKETMQ_ENDPOINT must be host:port')
        .with.property('retryable', false);
    });
  }

  it('passes every proxy to the client, and refuses a list with a malformed proxy', () => {
    const of = (endpoint: string) =>
      baseClientOptions({ ...address, endpoint }, { ...address, credentials: null, log: silentLog });
    expect(new Endpoints(of('a:1,10.0.0.2:2').endpoints).addressesList).to.deep.equal([
      { host: 'a', port: 1 },
      { host: '10.0.0.2', port: 2 },
    ]);
    expect(() => of('a:1,')).to.throw(OperationalError, 'not ""');
  });

  it('gives the client a valid time-out and a complete logger', () => {
    const options = baseClientOptions(address, {
      ...address,
      credentials: null,
      requestTimeoutMs: 10,
      log: silentLog,
    });
    expect(options).not.to.have.any.keys('sessionCredentials');
    const credentials = { accessKey: 'k', accessSecret: 's' };
    const asUser = baseClientOptions(address, { ...address, credentials, log: silentLog });
    expect(asUser).to.deep.include({ sessionCredentials: credentials });
    expect(options.requestTimeout).to.equal(1000);
    // without debug, rollback would throw
    expect(options.logger).to.have.all.keys('debug', 'info', 'warn', 'error', 'close');
  });

  it("drops the client's info lines and logs its errors readably at debug", () => {
    const { log, lines } = recordingLog();
    const logger = clientLogger(log, address);
    logger.info('Begin to commit transaction, messageCount=%d', 1);
    logger.error('Failed, topic=%s, error=%s', 't', new Error('boom'), 'rest');
    expect(lines).to.have.length(1);
    expect(lines[0]?.level).to.equal('debug');
    expect(lines[0]?.fields).to.include({ client: 'Failed, topic=t, error=Error: boom', topic: 'seckill-purchase' });
  });

  it('puts a random part per process into message ids [M13]', () => {
    MessageIdFactory.MAC = '000000000000'; // as if the client set it after its import
    useRandomMessageIds();
    expect(MessageIdFactory.MAC)
      .to.match(/^[0-9a-f]{12}$/)
      .and.not.equal('000000000000');
    expect(MessageIdFactory.create().toString().slice(2, 14).toLowerCase()).to.equal(MessageIdFactory.MAC);
  });

  it('recognises the harmless error of a released telemetry stream, and no other error', () => {
    const noise = Object.assign(new Error('1 CANCELLED: Call cancelled'), { code: 1, details: 'Call cancelled' });
    expect(isClientShutdownNoise(noise)).to.equal(true);
    expect(isClientShutdownNoise(Object.assign(new Error('x'), { code: 14, details: 'Cancelled' }))).to.equal(false);
    expect(isClientShutdownNoise(new Error('1 CANCELLED'))).to.equal(false);
    expect(isClientShutdownNoise(undefined)).to.equal(false);
  });
});
