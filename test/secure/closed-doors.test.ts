import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectByTls } from 'node:tls';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { certificateFiles, makeAuthority, makeCertificate } from '../../deploy/local/stack/certificates.js';
import { refusesStrangers } from '../../deploy/local/stack/servers/rocketmq.js';
import { askRemoting, REQUEST } from '../../src/rocketmq/admin/remoting.js';
import { masterBrokers, parseAddress } from '../../src/rocketmq/admin/broker-state.js';
import { Tls } from '../../src/core/tls.js';
import { connectionOptions } from '../../src/mysql/server.js';
import { handshakeFlaw } from '../../src/rocketmq/handshake.js';
import { ROCKETMQ_TLS_NAMES } from '../../src/rocketmq/credentials.js';
import { accessIn } from '../helpers/broker.js';
import { mysqlIn, redisIn } from '../helpers/servers.js';
import { useSystem } from '../helpers/system.js';

describe('the servers of the secure stack', () => {
  const system = useSystem();
  const files = () => certificateFiles(system.stack.servers.dir);
  const ca = (): string => readFileSync(files().ca, 'utf8');

  const failureOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'it was let in',
      (error: Error) => error.message,
    );

  it('refuse MySQL clients without TLS, without a certificate or with a certificate from another authority', async () => {
    const right = mysqlIn(system.stack.env);
    const open = async (more: Partial<typeof right>): Promise<unknown> => {
      const connection = await createConnection(connectionOptions({ ...right, ...more }));
      const [rows] = await connection.query("SHOW STATUS LIKE 'Ssl_cipher'");
      await connection.end();
      return (rows as { Value: string }[])[0]?.Value;
    };
    expect(await open({}), 'the cipher of an encrypted connection')
      .to.be.a('string')
      .with.length.above(0);
    expect(await failureOf(open({ tls: 'off' }))).to.match(/insecure transport|Access denied/);
    expect(await failureOf(open({ tlsCert: () => '', tlsKey: () => '' }))).to.match(/Access denied|certificate/);
    const stranger = await makeCertificate({ commonName: 'seckill' }, await makeAuthority('another'));
    expect(await failureOf(open({ tlsCert: () => stranger.cert, tlsKey: () => stranger.key }))).not.to.equal(
      'it was let in',
    );
  });

  it('refuse Redis clients without TLS or a certificate, and identify the user by name only', async () => {
    const { redis: port } = system.stack.servers.ports;
    const plain = connect({ host: '127.0.0.1', port }).on('error', () => undefined);
    let heard = '';
    plain.on('data', (chunk) => (heard += chunk.toString('latin1')));
    plain.write('PING\r\n');
    await new Promise((resolve) => plain.once('close', resolve)); // or by a reset
    expect(heard).not.to.contain('PONG');

    const tls = { ca: ca() };
    const pair = { cert: readFileSync(files().client), key: readFileSync(files().clientKey) };
    const ask = async (options: object): Promise<string> => {
      const redis = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null, ...options });
      const errors: string[] = [];
      redis.on('error', (error: Error) => errors.push(error.message));
      try {
        await redis.connect();
        return await redis.get('sk:any').then(String, (error: Error) => error.message);
      } catch (error) {
        return errors.at(-1) ?? (error as Error).message;
      } finally {
        redis.disconnect();
      }
    };
    expect(await ask({ tls: { ...tls, ...pair } }), 'as the default user').to.match(/NOAUTH|WRONGPASS|without/);
    const password = redisIn(system.stack.env).password();
    const right = { tls: { ...tls, ...pair }, username: 'seckill', password };
    expect(await ask(right)).to.equal('null');
    const noCertificate = await ask({ ...right, tls });
    expect(noCertificate, 'without a certificate').to.match(/certificate|closed|ECONNRESET|handshake/i);
    expect(await ask({ ...right, password: 'wrong' })).to.match(/WRONGPASS/);
    const redis = new Redis({ host: '127.0.0.1', port, ...right });
    for (const [command, ...args] of [
      ['FLUSHALL'],
      ['CONFIG', 'GET', '*'],
      ['GET', 'of-somebody-else'],
      ['KEYS', '*'],
    ]) {
      expect(await failureOf(redis.call(command as string, ...args)), command).to.match(/NOPERM/);
    }
    redis.disconnect();
  });

  it('refuse plain text on every RocketMQ port, and require a certificate and a key on admin ports', async () => {
    const { env, servers } = system.stack;
    const { ports } = servers;
    const { credentials, adminTls } = accessIn(env);
    const withoutCertificate = new Tls(ROCKETMQ_TLS_NAMES, { tlsCa: ca });
    for (const port of [ports.namesrv, ports.broker, ports.broker - 2, ports.remoting]) {
      const address = { host: '127.0.0.1', port, credentials };
      expect(await failureOf(askRemoting(address, REQUEST.clusterInfo)), `${port}, plain`).to.match(
        /closed the connection \(if it accepts only TLS, set ROCKETMQ_TLS to on\)/,
      );
      expect(
        await failureOf(askRemoting({ ...address, tls: withoutCertificate }, REQUEST.clusterInfo)),
        `${port}, without a certificate`,
      ).to.match(/ROCKETMQ_TLS_CERT|closed the connection/);
    }
    const namesrv = parseAddress(env.NAMESRV_ADDR, accessIn(env));
    expect((await masterBrokers(namesrv, null)).map(({ port }) => port)).to.deep.equal([ports.broker]);
    expect(await refusesStrangers(ports, { adminTls }), 'with a certificate, and without a key').to.equal(true);

    expect(await handshakeFlaw(env.ROCKETMQ_ENDPOINT, withoutCertificate)).to.equal(null);
    expect(await handshakeFlaw(env.ROCKETMQ_ENDPOINT, null)).to.match(/^uses TLS/);
    const grpc = connect({ host: '127.0.0.1', port: ports.grpc }).on('error', () => undefined);
    grpc.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await new Promise((resolve) => grpc.once('close', resolve));
  });

  it('present certificates from the authority of this instance', async () => {
    const { ports } = system.stack.servers;
    for (const port of [ports.redis, ports.namesrv, ports.broker, ports.grpc]) {
      const socket = connectByTls({ host: '127.0.0.1', port, ca: ca(), ALPNProtocols: ['h2'] });
      await once(socket, 'secureConnect');
      expect([socket.authorized, socket.getPeerCertificate().issuer.CN]).to.deep.equal([
        true,
        'Seckill local authority',
      ]);
      socket.on('error', () => undefined).destroy();
    }
  });
});
