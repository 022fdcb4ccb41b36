import { once } from 'node:events';
import { createServer as createPlainServer, type AddressInfo, type Server } from 'node:net';
import { connect, createServer, type TlsOptions } from 'node:tls';
import { expect } from 'chai';
import {
  makeAuthority,
  makeCertificate,
  type CertificateParts,
  type Certified,
} from '../../../deploy/local/stack/certificates.js';
import { Tls, tlsReason, type TlsNames, type TlsSettings } from '../../../src/core/tls.js';

const NAMES: TlsNames = { prefix: 'STORE_TLS', address: 'STORE_URL', off: 'set STORE_TLS to off' };
const LOCAL: CertificateParts = { commonName: 'localhost', names: ['localhost'], addresses: ['127.0.0.1'] };
const DAY_MS = 86_400_000;

describe('tls', () => {
  let ours: Certified;
  let theirs: Certified;
  let server: Certified;
  let client: Certified;
  before(async () => {
    [ours, theirs] = await Promise.all([makeAuthority('ours'), makeAuthority('theirs')]);
    [server, client] = await Promise.all([makeCertificate(LOCAL, ours), makeCertificate({ commonName: 'us' }, ours)]);
  });

  const settings = (parts: { ca?: string; pair?: Certified; serverName?: string }): TlsSettings => ({
    tlsCa: () => parts.ca ?? '',
    tlsCert: () => parts.pair?.cert ?? '',
    tlsKey: () => parts.pair?.key ?? '',
    tlsServerName: parts.serverName ?? '',
  });

  /** Returns the error of a connection to this server, or null if the server answered. */
  async function connected(options: TlsOptions | null, tls: Tls, host = '127.0.0.1'): Promise<Error | null> {
    const listening: Server =
      options === null
        ? createPlainServer((socket) => void socket.on('error', () => undefined).end('-ERR I speak no TLS\r\n'))
        : createServer(options, (socket) => void socket.on('error', () => undefined).end('hello'));
    listening.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
    await once(listening, 'listening');
    const { port } = listening.address() as AddressInfo;
    try {
      return await new Promise((resolve) => {
        const socket = connect({ host, port, ...tls.optionsFor(host) });
        socket.once('error', resolve);
        socket.once('close', () => resolve(new Error('closed')));
        socket.once('data', () => resolve(null)); // A server refuses our certificate after the handshake in TLS 1.3.
      });
    } finally {
      listening.close();
    }
  }

  it('trusts the given authority for host names and IP addresses, and presents our certificate', async () => {
    const tls = new Tls(NAMES, settings({ ca: ours.cert, pair: client }));
    const asking = { ...server, ca: ours.cert, requestCert: true, rejectUnauthorized: true };
    expect(await connected(asking, tls)).to.equal(null);
    expect(await connected(server, tls, 'localhost')).to.equal(null);
    const named = await makeCertificate({ commonName: 'x', names: ['db.example'] }, ours);
    const byName = new Tls(NAMES, settings({ ca: ours.cert, serverName: 'db.example' }));
    expect(await connected(named, byName), 'the requested name').to.equal(null);
  });

  describe('names the reason and the remedy if a connection fails', () => {
    const cases: [string, () => Promise<[TlsOptions | null, TlsSettings]>, RegExp][] = [
      [
        'an authority that we do not trust',
        async () => [server, settings({ ca: theirs.cert })],
        /^has a certificate that no authority in STORE_TLS_CA signed: correct STORE_TLS_CA \(/,
      ],
      [
        'an untrusted authority, if none is set',
        async () => [server, settings({})],
        /^has a certificate of an authority that this program does not trust: set STORE_TLS_CA \(/,
      ],
      [
        'a certificate that has expired',
        async () => [
          await makeCertificate({ ...LOCAL, fromMs: Date.now() - 2 * DAY_MS, untilMs: Date.now() - DAY_MS }, ours),
          settings({ ca: ours.cert }),
        ],
        /^has a certificate that expired/,
      ],
      [
        'a certificate of tomorrow',
        async () => [
          await makeCertificate({ ...LOCAL, fromMs: Date.now() + DAY_MS }, ours),
          settings({ ca: ours.cert }),
        ],
        /^has a certificate that is not valid yet: compare the clocks/,
      ],
      [
        'a certificate for another name',
        async () => [
          await makeCertificate({ commonName: 'x', names: ['elsewhere.example'] }, ours),
          settings({ ca: ours.cert }),
        ],
        /^has a certificate for another name: correct the host in STORE_URL, or set STORE_TLS_SERVER_NAME to that name \(/,
      ],
      [
        'a name that was asked for, and is not in it',
        async () => [server, settings({ ca: ours.cert, serverName: 'db.example' })],
        /^has a certificate for another name/,
      ],
      [
        'a server that wants a certificate of ours',
        async () => [
          { ...server, ca: ours.cert, requestCert: true, rejectUnauthorized: true },
          settings({ ca: ours.cert }),
        ],
        /asks for a client certificate: .*set STORE_TLS_CERT and STORE_TLS_KEY \(/,
      ],
      [
        'a server without TLS',
        async () => [null, settings({ ca: ours.cert })],
        /^does not use TLS: switch it on there, or set STORE_TLS to off \(/,
      ],
    ];
    for (const [title, parts, sentence] of cases) {
      for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        it(`${title}, ${version}`, async () => {
          const [options, certificates] = await parts();
          const tls = new Tls(NAMES, certificates);
          const error = await connected(options && { ...options, maxVersion: version, minVersion: version }, tls);
          expect(tlsReason(error, NAMES, tls), String(error)).to.match(sentence);
          // The MySQL driver replaces the error code of Node.js, and gRPC keeps only the text.
          const without = Object.assign(new Error(error?.message), { code: 'HANDSHAKE_SSL_ERROR' });
          expect(tlsReason(without, NAMES, tls), 'by its text').to.match(sentence);
        });
      }
    }

    it('names a server that refuses our certificate', () => {
      // A Node.js server closes without an alert, so this is the text of OpenSSL.
      const alert = new Error('80A9:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:rec.c:1:');
      const sentence = tlsReason(alert, NAMES, new Tls(NAMES, settings({ ca: ours.cert, pair: client })));
      expect(sentence).to.match(/^does not accept the client certificate: correct STORE_TLS_CERT and STORE_TLS_KEY \(/);
    });

    it('returns null for an error that has nothing to do with TLS', () => {
      const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
      for (const error of [refused, new Error('read ECONNRESET'), undefined, null, 'text']) {
        expect(tlsReason(error, NAMES, null)).to.equal(null);
      }
    });
  });

  it('replaces its context only once both changed files are valid', async () => {
    const next = await makeCertificate({ commonName: 'us next' }, ours);
    let pair = client;
    const tls = new Tls(NAMES, { tlsCa: () => ours.cert, tlsCert: () => pair.cert, tlsKey: () => pair.key });
    const { context, material } = tls;
    expect([tls.context === context, tls.material === material]).to.deep.equal([true, true]);
    pair = { cert: next.cert, key: client.key }; // Only the first of two files is replaced here.
    expect([tls.context === context, tls.material.cert]).to.deep.equal([true, client.cert]);
    pair = next;
    expect([tls.context === context, tls.material.cert]).to.deep.equal([false, next.cert]);
  });
});
