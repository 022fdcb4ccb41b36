import { expect } from 'chai';
import fc from 'fast-check';
import { createHostCheck } from '../../../src/http/own-host.js';

describe('request host', () => {
  const isOurs = createHostCheck('Ops.Shop.example');
  const port = fc.option(fc.integer({ min: 0, max: 65_535 }), { nil: null });
  const withPort = (host: string, at: number | null): string => (at === null ? host : `${host}:${at}`);

  it('accepts localhost, any IP address and our own name, with any port', () => {
    const ipv6 = fc.ipV6().map((address) => `[${address}]`);
    const ours = fc.oneof(fc.ipV4(), ipv6, fc.constantFrom('localhost', 'LOCALHOST', 'ops.shop.example'));
    fc.assert(fc.property(ours, port, (host, at) => isOurs(withPort(host, at))));
    expect(isOurs(undefined), 'a load balancer that speaks HTTP/1.0').to.equal(true);
  });

  it('refuses any other host name, even a similar name', () => {
    const near = fc.constantFrom(
      '',
      '[',
      '[localhost]',
      'localhost.evil.example',
      'ops.shop.example.evil.example',
      'evil-localhost',
      '127.0.0.1.nip.io',
      '127.0.0.1@evil.example',
      'localhost,evil.example',
      '[::1].evil.example',
    );
    fc.assert(fc.property(fc.oneof(fc.domain(), near), port, (host, at) => !isOurs(withPort(host, at))));
  });
});
