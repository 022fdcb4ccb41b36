import { expect } from 'chai';
import { createWebhookVerifier, SIGNATURE_LIFE_MS } from '../../../src/http/webhook-signature.js';
import Stripe from 'stripe';
import { signWebhook } from '../../helpers/sign-webhook.js';

const SECRET = 'a-webhook-secret-of-more-than-32-bytes';
const NOW_MS = Date.UTC(2030, 0, 1);

describe('webhook signature', () => {
  const verifier = createWebhookVerifier([SECRET], () => NOW_MS);
  const body = '{"type":"payment.succeeded"}';
  const header = signWebhook(SECRET, body, NOW_MS);

  it('is the HMAC-SHA-256 of time and body, as a provider computes it', () => {
    // printf '%s' '1893456000.{"type":"payment.succeeded"}' | openssl dgst -sha256 -hmac "$SECRET"
    const hex = 'a286b9575fff65f1cc48c2647412205f3fd74c421820ea503d83ee54f3e2e2ac';
    expect(header).to.equal(`t=1893456000,v1=${hex}`);
    expect(verifier.verify(header, body)).to.equal('good');
  });

  it('is invalid for another body, time or secret, or when it is missing', () => {
    const [, signature = ''] = header.split(',');
    const flipped = header.slice(0, -1) + (header.endsWith('0') ? '1' : '0');
    for (const [given, text] of [
      [header, `${body} `],
      [header, ''],
      [`t=1893456001,${signature}`, body],
      [signWebhook('another-secret-of-more-than-32-bytes', body, NOW_MS), body],
      [flipped, body],
    ] as const) {
      expect(verifier.verify(given, text), given).to.equal('invalid');
    }
  });

  it('accepts the old and the new secret during a change, and no third secret', () => {
    const both = createWebhookVerifier(['a-new-secret-of-more-than-32-bytes', SECRET], () => NOW_MS);
    expect(both.verify(header, body)).to.equal('good');
    expect(both.verify(signWebhook('a-new-secret-of-more-than-32-bytes', body, NOW_MS), body)).to.equal('good');
    expect(both.verify(signWebhook('a-third-secret-of-more-than-32-bytes', body, NOW_MS), body)).to.equal('invalid');
    expect(createWebhookVerifier([], () => NOW_MS).verify(header, body)).to.equal('invalid');
  });

  it('accepts a signature of the Stripe library, even beside another signature', () => {
    const { webhooks } = new Stripe('sk_test_1');
    const own = webhooks.generateTestHeaderString({ payload: body, secret: SECRET, timestamp: NOW_MS / 1000 });
    expect(verifier.verify(own, body)).to.equal('good');
    const [time, signature] = own.split(',');
    const zeros = '0'.repeat(64);
    expect(verifier.verify(`${time},v1=${zeros},${signature},v0=${zeros}`, body)).to.equal('good');
    expect(verifier.verify(`${time},v1=${zeros},v0=${signature?.slice(3)}`, body), 'v0 proves nothing').to.equal(
      'invalid',
    );
    const many = `${time},${Array.from({ length: 9 }, () => signature).join(',')}`;
    expect(verifier.verify(many, body), 'more than a provider sends').to.equal('invalid');
  });

  it('accepts upper case, and blanks between its parts', () => {
    const [time = '', signature = ''] = header.split(',');
    for (const given of [
      `${time},v1=${signature.slice(3).toUpperCase()}`,
      `${time}, ${signature}`,
      ` ${time} ,${signature} `,
    ]) {
      expect(verifier.verify(given, body), given).to.equal('good');
    }
  });

  it('is invalid in any other format and never throws', () => {
    const shapes = ['', 't=', 'v1=00', `${header}0`, `${header},${header}`, header.toUpperCase()];
    for (const odd of [undefined, [header, header], 't=1893456000,v1=zz', ...shapes]) {
      expect(verifier.verify(odd, body), String(odd)).to.equal('invalid');
    }
  });

  it('is valid for five minutes either way, to the edge, and stale beyond', () => {
    for (const [ageMs, verdict] of [
      [SIGNATURE_LIFE_MS, 'good'],
      [-SIGNATURE_LIFE_MS, 'good'],
      [SIGNATURE_LIFE_MS + 1000, 'stale'],
      [-SIGNATURE_LIFE_MS - 1000, 'stale'],
    ] as const) {
      expect(verifier.verify(signWebhook(SECRET, body, NOW_MS - ageMs), body), String(ageMs)).to.equal(verdict);
    }
  });

  it('does not reveal its age when a signature is both wrong and old', () => {
    const old = signWebhook('another-secret-of-more-than-32-bytes', body, 0);
    expect(verifier.verify(old, body)).to.equal('invalid');
  });
});
