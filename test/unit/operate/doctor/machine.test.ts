import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { freeShareOf, reachOf, wildcardPortsIn } from '../../../../src/operate/doctor/machine.js';

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000
   1: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000
   2: 00000000:9999 0100007F:1F90 01 00000000:00000000 00:00000000
   3: 00000000000000000000000000000000:46A1 00000000000000000000000000000000:0000 0A 00000000:00000000
   4: 00000000000000000000000001000000:46A2 00000000000000000000000000000000:0000 0A 00000000:00000000
`;

describe("the machine's view of a server", () => {
  const servers: Server[] = [];
  const listen = (host: string): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer().listen(0, host, () => resolve((server.address() as AddressInfo).port));
      servers.push(server);
    });
  afterEach(() => servers.splice(0).forEach((server) => server.close()));

  it('finds listening ports on every address of both families, and nothing else', () => {
    expect(wildcardPortsIn(TABLE)).to.deep.equal([0x07e8, 0x46a1]);
    expect(wildcardPortsIn('')).to.deep.equal([]);
  });

  it('places a loopback server on this machine, closed to other machines', async () => {
    const here = { at: 'this_machine', open: null };
    expect(await reachOf('127.0.0.1', await listen('127.0.0.1'))).to.deep.equal(here);
    expect(await reachOf('localhost', 1)).to.deep.equal(here);
  });

  it('reports a server on every address as open to other machines', async function () {
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

  it('classifies another machine as private or public', async () => {
    expect(await reachOf('10.255.255.254', 6379)).to.deep.equal({ at: 'private', open: null });
    expect(await reachOf('192.0.2.1', 6379)).to.deep.equal({ at: 'public', open: 'public_address' });
  });

  it('reads the free disk space of a server only if it is on this machine', async () => {
    const here = { at: 'this_machine', open: null } as const;
    const used = Number.parseInt(
      execFileSync('df', ['--output=pcent', tmpdir()], { encoding: 'utf8' }).split('\n')[1] ?? '',
    );
    const free = (await freeShareOf(tmpdir(), here)) ?? NaN;
    expect(100 - 100 * free, 'as df says, which rounds up').to.be.within(used - 2, used + 1);
    expect(await freeShareOf('/no/such/folder', here)).to.equal(null);
    expect(await freeShareOf(tmpdir(), { at: 'private', open: null })).to.equal(null);
  });
});
