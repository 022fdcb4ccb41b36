import { expect } from 'chai';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { newLifecycle, problem, send } from '../../../src/http/answer.js';

describe('respond', () => {
  it('when a second answer is tried, as after an error in the first, then the first one is sent', async () => {
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
