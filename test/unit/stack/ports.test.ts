import { expect } from 'chai';
import { exposureNote } from '../../../deploy/local/stack-command.js';
import {
  parseListeningPorts,
  claimedPorts,
  DEFAULT_PORTS,
  exposedPorts,
  parsePorts,
  freePortsOr,
  pickFreePorts,
} from '../../../deploy/local/stack/ports.js';

describe('ports of the stack', () => {
  it('names the three ports that other machines reach, unless there is loopback only', () => {
    const [lo, eth] = [{ internal: true }, { internal: false }];
    const exposed = exposedPorts(DEFAULT_PORTS, { lo: [lo], eth0: [eth] });
    expect(exposed.map(({ port }) => port)).to.have.members([18081, 18080, 20912]);
    expect(exposureNote(exposed, true)).to.match(/18081 \(RocketMQ proxy, gRPC\).* are refused there without the key/);
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

  it('picks free ports, also for the three of the broker', () => {
    // 21000 is taken; a broker at 21003 would collide with the name server at 21001
    const draws = [0, 1, 3, 10, 20, 30, 40, 50, 60].map((offset) => (offset + 0.5) / 11_000);
    let next = 0;
    const ports = pickFreePorts([{ port: 21_000 }], () => draws[next++] ?? 0.9);
    expect(ports.namesrv).to.equal(21_001);
    expect(ports.broker).to.equal(21_010);
    const claimed = claimedPorts(ports).map(({ port }) => port);
    expect(new Set(claimed).size).to.equal(claimed.length);
  });

  it('keeps the ports that were asked for, and picks a free one for each that is busy', () => {
    expect(freePortsOr([9101, 9102], [])).to.deep.equal([9101, 9102]);
    expect(freePortsOr([9101, 9102], [{ port: 9101 }], () => 0.5)).to.deep.equal([26_500, 9102]);
    const [one, other] = freePortsOr([null, null], []);
    expect(one).to.be.within(21_000, 32_000).and.not.equal(other);
  });

  it('gives up with a sentence when everything is taken', () => {
    expect(() => pickFreePorts([{ port: 21_000 }], () => 0)).to.throw(/No free port found/);
  });
});

describe('/proc/net/tcp', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:3FFB 00000000:0000 0A 0:0 00:0 0 0 0 55055 1 0 100 0 0 10 0',
    '   1: 0100007F:33FA 0100007F:A5B2 01 0:0 00:0 0 0 0 60011 1 0 20 4 30 10 -1',
    '   2: 00000000000000000000000000000000:46A1 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 7 1 0 100 0',
    '',
  ].join('\n');

  it('separates listening ports from connections, IPv4 and IPv6 alike', () => {
    expect(parseListeningPorts(table)).to.deep.equal([
      { port: 16_379, inode: '55055' },
      { port: 18_081, inode: '7' },
    ]);
  });
});
