import { expect } from 'chai';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { TcpProxy } from '../../chaos/harness/tcp-proxy.js';
import { until } from '../../chaos/harness/wait.js';

describe('TCP proxy', () => {
  let echo: Server;
  let proxy: TcpProxy;
  let client: Socket;
  let heard: string;
  let served: string;

  beforeEach(async () => {
    [heard, served] = ['', ''];
    echo = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        served += chunk.toString();
        socket.write(chunk);
      });
    });
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    proxy = await TcpProxy.open(`127.0.0.1:${(echo.address() as AddressInfo).port}`);
    client = connect(Number(proxy.address.split(':')[1]), '127.0.0.1');
    client.on('data', (chunk) => (heard += chunk.toString()));
    client.on('error', () => undefined);
    await once(client, 'connect');
  });
  afterEach(async () => {
    client.destroy();
    await proxy.close();
    await new Promise((resolve) => echo.close(resolve));
  });

  const hears = (text: string): Promise<void> => until(`the client hears ${text}`, () => heard === text, 5000, 2);
  const serves = (text: string): Promise<void> => until(`the server hears ${text}`, () => served === text, 5000, 2);

  it('passes bytes and counts them', async () => {
    client.write('abc');
    await hears('abc');
    expect(proxy).to.include({ bytes: 6, connections: 1, open: 1 });
  });

  it('drops replies, and only replies', async () => {
    proxy.dropReplies = true;
    client.write('abc');
    await serves('abc');
    await until('the reply is dropped', () => proxy.droppedBytes === 3, 5000, 2);
    proxy.dropReplies = false;
    client.write('d');
    await hears('d');
  });

  it('delays requests and replies without changing their order', async () => {
    proxy.requestDelayMs = 60;
    const startedMs = performance.now();
    client.write('a');
    await until('it is delayed', () => proxy.delayedBytes === 1, 5000, 2);
    proxy.requestDelayMs = 0;
    proxy.replyDelayMs = 20;
    client.write('b');
    await hears('ab');
    expect(performance.now() - startedMs).to.be.at.least(55);
  });

  it('falls silent with every connection open, and delivers when it speaks again', async () => {
    proxy.fallSilent();
    client.write('abc');
    const late = connect(Number(proxy.address.split(':')[1]), '127.0.0.1');
    await once(late, 'connect');
    late.write('!');
    await until('the late one is accepted', () => proxy.connections === 2, 5000, 2);
    expect([served, heard, client.destroyed]).to.deep.equal(['', '', false]);
    proxy.speak();
    await hears('abc');
    await until('the late one is served', () => served.includes('!'), 5000, 2);
    late.destroy();
  });

  it('lets a hook hold a request; what follows on that connection waits behind it', async () => {
    let go = (): void => undefined;
    proxy.onRequest = (chunk) => {
      if (!chunk.includes('hold')) return;
      proxy.onRequest = null;
      return new Promise((resolve) => (go = resolve));
    };
    client.write('hold');
    await until('it is held', () => proxy.onRequest === null, 5000, 2);
    client.write('after');
    expect(served).to.equal('');
    go();
    await serves('holdafter');
  });

  it('resets what is open', async () => {
    const closed = new Promise((resolve) => client.once('close', resolve));
    proxy.reset();
    await closed;
    await until('nothing is open', () => proxy.open === 0, 5000, 2);
  });
});
