import { BlockList, isIPv6 } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { readAddress, type Address } from '../../../src/core/ip-address.js';
import { Lists, listsRules, type ListsRules } from '../../../src/admission/lists/lists.js';
import { NetworkSet } from '../../../src/admission/lists/network-set.js';
import type { AdmissionRequest } from '../../../src/admission/layer.js';

const DENIED = { word: 'denied', retryAfterMs: null };

const request = (parts: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  endpoint: 'purchase',
  address: '192.0.2.1',
  agent: 'Mozilla/5.0',
  ...parts,
});
const listsOf = (rules: object): Lists => {
  const parsed = listsRules.parse({ mode: 'on', ...rules });
  return new Lists(() => parsed);
};

/** Networks that often overlap, and addresses inside and beside them. */
const ipv4 = fc
  .tuple(fc.constantFrom(10, 11, 192), fc.constantFrom(0, 1, 128, 255), fc.nat(255), fc.nat(255))
  .map((bytes) => bytes.join('.'));
const ipv6 = fc
  .tuple(fc.constantFrom('2001', 'fe80', '0'), fc.constantFrom('db8', '0', 'ffff'), fc.nat(0xffff), fc.nat(0xffff))
  .map(([a, b, c, d]) => `${a}:${b}:${c.toString(16)}::${d.toString(16)}`);
const network = fc.oneof(
  fc.tuple(ipv4, fc.nat(32)).map(([text, length]) => networkOf(text, length)),
  fc.tuple(ipv6, fc.nat(128)).map(([text, length]) => networkOf(text, length)),
);
const address = fc.oneof(ipv4, ipv6);

/** Returns the network of this length that holds the address. */
function networkOf(text: string, length: number): string {
  const { family, value } = readAddress(text) as Address;
  const behind = BigInt((family === 4 ? 32 : 128) - length);
  const start = (BigInt(value) >> behind) << behind;
  if (family === 4) return `${[24n, 16n, 8n, 0n].map((by) => (start >> by) & 255n).join('.')}/${length}`;
  return `${start.toString(16).padStart(32, '0').match(/.{4}/g)?.join(':')}/${length}`;
}

/** The model uses one BlockList of the platform per family, because `::/0` of a BlockList contains IPv4 too. */
function modelOf(networks: readonly string[]): (text: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  const familyOf = (text: string): 'ipv4' | 'ipv6' => (isIPv6(text) ? 'ipv6' : 'ipv4');
  for (const text of networks) {
    const [start = '', length] = text.split('/');
    lists[familyOf(start)].addSubnet(start, Number(length), familyOf(start));
  }
  return (text) => lists[familyOf(text)].check(text, familyOf(text));
}

describe('lists', () => {
  it('match networks like a simple model, whatever their overlaps', () => {
    let inside = 0;
    fc.assert(
      fc.property(fc.array(network, { maxLength: 12 }), fc.array(address, { maxLength: 12 }), (networks, asked) => {
        const [set, model] = [new NetworkSet(networks), modelOf(networks)];
        for (const text of asked) {
          const held = set.has(readAddress(text) as Address);
          expect(held, `${text} in ${networks.join(' ')}`).to.equal(model(text));
          if (held) inside++;
        }
      }),
      { numRuns: 500 },
    );
    expect(inside, 'the addresses were not all beside the networks').to.be.above(50);
  });

  it('prefer allow to deny for any lists of addresses', () => {
    fc.assert(
      fc.property(
        fc.array(network, { maxLength: 6 }),
        fc.array(network, { maxLength: 6 }),
        address,
        (allow, deny, text) => {
          const refused = listsOf({ addresses: { allow, deny } }).anonymous(request({ address: text })) !== null;
          expect(refused).to.equal(modelOf(deny)(text) && !modelOf(allow)(text));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('refuse a user agent with a denied text in any case, unless an allowed text matches', () => {
    const lists = listsOf({ agents: { deny: ['CURL', 'bot'], allow: ['goodbot/'] } });
    const refused = (agent: string): unknown => lists.anonymous(request({ agent }));
    expect(refused('curl/8.5.0')).to.deep.equal(DENIED);
    expect(refused('EvilBot 1')).to.deep.equal(DENIED);
    expect(refused('GoodBot/2 (bot)')).to.equal(null);
    expect(refused('Mozilla/5.0')).to.equal(null);
    expect(refused('')).to.equal(null);
  });

  it('refuse a denied address even if its agent is allowed', () => {
    const lists = listsOf({ addresses: { deny: ['192.0.2.0/24'] }, agents: { allow: ['mozilla'] } });
    expect(lists.anonymous(request())).to.deep.equal(DENIED);
    expect(lists.anonymous(request({ address: '198.51.100.7' }))).to.equal(null);
  });

  it('check a user once the token is verified', () => {
    const lists = listsOf({ users: { deny: ['eve', 'mallory'], allow: ['mallory'] } });
    expect(lists.anonymous(request())).to.equal(null);
    expect(lists.buyer(request(), 'eve')).to.deep.equal(DENIED);
    expect(lists.buyer(request(), 'mallory')).to.equal(null);
    expect(lists.buyer(request(), 'ann')).to.equal(null);
  });

  it('match no text that is not an address', () => {
    const lists = listsOf({ addresses: { deny: ['0.0.0.0/0', '::/0'] } });
    expect(lists.anonymous(request({ address: '' }))).to.equal(null);
    expect(lists.anonymous(request({ address: '::ffff:192.0.2.9' }))).to.deep.equal(DENIED);
  });

  it('apply new rules from the next request on', () => {
    let rules: ListsRules = listsRules.parse({ users: { deny: ['eve'] } });
    const lists = new Lists(() => rules);
    expect(lists.buyer(request(), 'eve')).to.deep.equal(DENIED);
    rules = listsRules.parse({ mode: 'dry_run', users: { deny: ['bob'] } });
    expect([lists.buyer(request(), 'eve'), lists.buyer(request(), 'bob')]).to.deep.equal([null, DENIED]);
    expect(lists.modeOf(null)).to.equal('dry_run');
  });
});
