import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { exposureNote } from '../../../deploy/local/stack-command.js';
import {
  DEFAULT_PORTS,
  exposedPorts,
  parsePorts,
  pickFreePort,
  reservePort,
} from '../../../deploy/local/stack/ports.js';

const PORTS_MODULE = new URL('../../../deploy/local/stack/ports.ts', import.meta.url).href;

describe('ports of the stack', () => {
  it('names the three ports that other machines can reach, unless there is only loopback', () => {
    const [lo, eth] = [{ internal: true }, { internal: false }];
    const exposed = exposedPorts(DEFAULT_PORTS, { lo: [lo], eth0: [eth] });
    expect(exposed.map(({ port }) => port)).to.have.members([18081, 18080, 20912]);
    expect(exposureNote(exposed, true)).to.match(/18081 \(RocketMQ proxy, gRPC\).* need the key/);
    expect(exposureNote(exposed, false)).to.match(
      /^Warning: .*18081 .*, without access control.*\nStart them again: /m,
    );
    expect(exposedPorts(DEFAULT_PORTS, { lo: [lo, lo] }), 'a network namespace').to.deep.equal([]);
  });

  const damaged: [string, unknown, RegExp][] = [
    ['nothing', undefined, /no usable port for RocketMQ name server/],
    ['a word', { ...DEFAULT_PORTS, redis: 'six' }, /no usable port for Redis/],
    ['a fraction', { ...DEFAULT_PORTS, redis: 6379.5 }, /no usable port for Redis/],
    ['a port of the system', { ...DEFAULT_PORTS, mysql: 80 }, /no usable port for MySQL/],
    ['too large', { ...DEFAULT_PORTS, grpc: 70_000 }, /no usable port for RocketMQ proxy, gRPC/],
    ['one port twice', { ...DEFAULT_PORTS, redis: 13306 }, /one port to two servers/],
    ['a neighbour of the broker', { ...DEFAULT_PORTS, redis: DEFAULT_PORTS.broker + 1 }, /one port to two servers/],
  ];
  for (const [what, value, sentence] of damaged) {
    it(`refuses ${what} and names the file`, () => {
      expect(() => parsePorts(value, 'instance.json'))
        .to.throw(sentence)
        .with.property('message')
        .match(/instance/);
    });
  }

  it('reserves a port for this process until it ends', async () => {
    const port = pickFreePort();
    expect(reservePort(port)).to.equal(false);
    const code = `import { reservePort, pickFreePort } from ${JSON.stringify(PORTS_MODULE)};
      process.stdout.write(JSON.stringify([reservePort(${port}), pickFreePort()]));
      process.kill(process.pid, 'SIGKILL');`;
    const { stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code]);
    const [couldReserve, other] = JSON.parse(String(stdout)) as [boolean, number];
    expect(couldReserve, 'reserved here').to.equal(false);
    expect(reservePort(other), 'its process was killed').to.equal(true);
  });
});
