import { expect } from 'chai';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { isBrokerActive, parseAddress, parseMasters } from '../../../../src/rocketmq/admin/broker-state.js';
import { probePort, probeRedis } from '../../../../deploy/local/stack/probes.js';
import { signFields } from '../../../../src/rocketmq/credentials.js';
import { askRemoting, decodeFrame, encodeRequest, refusal, REQUEST } from '../../../../src/rocketmq/admin/remoting.js';

/** Runs `use` against a server that handles every connection with `serve`. */
async function withServer<T>(serve: (socket: Socket) => void, use: (port: number) => Promise<T>): Promise<T> {
  const server = createServer((socket) => serve(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

/** Builds an answer without a body. */
const NOTHING = { body: '', bytes: Buffer.alloc(0) };

/** Builds a frame as RocketMQ would answer. */
function answer(header: object, body: string): Buffer {
  const head = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(8);
  lengths.writeInt32BE(4 + head.length + Buffer.byteLength(body), 0);
  lengths.writeInt32BE(head.length, 4);
  return Buffer.concat([lengths, head, Buffer.from(body)]);
}

describe('remoting protocol of RocketMQ', () => {
  it('reads its own frames, whole and in parts', () => {
    const frame = encodeRequest(REQUEST.updateBrokerConfig, 'a=1\n');
    expect(decodeFrame(frame)).to.include({ code: 25, body: 'a=1\n' });
    for (let length = 0; length < frame.length; length++) expect(decodeFrame(frame.subarray(0, length))).to.equal(null);
  });

  it('signs the fields in the order of their names, then the body, as the broker does', () => {
    const credentials = { accessKey: 'k', accessSecret: 's' };
    const signed = signFields({ topic: 't', b: '2', Z: '1' }, Buffer.from('body'), credentials);
    // AccessKey, Z, b, topic
    const Signature = createHmac('sha1', 's').update('k12tbody').digest('base64');
    expect(signed).to.deep.equal({ topic: 't', b: '2', Z: '1', AccessKey: 'k', Signature });
    const lent = signFields({ topic: 't' }, Buffer.from('body'), { ...credentials, securityToken: 'for an hour' });
    // AccessKey, SecurityToken, topic
    const ofLent = createHmac('sha1', 's').update('kfor an hourtbody').digest('base64');
    expect(lent).to.deep.equal({ topic: 't', AccessKey: 'k', SecurityToken: 'for an hour', Signature: ofLent });
  });

  it('reports whether a server has access control, and why it refuses a key', () => {
    const said = (remark: string): string => refusal({ host: 'h', port: 1 }, { ...NOTHING, code: 16, remark }).message;
    expect(said('username cannot be null.')).to.equal(
      'h:1 has access control: set ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET',
    );
    expect(said('check signature failed.')).to.match(/^h:1 refuses ROCKETMQ_ACCESS_KEY .*\(it says: check signature/);
    expect(refusal({ host: 'h', port: 1 }, { ...NOTHING, code: 1, remark: 'broken' }).message).to.equal('broken');
  });

  it('recognises another protocol', () => {
    expect(() => decodeFrame(Buffer.from('HTTP/1.1 400 Bad Request'))).to.throw(/not RocketMQ/);
  });

  it('finds the masters and their clusters although the broker ids are not JSON', () => {
    const body =
      '{"brokerAddrTable":{"a":{"brokerAddrs":{0:"127.0.0.1:1",1:"127.0.0.1:2"},"cluster":"C"},' +
      '"b":{"brokerAddrs":{1:"127.0.0.1:3"},"cluster":"C"},"c":{"brokerAddrs":{0:"127.0.0.1:4"},"cluster":"D"}}}';
    expect(parseMasters(body)).to.deep.equal([
      { name: 'a', cluster: 'C', host: '127.0.0.1', port: 1 },
      { name: 'c', cluster: 'D', host: '127.0.0.1', port: 4 },
    ]);
    expect(parseMasters('{}')).to.deep.equal([]);
  });

  it('accepts only host:port addresses', () => {
    expect(parseAddress(' h:1 ')).to.deep.equal({ host: 'h', port: 1 });
    for (const text of ['h', 'h:', ':1', 'h:x', 'a:b:1']) expect(() => parseAddress(text)).to.throw(/host:port/);
  });

  it('asks a broker whether it is active', async () => {
    for (const active of ['true', 'false']) {
      const serve = (socket: Socket): void =>
        void socket.once('data', () => socket.write(answer({ code: 0 }, `{"table":{"brokerActive":"${active}"}}`)));
      const result = await withServer(serve, (port) => isBrokerActive({ host: '127.0.0.1', port }));
      expect(result).to.equal(active === 'true');
    }
  });

  describe('remoting connection', () => {
    /** Starts a server that answers every request with the number of its connection. */
    async function withCounting(
      use: (address: { host: string; port: number }) => Promise<void>,
      onAnswered: (socket: Socket) => void = () => undefined,
    ): Promise<void> {
      let connections = 0;
      const serve = (socket: Socket): void => {
        const number = ++connections;
        socket.on('data', () => socket.write(answer({ code: 0 }, String(number)), () => onAnswered(socket)));
      };
      await withServer(serve, (port) => use({ host: '127.0.0.1', port }));
    }

    it('carries one request at a time', async () => {
      await withCounting(async (address) => {
        expect(await askRemoting(address, 1)).to.equal('1');
        expect(await askRemoting(address, 1)).to.equal('1');
        const both = await Promise.all([askRemoting(address, 1), askRemoting(address, 1)]);
        expect(both.sort()).to.deep.equal(['1', '2']);
      });
    });

    it('is not shared by two keys', async () => {
      await withCounting(async (address) => {
        const as = (accessSecret: string) => ({ ...address, credentials: { accessKey: 'k', accessSecret } });
        expect(await askRemoting(as('right'), 1)).to.equal('1');
        expect(await askRemoting(as('wrong'), 1)).to.equal('2');
        expect(await askRemoting(as('right'), 1)).to.equal('1');
      });
    });

    it('is replaced after the server has closed it', async () => {
      const close = (socket: Socket): void => void socket.destroy();
      await withCounting(async (address) => {
        for (const number of ['1', '2', '3']) expect(await askRemoting(address, 1)).to.equal(number);
      }, close);
    });

    it('sends a request once even if the server closes without an answer', async () => {
      let questions = 0;
      const serve = (socket: Socket): void =>
        void socket.on('data', () => {
          questions++;
          socket.destroy();
        });
      await withServer(serve, async (port) => {
        const error = await askRemoting({ host: '127.0.0.1', port }, 1).catch((reason: Error) => reason);
        expect(error).to.be.an('error');
        expect(questions).to.equal(1);
      });
    });

    it('joins an answer that arrives in many parts', async () => {
      const body = 'x'.repeat(3_000_000);
      const serve = (socket: Socket): void => void socket.on('data', () => socket.write(answer({ code: 0 }, body)));
      await withServer(serve, async (port) => {
        expect((await askRemoting({ host: '127.0.0.1', port }, 1)).length).to.equal(body.length);
      });
    });
  });

  it('throws the remark of a refusal', async () => {
    const serve = (socket: Socket): void =>
      void socket.once('data', () => socket.write(answer({ code: 1, remark: 'no' }, '')));
    const error = await withServer(serve, (port) =>
      isBrokerActive({ host: '127.0.0.1', port }).catch((reason: Error) => reason),
    );
    expect(error).to.have.property('message', 'no');
  });
});

describe('probes', () => {
  const redisSaying = (reply: string) => (socket: Socket) => void socket.once('data', () => socket.write(reply));

  it('report Redis as ready on PONG, not while it loads', async () => {
    expect(await withServer(redisSaying('+PONG\r\n'), probeRedis)).to.equal(null);
    expect(await withServer(redisSaying('-LOADING wait\r\n'), probeRedis)).to.equal('-LOADING wait');
  });

  it('name the reason if there is no answer', async () => {
    expect(await withServer((socket) => void socket.destroy(), probeRedis)).to.be.a('string');
    const closed = await withServer(
      () => undefined,
      async (port) => port,
    );
    expect(await probePort(closed)).to.match(/ECONNREFUSED/);
  });
});
