import { expect } from 'chai';
import { Agent, createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { newLifecycle, problem, send, startPoll } from '../../../src/http/answer.js';
import { until } from './http-harness.js';

describe('respond', () => {
  it('sends only the first of two responses, as after an error', async () => {
    const lifecycle = newLifecycle();
    const thrown: unknown[] = [];
    const server = createServer((req, res) => {
      try {
        send(req, res, problem('sold_out'), 'trace-1', lifecycle);
        send(req, res, problem('internal'), 'trace-1', lifecycle);
      } catch (error) {
        thrown.push(error);
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect((await fetch(`http://127.0.0.1:${port}`)).status).to.equal(409);
    expect(thrown).to.deep.equal([]);
    server.close();
    server.closeAllConnections();
  });
});

describe('startPoll', () => {
  it('stops tracking a poll once its response is sent, although the connection stays open', async () => {
    const lifecycle = newLifecycle();
    const signals: AbortSignal[] = [];
    let connections = 0;
    const server = createServer((req, res) => {
      signals.push(startPoll(res, lifecycle).signal);
      expect(lifecycle.polls.size).to.equal(1);
      send(req, res, problem('sold_out'), 'trace-1', lifecycle);
    }).on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const agent = new Agent({ keepAlive: true });
    for (let nth = 1; nth <= 2; nth++) {
      const answer = await new Promise<IncomingMessage>((resolve) => get({ port, agent }, resolve));
      await new Promise((resolve) => answer.resume().once('close', resolve));
      await until(() => lifecycle.polls.size === 0);
    }
    expect(connections).to.equal(1);
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([true, true]);
    agent.destroy();
    server.close();
  });

  it('does not wait for a client that has left, or while the server drains', async () => {
    const lifecycle = newLifecycle();
    const polled: boolean[] = [];
    const server = createServer((_req, res) => {
      lifecycle.draining = true;
      polled.push(startPoll(res, lifecycle).signal.aborted);
      res.destroy();
      lifecycle.draining = false;
      lifecycle.polls.clear();
      polled.push(startPoll(res, lifecycle).signal.aborted, lifecycle.polls.size > 0);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await fetch(`http://127.0.0.1:${port}`).catch(() => null);
    expect(polled).to.deep.equal([true, true, false]);
    server.close();
  });
});
