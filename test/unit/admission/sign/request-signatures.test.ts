import { createHash, createHmac } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  canonicalText,
  RequestSignatures,
  type SignatureHead,
  signRules,
  type SignRules,
} from '../../../../src/admission/sign/request-signatures.js';
import { readKeyring, type HmacKey } from '../../../../src/core/hmac.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryNonceStore } from '../../../helpers/memory/memory-admission-stores.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';
import { signRequest } from '../../../helpers/sign-request.js';

const SECRETS = {
  'app-1': 'first-secret-of-the-app-with-40-bytes-ok',
  'app-2': 'second-secret-of-the-app-with-40-bytes-k',
};
const keys = readKeyring(`app-1:${SECRETS['app-1']},app-2:${SECRETS['app-2']}`);
const keyOf = (id: string): HmacKey => keys.get(id) as HmacKey;
const PURCHASE = {
  method: 'POST',
  path: '/v1/sales/7/purchases',
  body: '{"quantity":1}',
  userId: 'alice',
  idempotencyKey: 'order-1',
};

/** Computes signatures as any client would, without code of the project. */
const VECTOR = { secret: SECRETS['app-1'], timestamp: '1767225600', nonce: 'n-0123456789abcdef' };
const VECTORS = [
  {
    version: '1',
    first: 'SECKILL-HMAC-SHA256',
    last: '',
    signature: 'ykH5fms3oY7G7lcK_LZk4VNqePs8LVF7NGKhU61qsYY',
  },
  {
    version: '2',
    first: 'SECKILL-HMAC-SHA256-V2',
    last: '\nalice\norder-1',
    signature: 'hjPUIObcKpzR0uhNN3gIF2xFW2YqPMo-d3heh8Aalug',
  },
];

