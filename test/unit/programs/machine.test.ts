import { expect } from 'chai';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { freeShareOf, reachOf, wildcardPortsIn } from '../../../src/programs/machine.js';

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000
   1: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000
   2: 00000000:9999 0100007F:1F90 01 00000000:00000000 00:00000000
   3: 00000000000000000000000000000000:46A1 00000000000000000000000000000000:0000 0A 00000000:00000000
   4: 00000000000000000000000001000000:46A2 00000000000000000000000000000000:0000 0A 00000000:00000000
`;

describe('what this machine shows of a server', () => {
  const servers: Server[] = [];
  const listen = (host: string): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer().listen(0, host, () => resolve((server.address() as AddressInfo).port));
      servers.push(server);
    });
  afterEach(() => servers.splice(0).forEach((server) => server.close()));

  it('ports that listen on every address, of both families; others and open connections are none', () => {
    expect(wildcardPortsIn(TABLE)).to.deep.equal([0x07e8, 0x46a1]);
    expect(wildcardPortsIn('')).to.deep.equal([]);
  });

  it('a server on loopback is on this machine, and open to nobody else', async () => {
    const here = { at: 'this_machine', open: null };
    expect(await reachOf('127.0.0.1', await listen('127.0.0.1'))).to.deep.equal(here);
    expect(await reachOf('localhost', 1)).to.deep.equal(here);
  });

  it('one that listens on every address is open, if the machine has another one', async function () {
    const others = Object.values(networkInterfaces()).some((found) => found?.some(({ internal }) => !internal));
    if (!others) {
      console.log('    skipped: this machine has no address but loopback');
      return this.skip();
    }
    expect(await reachOf('127.0.0.1', await listen('0.0.0.0'))).to.deep.equal({
      at: 'this_machine',
      open: 'every_address',
    });
  });

  it('another machine is private or public', async () => {
    expect(await reachOf('10.255.255.254', 6379)).to.deep.equal({ at: 'private', open: null });
    expect(await reachOf('192.0.2.1', 6379)).to.deep.equal({ at: 'public', open: 'public_address' });
  });

  it('the disk of a server is seen where it is on this machine', async () => {
    const here = { at: 'this_machine', open: null } as const;
    expect(await freeShareOf(tmpdir(), here)).to.be.within(0, 1);
    expect(await freeShareOf('/no/such/folder', here)).to.equal(null);
    expect(await freeShareOf(tmpdir(), { at: 'private', open: null })).to.equal(null);
  });
});
