import { once } from 'node:events';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { createServer, type AddressInfo } from 'node:net';
import { Client } from '@grpc/grpc-js';
import { expect } from 'chai';
import { makeAuthority, makeCertificate, type Certified } from '../../../deploy/local/stack/certificates.js';
import { OperationalError } from '../../../src/core/errors.js';
import { Tls } from '../../../src/core/tls.js';
import { channelCredentials, tlsChannelOptions } from '../../../src/rocketmq/channel-credentials.js';
import { ROCKETMQ_TLS_NAMES } from '../../../src/rocketmq/credentials.js';
import { startClient } from '../../../src/rocketmq/start-client.js';
import { silentLog } from '../../helpers/silent-log.js';

const CONNECT_MS = 3_000;

describe('gRPC with a private authority', () => {
  let authority: Certified;
  let stranger: Certified;
  let server: Http2SecureServer;
  let port: number;
  before(async () => {
    [authority, stranger] = await Promise.all([makeAuthority('ours'), makeAuthority('theirs')]);
    const parts = { commonName: 'x', names: ['localhost', 'mq.example'], addresses: ['127.0.0.1'] };
    server = createSecureServer(await makeCertificate(parts, authority)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  after(() => void server.close());

  const tlsOf = (ca: string, tlsServerName = ''): Tls =>
    new Tls(ROCKETMQ_TLS_NAMES, { tlsCa: () => ca, tlsServerName });

  /** Null if the connection works. */
  async function connected(tls: Tls, target: string): Promise<string | null> {
    const client = new Client(target, channelCredentials(tls, target), tlsChannelOptions(tls, target));
    try {
      return await new Promise((resolve) =>
        client.waitForReady(Date.now() + CONNECT_MS, (error) => resolve(error?.message ?? null)),
      );
    } finally {
      client.close();
    }
  }

  it('connects by name, by address and by another name, without a warning', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    try {
      expect(await connected(tlsOf(authority.cert), `localhost:${port}`)).to.equal(null);
      expect(await connected(tlsOf(authority.cert), `127.0.0.1:${port}`)).to.equal(null);
      expect(await connected(tlsOf(authority.cert, 'mq.example'), `127.0.0.1:${port}`)).to.equal(null);
    } finally {
      process.off('warning', onWarning);
    }
    expect(warnings.map(String)).to.deep.equal([]);
  });

  it('refuses any other server', async () => {
    expect(await connected(tlsOf(stranger.cert), `127.0.0.1:${port}`)).to.be.a('string');
    expect(await connected(tlsOf(authority.cert, 'other.example'), `127.0.0.1:${port}`)).to.be.a('string');
  });

  it('reuses one object per target until the certificates change', () => {
    let ca = authority.cert;
    const tls = new Tls(ROCKETMQ_TLS_NAMES, { tlsCa: () => ca });
    const first = channelCredentials(tls, 'a:1');
    expect([channelCredentials(tls, 'a:1') === first, channelCredentials(tls, 'b:1') === first]).to.deep.equal([
      true,
      false,
    ]);
    ca += stranger.cert;
    expect(channelCredentials(tls, 'a:1')).not.to.equal(first);
    expect(channelCredentials(null, 'a:1')).to.equal(channelCredentials(null, 'b:1'));
  });

  describe('RocketMQ client start with TLS', () => {
    const failureOf = async (tls: Tls | null, start: () => Promise<void>, endpoint: string) => {
      let made = 0;
      const startedMs = performance.now();
      const make = () => ({ startup: (made++, start), shutdown: async () => undefined });
      const error = await startClient(make, { endpoint, topic: 't' }, silentLog, { attempts: 2, tls }).then(
        () => null,
        (reason: Error) => reason,
      );
      return { error, made, tookMs: performance.now() - startedMs };
    };
    const unavailable = () =>
      Promise.reject(Object.assign(new Error('14 UNAVAILABLE: Connection dropped'), { code: 14 }));

    it('fails at once if we do not trust the server', async () => {
      const { error, made, tookMs } = await failureOf(tlsOf(stranger.cert), unavailable, `127.0.0.1:${port}`);
      expect(error).to.be.instanceOf(OperationalError).with.property('retryable', false);
      expect(error?.message).to.match(
        /^RocketMQ at 127\.0\.0\.1:\d+ has a certificate that no authority in ROCKETMQ_TLS_CA signed: correct ROCKETMQ_TLS_CA \(/,
      );
      expect([made, tookMs < 1_000]).to.deep.equal([0, true]);
    });

    it('reports after its first attempt without TLS that the server speaks TLS', async () => {
      const { error, made } = await failureOf(null, unavailable, `127.0.0.1:${port}`);
      expect(error?.message).to.match(/ uses TLS, perhaps only TLS: set ROCKETMQ_TLS to grpc or on\.$/);
      expect(made).to.equal(1);
    });

    it('tries again if no server listens, as without TLS', async () => {
      const closed = createServer().listen(0, '127.0.0.1');
      await once(closed, 'listening');
      const { port: free } = closed.address() as AddressInfo;
      await new Promise((resolve) => closed.close(resolve));
      for (const tls of [null, tlsOf(authority.cert)]) {
        const { error, made } = await failureOf(tls, unavailable, `127.0.0.1:${free}`);
        expect([error?.message.includes('Check that the proxy runs there.'), made]).to.deep.equal([true, 2]);
      }
    });
  });
});
