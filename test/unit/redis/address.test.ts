import { expect } from 'chai';
import { redis as keys } from '../../../src/core/config/sections/servers.js';
import { isByTls, namedAddress, readRedisAddress } from '../../../src/redis/address.js';

/** Reads a url that the configuration has accepted, as the adapter does. */
const read = (url: string) => readRedisAddress(keys.url.parse(url));

describe('redis: addresses', () => {
  it('leaves the url of a single server to the driver', () => {
    for (const url of ['redis://h:1/2', 'rediss://u:p@h']) expect(read(url)).to.deep.equal({ kind: 'server', url });
  });

  it('reads sentinels: hosts with or without a port, master, database, login', () => {
    expect(read('redis+sentinel://a:1,b/stock')).to.deep.equal({
      kind: 'sentinel',
      master: 'stock',
      db: 0,
      login: {},
      sentinels: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
      ],
    });
    const { login, db } = { login: null, db: null, ...read('redis+sentinel://me:p%40ss@[::1]:7/stock/3') };
    expect([login, db]).to.deep.equal([{ username: 'me', password: 'p@ss' }, 3]);
  });

  it('reads a cluster: some of its servers, login', () => {
    expect(read('redis+cluster://:secret@10.0.0.1:7000,[fd00::1]:7001,c')).to.deep.equal({
      kind: 'cluster',
      login: { password: 'secret' },
      nodes: [
        { host: '10.0.0.1', port: 7000 },
        { host: 'fd00::1', port: 7001 },
        { host: 'c', port: 6379 },
      ],
    });
  });

  it('reads the same forms with TLS, as rediss', () => {
    const forms = ['://u:p@h:1', '+sentinel://u:p@h:1,i/stock/3', '+cluster://u:p@h:1,i'];
    for (const form of forms.slice(1)) expect(read(`rediss${form}`)).to.deep.equal(read(`redis${form}`));
    expect(forms.flatMap((form) => [`redis${form}`, `rediss${form}`]).map(isByTls)).to.deep.equal(
      forms.flatMap(() => [false, true]),
    );
  });

  it('names servers without their password [S9]', () => {
    const named = ['redis://:secret@h:1', 'redis+sentinel://:secret@h:1,i:2/stock', 'redis+cluster://:secret@h:1'].map(
      (url) => namedAddress(read(url)),
    );
    expect(named).to.deep.equal(['h:1', 'stock of the sentinels h:1, i:2', 'the cluster h:1']);
  });

  it('refuses an invalid url without showing it', () => {
    for (const url of [
      'redis+sentinel://h:1',
      'redis+sentinel://h:1/',
      'redis+sentinel://h:1/stock/x',
      'redis+sentinel:///stock',
      'redis+cluster://',
      'redis+cluster://h:1/0',
      'redis+cluster://h:x',
      'redis+cluster://h:1,',
      'sentinel://h/x',
      'redis+cluster://a:secret%zz@h',
      'redis+cluster://a@b@h',
    ]) {
      expect(() => keys.url.parse(url), url).to.throw(/^must be a URL .* but is not$/);
    }
  });
});
