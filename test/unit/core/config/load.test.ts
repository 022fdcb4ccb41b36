import { expect } from 'chai';
import { integer, text } from '../../../../src/core/config/key.js';
import { ConfigError, loadConfig, removedSettings, type Environment } from '../../../../src/core/config/load.js';
import { allKeys, PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../../../src/core/config/schema.js';

const SECRET = 'a-secret-of-more-than-32-characters!';
const GOOD: Environment = {
  JWT_SECRET: SECRET,
  MESSAGE_KEYS: `k1:${SECRET}`,
  REDIS_URL: 'redis://:redis-password@127.0.0.1:6379',
  ROCKETMQ_ENDPOINT: '127.0.0.1:8081',
  MYSQL_URL: 'mysql://seckill:mysql-password@127.0.0.1:3306/seckill',
};

/** Returns the problems of a configuration. Empty if it loads. */
function problemsOf(sections: readonly SectionName[], env: Environment): readonly string[] {
  try {
    loadConfig(sections, env);
    return [];
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigError);
    return (error as ConfigError).problems;
  }
}

describe('config', () => {
  it('starts every program if the five settings without a default are set', () => {
    for (const [program, sections] of Object.entries(PROGRAM_SECTIONS)) {
      expect(problemsOf(sections, GOOD), program).to.deep.equal([]);
    }
    const needed = new Set(Object.values(PROGRAM_SECTIONS).flatMap((sections) => problemsOf(sections, {})));
    expect([...needed].map((problem) => problem.split(' ')[0])).to.have.members(Object.keys(GOOD));
  });

  it('uses the default if a setting is missing or empty', () => {
    expect(loadConfig(['batch'], { BATCH_SIZE_MAX: '' }).batch).to.deep.equal({
      sizeMax: 192,
      inFlightMax: 3,
      gatherMs: 25,
      queueMax: 8192,
      waitMaxMs: 2000,
    });
    expect(loadConfig(['batch'], { BATCH_SIZE_MAX: '16' }).batch.sizeMax).to.equal(16);
  });

  it('names every bad setting of every section in one error', () => {
    const env = { ...GOOD, PORT: '99999', LOG_LEVEL: 'loud', MYSQL_URL: 'http://x', BATCH_SIZE_MAX: 'many' };
    const problems = problemsOf(PROGRAM_SECTIONS.api, { ...env, ROCKETMQ_ENDPOINT: undefined });
    expect(problems).to.have.members([
      'PORT must be a whole number from 0 to 65535, but is "99999"',
      'BATCH_SIZE_MAX must be a whole number from 1 to 512 (purchases), but is "many"',
      'ROCKETMQ_ENDPOINT is not set: RocketMQ proxies (gRPC). A client that cannot reach one uses the next.',
      'MYSQL_URL must be a URL mysql://…, but is not',
      'LOG_LEVEL must be one of debug, info, warn, error, silent, but is "loud"',
    ]);
    const message = new ConfigError(problems).message;
    for (const problem of problems) expect(message).to.include(`\n  ${problem}`);
  });

  it('accepts a share from 0 to 1', () => {
    const shareOf = (text: string): number =>
      loadConfig(['tracing'], { OTEL_TRACES_SAMPLER_ARG: text }).tracing.sampledShare;
    expect(['', '0', '1', '0.25', '.5'].map(shareOf)).to.deep.equal([0.01, 0, 1, 0.25, 0.5]);
    for (const text of ['1.1', '-0.1', '1e-3', '0x1', 'all', '1 ', 'NaN', 'Infinity', '.', '0.1.2']) {
      expect(problemsOf(['tracing'], { OTEL_TRACES_SAMPLER_ARG: text }), text).to.deep.equal([
        `OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, but is "${text}"`,
      ]);
    }
  });

  it('reports a broken rule between settings together with a bad setting of another section', () => {
    const env = { ...GOOD, BATCH_SIZE_MAX: '100', BATCH_QUEUE_MAX: '50', LOG_LEVEL: 'loud' };
    expect(problemsOf(PROGRAM_SECTIONS.api, env)).to.have.members([
      'LOG_LEVEL must be one of debug, info, warn, error, silent, but is "loud"',
      'BATCH_QUEUE_MAX must be at least BATCH_SIZE_MAX, but is 50',
    ]);
  });

  const rules: [string, Environment, RegExp][] = [
    [
      'the pool has a connection for every loop',
      { MYSQL_POOL_MAX: '3', WORKER_LOOPS: '2' },
      /^MYSQL_POOL_MAX .* WORKER_LOOPS/,
    ],
    [
      'a message stays invisible longer than a slow statement takes',
      { WORKER_INVISIBLE_MS: '10000', MYSQL_QUERY_TIMEOUT_MS: '5001' },
      /^WORKER_INVISIBLE_MS .* MYSQL_QUERY_TIMEOUT_MS/,
    ],
  ];
  for (const [what, env, problem] of rules) {
    it(`checks that ${what} if a program reads both settings [D2]`, () => {
      const problems = problemsOf(PROGRAM_SECTIONS.worker, { ...GOOD, ...env });
      expect(problems).to.have.length(1);
      expect(problems[0]).to.match(problem);
      expect(problemsOf(PROGRAM_SECTIONS.keeper, { ...GOOD, ...env })).to.deep.equal([]);
    });
  }

  it('refuses an EVENTS_STREAMS_MAX that is not below HTTP_CONNECTIONS_MAX [S7]', () => {
    const env = { ...GOOD, HTTP_CONNECTIONS_MAX: '4000' };
    const problems = problemsOf(PROGRAM_SECTIONS.api, env);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/^EVENTS_STREAMS_MAX must be below HTTP_CONNECTIONS_MAX .* 4000$/);
    expect(problemsOf(PROGRAM_SECTIONS.api, { ...env, EVENTS_STREAMS_MAX: '3999' })).to.deep.equal([]);
  });

  it('accepts only networks as trusted proxies [S5]', () => {
    const proxies = (text: string): string => loadConfig(['http'], { HTTP_TRUSTED_PROXIES: text }).http.trustedProxies;
    expect(proxies('')).to.equal('');
    expect(proxies(' 10.0.0.0/8 ,2001:db8::1')).to.equal('10.0.0.0/8,2001:db8::1');
    for (const text of ['all', '10.0.0.0/8,', '10.0.0.1/8', 'true']) {
      const [problem] = problemsOf(['http'], { HTTP_TRUSTED_PROXIES: text });
      expect(problem, text).to.match(/^HTTP_TRUSTED_PROXIES must be networks .* is not a network$/);
    }
  });

  it('accepts an origin only as browsers write it, and without TLS only on this machine', () => {
    const allowed = (text: string): string => loadConfig(['shop'], { SHOP_ORIGINS: text }).shop.origins;
    expect(allowed('')).to.equal('');
    expect(allowed(' https://shop.example ,https://m.shop.example:8443')).to.equal(
      'https://shop.example,https://m.shop.example:8443',
    );
    expect(allowed('http://localhost:3000,http://127.0.0.1:3000,http://[::1]')).to.have.length.above(0);
    for (const text of [
      '*',
      'null',
      'https://*',
      'https://*.shop.example',
      'https://shop.example/',
      'https://shop.example/path',
      'https://shop.example:443',
      'https://Shop.example',
      'https://user@shop.example',
      'http://shop.example',
      'http://localhost.evil.example',
      'shop.example',
      'https://a.example,',
      "https://a.example; script-src 'unsafe-inline'",
      'file:///',
    ]) {
      const [problem] = problemsOf(['shop'], { SHOP_ORIGINS: text });
      expect(problem, text).to.match(/^SHOP_ORIGINS must be origins .* is not an origin$/);
    }
  });

  it('accepts values at the limits of a rule', () => {
    const edge = {
      MYSQL_POOL_MAX: '4',
      WORKER_LOOPS: '2',
      WORKER_INVISIBLE_MS: '10000',
      MYSQL_QUERY_TIMEOUT_MS: '5000',
    };
    expect(problemsOf(PROGRAM_SECTIONS.worker, { ...GOOD, ...edge })).to.deep.equal([]);
    expect(problemsOf(['batch'], { BATCH_SIZE_MAX: '64', BATCH_QUEUE_MAX: '64' })).to.deep.equal([]);
  });

  it('refuses to wait for replicas if Redis is a cluster', () => {
    const [one, cluster] = ['redis://h:6379', 'redis+cluster://h:6379,h:6380'];
    expect(problemsOf(['redis'], { REDIS_URL: one, REDIS_WAIT_REPLICAS: '1' })).to.deep.equal([]);
    expect(problemsOf(['redis'], { REDIS_URL: cluster, REDIS_WAIT_REPLICAS: '0' })).to.deep.equal([]);
    const problems = problemsOf(['redis'], { REDIS_URL: cluster, REDIS_WAIT_REPLICAS: '1' });
    expect(problems.join()).to.include('REDIS_WAIT_REPLICAS must be 0 with a cluster');
  });

  it('refuses an address with a percent sign that encodes nothing', () => {
    const must = 'must write a literal % as %25';
    const wrong = { MYSQL_URL: 'mysql://u:50%off@db/x', REDIS_URL: 'redis://u:%ff@a:1' };
    const parts = ['mysql', 'redis'] as const;
    expect(problemsOf(parts, { ...GOOD, ...wrong })).to.have.members([`MYSQL_URL ${must}`, `REDIS_URL ${must}`]);
    expect(problemsOf(parts, { ...GOOD, MYSQL_URL: 'mysql://u:50%25off@db/x' })).to.deep.equal([]);
  });

  it('shows no secret in the error about the secret [S9]', () => {
    const short = 'short-secret';
    const env = {
      JWT_SECRET: short,
      REDIS_URL: 'http://:redis-password@host',
      MYSQL_URL: 'not a url with mysql-password',
      ROCKETMQ_ENDPOINT: 'host:1',
    };
    const problems = problemsOf(PROGRAM_SECTIONS.api, env).join('\n');
    expect(problems).to.include('JWT_SECRET').and.include('REDIS_URL').and.include('MYSQL_URL');
    for (const hidden of [short, 'redis-password', 'mysql-password']) expect(problems).not.to.include(hidden);
  });

  it('marks every setting that may hold a password as secret', () => {
    const secrets = allKeys().filter(({ secret }) => secret);
    expect(secrets.map(({ env }) => env)).to.have.members([
      'JWT_SECRET',
      'JWT_KEYS',
      'REDIS_URL',
      'REDIS_PASSWORD',
      'REDIS_SENTINEL_PASSWORD',
      'REDIS_TLS_KEY',
      'ROCKETMQ_ACCESS_SECRET',
      'ROCKETMQ_SESSION_TOKEN',
      'ROCKETMQ_TLS_KEY',
      'MESSAGE_KEYS',
      'MYSQL_URL',
      'MYSQL_PASSWORD',
      'MYSQL_TLS_KEY',
      'PAYMENT_API_KEY',
      'PAYMENT_WEBHOOK_SECRET',
      'PAYMENT_WEBHOOK_SECRET_BEFORE',
      'METRICS_TOKEN',
      'ADMISSION_SIGN_KEYS',
      'ADMISSION_SEAL_KEYS',
    ]);
  });

  it('refuses a broker key without its secret, and a secret without its key', () => {
    const accessOf = (env: Environment): unknown[] => {
      const { key, secret, sessionToken, tls } = loadConfig(['brokerAccess'], env).brokerAccess;
      return [key, secret(), sessionToken(), tls];
    };
    expect(accessOf({})).to.deep.equal(['', '', '', 'off']);
    const both = { ROCKETMQ_ACCESS_KEY: 'seckill', ROCKETMQ_ACCESS_SECRET: 'hush-hush' };
    expect(accessOf(both)).to.deep.equal(['seckill', 'hush-hush', '', 'off']);
    const rule = 'ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET must both be set, or neither';
    for (const name of ['ROCKETMQ_ACCESS_KEY', 'ROCKETMQ_ACCESS_SECRET'] as const) {
      expect(problemsOf(['brokerAccess'], { ...both, [name]: '' })).to.deep.equal([rule]);
    }
  });

  it('reports the place of a bad admission key, but not its secret', () => {
    expect(loadConfig(['admission'], {}).admission).to.deep.equal({ signKeys: '', sealKeys: '' });
    const good = { ADMISSION_SIGN_KEYS: `app-1:${SECRET},app-2:${SECRET}`, ADMISSION_SEAL_KEYS: `k1:${SECRET}` };
    expect(loadConfig(['admission'], good).admission.signKeys).to.equal(good.ADMISSION_SIGN_KEYS);
    const problems = problemsOf(['admission'], {
      ADMISSION_SIGN_KEYS: `app-1:${SECRET},hush-hush`,
      ADMISSION_SEAL_KEYS: 'k1:hush-hush',
    });
    expect(problems).to.have.length(2);
    expect(problems[0]).to.include('ADMISSION_SIGN_KEYS must be id:secret,id:secret, but key 2 needs the form');
    expect(problems[1]).to.include('ADMISSION_SEAL_KEYS must be id:secret,id:secret, but the secret of key 1 needs');
    for (const hidden of [SECRET, 'hush-hush']) expect(problems.join()).not.to.include(hidden);
  });

  it('refuses the payment simulator in production, and a previous webhook secret without a current one', () => {
    const { payment } = loadConfig(PROGRAM_SECTIONS.api, GOOD);
    expect(payment).to.deep.equal({
      provider: 'none',
      apiKey: '',
      apiUrl: '',
      webhookSecret: '',
      webhookSecretBefore: '',
      webhookMode: 'live',
    });
    const simulated = { ...GOOD, PAYMENT_PROVIDER: 'simulator' };
    expect(loadConfig(PROGRAM_SECTIONS.api, simulated).payment.provider).to.equal('simulator');
    const problems = problemsOf(PROGRAM_SECTIONS.api, { ...simulated, NODE_ENV: 'production' });
    expect(problems).to.have.length(1);
    expect(problems[0]).to.include('PAYMENT_PROVIDER');
    const short = problemsOf(['payment'], { PAYMENT_WEBHOOK_SECRET: 'short' });
    expect(short.join()).to.include('PAYMENT_WEBHOOK_SECRET must have at least 32 characters');
    const alone = problemsOf(['payment'], { PAYMENT_WEBHOOK_SECRET_BEFORE: SECRET });
    expect(alone).to.deep.equal(['PAYMENT_WEBHOOK_SECRET must be set if PAYMENT_WEBHOOK_SECRET_BEFORE is set']);
  });

  it('refuses a payment provider whose key, mode or address is wrong', () => {
    const wrong = (env: Record<string, string>): string => problemsOf(['payment'], env).join();
    const [testKey, liveKey] = ['sk_test_of_nobody', 'rk_live_of_nobody'];
    const stripe = { PAYMENT_PROVIDER: 'stripe', PAYMENT_API_KEY: liveKey };
    const http = { PAYMENT_PROVIDER: 'http', PAYMENT_API_KEY: SECRET, PAYMENT_API_URL: 'https://pay.example/v1' };
    expect([wrong(stripe), wrong(http)]).to.deep.equal(['', '']);
    expect(wrong({ ...stripe, PAYMENT_API_KEY: testKey, PAYMENT_WEBHOOK_MODE: 'test' })).to.equal('');
    expect(wrong({ PAYMENT_PROVIDER: 'stripe' })).to.equal('PAYMENT_API_KEY must be set if PAYMENT_PROVIDER is stripe');
    expect(wrong({ ...http, PAYMENT_API_URL: '' })).to.equal('PAYMENT_API_URL must be set if PAYMENT_PROVIDER is http');
    expect(wrong({ ...stripe, PAYMENT_API_KEY: testKey })).to.equal(
      'PAYMENT_WEBHOOK_MODE must be test like the Stripe key in PAYMENT_API_KEY, but is live',
    );
    expect(wrong({ ...stripe, PAYMENT_API_KEY: 'pk_live_of_nobody' })).to.contain('begins with sk_live_');
    const plain = { ...http, PAYMENT_API_URL: 'http://pay.example' };
    expect(wrong(plain)).to.equal(
      'PAYMENT_API_URL must begin with https, so that PAYMENT_API_KEY stays secret on the network',
    );
    expect(wrong({ ...http, PAYMENT_API_URL: 'http://127.0.0.1:8081' })).to.equal('');
    for (const hidden of [testKey, liveKey, SECRET]) {
      expect(wrong({ ...plain, PAYMENT_API_KEY: hidden, PAYMENT_WEBHOOK_MODE: 'test' })).not.to.include(hidden);
    }
  });

  it('freezes every section', () => {
    const config = loadConfig(['batch', 'redis'], GOOD);
    expect(Object.isFrozen(config) && Object.isFrozen(config.batch) && Object.isFrozen(config.redis)).to.equal(true);
    expect(() => ((config.batch as { sizeMax: number }).sizeMax = 1)).to.throw(TypeError);
  });

  it('returns only the sections that were asked for', () => {
    expect(loadConfig(['batch'], {})).to.have.all.keys('batch');
  });

  describe('settings of earlier releases', () => {
    it('keeps the fixed value, and names the setting, if the environment still sets it', () => {
      const old = { REDRIVE_AFTER_MS: '5', GATE_CARD_CACHE_MS: '7', REPAIR_LEASE_MS: '100', LOG_LEVEL: 'warn' };
      for (const sections of Object.values(PROGRAM_SECTIONS))
        expect(problemsOf(sections, { ...GOOD, ...old })).to.deep.equal([]);
      expect(loadConfig(['keeper'], old).keeper.redriveAfterMs).to.equal(60_000);
      expect(removedSettings(old)).to.have.members([
        'REDRIVE_AFTER_MS was removed in 1.1.0: its value is fixed at 60000 ms.',
        'GATE_CARD_CACHE_MS was removed in 1.1.0: its value is fixed at 5000 ms.',
        'REPAIR_LEASE_MS was removed in 1.1.0: its value is 15000 ms, or more if MYSQL_QUERY_TIMEOUT_MS needs it.',
      ]);
      expect(removedSettings({ REDRIVE_AFTER_MS: '', BATCH_SIZE_MAX: '5', PATH: '/bin' })).to.deep.equal([]);
    });

    it('names no setting that still exists', () => {
      const names = settingsOf(Object.keys(SCHEMA) as SectionName[]).map(({ env }) => env);
      const all = Object.fromEntries(names.map((name) => [name, 'x']));
      expect(removedSettings(all)).to.deep.equal([]);
    });

    it('reads a fixed value from the environment if TEST_OVERRIDES is on, but not in production', () => {
      const env = { TEST_OVERRIDES: 'on', REDRIVE_AFTER_MS: '5', REDRIVE_MAX: '7' };
      expect(loadConfig(['keeper'], env).keeper.redriveAfterMs).to.equal(5);
      expect(removedSettings(env)).to.deep.equal([
        'REDRIVE_MAX was removed in 1.1.0: its value is fixed at 2000 batches.',
      ]);
      expect(problemsOf(['keeper'], { ...env, REDRIVE_AFTER_MS: 'soon' })).to.have.length(1);
      const production = { ...env, NODE_ENV: 'production' };
      expect(loadConfig(['keeper'], production).keeper.redriveAfterMs).to.equal(60_000);
      expect(problemsOf(['environment'], production)).to.deep.equal([
        'TEST_OVERRIDES is for tests only; remove it, or do not set NODE_ENV to production',
      ]);
    });

    it('raises a fixed value if a setting needs it', () => {
      const leaseMs = (MYSQL_QUERY_TIMEOUT_MS: string): number =>
        loadConfig(['mysql', 'repair'], { ...GOOD, MYSQL_QUERY_TIMEOUT_MS }).repair.leaseMs;
      expect([leaseMs('10000'), leaseMs('60000')]).to.deep.equal([15_000, 75_000]);
      const markerAgeMs = (env: Environment): number =>
        loadConfig(['redis', 'reconcile'], { ...GOOD, ...env }).reconcile.markerAgeMs;
      expect(markerAgeMs({})).to.equal(345_600_000);
      expect(markerAgeMs({ MARKER_LIFE_MS: '700000000' })).to.equal(700_000_000);
      expect(loadConfig(['reconcile'], GOOD).reconcile.markerAgeMs, 'unknown life: no marker is old').to.equal(
        Infinity,
      );
      const isShorter = { TEST_OVERRIDES: 'on', RECONCILE_MARKER_AGE_MS: '1000' };
      expect(markerAgeMs({ MARKER_LIFE_MS: '700000000', ...isShorter })).to.equal(1000);
    });
  });

  describe('numbers', () => {
    const port = integer({ env: 'X', doc: 'A port.', unit: '', min: 1, max: 10 });
    for (const bad of ['0', '11', '1.5', '-1', 'x', ' ', '1x', 'NaN', 'Infinity', '1e400']) {
      it(`refuses ${JSON.stringify(bad)}`, () => {
        expect(() => port.parse(bad)).to.throw(/must be a whole number from 1 to 10, but is/);
      });
    }
    it('refuses a blank even where 0 is allowed', () => {
      const zero = integer({ env: 'X', doc: 'A count.', unit: '', min: 0, max: 10 });
      expect(() => zero.parse(' ')).to.throw(/must be a whole number/);
    });
    it('accepts both ends of the range', () => {
      expect([port.parse('1'), port.parse('10')]).to.deep.equal([1, 10]);
    });
    it('shortens a long value in its error', () => {
      expect(() => port.parse('9'.repeat(500))).to.throw(/^.{0,150}$/);
    });
  });

  describe('endpoints', () => {
    const { parse } = SCHEMA.rocketmq.endpoint;
    it('accepts a list of host:port', () => {
      for (const good of ['127.0.0.1:8081', 'proxy.example.com:80', 'localhost:65535', 'a:1,b:2'])
        expect(parse(good)).to.equal(good);
      expect(parse('a:1, b:2')).to.equal('a:1,b:2');
    });
    for (const bad of [
      'http://host:80',
      'host',
      'host:',
      ':80',
      'host:0',
      'host:65536',
      'a:1,',
      'a:1,b',
      'a:1;b:2',
      'ho st:1',
    ]) {
      it(`refuses ${bad}`, () => {
        expect(() => parse(bad)).to.throw(/must be host:port/);
      });
    }
    it('refuses an address that occurs twice', () => {
      expect(() => parse('a:1,b:2,a:1')).to.throw(/once, but names "a:1" twice/);
    });
  });

  it('shows the length, not the value, of a secret that is too short', () => {
    const key = text({ env: 'X', doc: 'A text.', minLength: 5, range: '5 or more' });
    expect(() => key.parse('abcd')).to.throw(/must have at least 5 characters, but has 4$/);
    expect(key.parse('abcde')).to.equal('abcde');
  });
});
