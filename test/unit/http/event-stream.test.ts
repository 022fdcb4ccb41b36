import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { EventStream } from '../../../src/http/event-stream.js';

const TIMES = { heartbeatMs: 60_000, streamMaxMs: 60_000, retryMs: 1_000 };

describe('event stream behind compression middleware', () => {
  let server: Server;
  let stream: EventStream | null = null;
  afterEach(async () => {
    stream?.end();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  /** @param wrap the middleware. @returns the text that the client has once the text contains the event */
  async function firstEvent(wrap: (res: ServerResponse) => void): Promise<string> {
    server = createServer((req, res) => {
      wrap(res);
      stream = new EventStream(
        req,
        res,
        TIMES,
        async () => true,
        () => undefined,
      );
      stream.send({ id: '1', event: 'status', data: { status: 'ordered' } });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.setEncoding('utf8');
    let text = '';
    for await (const part of response) {
      text += String(part);
      if (text.includes('ordered')) break;
    }
    return text;
  }

  /** Buffers small writes until the end, as `compression()` of Express does. */
  function compressing(res: ServerResponse, isLeftAlone: () => boolean): { flush(): void } {
    const write = res.write.bind(res);
    const kept: Buffer[] = [];
    res.write = (chunk: string | Uint8Array): boolean => {
      if (isLeftAlone()) return write(chunk);
      kept.push(Buffer.from(chunk as string));
      return true;
    };
    return { flush: () => void write(gzipSync(Buffer.concat(kept.splice(0))).length > 0 ? 'flushed: ordered' : '') };
  }

  it('asks not to be transformed, so that each event arrives at once', async () => {
    let sent = '';
    const text = await firstEvent((res) => {
      const writeHead = res.writeHead.bind(res);
      res.writeHead = ((status: number, headers: string[]) => {
        sent = headers.join(' ');
        return writeHead(status, headers);
      }) as typeof res.writeHead;
      compressing(res, () => /no-transform/.test(sent));
    });
    expect(text).to.equal('retry: 1000\n\nid: 1\nevent: status\ndata: {"status":"ordered"}\n\n');
  });

  it('flushes after each event if the middleware compresses it anyway', async () => {
    const text = await firstEvent((res) =>
      Object.assign(
        res,
        compressing(res, () => false),
      ),
    );
    expect(text).to.contain('flushed: ordered');
  });
});
