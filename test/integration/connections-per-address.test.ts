import { expect } from 'chai';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';

const CONNECTIONS_MAX = 20;
/** The address of the client. All of 127.0.0.0/8 is this machine. */
const CLIENT = '127.0.0.9';

describe('one address with many connections', () => {
  let api: Program;
  useSystem(async ({ programs }) => {
    const env = {
      HTTP_UNLIMITED_NETWORKS: '10.0.0.0/8', // because this machine has no limit by default
      HTTP_TRUSTED_PROXIES: '127.0.0.1',
      HTTP_CONNECTIONS_PER_ADDRESS_MAX: String(CONNECTIONS_MAX),
    };
    api = await programs.start('api', { env });
  });

  it('gets only its share of connections, so other addresses can connect', async () => {
    const port = Number(new URL(api.url).port);
    const sockets: Socket[] = [];
    const opened = async (localAddress: string): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.on('error', () => undefined); // a reset counts as an end
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    };
    try {
      for (let nth = 0; nth < CONNECTIONS_MAX; nth++) await opened(CLIENT);
      const oneTooMany = await opened(CLIENT);
      if (!oneTooMany.closed) await once(oneTooMany, 'close');
      expect(sockets.filter(({ closed }) => closed)).to.have.length(1);
      const other = await opened('127.0.0.10');
      other.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String((await once(other, 'data'))[0])).to.include('200 OK');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});
