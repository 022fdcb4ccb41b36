import { expect } from 'chai';
import { Places, type AddressShare } from '../../../src/core/places.js';

describe('connection places', () => {
  const at = (key: string, times = 1): readonly AddressShare[] => [{ key, times }];

  it('count against both an address and its network, and each has a limit', () => {
    const places = new Places({ max: 100, perAddressMax: 2 });
    const inNetwork = (key: string): readonly AddressShare[] => [...at(key), ...at('network', 2)];
    const taken = ['a', 'a', 'a', 'b', 'b', 'c'].map((key) => places.take(null, inNetwork(key)));
    expect(taken.map((leave) => leave !== null)).to.deep.equal([true, true, false, true, true, false]);
    taken[0]?.();
    expect(places.take(null, inNetwork('c'))).to.not.equal(null);
  });

  it('stay available to other addresses if one address has many buyers', () => {
    const places = new Places({ max: 10, perUserMax: 2, perAddressMax: 3 });
    const leave = ['u1', 'u1', 'u2'].map((userId) => places.take(userId, at('203.0.113.7')));
    expect(leave).to.not.include(null);
    expect(places.take('u3', at('203.0.113.7'))).to.equal(null);
    expect(places.take('u3', at('203.0.113.8'))).to.not.equal(null);
    expect(places.take('u4'), 'an address that is not counted').to.not.equal(null);
    leave[0]?.();
    leave[0]?.();
    expect(places.take('u3', at('203.0.113.7'))).to.not.equal(null);
    expect(places.take('u5', at('203.0.113.7')), 'one place was given back, once').to.equal(null);
    expect(places.taken).to.equal(5);
  });

  it('do not count for the address if the buyer is refused', () => {
    const places = new Places({ max: 10, perUserMax: 1, perAddressMax: 2 });
    places.take('u1', at('a'));
    for (let nth = 0; nth < 5; nth++) expect(places.take('u1', at('a'))).to.equal(null);
    expect(places.take('u2', at('a'))).to.not.equal(null);
  });

  it('have only a total limit if clients cannot be told apart', () => {
    const places = new Places({ max: 2, perUserMax: 1 });
    const leave = places.take();
    expect(places.take()).to.not.equal(null);
    expect(places.take()).to.equal(null);
    leave?.();
    expect(places.take()).to.not.equal(null);
  });
});