describe('request signatures', () => {
  let clock: ManualClock;
  let nonces: MemoryNonceStore;
  let rules: SignRules;
  let refused: string[];
  let signatures: RequestSignatures;
  let made = 0;

  const set = (raw: object): void => void (rules = signRules.parse(raw));
  beforeEach(() => {
    clock = new ManualClock(); // 1767225600 is 2026-01-01T00:00:00Z.
    nonces = new MemoryNonceStore(clock);
    refused = [];
    set({ mode: 'on', keys: ['app-1'] });
    const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void refused.push(words.join(' ')) };
    signatures = new RequestSignatures({ rules: () => rules, keys, nonces, clock, metrics });
  });

  const stamp = (offsetMs = 0): string => String(Math.floor((clock.nowMs() + offsetMs) / 1000));
  const signed = (keyId = 'app-1', parts: object = {}): Record<string, string> => {
    const nonce = `nonce-of-the-test-${made++}`;
    return signRequest(keyId, keyOf(keyId), { version: 2, ...PURCHASE, timestamp: stamp(), nonce, ...parts });
  };
  /** Runs both halves of the check as a request does. */
  const ask = async (headers: Record<string, string>, request: Partial<typeof PURCHASE> = {}): Promise<unknown> => {
    const head = signatures.begin('7', headers);
    if (head === null || head === 'bad_signature') return head;
    return signatures.finish(head, { ...PURCHASE, ...request });
  };

  for (const { version, first, last, signature } of VECTORS) {
    it(`accept the example of docs/admission-queue.md, version ${version}`, async () => {
      const { secret, timestamp, nonce } = VECTOR;
      const bodyHash = createHash('sha256').update(PURCHASE.body).digest('hex');
      const text = `${first}\nPOST\n/v1/sales/7/purchases\n${bodyHash}\n${timestamp}\n${nonce}${last}`;
      expect(createHmac('sha256', secret).update(text).digest('base64url')).to.equal(signature);
      const headers = { 'seckill-key-id': 'app-1', 'seckill-timestamp': timestamp };
      const rest = { 'seckill-nonce': nonce, 'seckill-signature': signature, 'seckill-signature-version': version };
      expect(await ask({ ...headers, ...rest })).to.equal(null);
      expect(refused).to.deep.equal([]);
    });
  }

  it('cover buyer and key only in version 2, and never match the other version', async () => {
    const others = [{ userId: 'bob' }, { idempotencyKey: 'order-2' }, { idempotencyKey: '' }];
    for (const other of others) {
      expect(await ask(signed('app-1', { version: 1 }), other)).to.equal(null);
      expect(await ask(signed(), other)).to.equal('bad_signature');
    }
    const { 'seckill-signature-version': version, ...unnamed } = signed();
    expect(version).to.equal('2');
    expect(await ask(unnamed)).to.equal('bad_signature');
    expect(await ask({ ...signed('app-1', { version: 1 }), 'seckill-signature-version': '2' })).to.equal(
      'bad_signature',
    );
  });

  it('refuse version 1 before the body is read if the rules do not allow it', async () => {
    set({ mode: 'on', keys: ['app-1'], versions: [2] });
    expect(signatures.begin('7', signed('app-1', { version: 1 }))).to.equal('bad_signature');
    expect(refused).to.deep.equal(['sign old_version on']);
    expect(await ask(signed())).to.equal(null);
  });

  it('refuse every request that was signed before Redis lost data', async () => {
    const [used, unused] = [signed(), signed()];
    expect(await ask(used)).to.equal(null);
    clock.advance(10_000);
    nonces.lose();
    for (const headers of [used, unused]) expect(await ask(headers)).to.equal('bad_signature');
    expect(refused).to.deep.equal(['sign outdated on', 'sign outdated on']);
    clock.advance(1000);
    expect(await ask(signed())).to.equal(null);
  });

  it('cover different texts for different requests', () => {
    const part = fc.oneof(fc.constantFrom('', '1', '12', 'POST', '/', 'a b'), fc.stringMatching(/^[!-~]{0,8}$/));
    const request = fc.record({
      version: fc.constantFrom(2 as const),
      method: part,
      path: part,
      body: fc.string(),
      timestamp: part,
      nonce: part,
      userId: part,
      idempotencyKey: part,
    });
    fc.assert(
      fc.property(request, request, (one, other) => {
        const same = (Object.keys(one) as (keyof typeof one)[]).every((name) => one[name] === other[name]);
        expect(canonicalText(one) === canonicalText(other)).to.equal(same);
      }),
      { numRuns: 200 },
    );
  });

  it('refuse any change after signing as bad_signature, and use up no nonce', async () => {
    const changes: [string, Partial<typeof PURCHASE>, Record<string, string>][] = [
      ['method', { method: 'PUT' }, {}],
      ['path', { path: '/v1/sales/8/purchases' }, {}],
      ['query', { path: '/v1/sales/7/purchases?x' }, {}],
      ['body', { body: '{"quantity":2}' }, {}],
      ['no body', { body: '' }, {}],
      ['buyer', { userId: 'bob' }, {}],
      ['key of the purchase', { idempotencyKey: 'order-2' }, {}],
      ['version', {}, { 'seckill-signature-version': '1' }],
      ['time', {}, { 'seckill-timestamp': stamp(1000) }],
      ['nonce', {}, { 'seckill-nonce': 'another-nonce-of-the-test' }],
      ['key', {}, { 'seckill-key-id': 'app-2' }],
    ];
    set({ mode: 'on', keys: ['app-1', 'app-2'] });
    for (const [what, request, headers] of changes) {
      expect(await ask({ ...signed(), ...headers }, request), what).to.equal('bad_signature');
    }
    expect(refused).to.deep.equal(changes.map(() => 'sign forged on'));
    expect(nonces.asked).to.equal(0);
  });

  it('refuse missing or malformed headers before the body is read', () => {
    for (const [name, values, word] of [
      ['seckill-signature', [undefined], 'not_signed'],
      ['seckill-signature', ['', 'x', 'A'.repeat(44), `${'A'.repeat(42)}=`, 'AA, BB'], 'malformed'],
      ['seckill-key-id', [undefined, '', 'a b', 'x'.repeat(65)], 'malformed'],
      ['seckill-timestamp', [undefined, '', '-1', '1.5', '1e9', 'now', '9'.repeat(13)], 'malformed'],
      ['seckill-nonce', [undefined, '', 'short', 'x'.repeat(65), 'with a blank in it '], 'malformed'],
      ['seckill-signature-version', ['', '0', '3', '2, 2', 'v2'], 'malformed'],
      ['seckill-key-id', ['app-3', 'app-2'], 'unknown_key'],
    ] as const) {
      for (const value of values) {
        refused.length = 0;
        const headers: Record<string, string | undefined> = { ...signed(), [name]: value };
        expect(signatures.begin('7', headers), `${name}: ${value}`).to.equal('bad_signature');
        expect(refused).to.deep.equal([`sign ${word} on`]);
      }
    }
  });

  it('accept timestamps up to exactly 300 s off, and refuse others as stale', async () => {
    for (const [offsetMs, answer] of [
      [-300_000, null],
      [300_000, null],
      [-301_000, 'bad_signature'],
      [301_000, 'bad_signature'],
      [-1e9, 'bad_signature'],
    ] as const) {
      expect(await ask(signed('app-1', { timestamp: stamp(offsetMs) })), String(offsetMs)).to.equal(answer);
    }
    expect(refused.every((word) => word === 'sign stale on')).to.equal(true);
  });

  it('refuse a replay for as long as its timestamp is valid', async () => {
    const headers = signed('app-1', { timestamp: stamp(300_000) }); // The latest timestamp that is accepted.
    expect(await ask(headers)).to.equal(null);
    for (let waitedMs = 0; waitedMs <= 600_000; waitedMs += 50_000) {
      expect(await ask(headers), String(waitedMs)).to.equal('bad_signature');
      clock.advance(50_000);
    }
    expect(refused.slice(0, -1).every((word) => word === 'sign nonce_used on')).to.equal(true);
    expect(refused).to.have.length(13);
  });

  it('accept an old key next to the new key until the rules drop it', async () => {
    set({ mode: 'on', keys: ['app-1', 'app-2'] });
    expect([await ask(signed('app-1')), await ask(signed('app-2'))]).to.deep.equal([null, null]);
    set({ mode: 'on', keys: ['app-2'] });
    expect([await ask(signed('app-1')), await ask(signed('app-2'))]).to.deep.equal(['bad_signature', null]);
  });

  it('refuse a key as bad_signature if the rules name it but no process has it', async () => {
    set({ mode: 'on', keys: ['app-9'] });
    expect(await ask({ ...signed(), 'seckill-key-id': 'app-9' })).to.equal('bad_signature');
  });

  it('are unavailable or pass while Redis is down, but never accept a forged request', async () => {
    nonces.down = true;
    expect(await ask(signed())).to.equal('unavailable');
    set({ mode: 'on', keys: ['app-1'], down: 'allow' });
    expect(await ask(signed())).to.equal(null);
    expect(await ask(signed(), { body: '' })).to.equal('bad_signature');
    expect(refused).to.deep.equal(['sign unavailable on', 'sign forged on']);
  });

  it('report a bug of the store as a bug, not as an outage', async () => {
    nonces.take = () => Promise.reject(new TypeError('a bug'));
    const error = await ask(signed()).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(TypeError);
  });

  it('are not required when off or for other sales, and refuse nothing in a dry run', async () => {
    set({});
    expect(await ask({})).to.equal(null);
    set({ mode: 'on', keys: ['app-1'], sales: ['8'] });
    expect(await ask({})).to.equal(null);
    expect(refused).to.deep.equal([]);
    set({ mode: 'dry_run', keys: ['app-1'] });
    expect(await ask({})).to.equal(null);
    expect(await ask(signed(), { body: 'x' })).to.equal(null);
    expect(refused).to.deep.equal(['sign not_signed dry_run', 'sign forged dry_run']);
  });

  it('apply rules that change while the body arrives', async () => {
    const head = signatures.begin('7', signed()) as SignatureHead;
    set({});
    expect(await signatures.finish(head, { ...PURCHASE, body: 'x' })).to.equal(null);
    expect([refused, nonces.asked]).to.deep.equal([[], 0]);
  });
});

describe('keyring', () => {
  const secret = 'sss-a-secret-of-the-keyring-test';
  it('reads no key, one key or several keys, in order', () => {
    expect(readKeyring('').size).to.equal(0);
    expect([...readKeyring(`b:${secret},a:${secret}:=`).keys()]).to.deep.equal(['b', 'a']);
  });

  it('names the mistake but never shows a secret', () => {
    for (const [text, words] of [
      ['x', /key 1 needs the form/],
      [`a:${secret},:${secret}`, /key 2 needs the form/],
      [`a b:${secret}`, /key 1 needs the form/],
      [`a:${secret},a:${secret}`, /key 2 repeats the id of an earlier key/],
      [`a:${secret.slice(1)}`, /the secret of key 1 needs at least 32 bytes/],
      [`${secret}:a`, /the secret of key 1 needs/], // Secret and id are swapped.
      [Array.from({ length: 65 }, (_, index) => `k${index}:${secret}`).join(','), /at most 64/],
    ] as const) {
      expect(() => readKeyring(text))
        .to.throw(RangeError, words)
        .with.property('message')
        .that.does.not.match(/sss/);
    }
  });
});
